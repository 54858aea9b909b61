"""Independent components of recordings in MNE-Python: a solver for `mne.preprocessing.ICA`.

MNE picks channels, leaves out periods that are annotated as bad, scales channels by their type, and sorts components by the
variance they explain. This module whitens the data and finds the sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from givens.ica.estimator import ICA
from givens.numerics import parallel
from givens.objectives.contrasts import Contrast
from givens.support.fitting import atomic_fit
from givens.support.imports import require

if TYPE_CHECKING:
    from mne.preprocessing import ICA as MneICA
else:
    MneICA = require("mne.preprocessing", "mne").ICA


def fit(
    inst: Any,
    n_components: int | float | None = None,
    *,
    contrast: str | Contrast = "adaptive",
    tol: float = 1e-8,
    max_iter: int = 1000,
    n_starts: int = 1,
    stability: int | None = None,
    noise_cov: Any = None,
    threads: int | None = None,
    random_state: Any = 0,
    verbose: Any = None,
    **selection: Any,
) -> Any:
    """Fit an `mne.preprocessing.ICA` to a recording.

    Parameters
    ----------
    inst : mne.io.Raw or mne.Epochs
        High-pass filtered, as for `mne.preprocessing.ICA.fit`.
    n_components : int or float, optional
        Number of components; or, below 1, the share of the variance that the principal components keep. By default 0.999999,
        which leaves out directions that an average reference or a projection has removed.
    contrast : str or Contrast, default="adaptive"
        As for `givens.ICA`.
    tol : float, default=1e-8
        As for `givens.ICA`.
    max_iter : int, default=1000
        As for `givens.ICA`.
    n_starts : int, default=1
        As for `givens.ICA`.
    stability : int, optional
        As for `givens.ICA`.
    noise_cov : mne.Covariance, optional
        Covariance by which channels are whitened first. By default they are divided by the standard deviation of their type.
    threads : int, optional
        As for `givens.ICA`.
    random_state : int, Generator or RandomState or None, default=0
        As for `givens.ICA`.
    verbose : bool, str or int, optional
        As for `mne.preprocessing.ICA.fit`.
    **selection
        Of `mne.preprocessing.ICA.fit`: picks, start, stop, decim, reject, flat, tstep, reject_by_annotation.

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
    model = ICA(
        whiten=False,
        contrast=contrast,
        tol=tol,
        max_iter=max_iter,
        n_starts=n_starts,
        stability=stability,
        threads=threads,
        random_state=random_state,
    )
    return GivensICA(model, n_components, noise_cov, verbose).fit(inst, verbose=verbose, **selection)


class GivensICA(MneICA):
    """An ICA of MNE whose sources `givens.ICA` finds, in every call of `fit`.

    Parameters
    ----------
    model : ICA
        The options of a fit to white data.
    n_components : int or float, optional
    noise_cov : mne.Covariance, optional
    verbose : bool or str, optional
    """

    def __init__(self, model: ICA, n_components: int | float | None, noise_cov: Any, verbose: Any) -> None:
        # "imported_eeglab" is the name under which MNE accepts components that another program has found.
        super().__init__(n_components, method="imported_eeglab", noise_cov=noise_cov, verbose=verbose)
        self.method, self.max_iter, self._options = "givens", model.max_iter, model
        contrast = model.contrast if isinstance(model.contrast, str) else repr(model.contrast)
        self.fit_params = {"contrast": contrast, "tol": model.tol}

    @atomic_fit
    def fit(self, *args: Any, **options: Any) -> GivensICA:
        """As `mne.preprocessing.ICA.fit`; the largest weight of each topography is positive."""
        super().fit(*args, **options)
        self._point_upwards()
        return self

    def _fit(self, data: np.ndarray, fit_type: str) -> None:
        """Set the attributes that MNE's own method sets, from selected data, channels x samples."""
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
        self._compute_pre_whitener(data)
        data = self._pre_whiten(data)
        self.pca_mean_ = data.mean(axis=1)
        data -= self.pca_mean_[:, None]
        model = clone(self._options)
        with parallel.pool(model.threads):
            variances, axes = np.linalg.eigh(data @ data.T / (samples - 1))
            self.pca_components_ = np.ascontiguousarray(axes[:, ::-1].T)
            self.pca_explained_variance_ = np.maximum(variances[::-1], 0.0)
            self.n_components_ = number = _number(self.n_components, self.pca_explained_variance_)
            deviations = np.sqrt(self.pca_explained_variance_[:number])
            Z = data.T @ (self.pca_components_[:number].T / deviations)
            Z *= np.sqrt(
                samples / (samples - 1)
            )  # MNE's variances have the divisor samples − 1, ours samples
        model.fit(Z)
        self.unmixing_matrix_ = model.components_ / deviations
        self.n_iter_ = model.n_iter_
        self._update_ica_names()
        self._update_mixing_matrix()
        self.current_fit = fit_type
        # MNE then sorts the components by their variance in all channels; `_point_upwards` finds each of them again.
        self._separated = self.unmixing_matrix_.copy(), model

    def _point_upwards(self) -> None:
        """Make the largest weight of each topography positive, and set our attributes in the order of MNE's components."""
        unmixing, model = self.__dict__.pop("_separated")
        order = np.array([int(np.abs(unmixing - row).sum(axis=1).argmin()) for row in self.unmixing_matrix_])
        maps = self.get_components()
        peaks = maps[np.abs(maps).argmax(axis=0), np.arange(maps.shape[1])]
        self.unmixing_matrix_ *= np.where(peaks < 0, -1.0, 1.0)[:, None]
        self._update_mixing_matrix()
        self.kurtosis_ = model.kurtosis_[order]
        self.stability_ = None if model.stability_ is None else model.stability_[order]
        self.gradient_norm_ = model.gradient_norm_


def _number(asked: int | float | None, variances: np.ndarray) -> int:
    """The number of components that is asked for, itself or by a share of the variance, if their unmixing can be inverted."""
    least = 1e-6  # of the largest variance: MNE cannot invert the unmixing of weaker components
    invertible = int(np.sum(variances > least * variances[0])) if variances[0] > 0 else 0
    if invertible == 0:
        raise ValueError("all samples are equal: there is nothing to separate")
    if asked is None or isinstance(asked, float):
        explained = np.cumsum(variances) / variances.sum()
        # MNE's own default.
        number = int(np.searchsorted(explained, 0.999999 if asked is None else asked)) + 1
        return min(number, invertible)
    if asked > invertible:
        raise ValueError(
            f"n_components = {asked}, but only {invertible} principal components have more than {least:g} of the largest "
            f"variance; ask for at most {invertible}, or leave n_components out"
        )
    return int(asked)
