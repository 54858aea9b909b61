"""A switch changes the imported package: `module:function`, or `module:name` of one of the module's `MECHANISMS`.

`python -m benchmarks.compare.switch SWITCH ARGUMENTS` runs the command `givens ARGUMENTS` with the switch.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Callable


def resolved(switch: str) -> Callable[[], None]:
    """The function that makes the change."""
    place, _, name = switch.partition(":")
    module = importlib.import_module(place)
    for mechanism in getattr(module, "MECHANISMS", ()):
        if mechanism.name == name:
            return mechanism.off
    return getattr(module, name)


def main() -> None:
    switch = sys.argv.pop(1)
    import givens  # noqa: F401  (as in the other processes, a switch is called after it)

    resolved(switch)()
    runpy.run_module("givens", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
