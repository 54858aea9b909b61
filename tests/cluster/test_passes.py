"""Passes over chunks: what they show while they run, what the dashboard calls them, and that those saved are not repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest

from givens import (
    ICA,
    Checkpoint,
    RotatedPCA,
    SparsePCA,
    SphericalMixture,
    StreamingSparsePCA,
    TopicModel,
    minimize,
)
from givens.cluster.graph import DaskRows
from givens.objectives import Columns, Kurtosis
from tests.cluster.accidents import counting_reads
from tests.cluster.fits import DATA, MIXTURE, SOURCES, counts, dense
from tests.cluster.fits import DOCUMENTS as WORDS

distributed = pytest.importorskip("distributed")

MODELS = {
    "mixture": lambda **options: SphericalMixture(3, refine_em=2, n_starts=3, **options),
    "topics": lambda **options: TopicModel(3, refine=2, **options),
    "sparse PCA": lambda **options: SparsePCA(2, alpha=0.3, **options),
    "ICA": lambda **options: ICA(3, contrast="adaptive", max_steps=5, tol=1e-2, **options),
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
    "ICA": ["pass 1, ica covariance:", "pass 2, ica sample:", "ica look:", "ica tails:", "ica kurtosis:"],
}


def shown_by(capsys):
    """The lines of the bars that a fit has shown, as if on a wide terminal."""
    return capsys.readouterr().out


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_progress_shows_passes_and_chunks(name, scheduler, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with dask.config.set(scheduler=scheduler):
        MODELS[name](progress=True).fit(DATA[name]())
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
        (RotatedPCA(2, progress=True), "rotated pca products:"),
        (StreamingSparsePCA(2, n_nonzero=3, progress=True), "streaming sketch:"),
    ):
        model.fit(dense(MIXTURE, 900))
        assert f"pass 1, {text} 10 of 10 chunks" in shown_by(capsys)


def test_progress_and_names_on_a_cluster(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        for name, model in MODELS.items():
            found = model(progress=True).fit(DATA[name]())
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
        "ica-kurtosis",
    ):
        assert {name, f"{name}-merge"} <= prefixes
    # Nothing else is shown: readers of chunks are fused with the sums, and what is sent has a name.
    words = ("mixture", "topics", "sparse-pca", "ica", "getitem", "array", "csr_matrix", "finalize")
    assert not [prefix for prefix in prefixes if not prefix.startswith(words)]


# Checkpoints.


@pytest.mark.parametrize("name", MODELS)
def test_saved_passes_are_not_repeated(name, tmp_path):
    X, path = counting_reads(DATA[name](), tmp_path / "reads"), tmp_path / "fit.npz"
    expected = MODELS[name]().fit(DATA[name]())
    first = MODELS[name](checkpoint=path).fit(X)
    np.testing.assert_array_equal(numbers(first), numbers(expected))
    before = len(list((tmp_path / "reads").iterdir()))
    again = MODELS[name](checkpoint=path, threads=1).fit(X)
    np.testing.assert_array_equal(numbers(again), numbers(expected))
    # Read again: the first rows and the last, to know the data, and the first, to know their size.
    assert len(list((tmp_path / "reads").iterdir())) - before <= 4 + 4096 // 401 + 1
    assert before > 2 * X.numblocks[0]


class _ComesDown(Exception):
    pass


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_stopped_goes_on_in_the_same_bits(name, tmp_path, monkeypatch):
    """Whatever stops it in a pass: those before are not done again."""
    X, path = DATA[name](), tmp_path / "fit.npz"
    expected = MODELS[name]().fit(X)
    done, last = [], 1 if name == "sparse PCA" else 2
    tree = DaskRows._tree

    def counted(self, empty, mold, name, key, kept):
        done.append(name)
        if len(done) == last + 1:
            raise _ComesDown
        return tree(self, empty, mold, name, key, kept)

    monkeypatch.setattr(DaskRows, "_tree", counted)
    with pytest.raises(_ComesDown):
        MODELS[name](checkpoint=path).fit(X)
    after = MODELS[name](checkpoint=path).fit(X)
    np.testing.assert_array_equal(numbers(after), numbers(expected))
    # The pass that was stopped comes next, and what was before it never again.
    assert done[last] == done[last + 1]
    assert done[:last] not in [done[start : start + last] for start in range(last, len(done))]


def test_another_process_finds_the_same_passes(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.cluster.test_passes import MODELS, DATA
for name, model in MODELS.items():
    model(checkpoint=f"{tmp_path}/{{name}}.npz").fit(DATA[name]())
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=None)
    for name, model in MODELS.items():
        X = counting_reads(DATA[name](), tmp_path / name)
        found = model(checkpoint=tmp_path / f"{name}.npz").fit(X)
        np.testing.assert_array_equal(numbers(found), numbers(model().fit(DATA[name]())))
        assert len(list((tmp_path / name).iterdir())) < X.numblocks[0] + 8


def test_other_data_and_options_are_refused(tmp_path):
    path, X = tmp_path / "fit.npz", dense(MIXTURE, 900)
    SphericalMixture(3, refine_em=1, checkpoint=path).fit(X)
    belongs = "belongs to another fit .*give another path, or delete it"
    for model, data in (
        (SphericalMixture(2, refine_em=1, checkpoint=path), X),
        (SphericalMixture(3, refine_em=2, checkpoint=path), X),
        (SphericalMixture(3, refine_em=1, checkpoint=path), dense(MIXTURE, 800)),
        (SphericalMixture(3, refine_em=1, checkpoint=path), dense(MIXTURE[:-1], 900)),
        (SphericalMixture(3, refine_em=1, checkpoint=path), dense(MIXTURE + 1, 900)),
        (SparsePCA(3, checkpoint=path), X),
    ):
        with pytest.raises(ValueError, match=belongs):
            model.fit(data)
    with pytest.raises(ValueError, match="checkpoint saves the passes over a dask array"):
        SphericalMixture(3, checkpoint=path).fit(MIXTURE)
    with pytest.raises(FileNotFoundError, match="folder of the checkpoint does not exist"):
        SphericalMixture(3, checkpoint=tmp_path / "none" / "fit.npz").fit(X)
    with pytest.raises(TypeError, match="checkpoint must be a path or a Checkpoint"):
        SphericalMixture(3, checkpoint=3).fit(X)
    for model, data in (
        (ICA(checkpoint=path), SOURCES),
        (TopicModel(checkpoint=path), WORDS),
        (SparsePCA(checkpoint=path), MIXTURE),
    ):
        with pytest.raises(ValueError, match="checkpoint saves the passes over a dask array"):
            model.fit(data)


def test_damaged_files_are_refused(tmp_path):
    path, X = tmp_path / "fit.npz", dense(MIXTURE, 900)
    model = SphericalMixture(3, refine_em=1, n_starts=1, checkpoint=path)
    expected = numbers(model.fit(X))
    whole = path.read_bytes()
    for bad in (whole[:1000], b"", whole[: len(whole) // 2] + bytes(8) + whole[len(whole) // 2 + 8 :]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="is damaged"):
            model.fit(X)
    path.write_bytes(whole)
    # A file of `minimize` is another thing.
    other = tmp_path / "run.npz"
    minimize(Columns(MIXTURE, Kurtosis()), checkpoint=other)
    with pytest.raises(ValueError, match=r"is damaged .*format is 4"):
        SphericalMixture(3, checkpoint=other).fit(X)
    np.testing.assert_array_equal(numbers(model.fit(X)), expected)


def test_a_checkpoint_every_few_passes(tmp_path):
    X, path = counting_reads(dense(MIXTURE, 900), tmp_path / "reads"), tmp_path / "fit.npz"
    model = SphericalMixture(3, refine_em=3, tol=0, n_starts=1, checkpoint=Checkpoint(path, every=2))
    expected = numbers(model.fit(X))  # five passes, four of them saved
    before = len(list((tmp_path / "reads").iterdir()))
    np.testing.assert_array_equal(numbers(model.fit(X)), expected)
    assert X.numblocks[0] <= len(list((tmp_path / "reads").iterdir())) - before < 2 * X.numblocks[0]


def test_scoring_leaves_the_checkpoint_alone(tmp_path):
    X, path = counts(WORDS, 401), tmp_path / "fit.npz"
    model = TopicModel(3, refine=1, checkpoint=path).fit(X)
    before = path.read_bytes()
    part = da.from_array(WORDS.toarray()[:500], chunks=(100, -1))
    assert np.isfinite(model.perplexity(part))
    assert np.isfinite(model.coherence(part, 5)).all()
    assert path.read_bytes() == before


def test_what_is_kept_for_many_passes_goes_to_each_task_by_itself():
    # A list of kept values would be a task of its own, whose result workers send each other in every pass.
    rows = DaskRows(dense(MIXTURE, 700), None)
    kept = [rows.keep(np.full(3, number), "kept-values") for number in range(40)]
    graph = dict(rows._tree(None, None, "sums", "sums-0", kept).__dask_graph__())
    names = {str(key if isinstance(key, str) else key[0]).rsplit("-", 1)[0] for key in graph}
    assert not any(name.startswith(("list", "tuple")) for name in names), names
    leaves = [task for key, task in graph.items() if isinstance(key, tuple) and key[0] == "sums-0"]
    assert all(one.there.key in leaf.dependencies for one in kept for leaf in leaves)
    assert len(leaves) == rows.X.numblocks[0]
