"""What the golden outputs run: for each command a list of names and command lines.

Words of a line that name a file of `output_files` have it written first. `&&` joins commands, of which the outputs of the last
are kept. `ADDRESS` is that of a Dask scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    line: str
    whole: bool = False  # show the summary and the page too, not only their names


READERS = {
    "sparse-pca": "sparse-pca FILE -m 2 --n-nonzero 3 --no-path",
    "stream": "sparse-pca FILE -m 2 --n-nonzero 3 --stream",
    "ica": "ica FILE -m 2 --stability 0",
    "rotate": "rotate FILE -m 2",
    "mixture": "mixture FILE -k 2",
    "topics": "topics FILE -k 2",
}
TEXTS = ["tsv", "csv.gz", "tsv.gz", "semicolon.csv", "bom.csv", "crlf.csv", "cr.csv", "R.txt"]
ARRAYS = [
    "xlsx",
    "parquet",
    "npy",
    "npz",
    "sparse.npz",
    "mtx",
    "mtx.gz",
    "h5ad",
    "csr.h5ad",
    "csc.h5ad",
    "ten_x",
]
# All commands read by the same functions, so other commands than sparse-pca show a text, an array and a sparse matrix.
FEWER = ["csv", "npy", "mtx"]
ONE_WAY = ("h5ad", "csr.h5ad", "csc.h5ad", "ten_x")  # the format says which side is the samples

# What each command says itself of tables that it cannot use.
FAULTS = {
    "missing file": "none.csv",
    "one row": "row.csv",
    "a missing value": "holes.csv",
    "a constant column": "constant.csv",
    "only constant columns": "constants.csv",
}
# What readers say, which is shown once, whole and streamed.
FAULTS_OF_FILES = {
    "a folder": "folder",
    "empty": "empty.csv",
    "only a header": "header.csv",
    "text where a number is expected": "words.csv",
    "an infinite value": "infinite.csv",
    "a ragged row": "ragged.csv",
    "a name of two samples": "twice.csv",
    "a name of two variables": "same.csv",
    "an unknown ending": "letters.doc",
    "gzip under another name": "zipped.csv",
    "half of a gzip file": "cut.x.csv.gz",
    "half of an archive": "cut.x.npz",
    "text under the name of gzip": "letters.csv.gz",
    "text under the name of an array": "letters.npy",
    "text under the name of Parquet": "letters.parquet",
    "HDF5 that is no .h5ad": "letters.h5",
    "an empty array": "empty.npy",
    "a pickle": "pickle.npy",
    "Python objects": "objects.npy",
    "complex numbers": "complex.npy",
    "three dimensions": "cube.npy",
    "an array of no rows": "no-rows.npy",
    "an array by columns": "fortran.npy",
    "two matrices": "two.npz",
    "a complex matrix": "complex.mtx",
    "an entry outside the matrix": "outside.mtx",
    "half of an Excel file": "cut.x.xlsx",
    "half of a Parquet file": "cut.x.parquet",
    "half of an array": "cut.x.npy",
    "half of a matrix": "cut.x.mtx",
    "half of a zipped matrix": "cut.x.mtx.gz",
    "half of an HDF5 file": "cut.x.h5ad",
    "a title above the header": "title.csv",
    "genes in rows by their heading": "genes.csv",
}


def format_cases(command: str, formats: list[str], both_ways: bool = False) -> list[Case]:
    table = "counts" if command == "topics" else "x"
    cases = []
    for ending in formats:
        ways = {f"{table}.{ending}": "rows"}
        if both_ways and ending not in ONE_WAY:
            ways[f"{table}.T.{ending}"] = "columns"
        for name, side in ways.items():
            line = READERS[command].replace("FILE", name)
            line += "" if ending in ONE_WAY else f" --samples {side}"
            cases.append(Case(f"{name}{'' if side == 'rows' else ', genes in rows'}", line))
    return cases


def fault_cases(command: str, faults: dict[str, str]) -> list[Case]:
    line = f"{READERS[command]} --out deep/out"
    return [Case(name, line.replace("FILE", file)) for name, file in faults.items()]


def option_cases(line: str, options: list[str]) -> list[Case]:
    return [Case(text, f"{line} {text}") for text in options]


LABELLED = ["csv", "xlsx", "parquet", "npz", "h5ad"]
SPARSE_PCA = [
    Case("counts of non-zeros", "sparse-pca labels.x.csv -m 2 --n-nonzero 3 --labels kind --labels place --json", True),
    Case("a threshold", "sparse-pca x.csv -m 2 --threshold 0.2", True),
    Case("stability", "sparse-pca x.csv -m 2 --n-nonzero-total 7 --stability 3 --no-path", True),
    *(
        Case(f"labels of {ending}", f"sparse-pca labels.x.{ending} -m 2 --n-nonzero 3 --no-path --labels kind")
        for ending in LABELLED
    ),
    *format_cases("sparse-pca", ["csv", *TEXTS, *ARRAYS], both_ways=True),
    Case("logarithms, standardised", "sparse-pca x.csv -m 2 --n-nonzero 4,3 --log2 --floor 2 --standardise --no-path"),
    Case("random order", "sparse-pca x.csv -m 2 --threshold 0.2 --schedule random --no-path --seed 3 --starts 2"),
    Case("the largest threshold", "sparse-pca x.csv -m 2 --threshold 1 --no-path"),
    Case("quiet", "sparse-pca x.csv -m 2 --n-nonzero 3 --no-path --quiet"),
    Case("another column of names", "sparse-pca x.h5ad -m 2 --n-nonzero 3 --no-path --names symbol"),
    Case("another list of names", "sparse-pca x.ten_x -m 2 --n-nonzero 3 --no-path --names symbol"),
    Case("a column left out", "sparse-pca x.csv -m 2 --n-nonzero 3 --no-path --drop 'gene 1'"),
    Case("numbers of groups", "sparse-pca groups.csv -m 2 --n-nonzero 3 --no-path"),
    Case("a total among the variables", "sparse-pca total.csv -m 2 --n-nonzero 3 --no-path"),
    Case("a covariance matrix", "sparse-pca square.npy -m 2 --n-nonzero 2 --no-path --samples rows"),
    Case("formulas", "sparse-pca formulas.csv -m 2 --n-nonzero 3 --no-path --excel-safe"),
    Case("rows above the header", "sparse-pca title.csv -m 2 --n-nonzero 3 --no-path --skip-rows 2"),
    *option_cases("sparse-pca holes.csv -m 2 --n-nonzero 3 --no-path", ["--impute em", "--impute median", "--impute drop"]),
    Case("a variable without any value", "sparse-pca column-of-holes.csv -m 2 --impute median"),
    Case("no complete sample", "sparse-pca column-of-holes.csv -m 2 --impute drop"),
    Case(
        "files of an earlier run",
        "sparse-pca x.csv -m 2 --n-nonzero 3 --no-path --stability 2 && sparse-pca x.csv -m 2 --n-nonzero 2 --no-path",
    ),
    Case("a file in the way", "sparse-pca x.csv -m 2 --n-nonzero 3 --no-path --out file"),
    *fault_cases("sparse-pca", FAULTS | FAULTS_OF_FILES),
    *option_cases(
        "sparse-pca x.csv -m 2",
        [
            "--n-nonzero 99", "-m 21", "--labels colour", "--drop colour", "--names colour", "--header 99", "--n-nonzero many",
            "--n-nonzero 0", "--n-nonzero 2,0", "--n-nonzero 2 --threshold 0.5", "--n-nonzero 3,2,1", "--n-nonzero-total 1",
            "--threshold 1.5", "--threshold -1", "--sketch 9", "--schedule random --n-nonzero 2",
            "--schedule random --n-nonzero-total 4", "--floor 10", "--log2 --floor 0", "-m 0", "--penalty l7", "--seed -1",
            "--stability 2 --cluster local", "--header 1 --cluster local", "--impute median --cluster local", "--nothing",
        ],
    ),
    Case("labels of an array", "sparse-pca x.npy -m 2 --labels kind"),
    Case("a column of an array left out", "sparse-pca x.npy -m 2 --drop kind"),
    Case("a header of an array", "sparse-pca x.npy -m 2 --header 1"),
    Case("no file at all", "sparse-pca"),
]  # fmt: skip

STREAM = [
    Case("counts of non-zeros", "sparse-pca labels.x.csv -m 2 --n-nonzero 3 --stream --labels kind --labels place --json", True),
    Case("a threshold", "sparse-pca x.csv -m 2 --threshold 0.3 --stream --sketch 6 --standardise"),
    *(
        Case(f"labels of {ending}", f"sparse-pca labels.x.{ending} -m 2 --n-nonzero 3 --stream --labels kind")
        for ending in LABELLED
    ),
    *format_cases("stream", ["csv", *TEXTS, *ARRAYS]),
    *format_cases("stream", ["csv", "parquet"], both_ways=True)[1::2],
    Case("logarithms", "sparse-pca x.csv -m 2 --n-nonzero 3 --stream --log2 --floor 9"),
    Case("another column of names", "sparse-pca x.h5ad -m 2 --n-nonzero 3 --stream --names symbol"),
    Case("formulas", "sparse-pca formulas.csv -m 2 --n-nonzero 3 --stream --excel-safe"),
    Case("a total among the variables", "sparse-pca total.csv -m 2 --n-nonzero 3 --stream"),
    Case("rows above the header", "sparse-pca title.csv -m 2 --n-nonzero 3 --stream --skip-rows 2"),
    *option_cases("sparse-pca holes.csv -m 2 --n-nonzero 3 --stream", ["--impute em", "--impute drop"]),
    Case("no complete sample", "sparse-pca column-of-holes.csv -m 2 --stream --impute drop"),
    *fault_cases("stream", FAULTS | FAULTS_OF_FILES),
    *option_cases(
        "sparse-pca x.csv -m 2 --stream",
        [
            "--n-nonzero 99", "--skip-rows 99", "--labels colour", "--n-nonzero 0", "--n-nonzero 2 --threshold 0.5",
            "--n-nonzero 3,2,1", "--threshold nan", "--samples columns", "--impute median", "--schedule random", "--stability 8",
            "--n-nonzero-total 8", "--cluster local",
        ],
    ),
]  # fmt: skip

ICA = [
    Case("a table", "ica x.csv -m 2 --rate 10 --stability 2 --json", True),
    *format_cases("ica", FEWER),
    Case("signals in rows", "ica x.T.csv -m 2 --stability 0 --samples columns"),
    *option_cases("ica x.csv -m 2 --stability 0", ["--contrast logcosh", "--contrast kurtosis --starts 2"]),
    Case("formulas", "ica formulas.csv -m 2 --stability 0 --excel-safe"),
    *fault_cases("ica", FAULTS),
    *option_cases(
        "ica x.csv",
        [
            "-m 9",
            "--rate -1",
            "--high-pass 1",
            "--contrast tanh",
            "--labels kind",
            "--stability 2 --cluster local",
        ],
    ),
    Case("a damaged recording", "ica broken.edf"),
    Case("a rate for a recording", "ica broken.edf --rate 5"),
]

ROTATE = [
    Case("loadings", "rotate loadings.csv --json", True),
    Case("principal components", "rotate x.csv -m 2", True),
    *format_cases("rotate", FEWER),
    *option_cases(
        "rotate loadings.csv",
        [
            "--criterion quartimax", "--criterion biquartimax", "--criterion equamax", "--criterion parsimax",
            "--criterion parsimony", "--no-kaiser --starts 3", "--drop F2",
        ],
    ),
    Case("standardised", "rotate x.csv -m 2 --standardise"),
    Case("a total among the variables", "rotate total.csv -m 2"),
    Case("numbers of groups", "rotate groups.csv -m 2"),
    Case("a text column", "rotate labels.x.csv -m 2"),
    Case("filled in", "rotate holes.csv -m 2 --impute median"),
    Case("formulas", "rotate formulas.csv -m 2 --excel-safe"),
    # Whether the loadings of a constant variable are 0 or 1e-17, of which a warning speaks, is up to the processor.
    *(case for case in fault_cases("rotate", FAULTS) if case.name != "a constant column"),
    Case("more factors than variables", "rotate loadings.T.csv"),
    *option_cases(
        "rotate loadings.csv",
        ["--standardise", "--samples rows", "--log2", "--labels kind", "--criterion oblimin", "-m 9", "--starts 0"],
    ),
    Case("files in the way", "rotate loadings.csv --out file/results"),
]  # fmt: skip

MIXTURE = [
    Case("labels", "mixture labels.x.csv -k 2 --labels kind --json", True),
    *format_cases("mixture", FEWER),
    *option_cases("mixture x.csv -k 2", ["--variance distinct", "--standardise", "--max-iter 1", "--log2"]),
    Case("labels under the heading of clusters", "mixture groups.csv -k 2 --labels cluster"),
    Case("formulas", "mixture formulas.csv -k 2 --excel-safe"),
    *option_cases("mixture holes.csv -k 2", ["--impute median", "--impute drop", "--impute em"]),
    *fault_cases("mixture", FAULTS),
    *option_cases(
        "mixture x.csv", ["--seed 1", "-k 21", "-k 0", "-k 2 --variance none", "-k 2 --labels colour"]
    ),
]

TOPICS = [
    Case("counts", "topics labels.counts.csv -k 2 --labels kind --json", True),
    Case("texts", "topics texts -k 2 --stop-words", True),
    *format_cases("topics", FEWER),
    Case("a vocabulary", "topics counts.mtx -k 2 --samples rows --vocabulary words.txt"),
    *option_cases("topics counts.csv -k 2", ["--max-iter 0", "--alpha0 0.5"]),
    *fault_cases("topics", FAULTS),
    Case("no counts", "topics x.csv -k 2"),
    *option_cases(
        "topics counts.csv",
        ["--max-iter 2", "-k 2 --alpha0 -1", "-k 2 --vocabulary none.txt", "-k 2 --log2"],
    ),
    Case("a short vocabulary", "topics counts.mtx -k 2 --samples rows --vocabulary two-words.txt"),
    Case("a vocabulary of texts", "topics texts -k 2 --vocabulary words.txt"),
    Case("rows of texts", "topics texts -k 2 --header 1"),
    Case("rare words", "topics texts -k 2 --min-documents 13"),
]

TENSOR = [
    Case("an array", "tensor tensor.npy --json", True),
    Case("an archive", "tensor tensor.npz"),
    Case("rank and symmetry", "tensor tilted.npy --rank 2 --symmetrize"),
    *(
        Case(name, f"tensor {file} --out deep/out")
        for name, file in {
            "missing file": "none.npy",
            "a table": "x.csv",
            "no symmetric tensor": "tilted.npy",
            "two dimensions": "matrix.npy",
            "unequal dimensions": "box.npy",
            "no finite numbers": "nan.npy",
            "letters": "letters-of-a-cube.npy",
            "two tensors": "two-cubes.npz",
            "no tensor": "two.npz",
            "half of an array": "cut.tensor.npy",
            "half of an archive": "cut.tensor.npz",
            "a pickle": "pickle.npy",
            "Python objects": "objects.npy",
            "empty": "empty.npy",
        }.items()
    ),
    *option_cases("tensor tensor.npy", ["--rank 4", "--rank 0"]),
]

COMPARE = [
    Case("two results", "compare first second --json", True),
    Case("two analyses", "compare first clusters --out both"),
    Case(
        "results of the command",
        f"{READERS['sparse-pca'].replace('FILE', 'x.csv')} && compare results results",
    ),
    *(
        Case(name, f"compare first {folder} --out deep/out")
        for name, folder in {
            "no folder": "nowhere",
            "no results": "folder",
            "lines of different lengths": "damaged-results",
            "words": "results-of-words",
            "no components": "no-components",
            "no variable in common": "other-genes",
        }.items()
    ),
    Case("one folder", "compare first"),
]

DEMO = [Case("demo", "demo", True)]

CLUSTER = [
    Case(
        "Parquet", "mixture labels.x.parquet -k 2 --labels kind --labels place --cluster ADDRESS --json", True
    ),
    Case("HDF5", "sparse-pca labels.x.csr.h5ad -m 2 --n-nonzero 3 --labels kind --cluster ADDRESS"),
    *(
        Case(
            f"{command} of zarr", f"{READERS[command].replace('FILE', file)} --samples rows --cluster ADDRESS"
        )
        for command, file in {
            "sparse-pca": "x.zarr",
            "ica": "x.zarr",
            "mixture": "x.zarr",
            "topics": "counts.zarr",
        }.items()
    ),
    *(
        Case(name, f"{READERS['sparse-pca'].replace('FILE', file)} --cluster ADDRESS --out deep/out")
        for name, file in {
            "missing file": "none.zarr",
            "no store": "folder",
            "text": "x.csv",
            "an array": "x.npy",
            "half of a Parquet file": "cut.x.parquet",
        }.items()
    ),
    Case("genes in rows", "sparse-pca x.parquet -m 2 --samples columns --cluster ADDRESS"),
    Case("no scheduler", "mixture x.parquet -k 2 --cluster nowhere"),
]

GIVENS = [
    Case("version", "--version"),
    Case("an unknown command", "no-such-command"),
]

CASES = {
    "sparse-pca": SPARSE_PCA,
    "stream": STREAM,
    "ica": ICA,
    "rotate": ROTATE,
    "mixture": MIXTURE,
    "topics": TOPICS,
    "tensor": TENSOR,
    "compare": COMPARE,
    "demo": DEMO,
    "cluster": CLUSTER,
    "givens": GIVENS,
}
