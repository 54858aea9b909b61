"""`givens.mne.fit` returns an ICA of MNE that does what MNE's own do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

mne = pytest.importorskip("mne")

import givens.mne  # noqa: E402
from givens import ICA  # noqa: E402

RATE = 100.0
NAMES = ["Fp1", "Fp2", "F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2"]


@pytest.fixture(scope="module")
def raw():
    rng = np.random.default_rng(0)
    S = rng.laplace(size=(10, 6000))
    S[0] = np.convolve(rng.random(6000) < 0.01, np.hanning(40), "same") * 8  # blinks
    A = rng.standard_normal((10, 10))
    A[:, 0] = np.linspace(3, 0.1, 10)
    recording = mne.io.RawArray(A @ S * 1e-5, mne.create_info(NAMES, RATE, "eeg"), verbose=False)
    places = rng.standard_normal((10, 3)) * [1, 1, 0.3] + [0, 0, 1]
    places *= 0.09 / np.linalg.norm(places, axis=1, keepdims=True)
    recording.set_montage(mne.channels.make_dig_montage(dict(zip(NAMES, places)), coord_frame="head"))
    return recording.filter(1.0, None, verbose=False)


def matched(first, second):
    r = np.abs(np.corrcoef(first, second)[: len(first), len(first) :])
    rows, columns = linear_sum_assignment(-r)
    return r[rows, columns]


def picard(raw, number):
    rival = mne.preprocessing.ICA(
        number, method="picard", fit_params={"ortho": True, "tol": 1e-7}, max_iter=1000, random_state=0
    )
    return rival.fit(raw, verbose=False)


def test_the_components_are_those_of_mnes_picard(raw):
    pytest.importorskip("picard")
    ours, theirs = givens.mne.fit(raw, 10, verbose=False), picard(raw, 10)
    assert isinstance(ours, mne.preprocessing.ICA)
    np.testing.assert_allclose(ours.pre_whitener_, theirs.pre_whitener_)
    np.testing.assert_allclose(ours.pca_explained_variance_, theirs.pca_explained_variance_)
    r = matched(ours.get_sources(raw).get_data(), theirs.get_sources(raw).get_data())
    assert r.min() > 0.9999


def test_removing_a_component_changes_the_data_as_mne_does(raw):
    pytest.importorskip("picard")
    ours, theirs = givens.mne.fit(raw, 10, verbose=False), picard(raw, 10)
    cleaned = []
    for ica in (ours, theirs):
        front = np.abs(ica.get_components()).argmax(axis=0) == 0
        blink = int(np.argmax(np.where(front, np.abs(ica.get_components()).max(axis=0), 0)))
        ica.exclude = [blink]
        cleaned.append(ica.apply(raw.copy(), verbose=False).get_data())
    change = raw.get_data() - cleaned[0]
    assert change.std() > 0.05 * raw.get_data().std()
    np.testing.assert_allclose(cleaned[0], cleaned[1], atol=1e-3 * raw.get_data().std())


def test_sources_are_those_of_the_estimator(raw):
    ica = givens.mne.fit(raw, verbose=False)
    sources = ica.get_sources(raw).get_data()
    r = matched(sources, ICA().fit_transform(raw.get_data().T).T)
    assert r.min() > 0.999999
    values = np.mean((sources / sources.std(axis=1, keepdims=True)) ** 4, axis=1) - 3
    np.testing.assert_allclose(ica.kurtosis_, values, rtol=1e-6, atol=1e-6)
    assert ica.gradient_norm_ <= 1e-7
    maps = ica.get_components()
    assert np.all(maps[np.abs(maps).argmax(axis=0), np.arange(10)] > 0)


def test_a_saved_fit_comes_back(raw, tmp_path):
    ica = givens.mne.fit(raw, verbose=False)
    ica.save(tmp_path / "found-ica.fif", verbose=False)
    again = mne.preprocessing.read_ica(tmp_path / "found-ica.fif", verbose=False)
    assert again.method == "givens"
    np.testing.assert_allclose(
        again.get_sources(raw).get_data(), ica.get_sources(raw).get_data(), rtol=1e-6, atol=1e-9
    )
    assert "givens" in repr(ica)


def test_annotated_periods_are_left_out(raw):
    spoilt = raw.copy()
    data = spoilt.get_data()
    data[:, 1000:1500] *= 50
    spoilt = mne.io.RawArray(data, spoilt.info, verbose=False)
    spoilt.set_annotations(mne.Annotations(10.0, 5.0, "BAD_movement"))
    ica = givens.mne.fit(spoilt, 10, verbose=False)
    assert ica.n_samples_ == 5500
    kept = np.delete(data, slice(1000, 1500), axis=1)
    np.testing.assert_allclose(ica.pre_whitener_, kept.std())
    assert givens.mne.fit(spoilt, 10, reject_by_annotation=False, verbose=False).n_samples_ == 6000


def test_epochs_and_kinds_of_channels(raw):
    data = raw.get_data()
    info = mne.create_info(10, RATE, ["eeg"] * 6 + ["mag"] * 4)
    mixed = mne.io.RawArray(data * np.r_[np.ones(6), np.full(4, 1e-8)][:, None], info, verbose=False)
    mixed.filter(1.0, None, picks="all", verbose=False)
    epochs = mne.make_fixed_length_epochs(mixed, 2.0, preload=True, verbose=False)
    ica = givens.mne.fit(epochs, stability=2, random_state=0, verbose=False)
    assert ica.current_fit == "epochs"
    assert len(np.unique(ica.pre_whitener_)) == 2
    assert len(ica.stability_) == ica.n_components_
    assert ica.get_sources(epochs).get_data(copy=True).shape == (len(epochs), ica.n_components_, 200)


def test_an_average_reference_lowers_the_number_of_components(raw):
    referenced = raw.copy().set_eeg_reference("average", verbose=False)
    assert givens.mne.fit(referenced, verbose=False).n_components_ == 9
    with pytest.raises(ValueError, match="n_components = 10, but only 9 principal components"):
        givens.mne.fit(referenced, 10, verbose=False)


def test_too_short_recordings_get_one_sentence(raw):
    with pytest.raises(ValueError, match="10 channels need more than 10 samples, and 8 are left"):
        givens.mne.fit(raw, start=0, stop=8, verbose=False)


def test_a_fit_can_be_repeated_and_copied(raw):
    ica = givens.mne.fit(raw, 6, verbose=False)
    first = ica.unmixing_matrix_.copy()
    assert ica.copy().fit(raw, verbose=False).unmixing_matrix_.shape == (6, 6)
    assert ica.fit(raw, verbose=False) is ica
    np.testing.assert_array_equal(ica.unmixing_matrix_, first)
    assert ica.kurtosis_.shape == (6,)
    with pytest.raises(ValueError, match="NaN or infinite"):
        ica.fit(raw.copy().apply_function(lambda x: x * np.nan, verbose=False), verbose=False)
    np.testing.assert_array_equal(ica.unmixing_matrix_, first)  # the model is as it was
