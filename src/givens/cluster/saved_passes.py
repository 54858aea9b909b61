"""Checkpoints of fits on data in chunks: the summary of each pass is saved, and a fit that is started again does not repeat it.

What a fit computes between two passes is little, and has the same bits every time. So the summaries of the finished passes, in
their order, are all that has to be saved. A saved summary is used if its pass has the parameters with which it was computed; from
the first pass with other parameters on, passes are computed again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from givens.checkpoint import Checkpoint, damaged
from givens.cluster.summary import Summary
from givens.support import archive

Kind = TypeVar("Kind", bound=Summary)

FORMAT = "passes 2"
_IRRELEVANT = ("threads", "progress", "checkpoint")  # parameters that do not change a fit


class SavedPasses:
    """The summaries of the passes of one fit, in a file that is rewritten after each pass.

    Parameters
    ----------
    checkpoint : Checkpoint
    estimator : estimator
        Its class and parameters, and `data`, identify the fit: the checkpoint of another fit is refused.
    data : object
        Numbers, strings and arrays that identify the data.
    """

    def __init__(self, checkpoint: Checkpoint, estimator: Any, data: Any) -> None:
        self.place = checkpoint
        options = {name: value for name, value in estimator.get_params().items() if name not in _IRRELEVANT}
        self.fit = _token(type(estimator).__name__, options, data)
        self.number = 0
        self.passes: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        if Path(self.place.path).exists():
            self._load()

    def _load(self) -> None:
        path = self.place.path
        header, self.arrays = archive.read(path, "the checkpoint")
        try:
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']}, not '{FORMAT}'")
            fit, self.passes = header["fit"], list(header["passes"])
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, error) from error
        if fit != self.fit:
            raise ValueError(
                f"the checkpoint {os.fspath(path)!r} belongs to another fit (another estimator, data, chunks or options); give "
                "another path, or delete it to start afresh"
            )

    def find(self, empty: Kind, name: str, kept: Sequence[Any] = ()) -> Kind | None:
        """The saved summary of the next pass, or None; `kept` are the values that workers pass to `Summary.given`."""
        if self.number >= len(self.passes):
            return None
        try:
            saved = self.passes[self.number]
            if saved["name"] == name and saved["parameters"] == _token(type(empty).__name__, empty, *kept):
                self.number += 1
                return _unpacked(saved["summary"], empty, self.arrays)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(self.place.path, error) from error
        del self.passes[self.number :]
        return None

    def add(self, empty: Summary, name: str, found: Summary, kept: Sequence[Any] = ()) -> None:
        """Save the summary of a pass that `find` did not return."""
        prefix = f"{self.number}"
        self.arrays = {
            key: array for key, array in self.arrays.items() if int(key.split("_")[0]) < self.number
        }
        packed = _packed(found, empty, prefix, self.arrays)
        self.passes.append(
            {"name": name, "parameters": _token(type(empty).__name__, empty, *kept), "summary": packed}
        )
        self.number += 1
        if self.number % self.place.every == 0:
            header = {"format": FORMAT, "fit": self.fit, "passes": self.passes}
            archive.write(self.place.path, header, self.arrays)


def _token(*values: Any) -> str:
    """A hash of the contents of values, the same in every process (Dask's own hash depends on how objects are pickled)."""
    digest = hashlib.sha256()
    _digest(values, digest)
    return digest.hexdigest()


def _digest(value: Any, digest: Any) -> None:
    if hasattr(value, "toarray"):
        value = value.toarray()
    if hasattr(value, "bit_generator"):
        value = value.bit_generator.state
    elif isinstance(value, np.random.RandomState):
        value = value.get_state()
    value = getattr(value, "py_func", value)  # of a compiled function
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"array {value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, list | tuple):
        digest.update(f"list {len(value)}".encode())
        for part in value:
            _digest(part, digest)
    elif isinstance(value, dict):
        _digest(sorted(value.items()), digest)
    elif hasattr(value, "__code__"):
        digest.update(
            f"function {value.__qualname__} {value.__code__.co_names}".encode() + value.__code__.co_code
        )
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        digest.update(type(value).__qualname__.encode())
        _digest(vars(value), digest)
    else:
        digest.update(f"value {value!r}".encode())


def _packed(value: Any, like: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A summary as plain values; its arrays go into `arrays`. What the empty summary `like` has too is left out."""
    if isinstance(value, Summary) or (
        type(value) is type(like) and type(value).__module__.startswith("givens.")
    ):
        own = {
            key: _packed(part, getattr(like, key, None), f"{name}_{key}", arrays)
            for key, part in vars(value).items()
            if not _same(part, getattr(like, key, None))
        }
        return {"object": own}
    if isinstance(value, np.ndarray | np.generic):
        arrays[name] = np.array(value)  # a copy: the fit may change its own
        return {"array" if isinstance(value, np.ndarray) else "number": name}
    if isinstance(value, list | tuple):
        likes = like if isinstance(like, list | tuple) and len(like) == len(value) else [None] * len(value)
        parts = [
            _packed(part, other, f"{name}_{k}", arrays) for k, (part, other) in enumerate(zip(value, likes))
        ]
        return {"list" if isinstance(value, list) else "tuple": parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if like is not None:
        return {"parameter": True}
    raise TypeError(f"{name} of a summary is a {type(value).__name__}, which no checkpoint holds")


def _unpacked(saved: Any, like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The reverse of `_packed`."""
    if not isinstance(saved, dict):
        return saved
    ((kind, content),) = saved.items()
    if kind == "object":
        found = copy(like)
        own = {key: _unpacked(part, getattr(like, key, None), arrays) for key, part in content.items()}
        vars(found).update(own)  # works for frozen objects too
        return found
    if kind in ("array", "number"):
        return arrays[content].copy() if kind == "array" else arrays[content][()]
    if kind in ("list", "tuple"):
        likes = (
            like if isinstance(like, list | tuple) and len(like) == len(content) else [None] * len(content)
        )
        parts = [_unpacked(part, other, arrays) for part, other in zip(content, likes)]
        return parts if kind == "list" else tuple(parts)
    if kind == "parameter":
        return like
    raise ValueError(f"it holds a {kind}")


def _same(value: Any, like: Any) -> bool:
    if value is like:
        return True
    arrays = isinstance(value, np.ndarray) and isinstance(like, np.ndarray)
    return arrays and value.dtype == like.dtype and np.array_equal(value, like)
