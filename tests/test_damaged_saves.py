"""Saved streams and checkpoints with flipped bits, cut short or made up: one sentence, or exactly what was saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from givens import Checkpoint, StreamingSparsePCA, minimize
from givens.objectives import Columns
from givens.solve import checkpoint as checkpoints
from tests.stream_data import DATA, model, state


def damaged(content: bytes, count: int, seed: int):
    """So many copies of a file, each with one to three flipped bits, a part cut off or a part overwritten."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        broken = bytearray(content)
        kind = number % 8
        if kind == 0:
            broken = broken[: int(rng.integers(len(broken)))]
        elif kind == 1:
            start = int(rng.integers(len(broken)))
            broken[start : start + 8] = rng.bytes(8)
        else:
            # Half of the flips in the directory at the end and the names, where they do most.
            low = 0 if kind < 5 else content.rindex(b"PK\x01\x02") - 1000
            for place in rng.integers(max(low, 0), len(broken), int(rng.integers(1, 4))):
                broken[place] ^= 1 << int(rng.integers(8))
        yield number, bytes(broken)


def stream(path):
    model(scale=True).partial_fit(DATA[:77]).save(path)

    def load():
        found = StreamingSparsePCA.load(path)
        return state(found), found.get_params()

    return load


def checkpoint(path):
    A = np.random.default_rng(0).standard_normal((20, 5))
    minimize(Columns(A, "varimax"), checkpoint=Checkpoint(path), max_iter=2)

    def load():
        progress, U, memories, problem = checkpoints.load(path)
        plain = {name: value for name, value in vars(progress).items() if name not in ("rng", "start")}
        arrays = [U, progress.start, *(array for memory in memories for array in memory.values())]
        return repr(plain), [array.tobytes() for array in arrays], progress.rng.bit_generator.state, problem

    return load


def check(load, path, count, seed):
    """How many of the damaged files were refused; the others are as they were."""
    expected, content, refused = load(), path.read_bytes(), []
    for number, broken in damaged(content, count, seed):
        path.write_bytes(broken)
        try:
            found = load()
        except ValueError as error:
            refused.append(str(error))
        else:
            assert found == expected, (seed, number)
    path.write_bytes(content)
    assert all(str(path) in message for message in refused)
    return len(refused)


@pytest.mark.parametrize("save", [stream, checkpoint])
def test_damaged_files_are_refused_or_as_they_were(tmp_path, save):
    load = save(tmp_path / "saved")
    assert check(load, tmp_path / "saved", 400, seed=0) > 250


def saved(path):
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("header"))), arrays


def resave(path, header, arrays):
    with path.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


@pytest.mark.parametrize("save", [stream, checkpoint])
@pytest.mark.parametrize("remove_digest", [False, True])
def test_changed_numbers_are_refused(tmp_path, save, remove_digest):
    load = save(tmp_path / "saved")
    header, arrays = saved(tmp_path / "saved")
    if remove_digest:
        del arrays["digest"]
    changed = [(header, arrays | {name: 2 * arrays[name]}) for name in arrays if name != "digest"]
    changed += [(header | {name: -1}, arrays) for name in header]
    for other in changed:
        resave(tmp_path / "saved", *other)
        with pytest.raises(ValueError, match="saved' is damaged, or was not saved by"):
            load()


def test_a_stream_is_no_checkpoint(tmp_path):
    stream(tmp_path / "saved")
    with pytest.raises(ValueError, match=f"has the format stream 5, not {checkpoints.FORMAT}"):
        checkpoints.load(tmp_path / "saved")
    checkpoint(tmp_path / "run")
    with pytest.raises(ValueError, match=f"has the format {checkpoints.FORMAT}, not stream 5"):
        StreamingSparsePCA.load(tmp_path / "run")


def test_a_folder_is_no_checkpoint_and_is_not_to_be_deleted(tmp_path):
    A = np.eye(3)
    for call in (lambda: Checkpoint(tmp_path), lambda: minimize(Columns(A, "varimax"), checkpoint=tmp_path)):
        with pytest.raises(IsADirectoryError, match="is a folder: name a file in it") as caught:
            call()
        assert "delete" not in str(caught.value)
