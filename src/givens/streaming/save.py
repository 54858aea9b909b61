"""Save a stream's model to a file without pickle, and load it with the same bits."""

from __future__ import annotations

import inspect
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from givens.streaming.rules import DROPS
from givens.streaming.settings import StreamSettings
from givens.streaming.sketch import Sketch, StreamTrace
from givens.support import archive

SAVE_FORMAT = 3
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


def read(path: str | os.PathLike[str], model: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of a saved model of this class, and its attributes."""
    try:
        header, arrays = archive.read(os.fspath(path), "the saved stream")
    except ValueError as error:
        raise ValueError(
            f"the file {os.fspath(path)!r} is damaged, or was not saved by StreamingSparsePCA: load another save, or begin anew"
        ) from error
    try:
        if header["format"] != SAVE_FORMAT:
            raise ValueError(
                f"its format is {header['format']}, of another version of givens, not {SAVE_FORMAT}"
            )
        parameters = header["parameters"]
        inspect.signature(model).bind(**parameters)
        sketch = _from_arrays(header, arrays)
        settings = _settings(header["settings"])
        if (settings.columns, settings.forgetting, settings.scale) != (
            sketch.columns,
            sketch.forgetting,
            sketch.scaled,
        ):
            raise ValueError("its settings are not those of its columns")
        state: dict[str, Any] = {
            "_settings": settings,
            "_sketch": sketch,
            "n_features_in_": len(sketch.mean),
        }
        if header["names"] is not None:
            if not isinstance(header["names"], list) or len(header["names"]) != len(sketch.mean):
                raise ValueError("its features have not as many names")
            state["feature_names_in_"] = np.array(header["names"], dtype=object)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"the saved stream {os.fspath(path)!r} cannot be used: {error}") from error
    return parameters, state


def _settings(saved: dict[str, Any]) -> StreamSettings:
    """The settings of a stream, each of its own type."""
    settings = StreamSettings(**saved)
    kinds = {"components": int, "columns": int, "drop": str, "forgetting": float, "scale": bool, "seed": int}
    for name, kind in kinds.items():
        if type(getattr(settings, name)) is not kind:
            raise ValueError(f"its setting {name} is {getattr(settings, name)!r}")
    if settings.drop not in DROPS:
        raise ValueError(f"its setting drop is {settings.drop!r}")
    if not 1 <= settings.components <= settings.columns or settings.seed < 0:
        raise ValueError("its settings do not agree")
    return settings


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
    """The sketch of a saved file; impossible values are refused before anything is allocated."""
    W, mean, squares = arrays["W"], arrays["mean"], arrays["squares"]
    columns, waiting = header["columns"], header["waiting"]
    if W.ndim != 2 or W.dtype not in (np.float32, np.float64) or len(W) != columns + waiting:
        raise ValueError(f"it holds {len(W)} columns, not {columns + waiting}")
    if mean.shape != W.shape[1:] or squares.shape != (mean.shape if header["scaled"] else (0,)):
        raise ValueError("its means are not as many as its features")
    if not all(np.isfinite(array).all() for array in (W, mean, squares)):
        raise ValueError("not all of its numbers are finite")
    sketch = Sketch(W.shape[1], columns, W.dtype, header["forgetting"], header["scaled"])
    for name in _COUNTERS:
        value = header[name]
        if type(value) is not type(getattr(sketch, name)) or not 0 <= value < np.inf:
            raise ValueError(f"its {name} is {value!r}")
        setattr(sketch, name, value)
    if not waiting < sketch.block or not 0 < sketch.forgetting <= 1 or sketch.stride < 1:
        raise ValueError("its counters do not agree")
    sketch.W[: len(W)] = W
    sketch.mean[:], sketch.squares[:] = mean, squares
    sketch.trace = StreamTrace(*(arrays[f"trace_{name}"].tolist() for name in ("samples", "flops", "kept")))
    return sketch
