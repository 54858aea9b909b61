"""Results appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from givens.app.tables import DataError, staged
from givens.app.tables.write import write_json, write_matrix


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_files_appear_together_at_the_end(tmp_path):
    out = tmp_path / "a" / "b"
    with staged(out) as files:
        with files.open("one.txt") as stream:
            stream.write("1")
        assert not (out / "one.txt").exists()
        with files.open("two.txt") as stream:
            stream.write("2")
    assert everything(out) == ["one.txt", "two.txt"]
    assert (out / "one.txt").read_text() == "1"


@pytest.mark.parametrize(
    "error", [RuntimeError("stop"), KeyboardInterrupt(), OSError(28, "No space left on device")]
)
def test_a_failure_leaves_what_was_there(tmp_path, error):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "one.txt").write_text("before")
    for out in (tmp_path / "old", tmp_path / "new" / "deep"):

        def fail(out=out):
            with staged(out) as files:
                with files.open("one.txt") as stream:
                    stream.write("after")
                with files.open("two.txt") as stream:
                    stream.write("half")
                    raise error

        with pytest.raises(DataError if isinstance(error, OSError) else type(error)) as caught:
            fail()
        if isinstance(error, OSError):
            assert "the disk is full" in str(caught.value)
    assert everything(tmp_path) == ["old", "old/one.txt"]
    assert (tmp_path / "old" / "one.txt").read_text() == "before"


def test_a_folder_in_the_place_of_a_file_leaves_all_files_as_they_were(tmp_path):
    (tmp_path / "one.txt").write_text("before")
    (tmp_path / "two.html").mkdir()

    def write():
        with staged(tmp_path) as files:
            for name in ("one.txt", "two.html"):
                with files.open(name) as stream:
                    stream.write("after")

    with pytest.raises(DataError, match=r"two\.html: a folder of that name is in the way; remove it, or"):
        write()
    assert everything(tmp_path) == ["one.txt", "two.html"]
    assert (tmp_path / "one.txt").read_text() == "before"


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="a part of that path is a file"), staged(tmp_path / "file" / "out"):
        pass
    with pytest.raises(DataError, match="cannot write results"), staged(tmp_path / "file"):
        pass


def test_numbers_and_names_read_back(tmp_path):
    stream = io.StringIO()
    values = np.array([[0.1, -0.0], [1e-300, 3.0]])
    write_matrix(stream, ["name", "kind"], ["a,b", 'c"d'], [([["x\ny", "z"], ["k", ""]], values)])
    assert stream.getvalue() == 'name,kind,"a,b","c""d"\n"x\ny",k,0.1,0\nz,,1e-300,3.0\n'
    stream = io.StringIO()
    write_json(stream, {"x": np.array([1.0, np.inf]), "n": np.int64(3), "who": {"é"}})
    assert json.loads(stream.getvalue())["x"] == [1.0, None]


def test_what_readers_would_cut_is_quoted(tmp_path):
    path = tmp_path / "x.csv"
    with open(path, "w", newline="") as stream:
        write_matrix(stream, ["a\rb"], ["c"], [([["d\re", "f"]], np.array([[1.5], [0.0]]))])
    with open(path, newline="") as stream:
        assert list(csv.reader(stream)) == [["a\rb", "c"], ["d\re", "1.5"], ["f", "0"]]
