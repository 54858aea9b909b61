"""Readers of chunks that go wrong in a worker, at moments that a file counts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import dask.array as da
import numpy as np


def dies(block: np.ndarray, folder: str, moments: tuple[int, ...], chunk: int, block_info=None) -> np.ndarray:
    """A chunk; its worker is killed when it reads one chunk for the times that are listed, counted from 0."""
    if block_info[0]["chunk-location"][0] == chunk:
        times = len(list(Path(folder).iterdir()))
        (Path(folder) / f"reading {times} of {os.getpid()}").touch()
        if times in moments:
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def deadly(X: da.Array, folder: Path, moments: tuple[int, ...], chunk: int = 1) -> da.Array:
    """The same array, whose workers die as `dies` says."""
    return X.map_blocks(dies, folder=str(folder), moments=moments, chunk=chunk, dtype=X.dtype, meta=X._meta)


def kills(block: np.ndarray, process: int, folder: str, block_info=None) -> np.ndarray:
    """A chunk; reading chunk 1 for the second time kills another process."""
    if block_info[0]["chunk-location"][0] == 1:
        (Path(folder) / f"reading {len(list(Path(folder).iterdir()))}").touch()
        if len(list(Path(folder).iterdir())) == 2:
            os.kill(process, signal.SIGKILL)
    return block


def killing(X: da.Array, process: int, folder: Path) -> da.Array:
    """The same array; in the second pass over it, that process is killed."""
    return X.map_blocks(kills, process=process, folder=str(folder), dtype=X.dtype, meta=X._meta)
