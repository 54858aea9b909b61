"""Small tables in every format, and files that are none, for the golden outputs: a file's name says what it holds.

`x.csv` is a table of 20 patients and 8 genes, `counts.mtx` one of 16 documents and 6 words, `x.T.tsv` has genes in rows,
`labels.x.parquet` has two columns of labels, `cut.x.npz` is the first half of a file.
"""

from __future__ import annotations

import csv
import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import anndata
import numpy as np
import pandas
import scipy.io
import scipy.sparse
import zarr

from tests.tables import strings_that_anndata_can_write


def patients() -> pandas.DataFrame:
    """Two groups of genes: one follows a source of two values, which gives two clusters, the other one with heavy tails."""
    rng = np.random.default_rng(38)
    sources = np.column_stack([rng.choice([-2.0, 2.0], 20) + 0.2 * rng.normal(size=20), rng.laplace(size=20)])
    weights = np.array([[4, 3, 2.5, 2, 0, 0, 0, 0], [0, 0, 0, 0, 3, 2, 1.5, 0]])
    values = sources @ weights + 0.1 * rng.normal(size=(20, 8)) + 16
    return frame(values.round(3), "patient", "gene")


def documents() -> pandas.DataFrame:
    """Documents of two topics without common words."""
    rng = np.random.default_rng(39)
    topics = np.kron(np.eye(2), np.array([5.0, 3.0, 2.0]))
    return frame(rng.poisson(np.repeat(topics, 8, axis=0)), "document", "word")


def loadings() -> pandas.DataFrame:
    """Six items, of which three belong to each of two factors that were turned by half a radian."""
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    return frame((np.kron(np.eye(2), [[0.9], [0.8], [0.7]]) @ turn).round(3), "item", "F")


def frame(values: np.ndarray, row: str, column: str) -> pandas.DataFrame:
    rows, columns = ([f"{word} {k + 1}" for k in range(n)] for word, n in zip((row, column), values.shape))
    return pandas.DataFrame(values, rows, columns)


TABLES = {"x": patients, "counts": documents, "loadings": loadings}


