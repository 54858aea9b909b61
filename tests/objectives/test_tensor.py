import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import check_objective, minimize
from givens.objectives import MomentTensor, SymmetricTensor, from_samples
from givens.rotations import random_orthogonal
from givens.schedules import ByGradient, Cyclic, Random, Shuffled, Tournament
from tests.cases import value_at
from tests.properties import examples
from tests.tensor_data import orthogonal, rotated, symmetric


def moment(Y, a=None, G=None):
    T = np.einsum("ni,nj,nk->ijk", Y, Y, Y, optimize=True) / len(Y)
    if a is not None:
        T = T - np.einsum("i,jk->ijk", a, G) - np.einsum("j,ik->ijk", a, G) - np.einsum("k,ij->ijk", a, G)
    return T


def samples(rng, N=60, d=6):
    Y = rng.exponential(size=(N, d))
    G = rng.standard_normal((d, d))
    return Y, rng.standard_normal(d), G + G.T


def objectives():
    rng = np.random.default_rng(0)
    Y, a, G = samples(rng)
    yield "noise", SymmetricTensor(symmetric(rng, 6))
    yield "orthogonal", SymmetricTensor(orthogonal(rng, 7)[0])
    yield "of lower rank", SymmetricTensor(symmetric(rng, 6), rank=3)
    yield "single", SymmetricTensor(symmetric(rng, 5).astype(np.float32))
    yield "huge", SymmetricTensor(1e150 * symmetric(rng, 5))
    yield "tiny", SymmetricTensor(1e-150 * symmetric(rng, 5))
    yield "samples", MomentTensor(Y, a, G)
    yield "samples of lower rank", MomentTensor(Y, a, G, rank=2)


CASES = dict(objectives())


@pytest.mark.parametrize("name", CASES)
def test_every_part_agrees_with_brute_force(name):
    report = check_objective(CASES[name], grid=180)  # of functions with three harmonics
    assert report, report


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "schedule", [Random(), Cyclic(), Shuffled(), Tournament(), Tournament(block=4), ByGradient()], ids=repr
)
def test_the_value_never_falls(name, schedule):
    objective = CASES[name]
    result = minimize(objective, method=schedule, random_state=1, max_iter=6, tol=0)
    value = np.array(result.trace.value) / abs(objective.factor)
    assert np.all(np.diff(value) >= -1e-14 * objective.scale)
    state = objective.state(result.U)
    assert np.isclose(-value_at(objective, state), value[-1], rtol=1e-12, atol=1e-12)


def test_the_state_is_the_rotated_tensor():
    rng = np.random.default_rng(3)
    T, U = symmetric(rng, 9), random_orthogonal(9, rng)
    objective = SymmetricTensor(T)
    assert np.allclose(abs(objective.factor) * objective.state(U), rotated(T, U), atol=1e-13, rtol=0)
    assert np.isclose(
        objective.factor * value_at(objective, objective.state(U)), np.einsum("iii->", rotated(T, U))
    )
    assert np.isclose(abs(objective.factor) * objective.norm, np.linalg.norm(T))


def test_samples_rotate_like_their_tensor():
    rng = np.random.default_rng(4)
    Y, a, G = samples(rng, N=5000)
    U = random_orthogonal(6, rng)
    sampled, formed = MomentTensor(Y, a, G, rank=4), SymmetricTensor(moment(Y, a, G), rank=4)
    assert np.isclose(sampled.factor * sampled.norm, formed.factor * formed.norm, rtol=1e-12)
    here, there = sampled.state(U), formed.state(U)
    assert np.isclose(
        sampled.factor * value_at(sampled, here), formed.factor * value_at(formed, there), rtol=1e-12
    )
    assert np.allclose(sampled.factor * sampled.look(here).slopes, formed.factor * formed.look(there).slopes)
    assert np.allclose(sampled.factor * sampled.squares(U), formed.factor * formed.squares(U))
    vector = np.random.default_rng(0).standard_normal(6)
    matrix = np.einsum("ijk,k->ij", moment(Y, a, G), vector)
    values = np.einsum(
        "ia,ij,ja->a",
        sampled.start(np.random.default_rng(0)),
        matrix,
        sampled.start(np.random.default_rng(0)),
    )
    assert np.allclose(np.sort(values), np.linalg.eigvalsh(matrix))


