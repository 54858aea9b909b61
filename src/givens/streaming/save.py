"""Save a stream's model to a file without pickle, and load it with the same bits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from givens.data.sketch import Sketch
from givens.support import archive

SAVE_FORMAT = "stream 5"
_COUNTERS = ("count", "n_missing", "weight", "square_weight", "energy", "held", "unit", "flops")
_ARRAYS = ("Y", "mean", "squares", "waiting_weights")


def write(path: str | os.PathLike[str], model: Any, sketch: Sketch) -> None:
    """Write a model's parameters and state; the file appears whole or not at all."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {os.fspath(target.parent)!r} to save the stream in: make it first"
        )
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder: name a file in it to save the stream")
    names = getattr(model, "feature_names_in_", None)
    header = {
        "format": SAVE_FORMAT,
        "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "began": {name: _plain(value) for name, value in model._began.items()},
        "names": None if names is None else [str(name) for name in names],
        "counters": {name: getattr(sketch, name) for name in _COUNTERS},
    }
    waiting = np.concatenate((np.empty((0, sketch.features), sketch.dtype), *sketch.waiting))
    archive.write(path, header, {"waiting": waiting} | {name: getattr(sketch, name) for name in _ARRAYS})


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header of a saved model, and the arrays of its sketch."""
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
    for name in ("parameters", "began"):
        header[name] = {key: _paired(value) for key, value in header[name].items()}
    return header, arrays


def restored(empty: Sketch, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Sketch:
    """The sketch of a saved file; `empty` has its parameters."""
    sketch = empty.begin(0)
    vars(sketch).update(header["counters"], waiting=[arrays["waiting"]] if len(arrays["waiting"]) else [])
    vars(sketch).update({name: arrays[name] for name in _ARRAYS})
    return sketch


def _paired(value: Any) -> Any:
    """A parameter as it was, such as ("l0", 0.1), which JSON makes a list."""
    return tuple(value) if isinstance(value, list) and isinstance(value[0], str) else value


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a generator cannot be written, and its seed is among what the stream began with."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return list(map(_plain, value)) if isinstance(value, (list, tuple, range)) else value
