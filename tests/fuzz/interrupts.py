"""Ctrl-C at random moments: over every estimator and function, and over every command.

After an interrupted fit a model is what it was before, to the last bit, or the new one, whole; the error is a KeyboardInterrupt.
An interrupted command ends with exit code 130, without a traceback, and leaves the old results or the new ones, whole. What a
killed command leaves behind, the next one removes.

    python -m tests.fuzz --interrupts 100          all of it
    python -m tests.fuzz.interrupts fits 5 0       five each, seed 0; or: commands 5 0, kills 5 0

A moment of a fit is a time, drawn between the start and the end of an undisturbed run; that of a command is a function call.
"""

from __future__ import annotations

import collections
import copy
import hashlib
import inspect
import itertools
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import givens
from givens.datasets import make_topics
from givens.objectives import Columns, JointDiagonal, SparseColumns
from tests.net.output_files import write_file
from tests.test_interrupted_fits import arguments, cases, estimators, state, unfitted

Counts = collections.Counter[str]
FINE = {"interrupted", "finished", "killed", "files found behind"}
LARGE = np.asarray(make_topics(150, n_components=3, n_words=40, random_state=0).X.toarray()) + 1.0
OTHER = np.asarray(make_topics(120, n_components=4, n_words=40, random_state=1).X.toarray()) + 2.0


def interrupted(call: Callable[[], Any], delay: float) -> str:
    """What becomes of a call that gets Ctrl-C after so many seconds: "interrupted", "finished", or what went wrong."""
    arrived, calling = 0, True

    def ring(number: int, frame: Any) -> None:
        nonlocal arrived
        arrived += 1
        if calling:
            signal.raise_signal(signal.SIGINT)  # a handler of SIGINT may delay it

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))
        call()
        calling = False
        outcome = "Ctrl-C was lost" if arrived else "finished"
    except KeyboardInterrupt:
        outcome = "interrupted"
    except BaseException as error:
        traceback.print_exc()
        outcome = f"raised {type(error).__name__}"
    calling = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return outcome


@dataclass
class Target:
    """Something to interrupt: how to make it, what is interrupted, and what can be seen of it."""

    make: Callable[[], Any]
    change: Callable[[Any], Any]
    look: Callable[[Any], Any]

    def changed(self) -> Any:
        subject = self.make()
        self.change(subject)
        return self.look(subject)

    def attack(self, count: int, rng: np.random.Generator) -> Counts:
        """Interrupt the change so many times: it has happened as a whole or not at all, and can be made anew."""
        before, after = self.look(self.make()), self.changed()
        began = time.perf_counter()
        self.change(self.make())
        seconds = time.perf_counter() - began
        counts: Counts = collections.Counter()
        for _ in range(count):
            trial = self.make()
            outcome = interrupted(partial(self.change, trial), rng.uniform(0, seconds))
            counts[outcome] += 1
            counts["changed in part"] += outcome != "finished" and self.look(trial) not in (before, after)
            counts["other results afterwards"] += self.changed() != after
        return counts


def of_model(model: Any, change: Callable[[Any], Any]) -> Target:
    """The copies have one and two threads in turn."""
    threads = itertools.cycle([1, 2])

    def make() -> Any:
        trial = copy.deepcopy(model)
        return trial.set_params(threads=next(threads)) if "threads" in trial.get_params() else trial

    def look(trial: Any) -> dict[str, str]:
        # How long a fit took differs each time.
        return {name: word for name, word in state(trial, LARGE).items() if name not in ("result_", "trace_")}

    return Target(make, change, look)


def of_function(call: Callable[[], Any]) -> Target:
    return Target(dict, lambda told: told.update(found=joblib.hash(call())), dict)


SETTINGS: dict[str, dict[str, Any]] = {
    "SparsePCA(n_nonzero)": {"n_nonzero": 5},
    "SparsePCA(l0)": {"threshold": ("l0", 0.1)},
    "SparsePCA(stability)": {"stability": 2},
    "ICA(adaptive, stability)": {"contrast": "adaptive", "stability": 2},
}


