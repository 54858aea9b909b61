"""Files that are written completely or not at all, and such a file of arrays and a header of plain values.

Temporary files are named after the process that writes them, so that those of killed processes can be removed. Arrays are in
NumPy's format without pickle. Their file holds a digest of its contents: one whose numbers were changed is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from givens.support.signals import uninterrupted

# A process number is valid on its own machine only.
HOST = f"{zlib.crc32(platform.node().encode()):08x}"


def part_of(target: Path) -> Path:
    """Return the name, beside the file, under which this process writes it."""
    return target.with_name(f".{target.name}.{HOST}-{os.getpid()}-{secrets.token_hex(6)}.part")


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the unfinished files in a folder, or those of one name, whose writers on this machine have ended."""
    pattern = rf"(?s)\.(?P<name>.+)\.{HOST}-(?P<process>[0-9]+)-[0-9a-f]{{12}}\.part"
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = re.fullmatch(pattern, entry.name)
            if found and name in (None, found["name"]) and not _alive(int(found["process"])):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _alive(process: int) -> bool:
    """Whether a process of this number is running; where that cannot be asked, it is taken to be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a temporary file, then rename it: a process that is killed leaves the old file or the new one.

    Temporary files of killed writers of the same file are removed first.
    """
    target = Path(path).resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise OSError(
            f"{os.fspath(path)} is no ordinary file, and would be replaced by one: choose another name"
        )
    remove_leftovers(target.parent, target.name)
    text = json.dumps(header)
    named: dict[str, Any] = {"digest": np.array(_digest(text, arrays)), **arrays}
    part = part_of(target)
    try:
        # Python ignores an interrupt while it deletes a ZIP file, so Ctrl-C is delayed.
        with uninterrupted(), part.open("xb") as file:
            np.savez(file, header=np.array(text), **named)
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
    """Read such a file. OSError: it does not exist or may not be read. ValueError: it is damaged, or of another kind.

    No array is allocated before its size has been compared with the size of the file.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(f"{what} {os.fspath(path)!r} is a folder: name a file in it")
    with open(path, "rb") as file:
        try:
            size = os.fstat(file.fileno()).st_size
            with zipfile.ZipFile(file) as archive:
                arrays = {_name(info): _array(archive, info, size) for info in archive.infolist()}
            text, digest = str(arrays.pop("header")), str(arrays.pop("digest"))
            if digest != _digest(text, arrays):
                raise ValueError("its contents were changed")
            header = json.loads(text)
        # Damaged bytes may raise any exception: BadZipFile, NotImplementedError, RuntimeError, EOFError, ...
        except Exception as error:
            raise ValueError(
                f"{what} {os.fspath(path)!r} is damaged, or was not saved by this version of givens; give another path, or "
                "delete it to start afresh"
            ) from error
    return header, arrays


def _digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the header's text and the arrays."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _name(info: zipfile.ZipInfo) -> str:
    if not info.filename.endswith(".npy"):
        raise ValueError(f"{info.filename} is no array")
    return info.filename.removesuffix(".npy")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> np.ndarray:
    """An array as `numpy.savez` stores it, uncompressed."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > size or info.compress_size > size:
        raise ValueError(f"{info.filename} says that it is larger than the file")
    content = archive.read(info)
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.nbytes > len(content):
        raise ValueError(f"{info.filename} has not the size that its shape {array.shape} needs")
    return array
