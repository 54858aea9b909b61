"""Rotations of columns whose rows lie in chunks: the run that columns in memory make, and what travels for it."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

from givens import Checkpoint, check_objective, minimize
from givens.objectives import Columns, Exp, Kurtosis, LogCosh, Orthomax, SparseColumns, turned_rows
from givens.objectives.fourth_moments import coordinates, gram_of_products
from givens.objectives.turned_rows import HeldRows
from givens.rotations import random_orthogonal
from givens.schedules import Tournament
from tests.cases import value_at

N = 6


@pytest.fixture(autouse=True)
def _one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def heavy(seed=0, rows=900, n=N):
    rng = np.random.default_rng(seed)
    return rng.laplace(size=(rows, n)) * np.linspace(1, 2, n) @ random_orthogonal(n, rng)


def light(seed=0):
    rng = np.random.default_rng(seed)
    S = rng.uniform(-1, 1, size=(900, N))
    return np.linalg.qr(S - S.mean(0))[0] @ random_orthogonal(N, rng)


def chunks(A, rows=170):
    return da.from_array(A, chunks=(rows, A.shape[1]))


CASES = {
    "kurtosis": lambda cut: Columns(cut(heavy()), "kurtosis"),
    "light-tailed": lambda cut: Columns(cut(light()), Kurtosis(-1)),
    "varimax": lambda cut: Columns(cut(heavy()), "varimax"),
    "orthomax, 3 of 6 columns": lambda cut: Columns(cut(heavy()), Orthomax(2.5), active=3),
    "light-tailed, 1 of 6 columns": lambda cut: Columns(cut(light()), Kurtosis(-1), active=1),
}
SMOOTH = {
    "logcosh": lambda cut: Columns(cut(heavy()), LogCosh()),
    "exp, signs": lambda cut: Columns(cut(heavy()), Exp([1, 1, -1, 1, 1, 1])),
}
EVERY = pytest.mark.parametrize("case", CASES)


def memory(A):
    return A


@EVERY
def test_exact_rotations_of_pairs_are_those_in_memory(case):
    here = minimize(CASES[case](memory), method="tournament")
    there = minimize(CASES[case](chunks), method="tournament")
    assert there.converged
    assert there.value == pytest.approx(here.value, rel=1e-10)
    assert abs(there.sweeps - here.sweeps) <= 1
    np.testing.assert_allclose(there.U, here.U, atol=1e-12)


@EVERY
def test_blocks_lower_the_value_in_every_sweep_and_end_where_no_pair_gains(case):
    objective = CASES[case](chunks)
    result = minimize(objective, certify=True, max_iter=400)
    assert result.converged, result.message
    assert result.certificate.gain <= 1e-10 * objective.scale * abs(objective.factor)
    assert result.orthogonality <= 1e-13
    values = np.sign(objective.factor) * np.array(result.trace.value)
    assert np.all(np.diff(values) <= 1e-12 * objective.scale * abs(objective.factor))


@pytest.mark.parametrize("case", SMOOTH)
def test_descent_is_that_in_memory(case):
    here = minimize(SMOOTH[case](memory), np.eye(N), method="descent")
    there = minimize(SMOOTH[case](chunks), np.eye(N))
    assert there.converged
    assert there.value == pytest.approx(here.value, rel=1e-12)
    np.testing.assert_allclose(there.U, here.U, atol=1e-6)


@pytest.mark.parametrize("contrast", ["kurtosis", "varimax"])
def test_many_columns_descend_to_the_optimum_in_memory(contrast):
    A = heavy(rows=6000, n=20)
    here, there = minimize(Columns(A, contrast)), minimize(Columns(chunks(A, 999), contrast))
    assert there.value == pytest.approx(here.value, rel=1e-10)
    assert "descent" in there.method


@pytest.mark.parametrize("case", [*CASES, *SMOOTH])
def test_the_parts_of_every_objective_agree(case):
    report = check_objective((CASES | SMOOTH)[case](lambda A: chunks(A[:80], 33)), pairs=2, grid=24)
    wrong = [str(finding) for finding in report.findings if not finding.passed]
    if case in SMOOTH:  # whose pairs are searched in memory only
        wrong = [finding for finding in wrong if "searched in memory only" not in finding]
    assert not wrong


@pytest.mark.parametrize("case", ["kurtosis", "varimax", "orthomax, 3 of 6 columns"])
def test_a_few_columns_take_one_pass_per_sweep_and_one_look(case):
    names = []
    with Callback(pretask=lambda key, *_: names.append(str(key))):
        result = minimize(CASES[case](lambda A: chunks(A, 900)))
    rounds = sum(
        "columns-round-" in name and "merge" not in name and "parameters" not in name for name in names
    )
    assert rounds == result.sweeps <= 3


@pytest.mark.parametrize("b", [2, 3, 5])
def test_sums_of_products_of_rotated_columns_follow_from_those_of_a_block(b, rng):
    Y, V = rng.standard_normal((b, 70_000)), random_orthogonal(b, rng)
    T = gram_of_products(Y)
    X = V.T @ Y
    i, j, k, m = rng.integers(b, size=4)
    one, other = (coordinates(V[:, [p]], V[:, [q]])[:, 0] for p, q in ((i, j), (k, m)))
    assert T[0, 0] == 70_000
    assert T[0, 1:] @ one == pytest.approx(np.sum(X[i] * X[j]), rel=1e-10, abs=1e-6)
    assert one @ T[1:, 1:] @ other == pytest.approx(np.sum(X[i] * X[j] * X[k] * X[m]), rel=1e-10, abs=1e-6)


@pytest.mark.parametrize("exponent", [-500, -60, 60, 500])
def test_scaled_data_give_the_same_rotation(exponent):
    factor = 2.0**exponent

    def run(times):
        return minimize(Columns(chunks(heavy() * times), "varimax"))

    plain, scaled = run(1.0), run(factor)
    # Dividing by a power of two rounds nothing.
    assert np.array_equal(plain.U, scaled.U)


def test_chunks_of_very_different_sizes():
    A = heavy()
    A[:170] *= 1e-120
    here, there = minimize(Columns(A, "varimax")), minimize(Columns(chunks(A), "varimax"))
    assert there.value == pytest.approx(here.value, rel=1e-10)


@pytest.mark.parametrize("kind", [np.float32, np.int64, bool])
def test_other_kinds_of_numbers(kind):
    A = (heavy() * 3).astype(kind)
    here, there = minimize(Columns(A.astype(float), "varimax")), minimize(Columns(chunks(A), "varimax"))
    assert there.value == pytest.approx(here.value, rel=1e-10)
    assert there.U.dtype == np.float64


def test_one_column_one_row_and_equal_columns():
    assert minimize(Columns(chunks(heavy()[:, :1]), "varimax")).message == "there is nothing to rotate"
    assert minimize(Columns(chunks(heavy()[:1], 1), "kurtosis")).converged
    twice = np.column_stack((heavy()[:, 0], heavy()[:, 0]))
    assert minimize(Columns(chunks(twice), "varimax")).converged
    assert minimize(Columns(chunks(np.zeros((40, 3)), 7), "kurtosis")).converged


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_the_bits(threads):
    def run(**options):
        found = minimize(CASES["varimax"](chunks), method=Tournament(block=4), **options)
        return found.U, found.trace.value

    U, values = run()
    with ThreadPoolExecutor(threads) as pool, dask.config.set(scheduler="threads", pool=pool):
        V, others = run(threads=threads)
    assert np.array_equal(U, V)
    assert values == others


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    place = Checkpoint(tmp_path / "run.npz")
    whole = minimize(
        CASES["varimax"](chunks), method="tournament", checkpoint=Checkpoint(tmp_path / "whole.npz")
    )
    minimize(CASES["varimax"](chunks), method="tournament", checkpoint=place, max_iter=2)
    rest = minimize(CASES["varimax"](chunks), method="tournament", checkpoint=place)
    assert np.array_equal(rest.U, whole.U)
    with pytest.raises(ValueError, match="belongs to another problem"):
        minimize(Columns(chunks(heavy(1)), "varimax"), method="tournament", checkpoint=place)


def travelling(n, rows, block, sweeps=2):
    """Bytes of the sums that tasks of such a run return in a sweep, in seven chunks; U, n² numbers a pass, comes on top."""
    sizes = []

    def count(key, result, *_):
        name = key if isinstance(key, str) else key[0]
        if name.startswith("columns-") and "axes" not in name:
            sizes.append(len(pickle.dumps(result, protocol=5)))

    A = chunks(heavy(rows=rows, n=n), rows // 7)
    objective, start = Columns(A, "kurtosis"), np.eye(n)
    with Callback(posttask=count):
        result = minimize(objective, start, method=Tournament(block=block), max_iter=sweeps)
    assert result.sweeps == sweeps
    return sum(sizes) / sweeps


@pytest.mark.parametrize("block", [2, 8])
def test_what_travels_does_not_grow_with_the_rows(block):
    assert travelling(16, 14_000, block) == pytest.approx(travelling(16, 1400, block), rel=1e-3)


@pytest.mark.parametrize("block", [2, 8])
def test_a_sweep_returns_a_multiple_of_the_square_of_the_columns(block):
    few, many = travelling(16, 1400, block), travelling(32, 1400, block)
    assert many <= 4 * 1.15 * few
    # Seven chunks, with the sums of their tree: some ten summaries a round, of at most 22 n² numbers in all rounds of a sweep.
    assert many <= 8 * 32**2 * 20 * 22


def test_bad_input_gets_a_sentence():
    A = heavy()
    with pytest.raises(ValueError, match="weights are for rows in memory"):
        Columns(chunks(A), "kurtosis", weights=np.ones(900))
    with pytest.raises(ValueError, match=r"pairs of columns of LogCosh\(\) are searched in memory only"):
        minimize(Columns(chunks(A), "logcosh"), method="tournament")
    with pytest.raises(ValueError, match="active must be a whole number from 1 to"):
        Columns(chunks(A), "kurtosis", active=9)
    with pytest.raises(ValueError, match="there is no contrast"):
        Columns(chunks(A), "kurtosos")
    with pytest.raises(ValueError, match=r"needs its rows in memory.*SparsePCA or StreamingSparsePCA"):
        SparseColumns(chunks(A), 1.0)
    with pytest.raises(ValueError, match="chunks along its features"):
        Columns(chunks(A).rechunk((170, 2)), "kurtosis")
    A[200, 1] = np.nan
    with pytest.raises(ValueError, match=r"rows 170 to 339 of X \(chunk 1\): .*contains NaN"):
        Columns(chunks(A), "kurtosis")


def test_blocks_of_too_many_columns_are_refused():
    A = chunks(heavy(rows=300, n=70))
    with pytest.raises(ValueError, match="at most 64 columns"):
        minimize(Columns(A, "kurtosis"), method=Tournament(block=70), max_iter=1)


@pytest.mark.parametrize("kind", ["f8", "f4"])
@pytest.mark.parametrize(
    "objective",
    [
        lambda A: Columns(A, "kurtosis"),
        lambda A: Columns(A, "logcosh"),
    ],
)
def test_pieces_of_a_chunk_that_share_arrays_sum_to_the_whole(objective, kind, monkeypatch):
    A = heavy().astype(kind)
    blocks = [np.array([0, 1, 2]), np.array([3, 4, 5])]

    def looked():
        chunked = objective(chunks(A, 400))
        state = chunked.state(np.eye(N))
        look = chunked.look(state)
        if not chunked.contrast.exact:
            return look.value, look.slopes, look.curvatures.astype(np.float32)
        solved = chunked.solve(state, blocks)
        return look.value, look.slopes, np.array(solved.rotations), solved.gains

    whole = looked()
    monkeypatch.setattr(turned_rows, "TURNED_ENTRIES", 64 * N)
    for found, expected in zip(looked(), whole):
        # Curvatures of log cosh are summed in single precision: they only scale the steps.
        close = 1e-5 if np.asarray(found).dtype == np.float32 else 1e-9
        np.testing.assert_allclose(found, expected, rtol=close, atol=close * np.abs(expected).max())


def test_weights_of_rows_that_have_their_own_are_refused():
    A, weights = heavy(rows=50), np.linspace(1, 2, 50)
    with pytest.raises(ValueError, match="weights are for an array A"):
        Columns(HeldRows(A), "kurtosis", weights=weights)
    Q = np.eye(N)
    own = Columns(HeldRows(A, weights=weights), "kurtosis")
    assert value_at(own, own.state(Q)) == pytest.approx(
        value_at(Columns(A, "kurtosis", weights=weights), own.state(Q)), rel=1e-12
    )