@pytest.mark.parametrize("N", [8, 40, 5000])
def test_the_norm_of_a_moment(N):
    Y, a, G = samples(np.random.default_rng(N), N=N, d=7)
    objective = MomentTensor(Y, a, G)
    assert np.isclose(abs(objective.factor) * objective.norm, np.linalg.norm(moment(Y, a, G)), rtol=1e-12)


@pytest.mark.parametrize("block", [2, 4, 6])
def test_samples_and_tensor_give_the_same_answer(block):
    rng = np.random.default_rng(5)
    Y, a, G = samples(rng, N=300)
    start = random_orthogonal(6, rng)
    results = [
        minimize(
            from_samples(Y, a, G, implicit=implicit), start, method=Tournament(block=block), threads=threads
        )
        for implicit in (True, False)
        for threads in (1, 2)
    ]
    assert np.array_equal(results[0].U, results[1].U)
    assert np.array_equal(results[2].U, results[3].U)
    assert np.isclose(results[0].value, results[2].value, rtol=1e-12)


def test_the_cheaper_form_is_chosen():
    rng = np.random.default_rng(6)
    assert isinstance(from_samples(rng.standard_normal((20_000, 10))), SymmetricTensor)
    assert isinstance(from_samples(rng.standard_normal((30, 120))), MomentTensor)


def test_gains_of_whole_tensors_are_not_those_of_independent_pairs():
    # Where all pairs are turned at once, each gains something else than by itself.
    for seed in range(200):
        rng = np.random.default_rng(seed)
        objective = SymmetricTensor(symmetric(rng, 3))
        state = objective.state(random_orthogonal(3, rng))
        before = value_at(objective, state)
        solved = objective.solve(state, [np.arange(3)])
        objective.apply(state, [np.arange(3)], solved.rotations)
        gained = before - value_at(objective, state)
        assert np.isclose(gained, solved.gains[0], atol=1e-13 * objective.scale, rtol=0), seed


@examples(40)
@given(st.integers(2, 7), st.integers(0, 10_000), st.sampled_from([2, 3, 4, 8]), st.data())
def test_gains_are_what_the_value_changes_by(d, seed, block, data):
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(1, d))
    objective = SymmetricTensor(symmetric(rng, d), rank)
    state = objective.state(random_orthogonal(d, rng))
    blocks = [np.sort(rng.permutation(d)[:block])]
    before = value_at(objective, state)
    solved = objective.solve(state, blocks)
    objective.apply(state, blocks, solved.rotations)
    assert solved.gains[0] >= 0
    assert np.isclose(
        before - value_at(objective, state), solved.gains[0], atol=1e-13 * objective.scale, rtol=0
    )


def test_one_and_two_threads_give_the_same_bits():
    T = orthogonal(np.random.default_rng(7), 60, noise=0.01)[0]
    runs = [minimize(SymmetricTensor(T), threads=threads, random_state=0, max_iter=3) for threads in (1, 2)]
    assert np.array_equal(runs[0].U, runs[1].U)
    assert runs[0].trace.value == runs[1].trace.value
    assert runs[0].flops == runs[1].flops


@pytest.mark.parametrize(
    ("T", "error", "words"),
    [
        (np.zeros((2, 3, 2)), ValueError, "shape"),
        (np.zeros((2, 2)), ValueError, "shape"),
        (np.zeros((0, 0, 0)), ValueError, "shape"),
        (np.zeros((2, 2, 2), complex), TypeError, "real"),
        (np.arange(8.0).reshape(2, 2, 2), ValueError, "not symmetric.*up to 3 apart.*symmetrize=True"),
        (np.full((2, 2, 2), np.nan), ValueError, r"T must be finite.*the first at \(0, 0, 0\): nan"),
        (np.full((2, 2, 2), np.inf), ValueError, "T must be finite"),
    ],
)
def test_bad_tensors_are_refused(T, error, words):
    with pytest.raises(error, match=words):
        SymmetricTensor(T)


