"""What the application, caches and guards against interrupts earn."""

from __future__ import annotations

import io
from typing import Any

from benchmarks.ablation.mechanism import Mechanism


def _read_text_by_numpy() -> None:
    """`numpy.loadtxt` reads the lines without quotation marks, and the csv module the others."""
    import numpy as np
    from givens.io import text

    def whole(rows: Any, data: bytes) -> Any:
        layout = rows.layout
        if b'"' in data:
            return None
        lines = list(io.StringIO(data.decode(layout.encoding, "replace"), newline=""))
        if any(line.count(layout.separator) != layout.width - 1 for line in lines):
            return None
        words = [[line.split(layout.separator, k + 1)[k].strip() for line in lines] for k in rows.texts]
        try:
            numbers = np.loadtxt(
                lines, delimiter=layout.separator, usecols=rows.numbers, comments=None, ndmin=2
            )
        except ValueError:
            return None
        named = layout.names is not None
        return text.TextBlock(numbers, words[0] if named else None, words[1:] if named else words, True)

    text.TextRows._read_whole = whole
    text.TextRows._cut = lambda rows, data: None


def _read_matrix_market_by_scipy() -> None:
    import scipy.io
    from givens.io import matrix_market
    from givens.io.table import Grid

    def read(path: Any, labels: Any, names: Any = None) -> Any:
        values = scipy.io.mmread(path)
        return Grid(values.tocsr() if hasattr(values, "tocsr") else values)

    matrix_market.read_matrix_market = read


def _open_hdf5_at_once() -> None:
    from contextlib import nullcontext

    from givens.io import arrays

    arrays.walked = nullcontext


def _interrupt_as_python_does() -> None:
    import signal
    from collections.abc import Iterator
    from contextlib import contextmanager

    from givens.cli import session, stop_at_once

    @contextmanager
    def plain() -> Iterator[None]:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, stop_at_once)

    session.interruptible = plain


def _interrupt_anywhere() -> None:
    from givens.support.signals import uninterrupted

    uninterrupted.__enter__ = lambda self: None  # type: ignore[method-assign]
    uninterrupted.__exit__ = lambda self, *raised: None  # type: ignore[method-assign]


def _cache_as_numba_does() -> None:
    from givens.kernels import compile

    compile._cache = lambda compiled: compiled.enable_caching()


def _cache_without_checksums() -> None:
    from numba.core.caching import IndexDataCacheFile

    from givens.kernels.cache import _CheckedFiles

    for name in ("_open_for_write", "_load_index", "_load_data"):
        setattr(_CheckedFiles, name, getattr(IndexDataCacheFile, name))


def _centre_densely() -> None:
    import numpy as np

    from givens.sparse_pca import data

    def dense(B: Any, r: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(B.toarray() - np.outer(r, mean))

    data.CentredSparse = dense


def _take_whole_scores() -> None:
    from givens.numerics import tiles
    from givens.objectives import sparse_columns
    from givens.sparse_pca import cardinality, loadings, truncated_power

    few_allowed = tiles.scores
    for module in (tiles, sparse_columns, cardinality, truncated_power, loadings):
        module.scores = lambda S, At, few: few_allowed(S, At, few=False)


MECHANISMS = (
    Mechanism(
        "CSV by Arrow, pandas and cut lines",
        ("command *CSV *",),
        ("io/text.py",),
        _read_text_by_numpy,
        "deleted: to read 20,000 x 300 numbers `numpy.loadtxt` takes 0.96 of its time, 100 x 20,000 0.50, "
        "and a stream of the former half of the memory; only 500,000 x 5 numbers (0.4 s more) and 1.5 "
        "million of 17 digits (0.7 s more) take twice as long to read, which is less than a command takes.",
    ),
    Mechanism(
        "Matrix Market reader",
        ("command *Matrix Market *",),
        tuple(
            f"io/matrix_market.py:{name}"
            for name in (
                "FIELDS",
                "SYMMETRIES",
                "LONGEST_COMMENTS",
                "read_matrix_market",
                "_header",
                "_by_coordinates",
                "_dense",
            )
        ),
        _read_matrix_market_by_scipy,
        "deleted: SciPy reads 500,000 entries in half of its time, and refuses damaged files but for two "
        "kinds: a symmetric matrix that is not square, which is refused before, and numbers after the "
        "third of a line, which it leaves out.",
    ),
    Mechanism(
        "walk through HDF5 in a child process",
        ("command *AnnData *",),
        ("io/hdf5.py",),
        _open_hdf5_at_once,
        "kept: without it a damaged file can make HDF5 loop for ever or allocate gigabytes, which the "
        "tests show; its time was not measured.",
    ),
    Mechanism(
        "Ctrl-C while objects are deleted or modules imported",
        ("command rotate, CSV 500 x 40",),
        tuple(f"cli/session.py:{name}" for name in ("interruptible", "_ignore", "_once_more")),
        _interrupt_as_python_does,
        "deleted: at 12 random moments of a command the handler of Python alone stopped it as well; a "
        "Ctrl-C that falls into `__del__` has to be pressed again.",
    ),
    Mechanism(
        "steps that Ctrl-C cannot part",
        ("command rotate, CSV 500 x 40", "FactorRotation varimax, 3,000 x 20"),
        ("support/signals.py",),
        _interrupt_anywhere,
        "kept: undecided, since interrupts at 11 random moments of a command ended as well without it; its "
        "15 lines guard linking, threads and files, which tests interrupt at chosen moments.",
    ),
    Mechanism(
        "cache of compiled code: digest of the folder",
        ("command rotate, CSV 500 x 40",),
        ("kernels/cache.py",),
        _cache_as_numba_does,
        "kept: numba alone runs stale code when only a helper in another file has changed, as after an "
        "upgrade, which a test shows.",
    ),
    Mechanism(
        "cache of compiled code: checksums",
        ("command rotate, CSV 500 x 40",),
        tuple(
            f"kernels/cache.py:_CheckedFiles.{name}"
            for name in ("_open_for_write", "_load_index", "_load_data", "_is_whole")
        ),
        _cache_without_checksums,
        "kept: undecided; of 36 files with some bytes changed, cut off or zeroed, none gave a crash or a "
        "wrong value without it either, but only 12 of these could have changed machine code.",
    ),
    Mechanism(
        "centred sparse matrices",
        (
            "SparsePCA sparse matrix*",
            "command sparse-pca, Matrix Market *",
        ),
        ("numerics/centred_sparse.py",),
        _centre_densely,
        "kept: its time does not show, but wide sparse data take the memory of their non-zeros by it.",
    ),
    Mechanism(
        "scores by the non-zeros of few rows",
        ("SparsePCA n_nonzero=50, 62 x 2,000", "SparsePCA alpha=0.*, all of 100 x 8,000"),
        ("numerics/tiles.py:scores",),
        _take_whole_scores,
        "kept: undecided, since its rows have not been measured by this script.",
    ),
)
