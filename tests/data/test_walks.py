"""The files that a reader meets who follows a fit, traced for samples in memory, on disk and on Dask.

Every file counts in which a function is entered during a warm fit, by any thread, but for those of libraries below the
estimators: compiled code, numerics, checks, objectives and the solver, with the small modules that the solver is made of.
The table in CONTRIBUTING.md has the same files, and an estimator needs no more than eight of them.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

import givens
from givens import ICA, JADE, SOBI, RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA, TopicModel

ROOT = Path(givens.__file__).parent
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
LIBRARIES = {"kernels", "numerics", "support", "objectives", "solve"}
SMALL = {"metrics.py", "result.py", "rotations.py", "schedules.py"}
MOST = 8
# A stream looks for loadings on its kept columns, as SparsePCA does.
LONGER = {
    "StreamingSparsePCA(threshold=...).fit": 9,
    "StreamingSparsePCA(n_nonzero=...).fit": 9,
}

RNG = np.random.default_rng(0)
GROUPS = RNG.standard_normal((300, 6)) + 8 * np.eye(6)[RNG.integers(0, 3, 300)]
SIGNALS = RNG.laplace(size=(1200, 4)) @ RNG.standard_normal((4, 4))
COUNTS = RNG.poisson(1.0, size=(300, 20)).astype(float)
FITS = {
    "SphericalMixture.fit": (SphericalMixture(3), GROUPS),
    "TopicModel.fit": (TopicModel(2, max_iter=3), COUNTS),
    "ICA.fit": (ICA(), SIGNALS),
    "JADE.fit": (JADE(), SIGNALS),
    "SOBI.fit": (SOBI(lags=5), SIGNALS),
    "RotatedPCA.fit": (RotatedPCA(2), GROUPS),
    "SparsePCA(threshold=...).fit, few components": (SparsePCA(2, threshold=0.1), GROUPS),
    "SparsePCA(threshold=...).fit, all": (SparsePCA(6, threshold=0.1, random_state=0), GROUPS),
    "SparsePCA(n_nonzero=...).fit": (SparsePCA(2, n_nonzero=3), GROUPS),
    "StreamingSparsePCA(threshold=...).fit": (StreamingSparsePCA(2, threshold=0.1), GROUPS),
    "StreamingSparsePCA(n_nonzero=...).fit": (StreamingSparsePCA(2, n_nonzero=3), GROUPS),
}
IN_MEMORY_ONLY = {"JADE.fit", "SOBI.fit"}


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


def table():
    """The files of each row of the table: "`folder/` name, name · `folder/` name", without ".py"."""
    rows = re.findall(r"^\| `?([^|]*?\.fit[^|]*?) \| ([^|]*) \|$", CONTRIBUTING.read_text(), re.M)
    found = {}
    for name, cell in rows:
        groups = re.findall(r"`(\w+/)` ([\w, ]+)", cell)
        found[name.replace("`", "")] = {
            f"{folder}{file.strip()}.py" for folder, files in groups for file in files.split(",")
        }
    return found


def test_a_trace_sees_only_what_runs():
    from givens.numerics.scaling import binary_exponent

    assert walked(lambda: GROUPS.sum()) == set()
    assert walked(lambda: binary_exponent(3.0)) == {"numerics/scaling.py"}


def test_the_table_has_a_row_for_each_fit():
    assert set(table()) == set(FITS)


@pytest.mark.filterwarnings("ignore")  # of fits to so little data
@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_the_same_walk_wherever_the_samples_lie(name, tmp_path):
    model, X = FITS[name]
    np.save(tmp_path / "X.npy", X)
    places = {"memory": X, "disk": np.load(tmp_path / "X.npy", mmap_mode="r")}
    if name not in IN_MEMORY_ONLY:
        places["Dask"] = da.from_array(X, chunks=(len(X) // 3, -1))
    found = {}
    with dask.config.set(scheduler="synchronous"):
        for place, samples in places.items():
            model.fit(samples)  # imports and compiles
            files = walked(lambda: model.fit(samples))  # noqa: B023
            assert "data/rows.py" in files
            found[place] = {
                file for file in files if file.partition("/")[0] not in LIBRARIES and file not in SMALL
            }
    together = set().union(*found.values())
    assert together == table()[name], sorted(together)
    assert max(map(len, found.values())) <= LONGER.get(name, MOST)
