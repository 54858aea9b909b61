"""Files that appear whole or not at all."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from givens.app.tables import staged
from givens.support import archive
from paper.runner import write_whole

ARRAYS = {"a": np.arange(3.0)}


def test_what_is_written_is_read(tmp_path):
    archive.write(tmp_path / "state", {"n": 3}, ARRAYS)
    header, arrays = archive.read(tmp_path / "state", "a state")
    assert header == {"n": 3}
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_are_those_of_any_new_file_or_of_the_one_replaced(tmp_path):
    plain, state = tmp_path / "plain", tmp_path / "state"
    plain.touch()
    archive.write(state, {}, ARRAYS)
    assert stat.S_IMODE(state.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    state.chmod(0o640)
    archive.write(state, {}, ARRAYS)
    assert stat.S_IMODE(state.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_a_link_stays_and_what_is_no_file_is_not_replaced(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "state")
    archive.write(link, {"n": 1}, ARRAYS)
    assert link.is_symlink()
    assert archive.read(tmp_path / "state", "a state")[0] == {"n": 1}
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="no ordinary file"):
            archive.write(other, {}, ARRAYS)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.fixture(scope="module")
def dead():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_behind(target, dead):
    """An unfinished file whose writer has ended."""
    part = target.with_name(f".{target.name}.{archive.HOST}-{dead}-0123456789ab.part")
    part.write_text("half")
    return part


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_leftovers_of_dead_writers_are_removed_and_nothing_else(tmp_path, dead):
    host, gone = archive.HOST, left_behind(tmp_path / "state", dead)
    kept = [
        tmp_path / f".state.{host}-{os.getpid()}-0123456789ab.part",  # a thread of ours may be writing it
        tmp_path / f".state.{host}-{os.getppid()}-0123456789ab.part",
        tmp_path / f".other.{host}-{dead}-0123456789ab.part",
        tmp_path / f".state.00000000-{dead}-0123456789ab.part",  # of another machine
        tmp_path / f".state.{host}-{dead}-short.part",
        tmp_path / f".state.{host}-x-0123456789ab.part",
        tmp_path / "state.part",
    ]
    for file in kept:
        file.write_text("half")
    archive.write(tmp_path / "state", {}, ARRAYS)
    assert not gone.exists()
    assert all(file.read_text() == "half" for file in kept)
    archive.remove_leftovers(tmp_path)  # of all names
    assert [file.exists() for file in kept] == [True, True, False, True, True, True, True]
    archive.remove_leftovers(tmp_path / "missing")


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_results_of_a_command_replace_what_a_killed_one_left(tmp_path, dead):
    left_behind(tmp_path / "scores.csv", dead)
    with staged(tmp_path) as files, files.open("components.csv") as stream:
        stream.write("x")
    assert [path.name for path in tmp_path.iterdir()] == ["components.csv"]


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_a_task_of_an_experiment_replaces_what_a_killed_one_left(tmp_path, dead):
    left_behind(tmp_path / "task.json", dead)
    write_whole(tmp_path / "task.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == ["task.json"]


KILLED = """
import os, sys
import numpy as np
from givens.app.tables import staged
from givens.support import archive
from paper.runner import write_whole
archive.os.fsync = lambda _: os.kill(os.getpid(), 9)
archive.write(sys.argv[1], {}, {"a": np.zeros(1000)})
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_writer_leaves_one_file_at_most(tmp_path):
    state = tmp_path / "state"
    archive.write(state, {"n": 1}, ARRAYS)
    for _ in range(3):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        killed = subprocess.run([sys.executable, "-c", KILLED, state], env=environment)
        assert killed.returncode == -9
        assert len(list(tmp_path.iterdir())) == 2
    assert archive.read(state, "a state")[0] == {"n": 1}
    archive.write(state, {"n": 2}, ARRAYS)
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_folder_or_an_unreadable_file_is_not_damaged(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"a state '.*' is a folder: name a file in it"):
        archive.read(tmp_path, "a state")
    with pytest.raises(FileNotFoundError):
        archive.read(tmp_path / "none", "a state")


def crafted(path, shape, content=b""):
    """An archive whose array says that it has this shape."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", npy(np.array("{}")))
        file.writestr("a.npy", head.getvalue() + content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("shape", [(10**12,), (2**40, 2**40), (2,), (-1,)])
def test_sizes_are_checked_before_anything_is_allocated(tmp_path, shape):
    crafted(tmp_path / "state", shape)
    with pytest.raises(ValueError, match="is damaged, or was not saved by"):
        archive.read(tmp_path / "state", "a state")


def foreign(tmp_path):
    """Files that are no archives of ours, each of which makes a parser raise something else."""
    path = tmp_path / "state"
    np.savez_compressed(path.with_suffix(".npz"), header=np.array("{}"), a=np.zeros(10**6))
    yield path.with_suffix(".npz").read_bytes()
    for text in ("[" * 10**5, "[]", "3", '"x"', "{", ""):
        np.savez(path.with_suffix(".npz"), header=np.array(text))
        yield path.with_suffix(".npz").read_bytes()
    np.savez(path.with_suffix(".npz"), header=np.array("{}"), a=np.array([{}], dtype=object))
    yield path.with_suffix(".npz").read_bytes()
    np.savez(path.with_suffix(".npz"), a=np.zeros(3))
    yield path.with_suffix(".npz").read_bytes()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "text")
    yield path.read_bytes()
    yield b""
    yield b"PK\x05\x06"
    yield npy(np.zeros(3))


def test_foreign_files_are_refused_with_one_sentence(tmp_path):
    count = 0
    for content in foreign(tmp_path):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match="is damaged, or was not saved by this version of givens"):
            archive.read(tmp_path / "file", "a state")
        count += 1
    assert count == 13
