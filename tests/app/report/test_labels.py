"""Which components separate which labels: against scikit-learn, SciPy and all permutations of small data."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import f_oneway, mannwhitneyu, spearmanr
from sklearn.metrics import roc_auc_score

from givens.app.report.labels import MOST_SAMPLES, separations


def by_component(found, label):
    return sorted((row for row in found if row.label == label), key=lambda row: row.component)


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(60, 4)).round(1)  # with ties
    kind = rng.choice(["a", "b"], 60)
    place = rng.choice(["x", "y", "z"], 60)
    age = rng.normal(size=60)
    scores[:, 1] += 1.5 * (kind == "b")
    scores[:, 2] -= 2.0 * (place == "y")
    scores[:, 3] += age
    labels = {"kind": list(kind), "place": list(place), "age": [repr(float(value)) for value in age]}
    return scores, labels


def test_measures_agree_with_others(data):
    scores, labels = data
    found, notes = separations(scores, labels)
    assert notes == []
    kind, place = np.array(labels["kind"]), np.array(labels["place"])
    for row in by_component(found, "kind"):
        area = roc_auc_score(kind == "b", scores[:, row.component])
        assert row.measure == "AUC"
        assert row.value == pytest.approx(max(area, 1 - area), abs=1e-12)
        assert row.high == ("b" if area > 0.5 else "a")
    for row in by_component(found, "place"):
        column = scores[:, row.component]
        groups = [column[place == name] for name in "xyz"]
        between = sum(len(group) * (group.mean() - column.mean()) ** 2 for group in groups)
        assert row.measure == "correlation ratio"
        assert row.value == pytest.approx(between / ((column - column.mean()) ** 2).sum(), abs=1e-12)
        assert row.high == "xyz"[int(np.argmax([group.mean() for group in groups]))]
    for row in by_component(found, "age"):
        ages = np.array(labels["age"], float)
        assert row.measure == "rank correlation"
        assert row.value == pytest.approx(spearmanr(ages, scores[:, row.component])[0], abs=1e-12)


def test_p_values_agree_with_theory(data):
    """The permutation p-values are near those of the tests that large samples have."""
    scores, labels = data
    found, _ = separations(scores, labels, permutations=4999)
    kind, place = np.array(labels["kind"]), np.array(labels["place"])
    for row in by_component(found, "kind"):
        column = scores[:, row.component]
        theory = mannwhitneyu(column[kind == "a"], column[kind == "b"]).pvalue
        assert row.p == pytest.approx(theory, abs=0.03)
    for row in by_component(found, "place"):
        column = scores[:, row.component]
        assert row.p == pytest.approx(f_oneway(*(column[place == name] for name in "xyz")).pvalue, abs=0.03)
    assert all(row.p <= row.p_any for row in found)
    assert all(row.p >= 1 / 5000 for row in found)
    strong = {(row.label, row.component) for row in found if row.p_any <= 0.01}
    assert strong == {("kind", 1), ("place", 2), ("age", 3)}
    assert [row.p_any for row in found] == sorted(row.p_any for row in found)


def test_p_values_agree_with_all_permutations():
    scores = np.array([[0.1, 3.0], [0.4, 1.0], [1.7, 2.0], [0.2, 2.5], [2.0, 0.5], [1.5, 2.2]])
    labels = ["a", "a", "b", "a", "b", "b"]
    found, _ = separations(scores, {"kind": labels}, permutations=20_000)
    areas = np.array(
        [
            [abs(roc_auc_score([word == "b" for word in order], scores[:, k]) - 0.5) for k in range(2)]
            for order in set(permutations(labels))
        ]
    )
    for row in found:
        mine = abs(row.value - 0.5)
        assert row.p == pytest.approx(np.mean(areas[:, row.component] >= mine - 1e-9), abs=0.02)
        assert row.p_any == pytest.approx(np.mean(areas.max(axis=1) >= mine - 1e-9), abs=0.02)


def test_scores_may_change_sign_and_scale_and_samples_their_order(data):
    scores, labels = data
    found, _ = separations(scores, labels)
    order = np.random.default_rng(0).permutation(60)
    other, _ = separations(
        -1e150 * scores[order], {name: [words[k] for k in order] for name, words in labels.items()}
    )
    for label in labels:
        for first, second in zip(by_component(found, label), by_component(other, label)):
            assert abs(first.value) == pytest.approx(abs(second.value), abs=1e-9)
            assert first.p == pytest.approx(second.p, abs=0.05)


def test_what_can_not_be_separated_is_said():
    scores = np.random.default_rng(0).normal(size=(20, 2))
    labels = {
        "one": ["same"] * 20,
        "names": [f"sample {k}" for k in range(20)],
        "holes": ["a", "b", ""] * 6 + ["a", "b"],
    }
    found, notes = separations(scores, labels)
    assert {row.label for row in found} == {"holes"}
    assert {row.samples for row in found} == {14}
    assert notes == [
        "'one' is left out: all samples have the same label.",
        "'names' is left out: 20 different labels of 20 samples are names rather than classes.",
        "'holes' is empty for 6 of the samples.",
    ]


def test_a_constant_component_separates_nothing():
    found, _ = separations(np.full((30, 1), 7.3), {"two": ["a", "b"] * 15, "three": ["a", "b", "c"] * 10})
    assert {row.label: (row.value, row.p) for row in found} == {"two": (0.5, 1.0), "three": (0.0, 1.0)}


def test_many_samples_are_thinned_and_said():
    scores = np.random.default_rng(0).normal(size=(MOST_SAMPLES + 1, 1))
    found, notes = separations(scores, {"kind": ["a", "b"] * (MOST_SAMPLES // 2) + ["a"]}, permutations=9)
    assert found[0].samples == MOST_SAMPLES
    assert notes == [f"Computed from {MOST_SAMPLES:,} of the samples, evenly chosen."]
