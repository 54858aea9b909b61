"""Passes over chunks: what they show while they run, and what the dashboard calls them."""

from __future__ import annotations

import dask
import numpy as np
import pytest

import givens
from givens import (
    ICA,
    RotatedPCA,
    SparsePCA,
    SphericalMixture,
    StreamingSparsePCA,
    TopicModel,
)
from givens.data.passes import DaskRows
from tests.data.fits import DATA, MIXTURE, dense

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore:not converged")  # mixtures take few steps here

MODELS = {
    "mixture": lambda **options: SphericalMixture(3, max_iter=2, n_starts=3, **options),
    "topics": lambda **options: TopicModel(3, max_iter=2, **options),
    "sparse PCA": lambda **options: SparsePCA(2, threshold=0.3, **options),
    "ICA": lambda **options: ICA(3, contrast="adaptive", max_iter=5, tol=1e-2, **options),
}


def numbers(model):
    if isinstance(model, SphericalMixture):
        return np.concatenate([model.means_.ravel(), model.variances_])
    return np.asarray(model.components_)


# What a fit shows.

SHOWN = {
    "mixture": [
        "pass 1, mixture second moments:",
        "pass 2, mixture third moments:",
        "pass 3, mixture expectation:",
    ],
    "topics": ["pass 1, topics frequencies:", "pass 6, topics moments:", "pass 7, topics inference:"],
    "sparse PCA": ["pass 1, sparse pca moments:", "pass 2, sparse pca products:"],
    "ICA": ["pass 1, ica covariance:", "pass 2, ica sample:", "ica look:", "ica tails:"],
}


def shown_by(capsys):
    """The lines of the bars that a fit has shown, as if on a wide terminal."""
    return capsys.readouterr().out


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_progress_shows_passes_and_chunks(name, scheduler, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with dask.config.set(scheduler=scheduler), givens.progress():
        MODELS[name]().fit(DATA[name]())
    out = shown_by(capsys)
    chunks = DATA[name]().numblocks[0]
    for text in SHOWN[name]:
        (line, *_) = [line for line in out.splitlines() if text in line]
        assert f"{chunks} of {chunks} chunks" in line
    MODELS[name]().fit(DATA[name]())
    assert not shown_by(capsys)


def test_progress_of_estimators_that_had_it(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for model, text in (
        (RotatedPCA(2), "rotated pca products:"),
        (StreamingSparsePCA(2, n_nonzero=3), "streaming sketch:"),
    ):
        with givens.progress():
            model.fit(dense(MIXTURE, 900))
        assert f"pass 1, {text} 10 of 10 chunks" in shown_by(capsys)


def test_progress_and_names_on_a_cluster(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        for name, model in MODELS.items():
            with givens.progress():
                found = model().fit(DATA[name]())
            np.testing.assert_array_equal(numbers(found), numbers(model().fit(DATA[name]())))
            out, chunks = shown_by(capsys), DATA[name]().numblocks[0]
            for text in SHOWN[name]:
                (line, *_) = [line for line in out.splitlines() if text in line]
                assert f"{chunks} of {chunks} chunks" in line
        prefixes = set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes)))
    for name in (
        "mixture-second-moments",
        "mixture-third-moments",
        "mixture-expectation",
        "topics-frequencies",
        "topics-axes",
        "topics-moments",
        "topics-inference",
        "sparse-pca-moments",
        "sparse-pca-products",
        "ica-covariance",
        "ica-sample",
        "ica-look",
        "ica-tails",
    ):
        assert {name, f"{name}-merge"} <= prefixes
    # Nothing else is shown: readers of chunks are fused with the sums, and what is sent has a name.
    words = ("mixture", "topics", "sparse-pca", "ica", "getitem", "array", "csr_matrix", "finalize")
    assert not [prefix for prefix in prefixes if not prefix.startswith(words)]


def test_what_is_kept_for_many_passes_goes_to_each_task_by_itself():
    # A list of kept values would be a task of its own, whose result workers send each other in every pass.
    rows = DaskRows(dense(MIXTURE, 700))
    kept = [rows.keep(np.full(3, number), "kept-values") for number in range(40)]
    graph = dict(rows._tree(None, None, "sums", "sums-0", kept).__dask_graph__())
    names = {str(key if isinstance(key, str) else key[0]).rsplit("-", 1)[0] for key in graph}
    assert not any(name.startswith(("list", "tuple")) for name in names), names
    leaves = [task for key, task in graph.items() if isinstance(key, tuple) and key[0] == "sums-0"]
    assert all(one.key in leaf.dependencies for one in kept for leaf in leaves)
    assert len(leaves) == rows.X.numblocks[0]
