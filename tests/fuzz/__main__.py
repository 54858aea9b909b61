"""Attack the library at random, for so many minutes.

    python -m tests.fuzz --minutes 10             inputs, files and saves in turn
    python -m tests.fuzz --only files --seed 7    one kind, from this seed on
    python -m tests.fuzz --repeat inputs:12345    one attack again, with its whole traceback
    python -m tests.fuzz --interrupts 100         so many Ctrl-C for every estimator and every command

| kind | what is attacked | with what |
|---|---|---|
| inputs | every estimator and public function | arrays, tables and sparse matrices of all kinds, parameters at random |
| files | every command and reader | tables in every format, with bits, bytes, fields and lines changed |
| saves | saved streams and checkpoints | the same |

Each batch runs in a process of its own with limits on memory and time. Counted are crashes, hangs, models that are not finite,
results that are half-written, and raw exceptions: anything but an error that the package raises itself, with a sentence. Crashes
and hangs inside h5py, on damaged .h5ad files, are counted apart.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time

from tests.fuzz.child import KINDS

BATCH = 150
# The HDF5 library reads damaged files beyond their end now and then, or for ever. That is counted, but is not ours to mend.
OUTSIDE = {"crash inside h5py", "hang inside h5py"}
PATIENCE = 120.0  # seconds for one attack, compiling included


class Batch:
    """A child process and what it has reported."""

    def __init__(self, kind: str, first: int, count: int) -> None:
        command = [sys.executable, "-m", "tests.fuzz.child", kind, str(first), str(count)]
        # Results must not depend on threads, and a crash is easier to read with one of BLAS.
        variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "500", "TERM": "dumb"}
        self.process = subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.err = b""
        self._left = b""

    def lines(self, deadline: float):
        """Yield reports as they come; ends when the process does, or stays silent for too long, or time is up."""
        selector = selectors.DefaultSelector()
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        heard = time.monotonic()
        while selector.get_map():
            now = time.monotonic()
            if now - heard > PATIENCE:
                yield {"hang": True}
                return
            if now > deadline:
                yield {"over": True}
                return
            for key, _ in selector.select(timeout=1.0):
                data = key.fileobj.read()
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is self.process.stderr:
                    self.err = (self.err + data)[-20_000:]
                else:
                    heard = time.monotonic()
                    *whole, self._left = (self._left + data).split(b"\n")
                    yield from map(json.loads, whole)
        self.process.wait()

    def stop(self) -> None:
        """Ask for the stacks of all threads, then kill it and everything it started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.err += self.process.stderr.read() or b""


class Tally:
    """Counts of what was run and found."""

    def __init__(self) -> None:
        self.done: collections.Counter[str] = collections.Counter()
        self.found: collections.Counter[str] = collections.Counter()

    def failure(self, kind: str, seed: int, report: dict[str, str]) -> None:
        self.found[report["found"]] += 1
        print(f"\n== {report['found']}: {report.get('case', '')}\n{report.get('detail', '').rstrip()}")
        print(f"   again: python -m tests.fuzz --repeat {kind}:{seed}", flush=True)

    def summary(self, minutes: float) -> str:
        counts = ", ".join(f"{number:,} {kind}" for kind, number in self.done.items())
        found = ", ".join(f"{number} {kind}" for kind, number in self.found.items()) or "nothing"
        return f"{minutes:.1f} minutes: {counts}; found: {found}"


def run_batch(kind: str, first: int, count: int, tally: Tally, deadline: float) -> None:
    """Run attacks first, ..., first + count − 1, starting anew behind each that takes its process with it."""
    last = first + count
    while first < last and time.monotonic() < deadline:
        batch, current, ended = Batch(kind, first, last - first), first, False
        for report in batch.lines(deadline):
            if "hang" in report:
                batch.stop()
                tally.failure(kind, current, post_mortem(batch, "hang"))
                break
            if "over" in report:
                batch.stop()
                return
            current = report.get("begin", current)
            if "end" in report:
                tally.done[kind] += 1
                ended = report["end"] == last - 1
                if "found" in report:
                    tally.failure(kind, report["end"], report)
        else:
            if not ended:
                tally.failure(kind, current, post_mortem(batch, "crash"))
        first = last if ended else current + 1


def post_mortem(batch: Batch, what: str) -> dict[str, str]:
    """What is known of a process that died or hung: the stacks that faulthandler has written."""
    text = batch.err.decode(errors="replace")
    begins = max(text.rfind("Fatal Python error"), text.rfind("Current thread"))
    stack = text[begins:][:3000] if begins >= 0 else text[-3000:]
    innermost = next((line for line in stack.splitlines() if line.lstrip().startswith("File ")), "")
    return {
        "found": f"{what} inside h5py" if "/h5py/" in innermost else what,
        "detail": f"exit code {batch.process.returncode}\n{stack}",
    }


def repeat(what: str) -> int:
    kind, _, seed = what.partition(":")
    from tests.fuzz.child import run

    found = run(kind, int(seed))
    print(json.dumps(found, indent=2).replace("\\n", "\n") if found else "nothing found")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the first attack"
    )
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=list(KINDS), help="kinds, by commas"
    )
    parser.add_argument("--repeat", metavar="KIND:SEED")
    parser.add_argument("--interrupts", type=int, metavar="N")
    options = parser.parse_args()
    if options.repeat:
        return repeat(options.repeat)
    if options.interrupts:
        from tests.fuzz import interrupts

        return interrupts.main(options.interrupts, options.seed)
    unknown = sorted(set(options.only) - set(KINDS))
    if unknown:
        parser.error(f"there is no kind {unknown[0]!r}; it is one of {', '.join(KINDS)}")
    tally, begun, seed = Tally(), time.monotonic(), options.seed
    print(f"seed {seed}", flush=True)
    deadline = begun + 60 * options.minutes
    while time.monotonic() < deadline:
        for kind in options.only:
            run_batch(kind, seed, BATCH, tally, deadline)
        seed += BATCH
    print(tally.summary((time.monotonic() - begun) / 60))
    return 1 if set(tally.found) - OUTSIDE else 0


if __name__ == "__main__":
    sys.exit(main())