def test_a_single_bad_entry_is_found_wherever_it_is():
    for place in np.ndindex(3, 3, 3):
        T = np.ones((3, 3, 3))
        T[place] = np.nan
        with pytest.raises(ValueError, match="T must be finite"):
            SymmetricTensor(T, symmetrize=True)
        T[place] = 2.0
        if len(set(place)) > 1:
            with pytest.raises(ValueError, match="not symmetric"):
                SymmetricTensor(T)


@pytest.mark.parametrize("rank", [0, 4, 1.5, True])
def test_bad_ranks_are_refused(rank):
    with pytest.raises(ValueError, match="rank must be a whole number from 1 to 3, the order of the tensor"):
        SymmetricTensor(np.ones((3, 3, 3)), rank)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros(3),), "shape"),
        ((np.zeros((0, 3)),), "shape"),
        ((np.array([[np.nan]]),), "Y must be finite, but 1 entry is not, the first at"),
        ((np.ones((4, 2)), np.ones(2)), "both a and G"),
        ((np.ones((4, 2)), np.ones(3), np.eye(2)), "shapes"),
        ((np.ones((4, 2)), np.ones(2), np.triu(np.ones((2, 2)))), "G is not symmetric"),
        ((np.full((4, 2), 1e150),), "over- or underflow"),
    ],
)
def test_bad_samples_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        MomentTensor(*arguments)
    with pytest.raises(ValueError, match=words):
        from_samples(*arguments, implicit=False)


def test_the_tensor_is_not_written_to():
    T = orthogonal(np.random.default_rng(8), 5)[0]
    T.flags.writeable = False
    minimize(SymmetricTensor(T), random_state=0)
    Y = np.random.default_rng(9).exponential(size=(30, 4))
    Y.flags.writeable = False
    minimize(MomentTensor(Y), random_state=0)


@pytest.mark.parametrize("active", [3, 6])
def test_what_all_pairs_could_gain(active):
    objective = SymmetricTensor(symmetric(np.random.default_rng(5), 6), rank=active)
    state = objective.state(np.eye(6))
    T = state
    turns = np.linspace(-np.pi, np.pi, 100_001)
    c, s = np.cos(turns), np.sin(turns)
    total = 0.0
    for i in range(active):
        for j in range(i + 1, 6):

            def height(x, y, i=i, j=j):
                a, b, q, e = T[i, i, i], T[i, i, j], T[i, j, j], T[j, j, j]
                return a * x**3 + 3 * b * x**2 * y + 3 * q * x * y**2 + e * y**3

            sums = height(c, s) + (height(-s, c) if j < active else 0.0)
            total += sums.max() - T[i, i, i] - (T[j, j, j] if j < active else 0.0)
    assert np.isclose(0.5 * objective.look(state).gains().sum(), total, rtol=1e-7)


def test_a_start_that_no_pair_improves_is_kept_and_a_saddle_is_left():
    T, _, V = orthogonal(np.random.default_rng(6), 8)
    objective = SymmetricTensor(T)
    solved = minimize(objective, V, tol=1e-6)
    assert solved.sweeps == 0
    assert solved.converged
    assert solved.message.startswith("converged: all pairs together could gain")
    assert np.array_equal(solved.U, V)
    # The gradient vanishes here too, but wide turns gain.
    wrong = V * np.where(np.arange(8) < 2, -1.0, 1.0)
    turned = minimize(objective, wrong, tol=1e-6)
    assert turned.sweeps > 0
    assert np.isclose(turned.value, solved.value, rtol=1e-13)


@pytest.mark.parametrize("name", ["noise", "samples", "of lower rank", "samples of lower rank"])
def test_a_run_that_stops_early_would_have_gained_nothing(name):
    objective = CASES[name]
    found = minimize(objective, random_state=2, tol=1e-6)
    assert found.converged
    beyond = minimize(objective, found.U, method=Tournament(), tol=0, max_iter=5)
    assert np.linalg.norm(beyond.U - found.U) < 1e-5
    assert abs(beyond.value - found.value) <= 1e-12 * objective.scale * abs(objective.factor)
