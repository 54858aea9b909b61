"""A sketch as plain values and arrays, and back, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.streaming.sketch import Sketch, StreamTrace

_COUNTERS = ("waiting", "count", "weight", "energy", "unit", "flops", "stride")


def to_arrays(sketch: Sketch) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The counters, and the arrays."""
    header = {name: getattr(sketch, name) for name in (*_COUNTERS, "columns", "forgetting", "scaled")}
    W = sketch.W[: sketch.columns + sketch.waiting]
    arrays = {"W": W, "mean": sketch.mean, "squares": sketch.squares}
    trace = {f"trace_{name}": np.array(values) for name, values in vars(sketch.trace).items()}
    return header, arrays | trace


def from_arrays(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Sketch:
    """The sketch that was taken apart."""
    W = arrays["W"]
    sketch = Sketch(W.shape[1], header["columns"], W.dtype, header["forgetting"], header["scaled"])
    sketch.W[: len(W)] = W
    sketch.mean[:], sketch.squares[:] = arrays["mean"], arrays["squares"]
    for name in _COUNTERS:
        setattr(sketch, name, header[name])
    if len(W) != sketch.columns + sketch.waiting:
        raise ValueError(f"it holds {len(W)} columns, not {sketch.columns + sketch.waiting}")
    sketch.trace = StreamTrace(*(arrays[f"trace_{name}"].tolist() for name in ("samples", "flops", "kept")))
    return sketch