def models() -> Iterator[tuple[str, Target]]:
    """Fitted models, and what changes them: every method of every estimator that fits, and settings that run other code."""
    for cls, fit in cases():
        model = unfitted(cls)
        getattr(model, fit)(*arguments(fit, LARGE))
        yield (
            f"{cls.__name__}.{fit}",
            of_model(model, lambda m, fit=fit: getattr(m, fit)(*arguments(fit, OTHER))),
        )
    for cls in estimators():
        if hasattr(cls, "merge"):
            basis = {"basis_samples": 100}
            model = unfitted(cls)
            model.set_params(**{key: value for key, value in basis.items() if key in model.get_params()})
            model.partial_fit(LARGE)
            other = (model.sibling() if hasattr(model, "sibling") else unfitted(cls)).partial_fit(OTHER)
            yield f"{cls.__name__}.merge", of_model(model, lambda m, other=other: m.merge(other))
            # What streams have seen is solved when someone asks for it.
            yield f"{cls.__name__}, read", of_model(model, partial(state, X=LARGE))
    for name, settings in SETTINGS.items():
        cls = getattr(givens, name.partition("(")[0])
        yield (
            name,
            of_model(cls(n_components=2, random_state=0, **settings).fit(LARGE), lambda m: m.fit(OTHER)),
        )


def functions() -> dict[str, Target]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 12))
    stack = np.array([M + M.T for M in rng.standard_normal((6, 12, 12))])
    T = rng.standard_normal((8, 8, 8))
    several = {"n_starts": 4, "certify": True, "threads": 2, "random_state": 0}
    calls: dict[str, Callable[[], Any]] = {
        "minimize(varimax)": lambda: givens.minimize(Columns(A, "varimax"), tol=0).U,
        "minimize(logcosh)": lambda: givens.minimize(Columns(A, "logcosh")).U,
        "minimize(certify, n_starts)": lambda: givens.minimize(Columns(A, "exp"), **several).U,
        "minimize(sparse)": lambda: givens.minimize(SparseColumns(A, 0.5), threads=2).U,
        "minimize(joint)": lambda: givens.minimize(JointDiagonal(stack)).U,
        "minimize(function)": lambda: givens.minimize(lambda U: float(np.sum(U**4)), n=5, random_state=0).U,
        "joint_diagonalize": lambda: givens.joint_diagonalize(stack)[0],
        "decompose": lambda: givens.decompose(T, symmetrize=True, random_state=0).factors,
        "sparse_pca_path": lambda: givens.sparse_pca_path(LARGE, n_components=2, random_state=0).components,
        "check_objective": lambda: givens.check_objective(Columns(A[:40, :4], "varimax")),
    }
    return {name: of_function(call) for name, call in calls.items()}


def checkpoint(folder: Path) -> Target:
    """A run that saves itself: the next one goes on from there, and ends in the same bits."""
    A = np.random.default_rng(0).standard_normal((300, 12))
    numbers = itertools.count()

    def run(path: Path) -> str:
        saved = givens.Checkpoint(path, every=2)
        return joblib.hash(givens.minimize(SparseColumns(A, 0.5), tol=0, checkpoint=saved).U)

    return Target(lambda: folder / f"{next(numbers)}", run, run)


# By the words of a command, what it runs.
COMMANDS = {
    name: shlex.split(f"{line} --out results")
    for name, line in {
        "sparse-pca": "sparse-pca labels.x.csv -m 2 --n-nonzero 3 --labels kind",
        "sparse-pca --stream": "sparse-pca labels.x.csv -m 2 --n-nonzero 3 --stream --labels kind",
        "mixture": "mixture labels.x.csv -k 2 --labels kind",
        "tensor": "tensor tensor.npy",
        "topics": "topics counts.csv -k 2",
        "rotate": "rotate x.csv -m 3",
        "ica": "ica x.csv -m 3 --stability 2",
        "compare": "compare first second",
        "demo": "demo",
    }.items()
}


