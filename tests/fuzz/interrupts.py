"""Ctrl-C at random moments: over every estimator and function, and over every command.

After an interrupted fit a model is what it was before, to the last bit, or the new one, whole; the error is a KeyboardInterrupt.
An interrupted command ends with exit code 130, without a traceback, and leaves the old results or the new ones, whole.

    python -m tests.fuzz --interrupts 100          all of it
    python -m tests.fuzz.interrupts fits 5 0       five each, seed 0; or: commands 5 0, kills 5 0; [NAME,NAME] for some

A moment is a time, drawn between the start and the end of an undisturbed run; or, for tests, a number of function calls.
"""

from __future__ import annotations

import collections
import copy
import functools
import hashlib
import inspect
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import givens
from givens.datasets import make_topics
from givens.objectives import Columns, JointDiagonal, SparseColumns
from tests.test_interrupted_fits import arguments, cases, estimators, state, unfitted

TIMES = ("result_", "trace_")
MOST = 3  # trials for one that is interrupted before its end
Counts = collections.Counter[str]
LARGE = np.asarray(make_topics(150, n_components=3, n_words=40, random_state=0).X.toarray()) + 1.0
OTHER = np.asarray(make_topics(120, n_components=4, n_words=40, random_state=1).X.toarray()) + 2.0


SENDER = """
import os, select, signal, sys
for line in sys.stdin.buffer.raw:
    late = select.select([0], [], [], float(line))[0]
    if late:
        os.read(0, 1)
    else:
        os.kill(os.getppid(), signal.SIGINT)
        os.read(0, 1)
    os.write(1, b"n" if late else b"y")
"""


