from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from givens import Checkpoint, minimize
from givens.objectives import Columns, Function
from tests.cases import CASES


def assert_same_run(one, two):
    assert np.array_equal(one.U, two.U)
    assert one.value == two.value
    assert (one.sweeps, one.rotations, one.flops) == (two.sweeps, two.rotations, two.flops)
    assert one.trace.value == two.trace.value
    np.testing.assert_array_equal(one.trace.gradient_norm, two.trace.gradient_norm)
    assert one.message == two.message


@pytest.mark.parametrize("case", ["cubic", "varimax, 3 of 6 columns", "joint", "logcosh"])
@pytest.mark.parametrize("schedule", ["random", "tournament"])
@pytest.mark.parametrize("every", [1, 2])
def test_an_interrupted_run_ends_in_the_same_bits(tmp_path, case, schedule, every):
    def run(name, **options):
        place = Checkpoint(tmp_path / name, every=every)
        return minimize(
            CASES[case](0),
            method=schedule,
            random_state=3,
            checkpoint=place,
            max_iter=8,
            tol=0,
            **options,
        )

    whole = run("whole.npz")
    run("cut.npz", callback=lambda snapshot: snapshot.step == 5)
    assert_same_run(run("cut.npz"), whole)


@pytest.mark.parametrize(
    "case", ["cubic", "quartic", "varimax, 3 of 6 columns", "joint", "logcosh, 2 of 6 columns", "sparse, l1"]
)
@pytest.mark.parametrize("every", [1, 3])
def test_an_interrupted_descent_ends_in_the_same_bits(tmp_path, case, every):
    def run(name, **options):
        return minimize(
            CASES[case](0),
            method=["descent", "sweeps"],
            random_state=3,
            checkpoint=Checkpoint(tmp_path / name, every=every),
            max_iter=14,
            **options,
        )

    whole = run("whole.npz")
    assert whole.steps > 8
    run("cut.npz", callback=lambda snapshot: snapshot.step == 8)
    assert_same_run(run("cut.npz"), whole)


def test_a_finished_run_is_returned_at_once_and_more_sweeps_go_on(tmp_path):
    calls = []

    def f(U):
        calls.append(1)
        return float(np.sum(U[0] ** 3))

    def run(**options):
        calls.clear()
        return minimize(
            Function(f, 3, degree=3),
            random_state=0,
            checkpoint=tmp_path / "c.npz",
            method="tournament",
            **options,
        )

    first = run(max_iter=2)
    made = len(calls)
    again = run(max_iter=2)
    assert_same_run(again, first)
    assert len(calls) < made
    assert run(max_iter=4).sweeps > 2


def test_without_a_seed_the_start_comes_from_the_checkpoint(tmp_path):
    objective = CASES["cubic"](0)
    first = minimize(objective, checkpoint=tmp_path / "c.npz", max_iter=2)
    further = minimize(objective, checkpoint=tmp_path / "c.npz", max_iter=3)
    assert further.trace.value[:3] == first.trace.value


SCRIPT = """
    import sys
    import numpy as np
    from givens import minimize
    from givens.objectives import Columns, Kurtosis
    A = np.random.default_rng(0).laplace(size=(2000, 12))
    waits = len(sys.argv) > 2
    def callback(snapshot):
        print(snapshot.step, flush=True)
        if waits and snapshot.step == 5:
            sys.stdin.read()
    result = minimize(Columns(A, Kurtosis()), method="random", random_state=1, tol=0, max_iter=12,
                      callback=callback, checkpoint=sys.argv[1])
    np.save(sys.argv[1] + ".U.npy", result.U)
"""


def test_a_run_killed_by_sigkill_goes_on_and_ends_in_the_same_bits(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def start(name, *more):
        command = [sys.executable, str(script), str(tmp_path / name), *more]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with start("whole.npz") as whole:
        whole.communicate()
        assert whole.returncode == 0
    with start("cut.npz", "waits") as killed:
        while killed.stdout.readline() != "5\n":
            assert killed.poll() is None
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "cut.npz.U.npy").exists()
    with start("cut.npz") as resumed:
        sweeps, _ = resumed.communicate()
        assert resumed.returncode == 0
    assert sweeps.split()[0] == "6", "it goes on, it does not begin again"
    assert np.array_equal(np.load(tmp_path / "whole.npz.U.npy"), np.load(tmp_path / "cut.npz.U.npy"))


