"""`givens ica`: which side of a table is time, and recordings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from givens.metrics import amari
from tests.tables import read_exactly


@pytest.fixture
def mixture(tmp_path):
    rng = np.random.default_rng(0)
    S, A = rng.laplace(size=(1500, 4)), rng.standard_normal((4, 4))
    np.save(tmp_path / "x.npy", S @ A.T)
    return S, A


def channels_by_time(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".npz":
        np.savez(path, X=values, channels=np.array([f"E{k}" for k in range(len(values))]))
    else:
        lines = [",".join([f"E{k}", *map(repr, row.tolist())]) for k, row in enumerate(values)]
        header = ",".join(["", *(f"t{k}" for k in range(values.shape[1]))])
        path.write_text("\n".join([header, *lines]) + "\n")


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv"])
def test_channels_in_rows_are_signals_and_no_samples(givens, tmp_path, mixture, ending):
    values = np.load(tmp_path / "x.npy").T
    channels_by_time(tmp_path / f"wide{ending}", values)
    run = givens("ica", f"wide{ending}", "--stability", "0", "--out", "out", "--json")
    assert run.code == 0, run.err
    summary = json.loads(run.out)
    assert (summary["samples"], summary["variables"]) == (1500, 4)
    assert "took the columns as samples, since 4 rows of 1,500 columns look like signals" in run.err
    assert "(--samples rows says otherwise)" in run.err
    unmixing = read_exactly(tmp_path / "out" / "unmixing.csv").to_numpy().T
    assert amari(unmixing, mixture[1]) < 0.1
    run = givens("ica", f"wide{ending}", "--samples", "rows", "--stability", "0", "--out", "out", "--json")
    assert json.loads(run.out)["samples"] == 4
    # A table that is somewhat wide may be either; other commands keep their rule.
    channels_by_time(tmp_path / f"wide{ending}", values[:, :20])
    run = givens("ica", f"wide{ending}", "--out", "none")
    assert run.code == 1
    assert "say --samples columns if each row is a signal, or --samples rows" in run.err
    run = givens("sparse-pca", f"wide{ending}", "-m", "1", "--no-path", "--out", "out", "--json")
    assert json.loads(run.out)["samples"] == 4


def test_named_points_in_time_are_no_genes(givens, tmp_path, mixture):
    """pandas writes the index of a recording under an empty heading: long tables of named rows are not always genes."""
    lines = [",".join([str(k), *map(repr, row)]) for k, row in enumerate(np.load("x.npy").tolist())]
    (tmp_path / "x.csv").write_text("\n".join([",a,b,c,d", *lines]) + "\n")
    run = givens("ica", "x.csv", "--stability", "0", "--out", "out", "--json")
    assert run.code == 0, run.err
    assert json.loads(run.out)["samples"] == 1500


@pytest.mark.parametrize("lines", [["kind,u,v", "x,1,2"], ["x,1,2", "kind,u,v"]])
def test_a_row_of_text_is_refused_without_advice_about_labels(givens, tmp_path, lines):
    (tmp_path / "x.csv").write_text("\n".join(["n,a,b", *lines, "y,3,4", "z,5,7"]) + "\n")
    run = givens("ica", "x.csv", "--names", "n", "--out", "out")
    assert run.code == 1
    assert "the row 'kind' holds text, such as 'u', and no numbers: leave the row out of the file" in run.err


def test_a_recording_brings_its_rate_and_places(givens, tmp_path):
    mne = pytest.importorskip("mne")
    rng = np.random.default_rng(1)
    info = mne.create_info(5, 100.0, "eeg")
    raw = mne.io.RawArray(
        rng.standard_normal((5, 5)) @ rng.laplace(size=(5, 3000)) * 1e-5, info, verbose=False
    )
    places = rng.standard_normal((5, 3)) + np.array([0, 0, 2])
    places *= 0.09 / np.linalg.norm(places, axis=1, keepdims=True)
    raw.set_montage(mne.channels.make_dig_montage(dict(zip(raw.ch_names, places)), coord_frame="head"))
    raw.set_annotations(mne.Annotations(1.0, 2.0, "BAD_movement"))
    raw.save(tmp_path / "rest_raw.fif", verbose=False)
    run = givens("ica", "rest_raw.fif", "--high-pass", "1", "--stability", "0", "--out", "out", "--json")
    assert run.code == 0, run.err
    summary = json.loads(run.out)
    assert summary["samples_per_second"] == 100.0
    assert summary["samples"] == 2800
    times = read_exactly(tmp_path / "out" / "scores.csv").index.astype(float)
    assert times[99] < 1.0 < 2.9 < times[101]  # two seconds are left out
    assert '"map":{' in (tmp_path / "out" / "report.html").read_text()
    run = givens("ica", "rest_raw.fif", "--rate", "5", "--out", "other")
    assert "contains its own sampling rate" in " ".join(run.err.split())
