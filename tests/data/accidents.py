"""Readers of chunks that go wrong in a worker, at moments that a file counts."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

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


def dies_once(block: np.ndarray, folder: str, reading: int, seconds: float) -> np.ndarray:
    """A chunk; the worker that reads the chunk of that number, counted over all passes from 0, is killed some time later."""
    (Path(folder) / f"reading {uuid4().hex}").touch()
    if len(list(Path(folder).glob("reading *"))) > reading:
        with suppress(FileExistsError):
            (Path(folder) / "killed").touch(exist_ok=False)
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return block


def deadly_once(X: da.Array, folder: Path, reading: int, seconds: float) -> da.Array:
    """The same array; one of its workers dies as `dies_once` says."""
    return X.map_blocks(
        dies_once, folder=str(folder), reading=reading, seconds=seconds, dtype=X.dtype, meta=X._meta
    )


def kills(block: np.ndarray, process: int, folder: str, block_info=None) -> np.ndarray:
    """A chunk; reading the second of them for the second time kills another process."""
    if block_info[0]["chunk-location"][0] == 1:
        (Path(folder) / f"reading {len(list(Path(folder).iterdir()))}").touch()
        if len(list(Path(folder).iterdir())) == 2:
            os.kill(process, signal.SIGKILL)
    return block


def killing(X: da.Array, process: int, folder: Path) -> da.Array:
    """The same array; in the second pass over it, that process is killed."""
    return X.map_blocks(kills, process=process, folder=str(folder), dtype=X.dtype, meta=X._meta)


def counts_reads(block: np.ndarray, folder: str, block_info=None) -> np.ndarray:
    """A chunk; a file of its own for every time that it is read."""
    number = block_info[0]["chunk-location"][0]
    (Path(folder) / f"{number} {uuid4().hex}").touch()
    return block


def counting_reads(X: da.Array, folder: Path) -> da.Array:
    """The same array; the folder has a file for every time that a chunk was read."""
    folder.mkdir(exist_ok=True)
    return X.map_blocks(counts_reads, folder=str(folder), dtype=X.dtype, meta=X._meta)
