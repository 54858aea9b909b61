"""Save a stream's model to a file without pickle, and load it with the same bits."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from givens.streaming.settings import StreamSettings
from givens.streaming.sketch import Sketch, StreamTrace
from givens.support import archive

SAVE_FORMAT = "stream 4"
_COUNTERS = ("waiting", "count", "missing", "weight", "square_weight", "energy", "unit", "flops", "stride")


def write(path: str | os.PathLike[str], model: Any, sketch: Sketch, settings: StreamSettings) -> None:
    """Write a model's parameters and state; the file appears whole or not at all."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {os.fspath(target.parent)!r} to save the stream in: make it first"
        )
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder: name a file in it to save the stream")
    parameters = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    header, arrays = _to_arrays(sketch)
    header |= {"format": SAVE_FORMAT, "parameters": parameters, "settings": asdict(settings)}
    names = getattr(model, "feature_names_in_", None)
    header["names"] = None if names is None else [str(name) for name in names]
    archive.write(path, header, arrays)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of a saved model, and its attributes."""
    try:
        header, arrays = archive.read(os.fspath(path), "the saved stream")
    except ValueError as error:
        raise ValueError(
            f"the file {os.fspath(path)!r} is damaged, or was not saved by StreamingSparsePCA: load another save, or begin anew"
        ) from error
    if header["format"] != SAVE_FORMAT:
        raise ValueError(
            f"the file {os.fspath(path)!r} has the format {header['format']}, not {SAVE_FORMAT}: it is no stream that this "
            "version of givens saved; load another"
        )
    sketch = _from_arrays(header, arrays)
    state: dict[str, Any] = {
        "_settings": StreamSettings(**header["settings"]),
        "_sketch": sketch,
        "n_features_in_": len(sketch.mean),
    }
    if header["names"] is not None:
        state["feature_names_in_"] = np.array(header["names"], dtype=object)
    return header["parameters"], state


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a generator cannot be written, and its seed is among the settings."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return list(map(_plain, value)) if isinstance(value, (list, tuple, range)) else value


def _to_arrays(sketch: Sketch) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The counters, and the arrays."""
    header = {name: getattr(sketch, name) for name in (*_COUNTERS, "columns", "forgetting", "scaled")}
    W = sketch.W[: sketch.columns + sketch.waiting]
    arrays = {"W": W, "mean": sketch.mean, "squares": sketch.squares}
    trace = {f"trace_{name}": np.array(values) for name, values in vars(sketch.trace).items()}
    return header, arrays | trace


def _from_arrays(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Sketch:
    """The sketch of a saved file."""
    W = arrays["W"]
    sketch = Sketch(W.shape[1], header["columns"], W.dtype, header["forgetting"], header["scaled"])
    for name in _COUNTERS:
        setattr(sketch, name, header[name])
    sketch.W[: len(W)] = W
    sketch.mean[:], sketch.squares[:] = arrays["mean"], arrays["squares"]
    sketch.trace = StreamTrace(*(arrays[f"trace_{name}"].tolist() for name in ("samples", "flops", "kept")))
    return sketch
