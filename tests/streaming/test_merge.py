"""Streams that are merged: exact means and energies, and no more lost than the trace says."""

from __future__ import annotations

import numpy as np
import pytest

from givens import StreamingSparsePCA
from givens.datasets import sparse_modules
from tests.stream_data import DATA

MODULES = sparse_modules(900, 60, n_modules=3, module_size=10, random_state=0)


def stream(X, **options):
    return StreamingSparsePCA(3, **options).fit(X)


def merged(X, parts, **options):
    first, *others = (stream(part, **options) for part in np.array_split(X, parts))
    for other in others:
        first.merge(other)
    return first


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("parts", [2, 5, 9])
@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150])
def test_means_energies_and_counts_are_those_of_all_samples(parts, scale, unit):
    X = (MODULES.X + 3.0) * unit
    found = merged(X, parts, scale=scale)
    assert found.n_samples_seen_ == 900
    np.testing.assert_allclose(found.mean_, X.mean(axis=0), rtol=1e-12, atol=1e-13 * unit)
    sketch = found._sketch
    centred = (X - X.mean(axis=0)) / sketch.unit
    np.testing.assert_allclose(sketch.energy, np.sum(centred**2), rtol=1e-11)
    if scale:
        np.testing.assert_allclose(found.scale_, X.std(axis=0, ddof=1), rtol=1e-10)


@pytest.mark.parametrize("parts", [1, 2, 5, 9])
def test_no_more_is_lost_than_the_trace_says(parts):
    X = MODULES.X + 3.0
    sketch = merged(X, parts)._sketch
    W = sketch.columns_now(StreamingSparsePCA(3).fit(X)._rule(sketch)) * sketch.unit
    centred = X - X.mean(axis=0)
    total = np.sum(centred**2)
    lost = np.linalg.eigvalsh(centred.T @ centred - W.T @ W)
    assert lost[0] >= -1e-10 * total
    assert lost[-1] <= total - np.sum(W**2)
    if parts > 1:
        np.testing.assert_allclose(sketch.trace.kept[-1], np.sum(W**2) / total, rtol=1e-10)


@pytest.mark.parametrize("parts", [2, 5, 9])
def test_planted_components_are_found(parts):
    found = merged(MODULES.X, parts, n_nonzero=10)
    known = stream(MODULES.X, n_nonzero=10)
    overlap = abs(MODULES.components @ found.components_.T).max(axis=1)
    assert overlap.min() > abs(MODULES.components @ known.components_.T).max(axis=1).min() - 0.02


def test_the_streams_that_are_taken_in_stay_as_they_are():
    one, two = stream(DATA[:60]), stream(DATA[60:])
    before = two.components_.copy()
    one.merge(two)
    np.testing.assert_array_equal(two.components_, before)
    assert (one.n_samples_seen_, two.n_samples_seen_) == (130, 70)


def test_a_merged_stream_goes_on_and_is_saved(tmp_path):
    found = merged(DATA[:100], 3)
    found.save(tmp_path / "stream")
    again = StreamingSparsePCA.load(tmp_path / "stream")
    for model in (found, again):
        model.partial_fit(DATA[100:])
    np.testing.assert_array_equal(found.components_, again.components_)
    np.testing.assert_allclose(found.mean_, DATA.mean(axis=0), rtol=1e-10, atol=1e-12)


def test_what_cannot_be_merged():
    one = stream(DATA)
    with pytest.raises(ValueError, match="same parameters can be merged: n_components=3 here, 2 there"):
        one.merge(StreamingSparsePCA(2, oversample=20).fit(DATA))
    with pytest.raises(ValueError, match="order of the samples counts"):
        stream(DATA, forgetting=0.9).merge(stream(DATA, forgetting=0.9))
    with pytest.raises(ValueError, match="order of the samples counts"):
        stream(DATA, drop="weakest").merge(stream(DATA, drop="weakest"))
    with pytest.raises(ValueError, match="same features"):
        one.merge(stream(DATA[:, :20]))
    assert one.n_samples_seen_ == 130
