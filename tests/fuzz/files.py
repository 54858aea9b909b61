"""Attack the commands and the readers with mutated files."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import sparse
from scipy.io import mmwrite

from givens.app.tables import open_rows, read_table
from tests.fuzz.judge import Finding, judge
from tests.tables import strings_that_anndata_can_write

NASTY = [
    b"NA", b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"\x00", b"\xff\xfe", b"\"", b"'", b",", b"\t", b"\r", b"\n", b";",
    b"1,5", b"1" * 400, b"0x10", b"\xe2\x80\xa8", b"\x0c", b"\xc2\x85", b"=1+1", b"--", b"", b" ", b"1_000", b"True", b"%",
    b"\x1b[2J", b"9" * 25, b"[bold]",
]  # fmt: skip
COMMANDS = {
    "sparse-pca": ["-m", "2", "--n-nonzero", "2", "--no-path"],
    "sparse-pca --stream": ["-m", "2", "--n-nonzero", "2", "--stream"],
    "sparse-pca --path": ["-m", "2", "--threshold", "0.2", "--max-iter", "20"],
    "mixture": ["-k", "2", "--max-iter", "3"],
    "rotate": ["-m", "2"],
    "rotate loadings": [],
    "topics": ["-k", "2", "--max-iter", "1", "--min-documents", "1"],
    "tensor": ["--rank", "2"],
}
EXTRA = [
    ["--samples", "columns"], ["--samples", "rows"], ["--log2"], ["--standardise"], ["--impute", "median"], ["--impute", "drop"],
    ["--impute", "em"], ["--labels", "kind"], ["--names", "name"], ["--drop", "a"], ["--excel-safe"], ["--json"], ["--quiet"],
    ["--threads", "1"], ["--header", "0"], ["--header", "1"], ["--skip-rows", "1"],
]  # fmt: skip


@cache
@strings_that_anndata_can_write()
def originals() -> dict[str, bytes]:
    """One small table in every format, and a symmetric tensor."""
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([[9, 9, 2, 2, 1], [1, 2, 9, 9, 3]], 9, axis=0)) + 1.0
    table = pandas.DataFrame(X, columns=list("abcde"), index=[f"s{k}" for k in range(18)])
    labelled = table.copy()
    labelled.insert(0, "kind", ["u", "v"] * 9)
    found: dict[str, bytes] = {}

    def keep(name: str, write: Callable[[Any], None]) -> None:
        buffer = io.BytesIO()
        write(buffer)
        found[name] = buffer.getvalue()

    found["x.csv"] = labelled.to_csv(index_label="name").encode()
    found["x.tsv"] = table.to_csv(index_label="gene", sep="\t").encode()
    found["x.txt"] = table.to_csv(index_label="name", sep=" ").encode()
    found["x.csv.gz"] = gzip.compress(found["x.csv"])
    keep("x.parquet", lambda f: labelled.to_parquet(f))
    keep("x.xlsx", lambda f: labelled.to_excel(f, index_label="name"))
    keep("x.npy", lambda f: np.save(f, X))
    keep("x.npz", lambda f: np.savez(f, X=X))
    keep("sparse.npz", lambda f: sparse.save_npz(f, sparse.csr_matrix(X)))
    keep("x.mtx", lambda f: mmwrite(f, sparse.coo_matrix(X)))
    V = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    keep("tensor.npy", lambda f: np.save(f, np.einsum("k,ak,bk,ck->abc", [4.0, 3, 2, 1], V, V, V)))
    try:
        import anndata
    except ImportError:
        return found
    for kind, values in (("dense", X), ("sparse", sparse.csr_matrix(X))):
        with tempfile.TemporaryDirectory() as folder:
            anndata.AnnData(
                values, obs=labelled[["kind"]], var=pandas.DataFrame(index=table.columns)
            ).write_h5ad(Path(folder) / "x.h5ad")
            found[f"{kind}.h5ad"] = (Path(folder) / "x.h5ad").read_bytes()
    return found


def mutated(rng: np.random.Generator, content: bytes, text: bool) -> bytes:
    """Flip bits, overwrite, cut, insert; in texts also repeat, drop and swap lines and fields."""
    changed = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        kind = int(rng.integers(11 if text else 6))
        place = int(rng.integers(len(changed) + 1))
        if kind == 0 and place < len(changed):
            changed[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[place : place + int(rng.integers(1, 9))] = rng.bytes(int(rng.integers(1, 9)))
        elif kind == 2:
            del changed[place : place + int(rng.choice([1, 4, 30, 10**6]))]
        elif kind == 3:
            changed[place:place] = changed[place : place + 40] * int(rng.choice([1, 3]))
        elif kind == 4:
            # Numbers of headers: lengths, offsets, counts.
            changed[place : place + 4] = int(rng.choice([0, 1, 255, 2**31 - 1, 2**32 - 1])).to_bytes(
                4, "little"
            )
        elif kind == 5 and place < len(changed):
            changed[place] = int(rng.integers(256))
        elif kind == 6:
            changed[place:place] = NASTY[rng.integers(len(NASTY))]
        elif kind >= 7:
            changed = bytearray(_lines(rng, bytes(changed), kind))
    return bytes(changed)


def _lines(rng: np.random.Generator, content: bytes, kind: int) -> bytes:
    lines = content.split(b"\n")
    at, other = (int(k) for k in rng.integers(len(lines), size=2))
    if kind == 7:
        lines[at] = lines[other]
    elif kind == 8:
        del lines[at]
    elif kind == 9:
        separator = b"\t" if b"\t" in lines[at] else b","
        fields = lines[at].split(separator)
        fields[rng.integers(len(fields))] = NASTY[rng.integers(len(NASTY))]
        lines[at] = separator.join(fields)
    else:
        lines = [line + b"," + NASTY[rng.integers(len(NASTY))] for line in lines]
    return b"\n".join(lines)


def inside(rng: np.random.Generator, name: str, content: bytes) -> bytes:
    """Mutate a file; a compressed one sometimes inside, so that its checksums hold."""
    text = name.endswith((".csv", ".tsv", ".txt", ".mtx"))
    if name.endswith(".gz") and rng.random() < 0.5:
        return gzip.compress(mutated(rng, gzip.decompress(content), True))
    if name.endswith((".xlsx", ".npz")) and rng.random() < 0.6:
        old, buffer = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
        chosen = old.namelist()[rng.integers(len(old.namelist()))]
        with zipfile.ZipFile(buffer, "w") as new:
            for member in old.namelist():
                body = old.read(member)
                if member != chosen or rng.random() < 0.95:
                    new.writestr(
                        member, mutated(rng, body, member.endswith(".xml")) if member == chosen else body
                    )
        return buffer.getvalue()
    return mutated(rng, content, text)


def run_command(words: list[str]) -> tuple[int, str, str, BaseException | None]:
    """Run the command in this process: its exit code, both outputs, and the error that it turned into a sentence."""
    from givens.app.commands import session
    from givens.app.commands.app import app

    seen: list[BaseException | None] = []
    fail = session._fail

    def record(text: str, code: int) -> None:
        seen.append(sys.exc_info()[1])
        fail(text, code)

    session._fail = record
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["givens", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                app(words)
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
    finally:
        session._fail = fail
    return code, out.getvalue(), err.getvalue(), seen[-1] if seen else None


def attack(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """One mutated file through one command, and through the readers."""
    names = list(originals())
    name = names[rng.integers(len(names))]
    command = list(COMMANDS)[rng.integers(len(COMMANDS))]
    if name == "tensor.npy" and rng.random() < 0.8:
        command = "tensor"
    content = originals()[name] if rng.random() < 0.05 else inside(rng, name, originals()[name])
    words = [command.split()[0], name, *COMMANDS[command], "--out", "out"]
    for extra in EXTRA:
        if rng.random() < 0.12:
            words += extra
    note(f"givens {' '.join(words)}")
    here = os.getcwd()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        os.chdir(folder)
        (folder / name).write_bytes(content)
        check_command(words, name)
        for read in (read_table, open_rows):
            note(f"{read.__name__}({name!r})")
            try:
                found = read(name)
                if read is open_rows:
                    for _ in found:
                        pass
            except Exception as error:
                judge(error, name)
    finally:
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def check_command(words: list[str], name: str) -> None:
    """A command ends in results, or in one sentence and nothing written."""
    code, out, err, error = run_command(words)
    if error is not None:
        judge(error, name)
    written = Path("out").exists()
    if code not in (0, 1, 2) or "Traceback" in err:
        raise Finding("raw exception", f"exit code {code}: {err[-1500:]}")
    if code == 0 and not ((Path("out") / "report.html").exists() and (Path("out") / "summary.json").exists()):
        raise Finding(
            "half-written", f"exit code 0, but there is {sorted(os.listdir('out')) if written else 'nothing'}"
        )
    if code != 0 and written:
        raise Finding("half-written", f"exit code {code}, but there is {sorted(os.listdir('out'))}")
    if code == 0 and "--json" in words:
        json.loads(out)
    if code == 1 and not err.splitlines()[-1:][0].startswith("error: "):
        raise Finding("raw exception", f"no sentence: {err[-500:]}")
    for table in Path("out").glob("*.csv") if written else []:
        numbers = pandas.read_csv(table).select_dtypes("number").to_numpy()
        if not np.isfinite(numbers).all():
            raise Finding("not finite", f"{table.name} has entries that are not finite")
