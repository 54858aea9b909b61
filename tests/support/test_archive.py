"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from givens.support import archive

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
