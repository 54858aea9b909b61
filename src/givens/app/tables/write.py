"""Results that are written completely or not at all.

Every file is first written beside its final place under a temporary name, with its bytes on the disk; only
when all of them are there are they moved to their names, one `os.replace` each. A full disk or Ctrl-C before that
leaves the old files as they were.
"""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from givens.app.tables.table import DataError
from givens.support.archive import part_of, remove_leftovers
from givens.support.signals import uninterrupted


def reason(error: OSError) -> str:
    """Return why the system refused, in words."""
    reasons = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "your disk quota is used up",
        errno.EFBIG: "the file would be larger than the system allows",
        errno.EACCES: "you may not write there",
        errno.EPERM: "you may not write there",
        errno.EROFS: "the disk is read-only",
        errno.ENOTDIR: "a part of that path is a file, not a folder",
        errno.EEXIST: "a file of that name is in the way",
    }
    return reasons.get(error.errno or 0, error.strerror or str(error))


class Staged:
    """Files being written for one folder, under temporary names until all are complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.published = False
        self._waiting: dict[Path, Path] = {}

    @contextmanager
    def open(self, name: str) -> Iterator[IO[str]]:
        """Open a text file that will be called `name`."""
        if (self.folder / name).is_dir():  # found here, or some files would have moved before this one cannot
            raise DataError(
                f"cannot write {self.folder / name}: a folder of that name is in the way; remove it, or give another --out"
            )
        with uninterrupted():
            temporary = part_of(self.folder / name)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._waiting[self.folder / name] = temporary
        # A file name that is not UTF-8 may stand in a report; what cannot be written of it becomes a question mark.
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())

    def publish(self) -> list[Path]:
        """Move every file to its name."""
        mask = os.umask(0)
        os.umask(mask)
        for temporary in self._waiting.values():
            os.chmod(temporary, 0o666 & ~mask)
        with uninterrupted():
            for final, temporary in self._waiting.items():
                os.replace(temporary, final)
            written = list(self._waiting)
            self._waiting.clear()
            self.published = bool(written) or self.published
        return written

    def discard(self) -> None:
        """Remove what has not been published."""
        with uninterrupted():
            for temporary in self._waiting.values():
                temporary.unlink(missing_ok=True)
            self._waiting.clear()


@contextmanager
def staged(folder: Path) -> Iterator[Staged]:
    """Make the folder and write files into it; they appear together when the block ends, or not at all.

    What commands that were killed have left there unfinished is removed first.
    """
    made: list[Path] = []
    try:
        for part in [*reversed(folder.parents), folder]:
            if not part.exists():
                with uninterrupted():
                    part.mkdir()
                    made.append(part)
        files = Staged(folder)
        remove_leftovers(folder)
        try:
            # The first temporary file proves, before hours of work, that results can be written here.
            with files.open("probe"):
                pass
            files.discard()
            yield files
            files.publish()
            made.clear()
        except KeyboardInterrupt as interrupt:
            wrote = "the results are complete" if files.published else "nothing was written"
            raise KeyboardInterrupt(str(interrupt) or wrote) from None
        finally:
            files.discard()
    except OSError as error:
        raise DataError(f"cannot write results to {folder}: {reason(error)}") from error
    finally:
        with uninterrupted():
            for part in reversed(made):
                try:
                    part.rmdir()
                except OSError:
                    break


def write_json(stream: IO[str], content: Any) -> None:
    """Write JSON that any reader accepts: NaN and infinity become null."""
    json.dump(plain(content), stream, indent=2, ensure_ascii=False, allow_nan=False)
    stream.write("\n")


def plain(content: Any) -> Any:
    """Return the content in JSON's own types.

    >>> plain({"a": np.float32(0.5), "b": (np.int64(2), float("nan"))})
    {'a': 0.5, 'b': [2, None]}
    """
    if isinstance(content, dict):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, np.ndarray):
        return plain(content.tolist())
    if isinstance(content, np.generic):
        return plain(content.item())
    if isinstance(content, float) and not np.isfinite(content):
        return None
    if content is None or isinstance(content, bool | int | float):
        return content
    return str(content).encode("utf-8", "replace").decode("utf-8")


def write_matrix(
    stream: IO[str],
    headings: Sequence[str],
    header: Sequence[str],
    blocks: Iterable[tuple[list[list[str]], np.ndarray]],
) -> None:
    """Write a CSV file: columns of text, then numbers.

    Parameters
    ----------
    stream : text file
    headings : sequence of str
        Head the columns of text.
    header : sequence of str
        Heads the numbers' columns.
    blocks : iterable of (columns of text, array)
        Rows, some at a time.
    """
    minimal = csv.writer(stream, lineterminator="\n")
    # Before Python 3.13 the csv module leaves a carriage return without quotation marks, and readers end the line there.
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)

    def write(texts: Sequence[str], rest: Sequence[object]) -> None:
        quoted = any("\r" in cell for cell in (*texts, *rest) if isinstance(cell, str))
        (quoting if quoted else minimal).writerow([*texts, *rest])

    write(headings, header)
    for words, values in blocks:
        # repr of a Python float is the shortest text that reads back to the same double; zeros are written
        # as 0.
        rows = np.asarray(values, np.float64).tolist()
        for texts, row in zip(zip(*words), rows):
            write(texts, [value or 0 for value in row])


def distinct(headings: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Return the headings of labels, told apart from each other and from the columns that a command writes itself.

    >>> distinct(["kind", "cluster", "kind"], ["sample", "cluster"])
    ['kind', 'cluster (label)', 'kind (label)']
    """
    used = set(taken)
    told: list[str] = []
    for heading in headings:
        while heading in used:
            heading += " (label)"
        used.add(heading)
        told.append(heading)
    return told
