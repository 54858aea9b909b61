"""How many files a fit of sparse PCA runs through, counted by a trace, so that the walk does not grow unnoticed.

Every file of the package counts in which a function is entered during a warm fit, by any thread: data, kernels, numerics and
support included. Of compiled code, only what Python itself calls is seen.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import givens
from givens import SparsePCA

ROOT = Path(givens.__file__).parent
LIBRARIES = {"data", "kernels", "numerics", "support"}
X = np.random.default_rng(0).standard_normal((60, 12))

# Parameters of a fit; the most files in all; those above data, kernels, numerics and support; those of sparse_pca itself.
WALKS = {
    "a threshold, all components": ({"n_components": 12, "alpha": 0.1}, 30, 16, 4),
    "a threshold, few components": ({"n_components": 3, "alpha": 0.1}, 22, 9, 5),
    "counts": ({"n_components": 3, "n_nonzero": 4}, 27, 13, 9),
}


def walked(call):
    """The files of the package, relative to it, whose functions a call enters."""
    names = set()

    def enter(frame, event, argument):
        if event == "call":
            names.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    paths = {Path(name) for name in names if name.endswith(".py")}
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT)}


def test_a_trace_sees_only_what_runs():
    from givens.numerics.scaling import binary_exponent

    assert walked(lambda: X.sum()) == set()
    assert walked(lambda: binary_exponent(3.0)) == {"numerics/scaling.py"}


@pytest.mark.parametrize("name", WALKS)
def test_the_walk_of_a_fit_does_not_grow(name):
    parameters, in_all, above, own = WALKS[name]
    model = SparsePCA(**parameters, random_state=0)
    model.fit(X)  # imports and compiles
    found = walked(lambda: model.fit(X))
    assert {"sparse_pca/estimator.py", "sparse_pca/centred_data.py", "numerics/parallel.py"} <= found
    assert len(found) <= in_all, sorted(found)
    reading = {file for file in found if file.partition("/")[0] not in LIBRARIES}
    assert len(reading) <= above, sorted(reading)
    assert len([file for file in found if file.startswith("sparse_pca/")]) <= own
