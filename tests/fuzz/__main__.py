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
import faulthandler
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

from tests.fuzz import KINDS, run

BATCH = 150  # attacks of one process
PATIENCE = 120.0  # seconds for one attack, compiling included
MEMORY = 6 << 30
FILE = 1 << 30
# The HDF5 library reads damaged files beyond their end now and then, or for ever. That is counted, but is not ours to mend.
OUTSIDE = "inside h5py"


def limit() -> None:
    """Allow this process so much memory, files as on a small disk, and no core files."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def run_batch(kind: str, first: int, last: int) -> None:
    """Attack in this process, and report each attack as a line of JSON; a hang ends it with the stacks of all threads."""
    faulthandler.enable()
    limit()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    for seed in range(first, last):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        print(json.dumps({"begin": seed}), file=out, flush=True)
        print(json.dumps({"end": seed, **run(kind, seed)}), file=out, flush=True)


def attack(kind: str, first: int, last: int, deadline: float, done: collections.Counter[str]) -> list[str]:
    """Run attacks first, ..., last − 1 in processes of their own, and return the kinds of findings."""
    found = []
    # A crash is easier to read with one thread of BLAS.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "500", "TERM": "dumb"}
    while first < last and time.monotonic() < deadline:
        command = [sys.executable, "-m", "tests.fuzz", "--batch", f"{kind}:{first}:{last}"]
        current, ended = first, first - 1
        with tempfile.TemporaryFile("w+", errors="replace") as err:
            child = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=err, start_new_session=True
            )
            for line in child.stdout:
                report = json.loads(line)
                current = report.get("begin", current)
                if "end" in report:
                    ended = report["end"]
                    done[kind] += 1
                    found += tell(kind, ended, report) if "found" in report else []
                if time.monotonic() > deadline:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
                    return found
            child.wait()
            err.seek(0)
            if ended < current:
                found += tell(kind, current, post_mortem(err.read(), child.returncode))
        first = current + 1
    return found


def tell(kind: str, seed: int, report: dict[str, str]) -> list[str]:
    print(f"\n== {report['found']}: {report.get('case', '')}\n{report['detail'].rstrip()}")
    print(f"   again: python -m tests.fuzz --repeat {kind}:{seed}", flush=True)
    return [report["found"]]


def post_mortem(err: str, code: int) -> dict[str, str]:
    """What is known of a process that died or hung: the stacks that faulthandler has written."""
    what = "hang" if "Timeout (" in err else "crash"
    stack = err[max(err.rfind("Fatal Python error"), err.rfind("Timeout ("), 0) :][:3000]
    innermost = next((line for line in stack.splitlines() if line.lstrip().startswith("File ")), "")
    where = f" {OUTSIDE}" if "/h5py/" in innermost else ""
    return {"found": what + where, "detail": f"exit code {code}\n{stack}"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of the first attack")
    parser.add_argument("--only", choices=list(KINDS), action="append", help="a kind")
    parser.add_argument("--repeat", metavar="KIND:SEED")
    parser.add_argument("--interrupts", type=int, metavar="N")
    parser.add_argument("--batch", metavar="KIND:FIRST:LAST", help="what this program asks of itself")
    options = parser.parse_args()
    if options.batch:
        kind, first, last = options.batch.split(":")
        run_batch(kind, int(first), int(last))
        return 0
    if options.repeat:
        kind, _, seed = options.repeat.partition(":")
        found = run(kind, int(seed))
        print(json.dumps(found, indent=2).replace("\\n", "\n") if found else "nothing found")
        return int(bool(found))
    if options.interrupts:
        from tests.fuzz import interrupts

        return interrupts.main(options.interrupts, options.seed)
    print(f"seed {options.seed}", flush=True)
    done: collections.Counter[str] = collections.Counter()
    found, seed, deadline = [], options.seed, time.monotonic() + 60 * options.minutes
    while time.monotonic() < deadline:
        for kind in options.only or KINDS:
            found += attack(kind, seed, seed + BATCH, deadline, done)
        seed += BATCH
    counts = [
        ", ".join(f"{n:,} {kind}" for kind, n in count.items())
        for count in (done, collections.Counter(found))
    ]
    print(f"{options.minutes} minutes: {counts[0]}; found: {counts[1] or 'nothing'}")
    return int(any(OUTSIDE not in kind for kind in found))


if __name__ == "__main__":
    sys.exit(main())