def labels(count: int) -> dict[str, list[str]]:
    return {"kind": ["a", "b"] * (count // 2), "place": [f"ward {k // 5}" for k in range(count)]}


def as_in_r(table: pandas.DataFrame) -> bytes:
    """What R's write.table writes: names in quotation marks, none over those of the rows."""
    lines = [" ".join(f'"{name}"' for name in table.columns)]
    lines += [
        " ".join([f'"{name}"', *map(repr, row)]) for name, row in zip(table.index, table.to_numpy().tolist())
    ]
    return ("\n".join(lines) + "\n").encode()


def text(table: pandas.DataFrame, **options: str) -> bytes:
    return table.to_csv(**options).encode()


TEXTS: dict[str, Callable[[pandas.DataFrame], bytes]] = {
    "csv": text,
    "tsv": lambda table: text(table, sep="\t"),
    "csv.gz": lambda table: gzip.compress(text(table), mtime=0),
    "tsv.gz": lambda table: gzip.compress(text(table, sep="\t"), mtime=0),
    "semicolon.csv": lambda table: text(table, sep=";", decimal=","),
    "bom.csv": lambda table: b"\xef\xbb\xbf" + text(table),
    "crlf.csv": lambda table: text(table, lineterminator="\r\n"),
    "cr.csv": lambda table: text(table, lineterminator="\r"),
    "R.txt": as_in_r,
}


def write_npz(path: Path, table: pandas.DataFrame) -> None:
    words = {name: np.array(table[name], "U") for name in ("kind", "place") if name in table}
    numbers = table.drop(columns=list(words))
    names = {"rows": np.array(table.index, "U"), "columns": np.array(numbers.columns, "U")}
    np.savez(path, X=numbers.to_numpy(), **names, **words)


def write_h5ad(path: Path, table: pandas.DataFrame, sparse: str = "") -> None:
    words = [name for name in ("kind", "place") if name in table]
    numbers = table.drop(columns=words)
    values = numbers.to_numpy(float)
    if sparse:
        values = getattr(scipy.sparse, f"{sparse}_matrix")(values)
    var = pandas.DataFrame({"symbol": ["TP53", "KLK3", "TP53", *numbers.columns[3:]]}, index=numbers.columns)
    with strings_that_anndata_can_write():
        anndata.AnnData(values, obs=table[words], var=var).write_h5ad(path)


def write_matrix_market(path: Path, table: pandas.DataFrame) -> None:
    scipy.io.mmwrite(path, scipy.sparse.coo_matrix(table.to_numpy()), precision=17)


def write_zipped_matrix(path: Path, table: pandas.DataFrame) -> None:
    plain = path.with_name("plain.mtx")
    write_matrix_market(plain, table)
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()


def write_ten_x(path: Path, table: pandas.DataFrame) -> None:
    path.mkdir()
    write_matrix_market(path / "matrix.mtx", table.T)
    (path / "barcodes.tsv").write_text("".join(f"{name}\n" for name in table.index))
    symbols = ["TP53", "KLK3", "TP53", *table.columns[3:]]
    (path / "features.tsv").write_text(
        "".join(f"{name}\t{symbol}\tGene Expression\n" for name, symbol in zip(table.columns, symbols))
    )


def write_zarr(path: Path, table: pandas.DataFrame) -> None:
    values = table.to_numpy()
    chunks = (7, values.shape[1])
    zarr.open(str(path), mode="w", shape=values.shape, chunks=chunks, dtype=values.dtype)[:] = values


OTHERS: dict[str, Callable[[Path, pandas.DataFrame], None]] = {
    "xlsx": lambda path, table: table.to_excel(path),
    "parquet": lambda path, table: table.to_parquet(path, row_group_size=7),
    "npy": lambda path, table: np.save(path, np.ascontiguousarray(table.to_numpy())),
    "npz": write_npz,
    "sparse.npz": lambda path, table: scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(table.to_numpy())),
    "mtx": write_matrix_market,
    "mtx.gz": write_zipped_matrix,
    "h5ad": write_h5ad,
    "csr.h5ad": lambda path, table: write_h5ad(path, table, "csr"),
    "csc.h5ad": lambda path, table: write_h5ad(path, table, "csc"),
    "ten_x": write_ten_x,
    "zarr": write_zarr,
}


def with_value(value: object) -> bytes:
    """The table of patients with something else in its fifth line, second gene."""
    table = patients().astype(object)
    table.iloc[3, 1] = value
    return text(table)


def changed(change: Callable[[pandas.DataFrame], object]) -> bytes:
    """The table of patients after a change in place."""
    table = patients()
    change(table)
    return text(table)


def array(values: object) -> Callable[[Path], None]:
    return lambda path: np.save(path, np.array(values), allow_pickle=True)


def planted_tensor() -> np.ndarray:
    vectors = np.linalg.qr(np.random.default_rng(40).normal(size=(3, 3)))[0]
    return np.einsum("a,ia,ja,ka->ijk", [3.0, 2.0, 1.0], vectors, vectors, vectors)


def write_texts(folder: Path) -> None:
    folder.mkdir()
    rng = np.random.default_rng(41)
    for k in range(12):
        words = ["soup", "salt", "pan", "stove"] if k % 2 else ["sail", "mast", "wind", "harbour"]
        (folder / f"{k:02}.txt").write_text("the " + " ".join(rng.choice(words, 20)))


def write_result(shift: int, analysis: str = "sparse-pca", scored: bool = True) -> Callable[[Path], None]:
    """A folder as sparse-pca writes it: two components of four genes, the second time in another order and turned."""

    def write(folder: Path) -> None:
        folder.mkdir()
        weights = np.array([[0.8, 0.6, 0, 0], [0, 0, 0.6, -0.8]])
        scores = np.random.default_rng(42).normal(size=(6, 2)).round(2)
        if shift:
            weights, scores = -weights[::-1], -scores[:, ::-1]
        names = ["component 1", "component 2"]
        genes = [f"gene {k + 1 + shift}" if k else "gene 1" for k in range(4)]
        rows = [["variable", *names], *([gene, *row] for gene, row in zip(genes, weights.T.tolist()))]
        tables = {"components.csv": rows}
        if scored:
            lines = ([f"patient {k}", *row] for k, row in enumerate(scores.tolist()))
            tables["scores.csv"] = [["sample", *names], *lines]
        for name, content in tables.items():
            with open(folder / name, "w", newline="") as stream:
                csv.writer(stream).writerows(content)
        (folder / "summary.json").write_text(json.dumps({"analysis": analysis}))

    return write


def write_components(content: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        folder.mkdir()
        (folder / "components.csv").write_text(content)

    return write


def set_constant(table: pandas.DataFrame) -> None:
    table["gene 3"] = 5.0


def set_all_constant(table: pandas.DataFrame) -> None:
    table.loc[:] = 5.0


def set_total(table: pandas.DataFrame) -> None:
    table["library size"] = 1000 * table.sum(axis=1)


def set_formulas(table: pandas.DataFrame) -> None:
    table.rename(columns={"gene 1": "=1+1", "gene 2": "@gene"}, index={"patient 2": "-patient"}, inplace=True)


def set_groups(table: pandas.DataFrame) -> None:
    table["cluster"] = [1, 2] * 10


def set_all_holes(table: pandas.DataFrame) -> None:
    table["gene 3"] = np.nan


SPECIAL: dict[str, bytes | Callable[[Path], None]] = {
    # No tables, or tables with a fault.
    "empty.csv": b"",
    "empty.npy": b"",
    "header.csv": b"name,a,b,c\n",
    "words.csv": with_value("oops"),
    "holes.csv": with_value(np.nan),
    "column-of-holes.csv": changed(set_all_holes),
    "infinite.csv": with_value(np.inf),
    "ragged.csv": text(patients()) + b"patient 21,1\n",
    "twice.csv": text(patients()).replace(b"patient 2,", b"patient 1,"),
    "same.csv": text(patients()).replace(b"gene 2", b"gene 1"),
    "title.csv": b"exported today\n\n" + text(patients()),
    "constant.csv": changed(set_constant),
    "constants.csv": changed(set_all_constant),
    "total.csv": changed(set_total),
    "formulas.csv": changed(set_formulas),
    "groups.csv": changed(set_groups),
    "genes.csv": changed(lambda table: table.rename_axis("gene", inplace=True)),
    "row.csv": text(patients()[:1]),
    "letters.doc": b"1",
    "letters.h5": b"1",
    "letters.csv.gz": text(patients()),
    "letters.npy": text(patients()),
    "letters.parquet": text(patients()),
    "zipped.csv": gzip.compress(text(patients()), mtime=0),
    "pickle.npy": pickle.dumps([1, 2], protocol=4),
    "objects.npy": array([[None, 1]]),
    "complex.npy": array([[1j, 2], [3, 4]]),
    "cube.npy": array(np.ones((2, 2, 2))),
    "no-rows.npy": array(np.empty((0, 3))),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(patients().to_numpy())),
    "two.npz": lambda path: np.savez(path, A=np.eye(3), B=np.eye(3)),
    "complex.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 3 4\n",
    "outside.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 3\n",
    "square.npy": array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]]),
    "folder": Path.mkdir,
    "file": b"in the way",
    # Tensors.
    "tensor.npy": array(planted_tensor()),
    "tensor.npz": lambda path: np.savez(path, T=planted_tensor(), weights=np.ones(3)),
    "tilted.npy": array(planted_tensor() + 0.001 * np.arange(27).reshape(3, 3, 3)),
    "matrix.npy": array(np.eye(3)),
    "box.npy": array(np.ones((3, 3, 2))),
    "nan.npy": array(np.full((2, 2, 2), np.nan)),
    "letters-of-a-cube.npy": array([[["a"]]]),
    "two-cubes.npz": lambda path: np.savez(path, A=np.ones((2, 2, 2)), B=np.ones((2, 2, 2))),
    # Texts, and what goes with counts.
    "texts": write_texts,
    "words.txt": b"".join(b"term %d\n" % k for k in range(6)),
    "two-words.txt": b"cat\ndog\n",
    # A recording that is none.
    "broken.edf": b"no recording at all",
    # Results.
    "first": write_result(0),
    "second": write_result(1),
    "clusters": write_result(0, "mixture", scored=False),
    "damaged-results": write_components("variable,component 1\nx\n"),
    "results-of-words": write_components("variable,component 1\nx,much\n"),
    "no-components": write_components("sample,component 1\nx,1\n"),
    "other-genes": write_components("variable,component 1\nx,1\n"),
}


def write_file(folder: Path, name: str) -> None:
    """Write the file that the name describes, if it describes one."""
    path = folder / name
    special = SPECIAL.get(name)
    if isinstance(special, bytes):
        path.write_bytes(special)
    elif special is not None:
        special(path)
    elif name.startswith("cut."):
        write_file(folder, name.removeprefix("cut."))
        path.write_bytes((content := (folder / name.removeprefix("cut.")).read_bytes())[: len(content) // 2])
    elif name.removeprefix("labels.").split(".")[0] in TABLES and "." in name:
        write_table(path)


def write_table(path: Path) -> None:
    """Write a table, with labels or genes in rows where the name says so, in the format of its ending."""
    kind = path.name.removeprefix("labels.")
    stem, _, ending = kind.partition(".")
    table = TABLES[stem]()
    if kind != path.name:
        table = table.assign(**labels(len(table)))
    if ending.startswith("T."):
        ending, table = ending.removeprefix("T."), table.T
    if ending in TEXTS:
        path.write_bytes(TEXTS[ending](table))
    else:
        OTHERS[ending](path, table)
