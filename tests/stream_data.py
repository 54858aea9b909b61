"""A small stream for tests, and everything there is to a model of it."""

from __future__ import annotations

import numpy as np

from givens import StreamingSparsePCA
from givens.datasets import sparse_modules

DATA = sparse_modules(130, 30, n_modules=3, module_size=6, random_state=1).X


def model(**parameters):
    given = {"n_components": 3, "random_state": 0} | parameters
    if given.keys().isdisjoint({"threshold", "n_nonzero"}) and not isinstance(given.get("sketch"), tuple):
        given["threshold"] = 0.1
    return StreamingSparsePCA(**given)


def state(fitted):
    """Everything there is to a model, as bytes."""
    sketch = fitted._sketch
    numbers = (
        sketch.count,
        sketch.n_missing,
        sketch.weight,
        sketch.energy,
        sketch.unit,
        sketch.held,
        sketch.flops,
    )
    waiting = np.concatenate((np.empty((0, sketch.features)), *sketch.waiting))
    arrays = (sketch.Y, sketch.mean, sketch.squares, waiting, sketch.waiting_weights)
    return (
        numbers,
        [array.tobytes() for array in arrays],
        sorted(set(vars(fitted)) - {"_complete", "_solved"}),
    )