def test_when_f_raises_the_checkpoint_holds_the_last_full_sweep(tmp_path):
    calls = [0]

    def f(U):
        calls[0] += 1
        if calls[0] == 400:
            raise KeyError("my own trouble")
        return float(np.sum(np.sin(U)))

    path = tmp_path / "c.npz"
    seen = []
    with pytest.raises(KeyError, match="my own trouble"):
        minimize(f, n=3, random_state=0, checkpoint=path, callback=lambda s: seen.append(s.U) and None)
    assert seen
    with np.load(path) as archive:
        assert np.array_equal(archive["U"], seen[-1])
    assert [p.name for p in tmp_path.iterdir()] == ["c.npz"]


def test_when_a_callback_raises_it_passes_through(tmp_path):
    def callback(snapshot):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        minimize(CASES["cubic"](0), random_state=0, callback=callback, checkpoint=tmp_path / "c.npz")
    assert minimize(CASES["cubic"](0), random_state=0, checkpoint=tmp_path / "c.npz", max_iter=1).steps == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"schedule": "cyclic"},
        {"random_state": 1},
        {"start": np.eye(6)},
        {"every": 3},
    ],
)
def test_a_checkpoint_of_another_problem_is_refused(tmp_path, change):
    def run(seed=0, schedule="tournament", random_state=0, start=None, every=1):
        minimize(
            CASES["cubic"](seed),
            start,
            method=schedule,
            random_state=random_state,
            checkpoint=Checkpoint(tmp_path / "c.npz", every=every),
            max_iter=3,
        )

    run()
    before = (tmp_path / "c.npz").read_bytes()
    with pytest.raises(ValueError, match="belongs to another problem"):
        run(**change)
    assert (tmp_path / "c.npz").read_bytes() == before


def test_other_data_of_the_same_shape_are_another_problem(tmp_path, rng):
    A = rng.standard_normal((30, 4))
    minimize(Columns(A, "varimax"), checkpoint=tmp_path / "c.npz")
    for other in (
        Columns(A + 1e-12, "varimax"),
        Columns(A, "quartimax"),
        Columns(A * 2, "varimax"),
        Columns(A, "varimax", 3),
    ):
        with pytest.raises(ValueError, match="another problem"):
            minimize(other, checkpoint=tmp_path / "c.npz")


def damage_truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def damage_flip(data: bytes) -> bytes:
    middle = data.index(b"U.npy") + 200
    return data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "damage", [damage_truncate, damage_flip, lambda _: b"", lambda _: b"PK not a zip file"]
)
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "c.npz"
    minimize(CASES["cubic"](0), random_state=0, checkpoint=path, max_iter=2)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="is damaged"):
        minimize(CASES["cubic"](0), random_state=0, checkpoint=path)


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    path = tmp_path / "c.npz"
    np.savez(path, counters=np.array(Trap(), dtype=object))
    with pytest.raises(ValueError, match="is damaged"):
        minimize(CASES["cubic"](0), random_state=0, checkpoint=path)
    assert not (tmp_path / "sprung").exists()


def test_both_components_have_a_file_each(tmp_path):
    def run(**options):
        return minimize(
            CASES["cubic"](0), random_state=0, determinant="both", checkpoint=tmp_path / "c.npz", **options
        )

    whole = run()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.minus.npz", "c.plus.npz"]
    assert_same_run(run(), whole)


def test_the_folder_must_exist_and_the_interval_be_a_count(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder of the checkpoint does not exist"):
        minimize(CASES["cubic"](0), checkpoint=tmp_path / "nowhere" / "c.npz")
    with pytest.raises(ValueError, match="every must be"):
        Checkpoint(tmp_path / "c.npz", every=0)
