"""CSV and TSV, plain or gzipped, read in blocks of whole records.

`givens.io.layout` says how the file is written; the compiled parser reads block after block of it, so that
one reader serves tables that fit in memory and tables that do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from givens.io.layout import MISSING, Layout, as_float, sniff
from givens.io.leading import TABLE_END, open_bytes, read_bytes
from givens.io.table import DataError, Grid, count

BLOCK = 1 << 22  # bytes


@dataclass
class TextBlock:
    """Some consecutive rows of a file."""

    values: np.ndarray
    names: list[str] | None
    labels: list[str] | None
    last_line: int


class TextRows:
    """The rows of a delimited text file, read in blocks of whole records.

    Parameters
    ----------
    path : Path
        The file; gzipped if it ends in .gz.
    labels, names, drop
        The columns that hold the rows' labels and names, and those to leave out.
    block : int
        Bytes read at a time.
    layout : Layout, optional
        How the file is written, where that need not be found out.
    """

    def __init__(
        self,
        path: Path,
        labels: str | None = None,
        names: str | None = None,
        drop: Sequence[str] = (),
        block: int = BLOCK,
        layout: Layout | None = None,
    ) -> None:
        self.path = path
        self.block = block
        self.layout = sniff(path, labels, names, drop) if layout is None else layout

    @property
    def column_names(self) -> list[str] | None:
        """Return the names of the columns of numbers."""
        header = self.layout.header
        return None if header is None else [header[k] or f"column {k + 1}" for k in self.layout.numbers]

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the rows, block after block."""
        from givens.kernels import text

        layout = self.layout
        kinds = np.full(layout.width, text.SKIP, np.int8)
        targets = np.zeros(layout.width, np.int64)
        numbers, texts = layout.numbers, [k for k in (layout.names, layout.labels) if k is not None]
        kinds[numbers], targets[numbers] = text.NUMBER, np.arange(len(numbers))
        kinds[texts], targets[texts] = text.TEXT, np.arange(len(texts))
        awkward = np.empty((1 << 16, 4), np.int64)
        line, rest, final = layout.first_line, b"", False
        with open_bytes(self.path) as stream:
            read_bytes(stream, layout.skip, self.path)
            while not final:
                fresh = read_bytes(stream, self.block, self.path)
                final = len(fresh) < self.block
                rest = rest + fresh
                data, at = np.frombuffer(rest, np.uint8), 0
                while True:
                    begin = at
                    most = (len(rest) - at) // layout.width + 2
                    values = np.empty((most, len(numbers)))
                    spans = np.empty((most, len(texts), 2), np.int64)
                    rows, at, lines, ended, fields, odd = text.parse(
                        data, at, final, ord(layout.separator), ord(layout.decimal), kinds, targets,
                        values.view(np.uint64), spans, awkward,
                    )  # fmt: skip
                    self._settle(values, awkward[:odd], rest, begin, line)
                    if rows:
                        words = [self._words(rest, spans[:rows, k]) for k in range(len(texts))]
                        named = words[0] if layout.names is not None else None
                        labels = words[-1] if layout.labels is not None else None
                        yield TextBlock(values[:rows], named, labels, line + lines - 1)
                    line += lines
                    if ended == text.RAGGED and TABLE_END.match(rest[at:]):
                        return
                    if ended >= text.RAGGED:
                        self._refuse(ended == text.QUOTE, fields, line)
                    if ended == text.MORE:
                        break
                rest = rest[at:]

    def _words(self, data: bytes, spans: np.ndarray) -> list[str]:
        encoding = self.layout.encoding
        words = [data[a:b].decode(encoding, "replace") for a, b in spans.tolist()]
        return [word.replace('""', '"') if '"' in word else word for word in words]

    def _settle(self, values: np.ndarray, awkward: np.ndarray, data: bytes, begin: int, line: int) -> None:
        """Judge the fields that the compiled parser handed back."""
        column = {number: k for k, number in enumerate(self.layout.numbers)}
        for row, number, start, stop in awkward.tolist():
            token = data[start:stop].decode(self.layout.encoding, "replace").strip()
            value = np.nan if token.lower() in MISSING else as_float(token, self.layout.decimal)
            if value is None or "_" in token:
                header = self.layout.header
                name = f" ('{header[number]}')" if header is not None and header[number] else ""
                line += data.count(b"\n", begin, start)
                shown = token if len(token) <= 40 else token[:37] + "..."
                raise DataError(
                    f"{self.path.name}, line {line:,}, column {number + 1:,}{name}: "
                    f"'{shown}' is not a number (--drop or --labels takes a column out of the numbers)"
                )
            values[row, column[number]] = value

    def _refuse(self, quote: bool, fields: int, line: int) -> NoReturn:
        if quote:
            raise DataError(f"{self.path.name}, line {line:,}: a quotation mark is opened and never closed")
        raise DataError(
            f"{self.path.name}, line {line:,} has {count(fields, 'field')} where the others have "
            f"{self.layout.width:,}: the rows must be equally long"
        )


def read_text(path: Path, labels: str | None, names: str | None, drop: Sequence[str]) -> Grid:
    """Read a whole CSV or TSV file."""
    rows = TextRows(path, labels, names, drop)
    layout = rows.layout
    blocks = list(rows.blocks())
    if not blocks:
        raise DataError(f"{path.name} has a header and no rows")
    values = blocks[0].values if len(blocks) == 1 else np.concatenate([block.values for block in blocks])
    grid = Grid(
        values, column_names=rows.column_names, notes=list(layout.notes), first_line=layout.first_line
    )
    if blocks[-1].last_line - layout.first_line + 1 != len(values):
        grid.first_line = (
            0  # blank lines or broken names between the rows: a row's number no longer gives its line
        )
    if layout.names is not None:
        grid.row_names = [name for block in blocks for name in block.names or ()]
        grid.corner = layout.header[layout.names] if layout.header is not None else ""
    if layout.labels is not None:
        grid.labels = [label for block in blocks for label in block.labels or ()]
    if layout.label_row is not None:
        grid.labels, grid.labels_of = [layout.label_row[k] for k in layout.numbers], "columns"
    grid.label_name = layout.label_name
    return grid
