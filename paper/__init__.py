"""The paper's experiments, which `make reproduce` runs.

`measure` runs them, the files here show and judge what was measured, `baselines` has the methods that the paper compares with.

| name | in the paper | file |
|---|---|---|
| prostate | Figure 1: sparse PCA, m = n | `prostate` |
| cells, brain | Figure 2: few components of a stream | `streams` |
| mixtures | Figures 3 and 4: clustering | `mixture_recovery` |
| convergence | Theorems 1 (1) and 2 | `convergence` |
| optima | Theorems 1 (2) and 3 | `optima` |
| evaluations | "an order of 5-10 evaluations" | `evaluations` |
"""

from __future__ import annotations

import importlib

from paper.experiment import Claim, Experiment, ExperimentSettings, Task

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "ExperimentSettings", "Task", "load"]

EXPERIMENTS = {
    "prostate": ("paper.prostate", "Prostate"),
    "cells": ("paper.streams", "Cells"),
    "brain": ("paper.streams", "Brain"),
    "mixtures": ("paper.mixture_recovery", "Mixtures"),
    "convergence": ("paper.convergence", "Convergence"),
    "optima": ("paper.optima", "Optima"),
    "evaluations": ("paper.evaluations", "Evaluations"),
}


def load(name: str) -> Experiment:
    """An experiment by its name."""
    module, kind = EXPERIMENTS[name]
    return getattr(importlib.import_module(module), kind)()