class Sender:
    """A process that sends SIGINT to this one after so many seconds, unless told that it is too late.

    A thread would have to wait for the interpreter, and would send most of them when Python code runs.
    """

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", SENDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.start(60.0)
        self.stop()  # so that it is ready

    def start(self, delay: float) -> None:
        self._write(f"{delay}\n".encode())

    def stop(self) -> bool:
        """Whether it was sent; then it has arrived."""
        self._write(b"x")
        assert self._child.stdout is not None
        return self._child.stdout.read(1) == b"y"

    def _write(self, words: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(words)


class Clock:
    """How long a call takes undisturbed: the median of its last runs, since other work may slow it down."""

    def __init__(self) -> None:
        self.seconds: collections.deque[float] = collections.deque(maxlen=5)

    def time(self, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        returned = call()
        self.seconds.append(time.perf_counter() - began)
        return returned

    def moment(self, rng: np.random.Generator) -> float:
        return rng.uniform(0, float(np.median(self.seconds)))


@functools.cache
def _sender() -> Sender:
    return Sender()


def interrupted(call: Callable[[], Any], delay: float) -> str:
    """What becomes of a call that is interrupted: "interrupted", "finished", or what went wrong."""
    arrived, sender = 0, _sender()

    def handler(number: int, frame: Any) -> None:
        nonlocal arrived
        arrived += 1
        if calling:
            raise KeyboardInterrupt

    calling, before = True, signal.signal(signal.SIGINT, handler)
    try:
        sender.start(delay)
        call()
        outcome = "finished"
    except KeyboardInterrupt:
        outcome = "interrupted"
    except BaseException as error:
        traceback.print_exc()
        outcome = f"raised {type(error).__name__}"
    finally:
        calling = False
    came = arrived
    sender.stop()
    signal.signal(signal.SIGINT, before)
    return "Ctrl-C was lost" if outcome == "finished" and came else outcome


def _until(counts: Counts, count: int) -> Iterator[int]:
    """Numbers of trials, until so many were interrupted: some end before their interrupt comes."""
    for k in range(MOST * count):
        if counts["interrupted"] >= count:
            return
        yield k


def same(found: dict[str, str], expected: dict[str, str], but: tuple[str, ...] = ()) -> bool:
    return {k: v for k, v in found.items() if k not in but} == {
        k: v for k, v in expected.items() if k not in but
    }


Change = Callable[[Any], Any]


def changes() -> dict[str, tuple[Any, Change]]:
    """Fitted models, and what changes them: every method of every estimator that fits, and settings that run other code."""
    found: dict[str, tuple[Any, Change]] = {}
    for cls, fit in cases():
        model = unfitted(cls)
        getattr(model, fit)(*arguments(fit, LARGE))
        found[f"{cls.__name__}.{fit}"] = model, _fitting(fit, OTHER)
    for cls in estimators():
        if hasattr(cls, "merge"):
            basis = {"basis_samples": 100, "basis_documents": 100}
            model = unfitted(cls)
            model.set_params(**{key: value for key, value in basis.items() if key in model.get_params()})
            model.partial_fit(LARGE)
            other = model.sibling() if hasattr(model, "sibling") else unfitted(cls)
            found[f"{cls.__name__}.merge"] = model, partial(_merge, other=other.partial_fit(OTHER))
            # What streams have seen is solved when someone asks for it.
            found[f"{cls.__name__}, read"] = model, partial(state, X=LARGE)
    for name, settings in SETTINGS.items():
        cls, _, _ = name.partition("(")
        model = getattr(givens, cls)(n_components=2, random_state=0, **settings).fit(LARGE)
        found[name] = model, _fitting("fit", OTHER)
    return found


SETTINGS: dict[str, dict[str, Any]] = {
    "SparsePCA(n_nonzero)": {"n_nonzero": 5},
    "SparsePCA(l0)": {"penalty": "l0"},
    "SparsePCA(stability)": {"stability": 2},
    "ICA(adaptive, stability)": {"contrast": "adaptive", "stability": 2},
}


def _fitting(fit: str, X: np.ndarray) -> Change:
    return lambda model: getattr(model, fit)(*arguments(fit, X))


def _merge(model: Any, other: Any) -> Any:
    return model.merge(other)


def attack_model(model: Any, change: Change, count: int, rng: np.random.Generator) -> Counts:
    """Interrupt so many times what changes a fitted model, every other time with two threads."""
    before = state(copy.deepcopy(model), LARGE)
    # A stream is solved when its attributes are read, in another time each time.
    lazy = TIMES if state(copy.deepcopy(model), LARGE) != before else ()
    changed, clock = copy.deepcopy(model), Clock()
    change(changed)
    after = state(changed, LARGE)
    clock.time(partial(change, copy.deepcopy(model)))
    counts: Counts = collections.Counter()
    for k in _until(counts, count):
        trial = copy.deepcopy(model)
        if "threads" in trial.get_params():
            trial.set_params(threads=1 + k % 2)
        outcome = interrupted(partial(change, trial), clock.moment(rng))
        counts[outcome] += 1
        # An interrupt may come when the new model is in its place already; how long its fit took differs each time.
        if (
            outcome != "finished"
            and not same(state(trial, LARGE), before, lazy)
            and not same(state(trial, LARGE), after, TIMES)
        ):
            counts["changed models"] += 1
        trial = copy.deepcopy(model)
        clock.time(partial(change, trial))  # locks, threads and caches still serve
        if not same(state(trial, LARGE), after, TIMES):
            counts["other results afterwards"] += 1
    return counts


def functions() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 12))
    stack = [M + M.T for M in rng.standard_normal((6, 12, 12))]
    T = rng.standard_normal((8, 8, 8))
    return {
        "minimize(varimax)": lambda: givens.minimize(Columns(A, "varimax"), tol=0).U,
        "minimize(logcosh)": lambda: givens.minimize(Columns(A, "logcosh")).U,
        "minimize(certify, n_starts)": lambda: (
            givens.minimize(Columns(A, "exp"), n_starts=4, certify=True, threads=2, random_state=0).U
        ),
        "minimize(sparse)": lambda: givens.minimize(SparseColumns(A, 0.5), threads=2).U,
        "minimize(joint)": lambda: givens.minimize(JointDiagonal(np.array(stack))).U,
        "minimize(function)": lambda: givens.minimize(lambda U: float(np.sum(U**4)), n=5, random_state=0).U,
        "joint_diagonalize": lambda: givens.joint_diagonalize(stack)[0],
        "decompose": lambda: givens.decompose(T, symmetrize=True, random_state=0).factors,
        "sparse_pca_path": lambda: givens.sparse_pca_path(LARGE, n_components=2, random_state=0).components,
        "check_objective": lambda: givens.check_objective(Columns(A[:40, :4], "varimax")),
    }


