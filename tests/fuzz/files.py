"""Attack the commands and the readers with mutated files."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pandas

from givens.app.tables import open_rows, read_table
from tests.fuzz.data import one_of
from tests.fuzz.inputs import attempt
from tests.fuzz.judge import Finding, judge
from tests.net.output_files import write_file

NASTY = [
    b"NA", b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"\x00", b"\xff\xfe", b"\"", b"'", b",", b"\t", b"\r", b"\n", b";",
    b"1,5", b"1" * 400, b"0x10", b"\xe2\x80\xa8", b"\x0c", b"\xc2\x85", b"=1+1", b"--", b"", b" ", b"1_000", b"True", b"%",
    b"\x1b[2J", b"9" * 25, b"[bold]",
]  # fmt: skip
FILES = [
    "labels.counts.csv", "counts.T.tsv", "counts.R.txt", "labels.counts.csv.gz", "labels.counts.parquet", "labels.counts.xlsx",
    "counts.npy", "labels.counts.npz", "counts.sparse.npz", "counts.mtx", "labels.counts.h5ad", "labels.counts.csr.h5ad",
    "tensor.npy",
]  # fmt: skip
COMMANDS = [
    "sparse-pca FILE -m 2 --n-nonzero 2 --no-path",
    "sparse-pca FILE -m 2 --n-nonzero 2 --stream",
    "sparse-pca FILE -m 2 --threshold 0.2 --max-iter 20",
    "mixture FILE -k 2 --max-iter 3",
    "rotate FILE -m 2",
    "rotate FILE",
    "topics FILE -k 2 --max-iter 1 --min-documents 1",
    "tensor FILE --rank 2",
]
OPTIONS = [
    "--samples columns", "--samples rows", "--log2", "--standardise", "--impute median", "--impute drop", "--impute em",
    "--labels kind", "--drop place", "--excel-safe", "--json", "--quiet", "--threads 1", "--header 0", "--header 1",
    "--skip-rows 1",
]  # fmt: skip


@cache
def original(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_file(Path(folder), name)
        return (Path(folder) / name).read_bytes()


def mutated(rng: np.random.Generator, content: bytes, text: bool) -> bytes:
    """Flip bits, overwrite, cut, insert; in texts also repeat and drop lines, and change fields."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        changes = [overwritten, cut, *([with_nasty_bytes, with_other_lines] if text else [])]
        content = one_of(rng, changes)(rng, content)
    return content


def overwritten(rng: np.random.Generator, content: bytes) -> bytes:
    """One to eight bytes are others: a bit, any bytes, or a length, an offset or a count of a header."""
    place = int(rng.integers(len(content) + 1))
    flipped = bytes(byte ^ 1 << int(rng.integers(8)) for byte in content[place : place + 1])
    number = one_of(rng, [0, 1, 255, 2**31 - 1, 2**32 - 1]).to_bytes(4, "little")
    new = one_of(rng, [flipped, rng.bytes(int(rng.integers(1, 9))), number])
    return content[:place] + new + content[place + len(new) :]


def cut(rng: np.random.Generator, content: bytes) -> bytes:
    """A part is left out, or stands several times."""
    place = int(rng.integers(len(content) + 1))
    if rng.random() < 0.5:
        return content[:place] + content[place + one_of(rng, [1, 4, 30, 10**6]) :]
    return content[:place] + content[place : place + 40] * one_of(rng, [2, 4]) + content[place + 40 :]


def with_nasty_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    place = int(rng.integers(len(content) + 1))
    return content[:place] + one_of(rng, NASTY) + content[place:]


def with_other_lines(rng: np.random.Generator, content: bytes) -> bytes:
    lines = content.split(b"\n")
    at, other = (int(k) for k in rng.integers(len(lines), size=2))
    kind = rng.integers(4)
    if kind == 0:
        lines[at] = lines[other]
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        separator = b"\t" if b"\t" in lines[at] else b","
        fields = lines[at].split(separator)
        fields[rng.integers(len(fields))] = one_of(rng, NASTY)
        lines[at] = separator.join(fields)
    else:
        lines = [line + b"," + one_of(rng, NASTY) for line in lines]
    return b"\n".join(lines)


def damaged(rng: np.random.Generator, name: str, content: bytes) -> bytes:
    """Mutate a file; a compressed one sometimes inside, so that its checksums hold."""
    text = name.endswith((".csv", ".tsv", ".txt", ".mtx"))
    if name.endswith(".gz") and rng.random() < 0.5:
        return gzip.compress(mutated(rng, gzip.decompress(content), True))
    if name.endswith((".xlsx", ".npz")) and rng.random() < 0.6:
        old, buffer = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
        parts = {member: old.read(member) for member in old.namelist()}
        chosen = one_of(rng, list(parts))
        parts[chosen] = mutated(rng, parts[chosen], chosen.endswith(".xml"))
        with zipfile.ZipFile(buffer, "w") as new:
            for member, body in parts.items():
                new.writestr(member, body)
        return buffer.getvalue()
    return mutated(rng, content, text)


def run_command(words: list[str]) -> tuple[int, str, str, BaseException | None]:
    """Run the command in this process: its exit code, both outputs, and the error that it turned into a sentence."""
    from givens.app.commands import session
    from givens.app.commands.app import app

    seen: list[BaseException | None] = [None]
    fail = session._fail

    def record(text: str, code: int) -> None:
        seen.append(sys.exc_info()[1])
        fail(text, code)

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(session, "_fail", record),
        mock.patch.object(sys, "argv", ["givens", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            app(words)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue(), seen[-1]


def attack(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Run one command on one mutated file, and the readers."""
    name, command = one_of(rng, FILES), one_of(rng, COMMANDS)
    if name == "tensor.npy" and rng.random() < 0.8:
        command = COMMANDS[-1]
    content = original(name) if rng.random() < 0.05 else damaged(rng, name, original(name))
    line = " ".join(
        [command.replace("FILE", name), "--out out", *(o for o in OPTIONS if rng.random() < 0.12)]
    )
    note(f"givens {line}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, contextlib.chdir(folder):
        Path(name).write_bytes(content)
        check_command(line.split(), name)
        for read in (read_table, lambda path: list(open_rows(path))):
            attempt(lambda read=read: read(Path(name)), file=name)


def check_command(words: list[str], name: str) -> None:
    """A command ends in results, or in one sentence and nothing written."""
    code, out, err, error = run_command(words)
    if error is not None:
        judge(error, name)
    if code not in (0, 1, 2) or "Traceback" in err:
        raise Finding("raw exception", f"exit code {code}: {err[-1500:]}")
    written = {path.name for path in Path("out").iterdir()} if Path("out").exists() else set()
    if written if code else not {"report.html", "summary.json"} <= written:
        raise Finding("half-written", f"exit code {code}, and there is {sorted(written) or 'nothing'}")
    if code == 1 and not err.splitlines()[-1].startswith("error: "):
        raise Finding("raw exception", f"no sentence: {err[-500:]}")
    if code == 0 and "--json" in words:
        json.loads(out)
    for table in Path("out").glob("*.csv"):
        if not np.isfinite(pandas.read_csv(table).select_dtypes("number").to_numpy()).all():
            raise Finding("not finite", f"{table.name} has entries that are not finite")
