"""The paper's experiments, one file per figure.

| name | in the paper | file |
|---|---|---|
| convergence | Theorems 1 and 2 | `convergence` |
"""

from __future__ import annotations

import importlib

from givens.experiments.base import Claim, Experiment, Settings, Task

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Settings", "Task", "load"]

EXPERIMENTS = {
    "convergence": ("givens.experiments.convergence", "Convergence"),
}


def load(name: str) -> Experiment:
    """An experiment by its name."""
    module, kind = EXPERIMENTS[name]
    return getattr(importlib.import_module(module), kind)()
