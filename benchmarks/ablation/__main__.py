"""Measure what each mechanism earns, and write `docs/ablations.md`: `make ablation`.

Every part is written to `benchmarks/results/ablation.json` once it is measured, and a later run goes on from there.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import ablation
from benchmarks.ablation import lines, page
from benchmarks.ablation.mechanism import BASE, Mechanism
from benchmarks.compare import sides
from benchmarks.compare.measure import measure, measure_cold
from benchmarks.compare.rows import COLD, ROWS, Row

RESULTS = sides.ROOT / "benchmarks" / "results" / "ablation.json"
PAGE = sides.ROOT / "docs" / "ablations.md"
ROUNDS, COLD_ROUNDS = 5, 1


def collected() -> dict[str, Mechanism]:
    """All mechanisms of the modules of this package, by their switches."""
    found = {}
    for module in pkgutil.iter_modules(ablation.__path__, f"{ablation.__name__}."):
        if not module.name.endswith("__main__"):
            for mechanism in getattr(importlib.import_module(module.name), "MECHANISMS", ()):
                found[f"{module.name}:{mechanism.name}"] = mechanism
    return found


def reached(mechanism: Mechanism, rows: tuple[Row, ...] = ROWS) -> list[Row]:
    """The rows whose runs reach the mechanism."""
    found = [row for row in rows if any(fnmatch.fnmatchcase(row.name, text) for text in mechanism.rows)]
    if not found:
        raise ValueError(f"no row matches {mechanism.rows} of {mechanism.name!r}")
    return found


def parts(switch: str, mechanism: Mechanism, rounds: int, clock: str) -> dict[str, Callable[[], Any]]:
    """What is measured for a mechanism, each part by itself. Old is without the mechanism, new is with it.

    The first fit with nothing compiled is measured where code that is compiled belongs to the mechanism.
    """
    rows = reached(mechanism)
    base = sides.at(BASE)
    compiled = any(place.startswith("kernels/") for place in mechanism.code)
    both = {"old": sides.switched(base, switch, compiles_alike=not compiled), "new": base}
    found: dict[str, Callable[[], Any]] = {"lines": lambda: lines.of(mechanism.code, base.source / "givens")}
    for row in rows:
        found[row.name] = lambda row=row: measure(both, row.name, row.user, rounds, clock).as_json()
    if compiled:
        cold = next((row for row in rows if row.name in COLD), rows[0])
        found["cold"] = lambda: measure_cold(both, cold.name, cold.user, COLD_ROUNDS).as_json()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help='measure these anew: parts of names of mechanisms, separated by "|"')
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--processor", action="store_true", help="seconds of the processor in all threads")
    parser.add_argument(
        "--page", action="store_true", help="write the page from what was measured, and measure nothing"
    )
    options = parser.parse_args()
    mechanisms = collected()
    results: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not options.page:
        texts = options.only.split("|") if options.only else [""]
        chosen = [switch for switch in mechanisms if any(text in switch for text in texts)]
        for switch in chosen:
            if options.fresh or options.only:
                results.pop(switch, None)
            _measure(switch, mechanisms[switch], results, options)
    PAGE.write_text(page.markdown(mechanisms, results))


def _measure(
    switch: str, mechanism: Mechanism, results: dict[str, dict[str, Any]], options: argparse.Namespace
) -> None:
    done = results.setdefault(switch, {})
    wanted = parts(switch, mechanism, options.rounds, "processor" if options.processor else "seconds")
    for name, part in wanted.items():
        if name not in done:
            print(f"{mechanism.name}: {name}", flush=True)
            done[name] = part()
            _write(RESULTS, results)


def _write(file: Path, results: dict[str, dict[str, Any]]) -> None:
    """Replace the file at once, so that an interruption leaves the one before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(results, indent=1) + "\n")
    new.replace(file)


if __name__ == "__main__":
    main()
