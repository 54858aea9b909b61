"""A small stream for tests, and everything there is to a model of it."""

from __future__ import annotations

from givens import StreamingSparsePCA
from givens.datasets import sparse_modules

DATA = sparse_modules(130, 30, n_modules=3, module_size=6, random_state=1).X


def model(**parameters):
    return StreamingSparsePCA(**({"n_components": 3, "threshold": 0.1, "random_state": 0} | parameters))


def state(fitted):
    """Everything there is to a model, as bytes."""
    sketch = fitted._sketch
    numbers = (sketch.count, sketch.waiting, sketch.weight, sketch.energy, sketch.unit, sketch.flops)
    held = sketch.W[
        : sketch.columns + sketch.waiting
    ]  # rows behind these are empty, whatever was written there
    return numbers, held.tobytes(), sketch.mean.tobytes(), sorted(vars(fitted))
