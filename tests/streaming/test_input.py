"""What a stream refuses, and that nothing is lost by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import givens
from givens import StreamingSparsePCA
from tests.stream_data import DATA, model, state


@pytest.mark.parametrize("sketch", [None, ("algorithm 5", 0.5)])
def test_a_bad_batch_leaves_the_model_as_it_was(sketch):
    found = model(sketch=sketch)
    rows = np.random.default_rng(0).standard_normal((1500, 30))
    for number in range(499):
        found.partial_fit(rows[3 * number : 3 * number + 3])
    before = state(found)
    bad = rows[-3:].copy()
    bad[1, 4] = np.nan
    for batch, message in (
        (bad, "NaN"),
        (np.where(np.isnan(bad), np.inf, bad), "infinity"),
        (rows[:3, :29], "29 features, but .* is expecting 30"),
        (rows[:0], "0 sample"),
        (rows[0], "2D array"),
        (np.array([["a"] * 30]), "could not convert|numeric"),
    ):
        with pytest.raises(ValueError, match=message):
            found.partial_fit(batch)
        assert state(found) == before
    found.partial_fit(rows[-3:])
    assert state(found) != before


def test_a_refused_first_batch_leaves_nothing():
    found = model()
    with pytest.raises(ValueError, match="NaN"):
        found.partial_fit(np.full((3, 4), np.nan))
    assert set(vars(found)) == set(found.get_params())
    found.partial_fit(DATA)


def test_a_refused_stream_leaves_the_last_fit():
    found = model().fit(DATA)
    before = state(found)

    def rows():
        yield DATA[:50]
        yield np.full((2, 30), np.nan)

    with pytest.raises(ValueError, match="chunk 1 of X has 60 missing values"):
        found.fit(rows())
    assert state(found) == before
    with pytest.raises(ValueError, match="chunk 1 of X has 29 columns, but the first has 30"):
        found.fit([DATA[:50], DATA[:50, 1:]])
    with pytest.raises(ValueError, match="yields no rows"):
        found.fit(iter([]))
    with pytest.raises((TypeError, ValueError)):
        found.fit("a file")
    assert state(found) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (101, 7), (129, 29)])
def test_a_refused_table_leaves_the_last_fit(bad, where):
    found = model().fit(DATA)
    before = state(found)
    X = DATA.copy()
    X[where] = bad
    for table in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match="NaN" if np.isnan(bad) else "infinity"):
            found.fit(table)
        assert state(found) == before


def test_samples_that_outgrow_the_first_are_refused():
    found = model().fit(DATA)
    before = state(found)
    for fit in (found.fit, found.partial_fit):
        with pytest.raises(ValueError, match="too large beside the first, which are of the size of"):
            fit(np.vstack((DATA, DATA * 1e200)))
        assert state(found) == before
    found = model().fit(DATA.astype(np.float32))
    before = state(found)
    with pytest.raises(ValueError, match="too large beside the first"):
        found.partial_fit(sparse.csr_matrix(DATA.astype(np.float32) * 1e25))
    assert state(found) == before


@pytest.mark.parametrize("samples", [1, 7, 130])
def test_a_stream_that_was_interrupted_goes_on_as_if_nothing_had_come(monkeypatch, samples):
    """Where a block is filled, and where it is not."""
    found, other = model().partial_fit(DATA[:50]), model().partial_fit(DATA[:50])
    before = state(found)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("givens.data.sketch.Sketch._refuse_overflow", interrupt)  # sums are not checked yet
        with pytest.raises(KeyboardInterrupt):
            found.partial_fit(DATA[-samples:])
    assert state(found) == before
    np.testing.assert_array_equal(found.components_, other.components_)
    assert state(found.partial_fit(DATA[50:])) == state(other.partial_fit(DATA[50:]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 31}, "from 1 to 30"),
        ({"n_components": 0}, "from 1 to 30"),
        ({"threshold": -1.0}, "threshold must be"),
        ({"n_nonzero": 3, "threshold": 0.1}, "threshold or n_nonzero, not both"),
        ({"threshold": 1.5}, "between 0 and 1"),
        ({"threshold": None, "n_nonzero": 31}, "n_nonzero"),
        ({"threshold": None, "n_nonzero": [1, 2]}, "got 2 for 3"),
        ({"threshold": ("l2", 0.1)}, "penalty"),
        ({"sketch": 2}, "sketch must be a whole number of at least 3"),
        ({"sketch": True}, "sketch"),
        ({"missing": "mean"}, "missing must be 'em' or None"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"forgetting": 1.1}, "forgetting"),
        ({"threads": 0}, "threads"),
        ({"max_iter": -1}, "max_iter"),
        ({"n_starts": 0}, "n_starts"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message):
    found = model(**parameters)
    with pytest.raises(ValueError, match=message):
        found.partial_fit(DATA)
    assert not found.__sklearn_is_fitted__()


def test_too_little_to_go_on():
    found = model()
    with pytest.raises(NotFittedError):
        found.components_.sum()
    with pytest.raises(NotFittedError):
        found.save("nowhere")
    found.partial_fit(DATA[:1])
    with pytest.raises(ValueError, match="at least 2 samples"):
        found.components_.sum()
    with pytest.raises(ValueError, match="constant"):
        model().partial_fit(np.ones((5, 4))).components_.sum()
    with pytest.warns(UserWarning, match="nothing of"):
        few = model().partial_fit(DATA[:3]).components_
    np.testing.assert_allclose(np.linalg.norm(few, axis=1), 1)
    zeros = np.concatenate((np.zeros((5, 30)), DATA))
    assert np.isfinite(model().fit(zeros).components_).all()


def test_progress_counts_the_samples_and_changes_nothing(capsys):
    X = np.random.default_rng(0).standard_normal((250, 6))
    batches = [X[start : start + 100] for start in range(0, 250, 100)]
    quiet = StreamingSparsePCA(2).fit(iter(batches))
    assert capsys.readouterr() == ("", "")
    with givens.progress():
        shown = StreamingSparsePCA(2).fit(iter(batches))
    # On whichever of the two Rich's console writes to: a command sends it to the second.
    assert "250 samples" in "".join(capsys.readouterr())
    assert np.array_equal(quiet.components_, shown.components_)


def test_components_beyond_the_rank_of_few_samples_keep_their_counts():
    X = np.random.default_rng(0).standard_normal((2, 60))
    with pytest.warns(
        UserWarning, match=r"2 components are beyond the rank.*ask for 1 or fewer, or give more"
    ):
        found = StreamingSparsePCA(3, n_nonzero=6).fit(X)
    assert found.n_nonzero_.tolist() == [6, 6, 6]


def test_with_counts_the_advice_is_not_to_use_counts():
    X = np.random.default_rng(0).standard_normal((2, 60))
    with pytest.warns(UserWarning, match=r"nothing of 2 of 3 components is left by the others.*more samples"):
        StreamingSparsePCA(3, n_nonzero=6, max_iter=0).fit(X)


def test_no_more_columns_are_kept_than_there_are_features():
    found = StreamingSparsePCA(2, sketch=200).fit(DATA[:, :4])
    assert "130 samples, 4 columns kept" in found.result_.method
    assert "lack at most 0.00% of the variance" in found.result_.method


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (np.full((1, 30), np.inf), "chunk 2 of X contains infinity"),
        (DATA[:5] + 0j, "chunk 2 of X: Complex data not supported"),
        ([["a"] * 30], "chunk 2 of X: could not convert string"),
        (DATA[None], "chunk 2 of X: Found array with dim 3"),
        (None, "chunk 2 of X: Expected 2D array, got scalar"),
    ],
)
def test_the_number_of_a_bad_batch_is_said_in_one_line(batch, message):
    with pytest.raises(ValueError, match=message) as caught:
        model().fit(iter([DATA[:5], DATA[5:9], batch]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_components": 2}, "began with n_components=3, not 2, and that holds"),
        ({"sketch": 9}, "began with sketch=None, not 9, and"),
        ({"forgetting": 0.9, "n_starts": 2}, "forgetting=1.0, not 0.9, and"),
    ],
)
def test_what_may_not_change_is_named_as_the_parameter_is(changed, message):
    found = model().partial_fit(DATA)
    before = state(found)
    with pytest.raises(ValueError, match=message):
        found.set_params(**changed).partial_fit(DATA)
    assert state(found) == before
    assert found.fit(DATA).n_samples_seen_ == 130


def test_the_mean_needs_no_components():
    found = model(scale=True).partial_fit(DATA[:1])
    np.testing.assert_allclose(found.mean_, DATA[0], rtol=1e-15)
    np.testing.assert_array_equal(found.scale_, np.ones(30))
    np.testing.assert_array_equal(model().partial_fit(np.ones((5, 4))).mean_, np.ones(4))


def test_scores_that_are_no_numbers_have_no_inverse():
    found = model().fit(DATA)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        found.inverse_transform(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="could not convert string"):
        found.inverse_transform([["a", "b", "c"]])
    with pytest.raises(TypeError, match="dense data is required"):
        found.inverse_transform(sparse.csr_matrix(np.ones((2, 3))))


def test_an_error_ends_the_bar(capsys):
    """An error's traceback holds what was running, and would hold the bar too."""
    with givens.progress(), pytest.raises(ValueError, match="chunk 1 of X") as error:
        model().fit(iter([DATA[:20], np.full((2, 30), np.nan)]))
    assert "20 samples" in "".join(capsys.readouterr())  # off a terminal a bar is shown when it ends
    assert error.traceback
