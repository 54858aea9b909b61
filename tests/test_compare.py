"""`make compare` and `make ablation`: rows, adapter, intervals, tables, lines and switches. Nothing is timed."""

from __future__ import annotations

import fnmatch
import math
import sys
from types import ModuleType

import numpy as np
import pytest

from benchmarks.ablation.__main__ import collected, reached
from benchmarks.ablation.mechanism import Mechanism
from benchmarks.compare import paired, switch, values
from benchmarks.compare.adapter import Library, NewMeaning, Vocabulary
from benchmarks.compare.measure import turns
from benchmarks.compare.rows import COLD, ROWS, USERS, by_name


def test_rows_have_names_of_their_own_and_known_users():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert {row.user for row in ROWS} == set(USERS)
    assert set(COLD) <= set(names)
    assert not any("|" in name for name in names)  # it separates patterns, and cells of a table


def test_every_estimator_and_objective_has_a_row():
    import givens
    from givens import objectives

    classes = [name for name in givens.__all__ if name[0].isupper()]
    estimators = [name for name in classes if hasattr(getattr(givens, name), "fit")]
    functions = ["decompose", "joint_diagonalize", "sparse_pca_path"]
    classes = [name for name in objectives.__all__ if isinstance(getattr(objectives, name), type)]
    kinds = [name for name in classes if issubclass(getattr(objectives, name), objectives.Objective)]
    for name in (*estimators, *functions):
        assert fnmatch.filter(by_name(), f"{name} *"), name
    for name in set(kinds) - {"Objective"}:
        assert fnmatch.filter(by_name(), f"minimize {name} *"), name


def test_a_row_answers_with_a_number():
    row = by_name()["FactorRotation target, 40,000 x 100"]
    loadings, target = row.data()
    library = Library()
    value = row.value(library, (loadings, target), row.call(library, (loadings, target)))
    assert 0 < value < np.linalg.norm(loadings - target)


@pytest.fixture
def renamed(monkeypatch):
    """A package in which an estimator, an argument and an attribute have new names, and an argument is gone."""
    package, inner = ModuleType("renamed_package"), ModuleType("renamed_package.tensors")
    monkeypatch.setitem(sys.modules, "renamed_package", package)
    monkeypatch.setitem(sys.modules, "renamed_package.tensors", inner)

    class New:
        def __init__(self, rank, *, share=0.0, kind="plain"):
            self.rank, self.share, self.kind = rank, share, kind

    inner.New = New
    changed = Vocabulary(
        names={"Old": "tensors.New"},
        arguments={
            "Old": {"alpha": "share", "tol": None, "l0": lambda old: {"kind": "l0" if old["l0"] else "l1"}}
        },
        attributes={"n_components": "rank"},
    )
    return Library("renamed_package", changed)


def test_the_adapter_translates_what_the_tree_does_not_know(renamed):
    model = renamed.Old(3, alpha=0.5, tol=1e-3, l0=True)
    assert (renamed.read(model, "n_components"), model.share, model.kind) == (3, 0.5, "l0")
    assert renamed.Old(3, share=0.5).share == 0.5
    with pytest.raises(AttributeError, match="has no 'Older'"):
        _ = renamed.Older


@pytest.mark.parametrize(("beside", "expected"), [("threshold", 0.25), ("share", 0.5)])
def test_the_adapter_knows_a_new_meaning_by_another_argument(beside, expected):
    changed = Vocabulary(arguments={"SparsePCA": {"tol": NewMeaning(beside, lambda value: value**2)}})
    assert Library(changed=changed).SparsePCA(2, tol=0.5).tol == expected


def test_intervals_of_paired_ratios():
    # Logarithms 0, log 2, 2 log 2: mean log 2, deviation log 2; Student's t of 2 degrees of freedom is 4.302653.
    found = paired.ratio([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
    width = 4.302653 / math.sqrt(3)
    np.testing.assert_allclose(
        [found.mean, found.low, found.high], [2, 2 ** (1 - width), 2 ** (1 + width)], rtol=1e-6
    )
    np.testing.assert_allclose(paired.geometric_mean([0.5, 8.0]), 2)
    assert paired.ratio([1.0], [2.0]).high == math.inf


def test_sides_take_turns():
    assert [side for order in turns(4) for side in order] == ["old", "new", "new", "old"] * 2


def test_values_are_best_at_the_truth():
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((4, 4))
    assert values.amari(np.linalg.inv(mixing)[::-1] * 3, mixing) < 1e-12 < values.amari(np.eye(4), mixing)
    V = np.linalg.qr(mixing)[0]
    T = np.einsum("k,ak,bk,ck->abc", [1.0, 2, 3, 4], V, V, V)
    assert values.residual(T, np.array([1.0, 2, 3, 4]), V) < 1e-12
    assert abs(values.cubic(T, V) + 10) < 1e-12
    X = rng.standard_normal((20, 4))
    axes = np.linalg.svd(X - X.mean(axis=0))[2]
    assert abs(values.unexplained(X, axes)) < 1e-12 < values.unexplained(X, axes[:3])
    S = np.cov(X.T)
    np.testing.assert_allclose(values.unexplained_covariance(S, V[:2]), values.unexplained(X, V[:2]))


@pytest.fixture
def sample(monkeypatch):
    """A mechanism, which makes `math.tau` small, in a module of its own."""
    module = ModuleType("sample_mechanisms")
    monkeypatch.setattr(math, "tau", math.tau)
    mechanism = Mechanism(
        "large tau",
        ("SOBI *", "JADE *"),
        ("rotations.py",),
        lambda: setattr(math, "tau", 1.0),
        "kept: why not.",
    )
    module.MECHANISMS = [mechanism]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return mechanism


def test_a_switch_changes_the_package(sample):
    switch.resolved("sample_mechanisms:large tau")()
    assert math.tau == 1.0
    assert [row.name.split()[0] for row in reached(sample)] == ["JADE", "SOBI"]
    with pytest.raises(AttributeError):
        switch.resolved("sample_mechanisms:nothing")


def test_every_mechanism_names_rows_and_a_verdict():
    for mechanism in collected().values():
        assert reached(mechanism)
        assert mechanism.verdict.startswith(("kept: ", "deleted: ")), mechanism.name