def attack_function(call: Callable[[], Any], count: int, rng: np.random.Generator) -> Counts:
    """Interrupt a function so many times; the next call gives what it always gives."""
    expected, clock = joblib.hash(call()), Clock()
    clock.time(call)
    counts: Counts = collections.Counter()
    for _ in _until(counts, count):
        counts[interrupted(call, clock.moment(rng))] += 1
        if joblib.hash(clock.time(call)) != expected:
            counts["other results afterwards"] += 1
    return counts


def attack_checkpoint(count: int, rng: np.random.Generator) -> Counts:
    """Interrupt a run that saves itself; the next call goes on from there, and ends in the same bits."""
    A = np.random.default_rng(0).standard_normal((300, 12))

    def run(path: Path) -> np.ndarray:
        return givens.minimize(SparseColumns(A, 0.5), tol=0, checkpoint=givens.Checkpoint(path, every=2)).U

    counts: Counts = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="interrupts-") as name:
        folder, clock = Path(name), Clock()
        expected = clock.time(partial(run, folder / "undisturbed"))
        for k in _until(counts, count):
            path = folder / f"{k}"
            counts[interrupted(partial(run, path), clock.moment(rng))] += 1
            if not np.array_equal(run(path), expected):
                counts["other results afterwards"] += 1
        if any(path.name.endswith(".part") for path in folder.iterdir()):
            counts["files left behind"] += 1
    return counts


TABLE = "name,kind," + ",".join(f"v{k}" for k in range(12)) + "\n"
COMMANDS = {
    "sparse-pca": ["sparse-pca", "x.csv", "-m", "2", "--n-nonzero", "3", "--labels", "kind"],
    "sparse-pca --stream": [
        "sparse-pca",
        "x.csv",
        "-m",
        "2",
        "--n-nonzero",
        "3",
        "--stream",
        "--labels",
        "kind",
    ],
    "mixture": ["mixture", "x.csv", "-k", "2", "--labels", "kind"],
    "tensor": ["tensor", "t.npy"],
    "topics": ["topics", "counts.csv", "-k", "2"],
    "rotate": ["rotate", "x.csv", "-m", "3", "--drop", "kind"],
    "ica": ["ica", "x.csv", "-m", "3", "--drop", "kind", "--stability", "2"],
    "compare": ["compare", "first", "second"],
    "demo": ["demo"],
}
IMPORTS = "imports"
LONGEST = 3.0  # seconds within which a long command is interrupted


def write_inputs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([[9] * 6 + [2] * 6, [2] * 6 + [9] * 6], 30, axis=0)) + 1
    rows = [f"s{k},{'ab'[k % 2]}," + ",".join(map(str, row)) for k, row in enumerate(X)]
    (folder / "x.csv").write_text(TABLE + "\n".join(rows) + "\n")
    plain = [f"d{k}," + ",".join(map(str, row)) for k, row in enumerate(X)]
    (folder / "counts.csv").write_text(
        "name," + ",".join(f"w{k}" for k in range(12)) + "\n" + "\n".join(plain) + "\n"
    )
    V = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    np.save(folder / "t.npy", np.einsum("k,ak,bk,ck->abc", np.arange(1.0, 7), V, V, V))
    for k, name in enumerate(("first", "second")):
        (folder / name).mkdir()
        weights = [f"v{j},{j % 3 - 1},{(j + k) % 4}" for j in range(12)]
        (folder / name / "components.csv").write_text("variable,one,two\n" + "\n".join(weights) + "\n")


def start(folder: Path, words: list[str], calls: int | None = None, writes: int | None = None) -> int:
    """Fork a process that runs a command as from a shell.

    With `calls`, it interrupts itself at that function call; with `writes`, it kills itself when that file is about to be
    complete, or to get its name.
    """
    ready, tell = os.pipe()
    process = os.fork()
    if process:
        os.close(tell)
        os.read(ready, 1)  # or its end, where the process has died
        os.close(ready)
        return process
    code = 1
    try:
        os.chdir(folder)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["givens", *words]
        from givens.app.commands import main

        if writes is not None:
            _kill_at(writes)
        if calls is not None:
            sys.setprofile(_Counter(calls))
        os.close(tell)
        main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        if calls is not None:
            print(f"calls {_Counter.seen}", flush=True)
        sys.stderr.flush()
        os._exit(code)


