"""The cache of compiled code on disk. Its errors never stop a run.

Numba recompiles a cached function if the file of the function has changed. If it calls compiled code of another file, and only
that file has changed, users would run stale machine code after an upgrade. `FolderCache` adds a digest of the whole folder to
numba's stamp, so that files can share helpers.

Every cache file ends with a checksum, since damaged machine code would crash the process instead of raising an error. Damaged
files are treated as missing: the function is compiled and written again. If the folder cannot be written to, functions are
compiled in every process. A warning is given once in both cases.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from givens.kernels.cache_warnings import warn_damaged, warn_not_kept
from givens.support.signals import uninterrupted


@functools.cache
def digest(folder: Path) -> str:
    """Digest of the names and contents of a folder's Python files."""
    paths = sorted(folder.glob("*.py"))
    if not paths:
        raise FileNotFoundError(f"no Python files in {folder}")
    found = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        found.update(f"{path.name} {len(content)} ".encode() + content)
    return found.hexdigest()


class _CheckedFiles(IndexDataCacheFile):
    """Numba's index and data files, each with a checksum at its end, which unpickling does not read.

    Data files also hold their stamp and key. Numba writes the index first, so the data file that it names may be an older one, or
    one that another process has written at the same time.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (repr((self._source_stamp, key)), data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == repr((self._source_stamp, key)) else None

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        with super()._open_for_write(filepath) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())

    def _load_index(self) -> dict:
        if not self._is_whole(self._index_path):
            return {}
        try:
            return super()._load_index()
        except Exception as error:  # for example a name that another version of a library does not have
            warn_damaged(self._cache_path, f"{type(error).__name__}: {error}")
            return {}

    def _load_data(self, name: str) -> Any:
        if not self._is_whole(self._data_path(name)):
            raise FileNotFoundError(name)  # numba then compiles the function
        return super()._load_data(name)

    def _is_whole(self, path: str) -> bool:
        if not os.path.exists(path):
            return False
        content = Path(path).read_bytes()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(content[:-size]).digest() == content[-size:]:
            return True
        warn_damaged(self._cache_path, "a checksum differs")
        return False


class FolderCache(FunctionCache):
    """The cache of one function. If it fails for any reason, the function is compiled."""

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        folder = Path(function.__code__.co_filename).parent
        stamp = self._impl.locator.get_source_stamp(), digest(folder)
        # Another file name than numba's, whose files have no checksums.
        self._cache_file = _CheckedFiles(self._cache_path, f"checked-{self._impl.filename_base}", stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code compiled for these types, or None."""
        try:
            # An interrupt during linking would crash the process.
            with uninterrupted():
                return super().load_overload(sig, target_context)
        except Exception as error:
            warn_damaged(self._cache_path, f"{type(error).__name__}: {error}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the code compiled for these types, if possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            warn_not_kept(f"compiled code cannot be written to {self._cache_path} ({error})")
