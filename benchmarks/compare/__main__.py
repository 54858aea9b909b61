"""Compare an earlier version of the code with the present one."""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.compare import __doc__ as idea
from benchmarks.compare import sides, table
from benchmarks.compare.measure import Measured, measure, measure_cold
from benchmarks.compare.rows import COLD, ROWS, Row

ROUNDS, COLD_ROUNDS = 6, 3


def chosen(only: str | None, rows: tuple[Row, ...] = ROWS) -> list[Row]:
    """The rows whose names match one of the patterns, separated by "|", or hold it as a part."""
    patterns = only.split("|") if only else ["*"]
    return [
        row for row in rows if any(fnmatch.fnmatch(row.name, text) or text in row.name for text in patterns)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=idea, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", help="the earlier commit")
    parser.add_argument("--only", help='parts or patterns of the names of rows, separated by "|"')
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS}, with --cold {COLD_ROUNDS}")
    parser.add_argument("--cold", action="store_true", help="the first fit, with nothing compiled")
    parser.add_argument(
        "--processor",
        action="store_true",
        help="seconds of the processor in all threads, for a machine that others use",
    )
    parser.add_argument("--switch", help="module:function that changes the new side after its import")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--list", action="store_true", help="list the rows")
    options = parser.parse_args()
    rows = [row for row in chosen(options.only) if row.name in COLD or not options.cold]
    if not rows:
        parser.error(f"no row matches {options.only!r}; --list shows them")
    if options.list:
        print("\n".join(f"{row.user:15}{row.name}" for row in rows))
        return
    if not options.old:
        parser.error("name the commit to compare with: make compare OLD=COMMIT")
    new = sides.present()
    both = {
        "old": sides.at(options.old),
        "new": sides.switched(new, options.switch) if options.switch else new,
    }
    rounds = options.rounds or (COLD_ROUNDS if options.cold else ROUNDS)
    clock = "processor" if options.processor else "seconds"
    run = measure_cold if options.cold else functools.partial(measure, clock=clock)
    _compare(lambda row: run(both, row.name, row.user, rounds), rows, options.json)


def _compare(run: Callable[[Row], Measured], rows: list[Row], file: Path | None) -> None:
    began, done, failed = time.perf_counter(), list[Measured](), list[str]()
    for row in rows:
        try:
            done.append(run(row))
            print(table.line(done[-1]), file=sys.stderr, flush=True)
        except RuntimeError as error:
            failed.append(row.name)
            print(f"{row.name}: {error}", file=sys.stderr, flush=True)
        if file:
            file.write_text(json.dumps([found.as_json() for found in done], indent=1) + "\n")
    if done:
        print(table.markdown(done))
    print(f"{len(done)} rows in {(time.perf_counter() - began) / 60:.1f} minutes")
    if failed:
        sys.exit(f"these rows have no result: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
