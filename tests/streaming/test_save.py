"""What is saved of a stream, and what survives a kill."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from givens import StreamingSparsePCA
from givens.support import archive
from tests.stream_data import DATA, model, state


@pytest.mark.parametrize("sketch", [None, ("algorithm 5", 0.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [False, True])
def test_a_saved_stream_goes_on_to_the_same_bits(tmp_path, sketch, dtype, scale):
    X, path = DATA.astype(dtype), tmp_path / "stream.npz"
    parameters = {"sketch": sketch, "forgetting": 0.99, "scale": scale}
    whole = model(**parameters).partial_fit(X)
    part = model(**parameters).partial_fit(X[:77])
    part.save(path)
    other = StreamingSparsePCA.load(path).partial_fit(X[77:])
    assert state(other) == state(whole)
    assert other.get_params() == whole.get_params()
    np.testing.assert_array_equal(other.components_, whole.components_)
    assert [file.name for file in tmp_path.iterdir()] == ["stream.npz"]


def test_a_generator_s_seed_is_saved(tmp_path):
    found = model(sketch=("algorithm 5", 0.5), random_state=np.random.RandomState(4)).partial_fit(DATA[:60])
    found.save(tmp_path / "s")
    other = StreamingSparsePCA.load(tmp_path / "s").partial_fit(DATA[60:])
    np.testing.assert_array_equal(other.components_, found.partial_fit(DATA[60:]).components_)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "stream.npz"
    model().partial_fit(DATA).save(path)
    content = path.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"stream\.npz' is damaged"):
            StreamingSparsePCA.load(path)
    broken = bytearray(content)
    broken[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(broken))
    with pytest.raises(ValueError, match="damaged"):
        StreamingSparsePCA.load(path)
    archive.write(path, {"format": 99}, {})
    with pytest.raises(ValueError, match="has the format 99"):
        StreamingSparsePCA.load(path)
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(
        ValueError, match="damaged, or was not saved by StreamingSparsePCA: load another save"
    ):
        StreamingSparsePCA.load(path)
    with pytest.raises(FileNotFoundError):
        StreamingSparsePCA.load(tmp_path / "none")


def test_a_save_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    path = tmp_path / "stream.npz"
    found = model().partial_fit(DATA)
    found.save(path)
    content = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        found.partial_fit(DATA).save(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["stream.npz"]


KILLED = """
import itertools, os, sys
import numpy as np
from givens import StreamingSparsePCA
X, path = np.load(sys.argv[1]), sys.argv[2]
model = StreamingSparsePCA(3, threshold=0.1)
for k in itertools.count():
    model.partial_fit(X[k * 5 : k * 5 + 5]).save(path)
    if k == 11:
        model.partial_fit(X[:7])
        os.kill(os.getpid(), 9)
"""


def test_a_killed_stream_goes_on_from_its_last_save(tmp_path):
    np.save(tmp_path / "x.npy", DATA)
    arguments = [sys.executable, "-c", KILLED, tmp_path / "x.npy", tmp_path / "s.npz"]
    killed = subprocess.run(arguments, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert killed.returncode == -9
    found = StreamingSparsePCA.load(tmp_path / "s.npz")
    assert found.n_samples_seen_ == 60
    found.partial_fit(DATA[60:])
    np.testing.assert_array_equal(
        found.components_, StreamingSparsePCA(3, threshold=0.1).partial_fit(DATA).components_
    )


def test_a_save_goes_to_a_folder_that_is_there(tmp_path):
    found = model(n_nonzero=range(3, 6)).fit(DATA)
    with pytest.raises(
        FileNotFoundError, match=r"no folder '.*missing' to save the stream in: make it first"
    ):
        found.save(tmp_path / "missing" / "s.npz")
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        found.save(tmp_path)
    assert not list(tmp_path.iterdir())
    found.save(tmp_path / "s.npz")
    np.testing.assert_array_equal(StreamingSparsePCA.load(tmp_path / "s.npz").n_nonzero_, [3, 4, 5])


def test_what_is_not_a_saved_stream_is_not_to_be_deleted(tmp_path):
    np.savez(tmp_path / "data.npz", X=DATA)
    with pytest.raises(
        ValueError, match=r"data\.npz' is damaged, or was not saved by StreamingSparsePCA"
    ) as caught:
        StreamingSparsePCA.load(tmp_path / "data.npz")
    assert "delete" not in str(caught.value)
    with pytest.raises(IsADirectoryError):
        StreamingSparsePCA.load(tmp_path)
    with pytest.raises(TypeError, match="PathLike"):
        StreamingSparsePCA.load(3)


def test_any_flipped_bit_is_found_or_harmless(tmp_path):
    path = tmp_path / "s.npz"
    model().partial_fit(DATA).save(path)
    found = StreamingSparsePCA.load(path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    directory = content.rindex(b"PK\x01\x02")
    places = [*rng.choice(len(content), 150, replace=False), *range(directory, len(content))]
    refused = 0
    for place in places:
        broken = bytearray(content)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            other = StreamingSparsePCA.load(path)
        except ValueError as error:
            refused += "damaged" in str(error)
            continue
        assert state(other) == state(found)
        assert other.get_params() == found.get_params()
    assert refused > 100
