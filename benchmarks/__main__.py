"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks._runner import Suite

HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure givens and its rivals."
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--only", metavar="A,B", help="measure these, whether or not they are done")
    what.add_argument("--fresh", action="store_true", help="measure everything anew")
    what.add_argument("--list", action="store_true", help="say what there is and what is done")
    what.add_argument(
        "--publish", action="store_true", help="write the pages of docs/ from a full run's results"
    )
    options = parser.parse_args(arguments)

    suite = Suite(HERE)
    try:
        if options.list:
            for name in suite.names():
                print(f"{name:24} {suite.status(name)}")
            return 0
        if options.publish:
            print(f"wrote {suite.publish(HERE.parent / 'docs')}")
            return 0
        return suite.run(only=options.only.split(",") if options.only else None, fresh=options.fresh)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
