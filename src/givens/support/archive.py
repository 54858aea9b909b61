"""Files that appear whole or not at all: arrays and a header of plain values, in NumPy's format, without pickles."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write beside the file, then put it in its place in one step: a kill leaves the old file or the new."""
    target = Path(path).resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise OSError(
            f"{os.fspath(path)} is no ordinary file, and would be replaced by one: choose another name"
        )
    named: dict[str, Any] = dict(arrays)
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **named)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def read(path: str | os.PathLike[str], what: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read such a file; one that is damaged, or something else, is a ValueError that says so."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, TypeError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{what} {os.fspath(path)!r} is damaged, or was not saved by givens; delete it to start afresh"
        ) from error
    return header, arrays
