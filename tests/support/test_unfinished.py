"""Unfinished files of processes that were killed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from givens.app.tables import staged
from givens.support.archive import HOST, part_of, remove_leftovers
from paper.runner import write_whole


def left_behind(target):
    """An unfinished file whose writer has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    part = target.with_name(f".{target.name}.{HOST}-{process.pid}-0123456789ab.part")
    part.write_text("half")
    return part


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_leftovers_of_all_names_or_of_one(tmp_path):
    one, two, mine = (
        left_behind(tmp_path / "a.csv"),
        left_behind(tmp_path / "b.csv"),
        part_of(tmp_path / "c.csv"),
    )
    mine.write_text("half")
    (tmp_path / ".d.csv.part").write_text("of another program")
    remove_leftovers(tmp_path, "a.csv")
    assert (one.exists(), two.exists(), mine.exists()) == (False, True, True)
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, ".d.csv.part"])
    remove_leftovers(tmp_path / "missing")


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_results_of_a_command_replace_what_a_killed_one_left(tmp_path):
    left_behind(tmp_path / "scores.csv")
    with staged(tmp_path) as files, files.open("components.csv") as stream:
        stream.write("x")
    assert [path.name for path in tmp_path.iterdir()] == ["components.csv"]


@pytest.mark.skipif(os.name != "posix", reason="processes of POSIX")
def test_a_task_of_an_experiment_replaces_what_a_killed_one_left(tmp_path):
    left_behind(tmp_path / "task.json")
    write_whole(tmp_path / "task.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == ["task.json"]
