"""The paper's experiments. `measure` runs them, the files here show and judge what was measured.

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

from givens.experiments.experiment import Claim, Experiment, ExperimentSettings, Task

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "ExperimentSettings", "Task", "load"]

EXPERIMENTS = {
    "prostate": ("givens.experiments.prostate", "Prostate"),
    "cells": ("givens.experiments.streams", "Cells"),
    "brain": ("givens.experiments.streams", "Brain"),
    "mixtures": ("givens.experiments.mixture_recovery", "Mixtures"),
    "convergence": ("givens.experiments.convergence", "Convergence"),
    "optima": ("givens.experiments.optima", "Optima"),
    "evaluations": ("givens.experiments.evaluations", "Evaluations"),
}


def load(name: str) -> Experiment:
    """An experiment by its name."""
    module, kind = EXPERIMENTS[name]
    return getattr(importlib.import_module(module), kind)()
