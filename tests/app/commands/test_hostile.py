"""Files made to exhaust, to mislead or to shift: each ends in one sentence, or in tables that read back."""

from __future__ import annotations

import csv
import gzip
import os

import numpy as np
import pytest

from givens.app.tables import DataError, open_rows, read_table
from tests.app.commands.test_processes import GOOD


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_labels_overwrite_no_column(givens, tmp_path):
    lines = ["name,cluster,a,b,c", *(f"s{k},L{k % 2},{k % 5},{k * k % 7},{k % 2 * 9}" for k in range(20))]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    run = givens("mixture", "x.csv", "-k", 2, "--labels", "cluster", "--out", "out")
    assert run.code == 0, run.err
    rows = rows_of(tmp_path / "out" / "scores.csv")
    assert rows[0] == ["sample", "cluster (label)", "cluster", "cluster 1", "cluster 2"]
    assert [row[1] for row in rows[1:]] == [f"L{k % 2}" for k in range(20)]
    assert {row[2] for row in rows[1:]} <= {"cluster 1", "cluster 2"}
    (tmp_path / "x.csv").write_text("\n".join(lines).replace("cluster", "sample") + "\n")
    for extra in ([], ["--stream"]):
        options = ["-m", 2, "--n-nonzero", 2, "--no-path", "--labels", "sample", *extra]
        run = givens("sparse-pca", "x.csv", *options, "--out", "out")
        assert run.code == 0, run.err
        rows = rows_of(tmp_path / "out" / "scores.csv")
        assert rows[0] == ["sample", "sample (label)", "component 1", "component 2"]
        assert [row[0] for row in rows[1:]] == [f"s{k}" for k in range(20)]


def test_escapes_do_not_reach_the_terminal(givens, tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD.replace(b"name,a", b"name,a\x1b[2Jx").replace(b"s3,", b"s3\x07,"))
    for arguments in (
        ["sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 2],
        ["sparse-pca", "x.csv", "--labels", "\x1b[31m"],
    ):
        run = givens(*arguments, "--no-path", "--out", "out")
        assert "\x1b[2J" not in run.err
        assert "\x1b[31m" not in run.err
        assert "\\x1b[" in run.err


@pytest.mark.parametrize("content", [b"1," * (1 << 25), b"x" * ((1 << 26) + 9)], ids=["fields", "letters"])
def test_a_line_that_unpacks_to_more_than_any_table_has(tmp_path, content):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(content, 1))
    for read in (read_table, open_rows):
        with pytest.raises(DataError, match=r"more than 8,388,608 fields|longer than 64 MB"):
            read(path)
    # Also where it comes after lines that look like a table.
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 9 + content, 1))
    with pytest.raises(DataError, match=r"longer than 64 MB|line 11 has .* fields?"):
        read_table(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.npy", "x.npz"])
def test_a_pipe_is_refused(givens, tmp_path, name):
    os.mkfifo(tmp_path / name)
    for extra in ([], ["--stream"]):
        run = givens("sparse-pca", name, "-m", 2, "--out", "out", *extra)
        assert run.code == 1
        assert "is a pipe or a device" in run.err


def test_commands_advise_what_they_have(givens, tmp_path):
    (tmp_path / "x.csv").write_text(
        "name,a,b,kind\n" + "".join(f"s{k},{k},{k * k % 7},w\n" for k in range(9))
    )
    run = givens("rotate", "x.csv", "-m", 2, "--out", "out")
    assert "left out the text column 'kind'" in run.err
    assert "--labels" not in run.err
    (tmp_path / "y.csv").write_text("name,a,b\nx,1,2\ny,3,4\nz,5,oops\n")
    run = givens("rotate", "y.csv", "-m", 2, "--out", "none")
    assert "'oops' is not a number (--drop takes a column out of the numbers)" in run.err
    np.save(tmp_path / "t.npy", np.arange(8.0).reshape(2, 2, 2))
    run = givens("tensor", "t.npy", "--out", "none")
    assert "--symmetrize takes their mean" in run.err
    assert "symmetrize=True" not in run.err


def test_many_columns_of_text(tmp_path):
    """What is done for a column must not grow with their number: it took 20 seconds, and now takes the time of any table."""
    width = 20_000
    path = tmp_path / "x.csv"
    lines = [["name", *(f"t{k}" for k in range(width)), "a", "b"]]
    lines += [[f"s{k}", *["word"] * width, str(k), "2.5"] for k in range(3)]
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    table = read_table(path)
    assert table.variables == ["a", "b"]
    np.testing.assert_array_equal(table.values, [[0, 2.5], [1, 2.5], [2, 2.5]])