def _kill_at(moment: int) -> None:
    """Let this process kill itself at this call of `os.fsync` or `os.replace`."""
    seen = itertools.count(1)

    def killing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if next(seen) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **keywords)

        return call

    os.fsync, os.replace = killing(os.fsync), killing(os.replace)


def attack_by_kills(name: str, count: int, rng: np.random.Generator) -> Counts:
    """Kill a command where it writes, so many times; the next run removes what is left behind, and ends as ever."""
    words = [*COMMANDS[name], "--out", "results"]
    counts: Counts = collections.Counter()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        write_inputs(folder)
        for _ in range(count):
            # The first is the file that proves that there is room for results.
            code = os.waitstatus_to_exitcode(
                os.waitpid(start(folder, words, writes=int(rng.integers(2, 7))), 0)[1]
            )
            left = [file for file in contents(folder / "results") if file.endswith(".part")]
            counts["killed" if code == -signal.SIGKILL else f"exit code {code}"] += 1
            counts["files found behind"] += len(left)
        code = os.waitstatus_to_exitcode(os.waitpid(start(folder, words), 0)[1])
        counts.update(look(name, folder, code, {}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts


class _Counter:
    """Counts calls of the package's functions, and sends SIGINT at one of them.

    A generator is called when it goes on, and also when it is deleted, where Python prints an interrupt and goes on.
    """

    seen = 0

    def __init__(self, moment: int) -> None:
        self.moment = moment

    def __call__(self, frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and "/givens/" in code.co_filename and not code.co_flags & inspect.CO_GENERATOR:
            _Counter.seen += 1
            if _Counter.seen == self.moment:
                os.kill(os.getpid(), signal.SIGINT)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def look(name: str, folder: Path, code: int, old: dict[str, str]) -> list[str]:
    """What is wrong after a command has ended: nothing, if all is well."""
    wrong, out, err = [], folder / "results", (folder / "stderr").read_text()
    found = contents(out) if out.exists() else {}
    if code not in (0, 130):
        wrong.append(f"exit code {code}")
    if "Traceback" in err or "Exception ignored" in err:
        wrong.append("tracebacks")
    if code != 0 and "stopped" not in err:
        wrong.append("no sentence")
    if any(file.endswith(".part") for file in found):
        wrong.append("files left behind")
    whole = "report.html" in found and "summary.json" in found
    apart = [file for file in found if old.get(file) != found[file]]
    if name == "demo":
        apart = [file for file in apart if file != "breast_cancer.csv"]
    if code == 130 and apart and not whole:
        wrong.append("half-written results")
    if code == 0 and not whole:
        wrong.append("no results")
    if code == 130 and not old and out.exists() and not found and name != "demo":
        wrong.append("an empty folder")
    if wrong:
        shown = err if len(err) < 8000 else f"{err[:5000]}\n...\n{err[-2000:]}"
        print(f"{name}: {wrong}, exit code {code}, {sorted(found)}\n{shown}", flush=True)
    return wrong


def attack_command(name: str, count: int, rng: np.random.Generator, *, by_calls: bool = False) -> Counts:
    """Interrupt a command so many times, every other time where results of before lie."""
    words = [*COMMANDS[name], "--out", "results"]
    counts: Counts = collections.Counter()
    folder = Path(tempfile.mkdtemp(prefix="interrupts-"))
    try:
        write_inputs(folder)
        calls, seconds = _undisturbed(folder, words, by_calls)
        for k in _until(counts, count):
            shutil.rmtree(folder / "results", ignore_errors=True)
            old = {}
            if k % 2:
                (folder / "results").mkdir()
                (folder / "results" / "components.csv").write_text("of before")
                old = contents(folder / "results")
            if by_calls:
                process = start(folder, words, int(rng.integers(1, calls + 1)))
            else:
                process = start(folder, words)
                time.sleep(rng.uniform(0, seconds))
                if os.waitpid(process, os.WNOHANG)[0] == 0:
                    os.kill(process, signal.SIGINT)
                else:
                    process, code = 0, 0
            if process:
                code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            counts["interrupted" if code == 130 else "finished"] += 1
            counts.update(look(name, folder, code, old))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts


def _undisturbed(folder: Path, words: list[str], by_calls: bool) -> tuple[int, float]:
    """How many calls and seconds a run takes."""
    began = time.perf_counter()
    os.waitpid(start(folder, words, 0 if by_calls else None), 0)
    seconds = time.perf_counter() - began
    calls = int((folder / "stdout").read_text().split("calls ")[-1]) if by_calls else 0
    return calls, min(seconds, LONGEST)


def attack_start(name: str, count: int, rng: np.random.Generator) -> Counts:
    """Interrupt a command while Python still imports its modules: a process of its own each time."""
    counts: Counts = collections.Counter()
    folder = Path(tempfile.mkdtemp(prefix="interrupts-"))
    # Until its first function runs, Python itself answers Ctrl-C with a traceback, as in any program.
    code = "from givens.app.commands import main\nprint('ready', flush=True)\nmain()"
    try:
        write_inputs(folder)
        for _ in range(count):
            with (folder / "stderr").open("w") as err:
                child = subprocess.Popen(
                    [sys.executable, "-c", code, *COMMANDS[name], "--out", "results"],
                    cwd=folder, stdout=subprocess.PIPE, stderr=err, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                )  # fmt: skip
                assert child.stdout is not None
                child.stdout.readline()
                time.sleep(rng.uniform(0.02, 1.5))
                child.send_signal(signal.SIGINT)
                child.stdout.read()
                child.wait()
            counts["interrupted" if child.returncode == 130 else "finished"] += 1
            counts.update(look(name, folder, child.returncode, {}))
            shutil.rmtree(folder / "results", ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts


def fine(counts: Counts) -> bool:
    return not set(counts) - {"interrupted", "finished", "killed", "files found behind"}


def report(name: str, counts: Counts) -> bool:
    print(f"{name:40} {', '.join(f'{number} {what}' for what, number in sorted(counts.items()))}", flush=True)
    return fine(counts)


def attack_fits(count: int, seed: int, names: list[str] | None = None) -> bool:
    """All models and functions, or those whose names begin so."""
    rng, good = np.random.default_rng(seed), True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attacks: dict[str, Callable[..., Counts]] = {
            name: partial(attack_model, model, change) for name, (model, change) in changes().items()
        }
        attacks |= {name: partial(attack_function, call) for name, call in functions().items()}
        attacks["minimize(checkpoint)"] = attack_checkpoint
        for name, attack in attacks.items():
            if names is None or name.startswith(tuple(names)):
                good &= report(name, attack(count, rng))
    return good


def attack_commands(
    count: int, seed: int, names: list[str], *, by_calls: bool = False, by_kills: bool = False
) -> bool:
    from givens.app.commands import app  # noqa: F401  imported once, for all processes that are forked

    rng, good = np.random.default_rng(seed), True
    for name in names:
        if by_kills:
            good &= report(f"givens {name}", attack_by_kills(name, count, rng))
        elif name == IMPORTS:
            good &= report("givens, while it is imported", attack_start("rotate", count, rng))
        else:
            good &= report(f"givens {name}", attack_command(name, count, rng, by_calls=by_calls))
    return good


def main(count: int, seed: int) -> int:
    """Everything, fits and commands in processes of their own: a fork must not follow threads."""
    codes = [
        subprocess.run(
            [sys.executable, "-m", "tests.fuzz.interrupts", kind, str(count), str(seed)]
        ).returncode
        for kind in ("fits", "commands")
    ]
    return max(map(abs, codes))


if __name__ == "__main__":
    # A shell's background jobs ignore Ctrl-C, and so would this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    what, number, first_seed, *rest = sys.argv[1:]
    if what == "fits":
        sys.exit(not attack_fits(int(number), int(first_seed), rest[0].split(",") if rest else None))
    if what == "kills":
        chosen = rest[0].split(",") if rest else list(COMMANDS)
        sys.exit(not attack_commands(int(number), int(first_seed), chosen, by_kills=True))
    chosen = rest[0].split(",") if rest else [*COMMANDS, IMPORTS]
    sys.exit(not attack_commands(int(number), int(first_seed), chosen, by_calls="by-calls" in rest))
