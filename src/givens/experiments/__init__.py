"""The paper's experiments, one file per figure.

| name | in the paper | file |
|---|---|---|
| prostate | Figure 1: sparse PCA, m = n | `prostate` |
| brain | Figure 2: few components of a stream | `brain` |
| mixture-dimensions, mixture-samples | Figures 3 and 4: clustering | `mixtures` |
| convergence | Theorems 1 and 2 | `convergence` |
"""

from __future__ import annotations

import importlib

from givens.experiments.experiment import Claim, Experiment, ExperimentSettings, Task

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "ExperimentSettings", "Task", "load"]

EXPERIMENTS = {
    "prostate": ("givens.experiments.prostate", "Prostate"),
    "brain": ("givens.experiments.brain", "Brain"),
    "mixture-dimensions": ("givens.experiments.mixture_recovery", "MixtureDimensions"),
    "mixture-samples": ("givens.experiments.mixture_recovery", "MixtureSamples"),
    "convergence": ("givens.experiments.convergence", "Convergence"),
}


def load(name: str) -> Experiment:
    """An experiment by its name."""
    module, kind = EXPERIMENTS[name]
    return getattr(importlib.import_module(module), kind)()
