"""Independent components of recordings in MNE-Python: a solver for `mne.preprocessing.ICA`.

MNE picks channels, leaves out periods that are annotated as bad, scales channels by their type, and sorts components by the
variance they explain. This module whitens the data and finds the sources.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from givens.ica.estimator import ICA
from givens.numerics import parallel
from givens.objectives.contrasts import Contrast
from givens.support.extras import require

NEGLIGIBLE = 0.999999  # share of the variance that components keep by default, as in MNE
STABLE = 1e-6  # least variance of a component over the largest; MNE cannot invert the unmixing of weaker ones


def fit(
    inst: Any,
    n_components: int | float | None = None,
    *,
    contrast: str | Contrast = "logcosh",
    tol: float = 1e-8,
    max_steps: int = 1000,
    n_starts: int = 1,
    stability: int = 0,
    noise_cov: Any = None,
    picks: Any = None,
    start: int | float | None = None,
    stop: int | float | None = None,
    decim: int | None = None,
    reject: dict | None = None,
    flat: dict | None = None,
    tstep: float = 2.0,
    reject_by_annotation: bool = True,
    threads: int | None = None,
    random_state: Any = None,
    verbose: Any = None,
) -> Any:
    """Fit an `mne.preprocessing.ICA` to a recording.

    Parameters
    ----------
    inst : mne.io.Raw or mne.Epochs
        High-pass filtered, as for `mne.preprocessing.ICA.fit`.
    n_components : int or float, optional
        Number of components; or, below 1, the share of the variance that the principal components keep. By default 0.999999,
        which leaves out directions that an average reference or a projection has removed.
    contrast : str or Contrast, default="logcosh"
        As for `givens.ICA`.
    tol : float, default=1e-8
        As for `givens.ICA`.
    max_steps : int, default=1000
        As for `givens.ICA`.
    n_starts : int, default=1
        As for `givens.ICA`.
    stability : int, default=0
        As for `givens.ICA`.
    noise_cov : mne.Covariance, optional
        Covariance by which channels are whitened first. By default they are divided by the standard deviation of their type.
    picks : str, array or slice, optional
        As for `mne.preprocessing.ICA.fit`.
    start : int or float, optional
        As for `mne.preprocessing.ICA.fit`.
    stop : int or float, optional
        As for `mne.preprocessing.ICA.fit`.
    decim : int, optional
        As for `mne.preprocessing.ICA.fit`.
    reject : dict, optional
        As for `mne.preprocessing.ICA.fit`.
    flat : dict, optional
        As for `mne.preprocessing.ICA.fit`.
    tstep : float, default=2.0
        As for `mne.preprocessing.ICA.fit`.
    reject_by_annotation : bool, default=True
        As for `mne.preprocessing.ICA.fit`.
    threads : int, optional
        As for `givens.ICA`.
    random_state : int, Generator or RandomState, optional
        As for `givens.ICA`.
    verbose : bool, str or int, optional
        As for `mne.preprocessing.ICA.fit`.

    Returns
    -------
    mne.preprocessing.ICA
        Fitted, with `method` "givens". `get_sources`, `apply`, `plot_components`, `save` and all other methods work as usual.
        The largest weight of each component's topography is positive. In addition to MNE's attributes there are `kurtosis_`,
        `stability_` and `gradient_norm_`, in the order of the components; they are not saved.

    Examples
    --------
    >>> import mne, numpy as np
    >>> import givens.mne
    >>> rng = np.random.default_rng(0)
    >>> data = rng.standard_normal((4, 4)) @ rng.laplace(size=(4, 5000)) * 1e-5
    >>> raw = mne.io.RawArray(data, mne.create_info(4, 100.0, "eeg"), verbose=False).filter(1.0, None, verbose=False)
    >>> ica = givens.mne.fit(raw, n_components=4, verbose=False)
    >>> ica.get_sources(raw).get_data().shape
    (4, 5000)
    """
    preprocessing = require("mne.preprocessing", "mne")
    # "imported_eeglab" is the name under which MNE accepts components that another program has found.
    ica = preprocessing.ICA(
        n_components=n_components, method="imported_eeglab", noise_cov=noise_cov, verbose=verbose
    )
    model = ICA(
        whiten=False,
        contrast=contrast,
        tol=tol,
        max_steps=max_steps,
        n_starts=n_starts,
        stability=stability,
        threads=threads,
        random_state=random_state,
    )

    # While `fit` runs, this replaces the method that gets the selected data, channels x samples.
    ica._fit = partial(_solve, ica, model)
    try:
        ica.fit(
            inst,
            picks=picks,
            start=start,
            stop=stop,
            decim=decim,
            reject=reject,
            flat=flat,
            tstep=tstep,
            reject_by_annotation=reject_by_annotation,
            verbose=verbose,
        )
    finally:
        del ica._fit
    _point_upwards(ica)
    ica.method = "givens"
    ica.fit_params = {"contrast": contrast if isinstance(contrast, str) else repr(contrast), "tol": tol}
    ica.max_iter = max_steps
    return ica


def _solve(ica: Any, model: ICA, data: np.ndarray, kind: str) -> None:
    """Set the attributes that MNE's own `_fit` sets."""
    if not np.isfinite(data).all():
        raise ValueError(
            "the recording holds NaN or infinite values; annotate these periods as bad, or interpolate them"
        )
    channels, samples = data.shape
    if samples <= channels:
        raise ValueError(
            f"{channels} channels need more than {channels} samples, and {samples} are left; "
            "use a longer part of the recording, or reject less of it"
        )
    ica._compute_pre_whitener(data)
    data = ica._pre_whiten(data)
    ica.pca_mean_ = data.mean(axis=1)
    data -= ica.pca_mean_[:, None]
    with parallel.pool(model.threads):
        variances, axes = np.linalg.eigh(data @ data.T / (samples - 1))
        ica.pca_components_ = np.ascontiguousarray(axes[:, ::-1].T)
        ica.pca_explained_variance_ = np.maximum(variances[::-1], 0.0)
        ica.n_components_ = number = _number(ica.n_components, ica.pca_explained_variance_)
        deviations = np.sqrt(ica.pca_explained_variance_[:number])
        Z = data.T @ (ica.pca_components_[:number].T / deviations)
        Z *= np.sqrt(samples / (samples - 1))  # MNE's variances have the divisor samples − 1, ours samples
    model.fit(Z)
    ica.unmixing_matrix_ = model.components_ / deviations
    ica.n_iter_ = model.n_iter_
    ica._update_ica_names()
    ica._update_mixing_matrix()
    ica.current_fit = kind
    # MNE then sorts the components by their variance in all channels; `_point_upwards` finds each of them again.
    ica._found = model.components_ / deviations, model