def run(folder: Path, words: list[str], prepare: Callable[[], None]) -> int:
    """Fork a process that runs a command as from a shell; return its exit code."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 1
    try:
        os.chdir(folder)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["givens", *words]
        from givens.app.commands import main

        prepare()
        main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        (folder / "calls").write_text(str(CallCounter.seen))
        sys.stderr.flush()
        os._exit(code)


class CallCounter:
    """Counts calls of the package's functions, and sends SIGINT at one of them.

    A generator is called when it goes on, and also when it is deleted, where Python prints an interrupt and goes on.
    """

    seen = 0

    def __init__(self, moment: int) -> None:
        self.moment = moment

    def __call__(self, frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and "/givens/" in code.co_filename and not code.co_flags & inspect.CO_GENERATOR:
            CallCounter.seen += 1
            if CallCounter.seen == self.moment:
                os.kill(os.getpid(), signal.SIGINT)


def kill_at(moment: int) -> None:
    """Let this process kill itself at this call of `os.fsync` or `os.replace`: as a file gets complete, or its name."""
    seen = itertools.count(1)

    def killing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if next(seen) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **keywords)

        return call

    os.fsync, os.replace = killing(os.fsync), killing(os.replace)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*")}


def wrongs(name: str, folder: Path, code: int, old: dict[str, str]) -> list[str]:
    """What is wrong after a command has ended: nothing, if all is well."""
    err, found = (folder / "stderr").read_text(), contents(folder / "results")
    whole = {"report.html", "summary.json"} <= set(found)
    # The demo writes its table first.
    new = [file for file in found if old.get(file) != found[file] and file != "breast_cancer.csv"]
    wrong = {
        f"exit code {code}": code not in (0, 130),
        "tracebacks": "Traceback" in err or "Exception ignored" in err,
        "no sentence": code != 0 and "stopped" not in err,
        "files left behind": any(file.endswith(".part") for file in found),
        "half-written results": code == 130 and bool(new) and not whole,
        "no results": code == 0 and not whole,
        "an empty folder": code == 130 and not old and not found and (folder / "results").exists(),
    }
    kinds = [kind for kind, is_so in wrong.items() if is_so]
    if kinds:
        print(f"{name}: {kinds}, exit code {code}, {sorted(found)}\n{err[-8000:]}", flush=True)
    return kinds


def attack_command(name: str, count: int, rng: np.random.Generator, folder: Path) -> Counts:
    """Interrupt a command so many times, every other time where earlier results lie."""
    words, counts = COMMANDS[name], collections.Counter()
    run(folder, words, lambda: sys.setprofile(CallCounter(0)))
    calls = int((folder / "calls").read_text())
    for k in range(count):
        for path in (folder / "results").glob("*"):
            path.unlink()
        if k % 2:
            (folder / "results").mkdir(exist_ok=True)
            (folder / "results" / "components.csv").write_text("of before")
        elif (folder / "results").exists():
            (folder / "results").rmdir()
        old = contents(folder / "results")
        code = run(folder, words, partial(sys.setprofile, CallCounter(int(rng.integers(1, calls + 1)))))
        counts["interrupted" if code == 130 else "finished"] += 1
        counts.update(wrongs(name, folder, code, old))
    return counts


def attack_by_kills(name: str, count: int, rng: np.random.Generator, folder: Path) -> Counts:
    """Kill a command where it writes, so many times; the next run removes what is left behind, and ends as ever."""
    words, counts = COMMANDS[name], collections.Counter()
    for _ in range(count):
        # The first is the file that proves that there is room for results.
        code = run(folder, words, partial(kill_at, int(rng.integers(2, 7))))
        counts["killed" if code == -signal.SIGKILL else f"exit code {code}"] += 1
        counts["files found behind"] += sum(file.endswith(".part") for file in contents(folder / "results"))
    counts.update(wrongs(name, folder, run(folder, words, lambda: None), {}))
    return counts


def attacks(kind: str) -> Iterator[tuple[str, Callable[..., Counts]]]:
    with tempfile.TemporaryDirectory(prefix="interrupts-") as place:
        if kind == "fits":
            targets = {**dict(models()), **functions(), "minimize(checkpoint)": checkpoint(Path(place))}
            yield from ((name, target.attack) for name, target in targets.items())
            return
        from givens.app.commands import app  # noqa: F401  imported once, for all processes that are forked

        for name, words in COMMANDS.items():
            folder = Path(place) / name
            folder.mkdir()
            for word in words:
                write_file(folder, word)
            attack = attack_by_kills if kind == "kills" else attack_command
            yield f"givens {name}", partial(attack, name, folder=folder)


def run_kind(kind: str, count: int, seed: int) -> bool:
    """Make all attacks of a kind; whether they found nothing."""
    rng, good = np.random.default_rng(seed), True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, attack in attacks(kind):
            counts = +attack(count=count, rng=rng)
            print(f"{name:40} {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}", flush=True)
            good &= set(counts) <= FINE
    return good


def main(count: int, seed: int) -> int:
    """Attack everything, fits and commands in processes of their own: a fork must not follow threads."""
    command = [sys.executable, "-m", "tests.fuzz.interrupts"]
    return max(
        subprocess.run([*command, kind, str(count), str(seed)]).returncode for kind in ("fits", "commands")
    )


if __name__ == "__main__":
    # A shell's background jobs ignore Ctrl-C, and so would this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(not run_kind(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