def _number(asked: int | float | None, variances: np.ndarray) -> int:
    stable = int(np.sum(variances > STABLE * variances[0])) if variances[0] > 0 else 0
    if stable == 0:
        raise ValueError("all samples are equal: there is nothing to separate")
    if asked is None or isinstance(asked, float):
        held = np.cumsum(variances) / variances.sum()
        number = int(np.searchsorted(held, NEGLIGIBLE if asked is None else asked)) + 1
        return min(number, stable)
    if asked > stable:
        raise ValueError(
            f"n_components = {asked}, but only {stable} principal components have more than {STABLE:g} of the largest "
            f"variance; ask for at most {stable}, or leave n_components out"
        )
    return int(asked)


def _point_upwards(ica: Any) -> None:
    """Make the largest weight of each topography positive, and set our attributes in the order of MNE's components."""
    found, model = ica.__dict__.pop("_found")
    order = np.array([int(np.abs(found - row).sum(axis=1).argmin()) for row in ica.unmixing_matrix_])
    maps = ica.get_components()
    peaks = maps[np.abs(maps).argmax(axis=0), np.arange(maps.shape[1])]
    ica.unmixing_matrix_ *= np.where(peaks < 0, -1.0, 1.0)[:, None]
    ica._update_mixing_matrix()
    ica.kurtosis_ = model.kurtosis_[order]
    ica.stability_ = None if model.stability_ is None else model.stability_[order]
    ica.gradient_norm_ = model.gradient_norm_
