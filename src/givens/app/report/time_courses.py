"""Sources as the page shows them: time courses, spectra, a table to sort, and maps where places are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import welch

from givens.app.report.views import shortened_all

MOST_BINS = 1500  # of a time course; each holds the least and the largest value in it


def sources_view(
    sources: np.ndarray,
    *,
    share: np.ndarray,
    kurtosis: np.ndarray,
    stability: np.ndarray | None,
    rate: float | None,
    mixing: np.ndarray,
    variables: Sequence[str],
    places: np.ndarray | None = None,
) -> dict[str, object]:
    """Return the section of sources.

    Parameters
    ----------
    sources : array of shape (samples, components)
    share, kurtosis, stability : array of shape (components,)
    rate : float, optional
        Samples per second; without it, time is counted in samples.
    mixing : array of shape (variables, components)
    variables : sequence of str
    places : array of shape (variables, 3), optional
        Where the variables were measured: x to the right, y to the front.
    """
    number = min(sources.shape[1], 128)
    edges = np.linspace(0, len(sources), min(MOST_BINS, len(sources)) + 1).astype(int)
    low = np.minimum.reduceat(sources[:, :number], edges[:-1], axis=0)
    high = np.maximum.reduceat(sources[:, :number], edges[:-1], axis=0)
    unit = 1.0 if rate is None else rate
    # Samples of a segment of a spectrum
    frequencies, power = welch(sources[:, :number], fs=unit, nperseg=min(512, len(sources)), axis=0)
    decibels = 10 * np.log10(np.maximum(power[1:], np.finfo(float).tiny))
    lead = "Click a source to see it, and a heading to sort the table."
    if len(edges) - 1 < len(sources):
        lead += f" A time course of {len(sources):,} samples is drawn in {len(edges) - 1:,} parts: the range of each."
    if number < sources.shape[1]:
        lead += f" The first {number} of {sources.shape[1]} sources are shown."
    return {
        "lead": lead,
        "share": shortened_all(share[:number]),
        "kurtosis": shortened_all(kurtosis[:number]),
        "stability": None if stability is None else shortened_all(stability[:number]),
        "timeTitle": "sample" if rate is None else "seconds",
        "frequencyTitle": "frequency, per sample" if rate is None else "frequency, Hz",
        "times": shortened_all(edges[:-1] / unit),
        "low": low.T.round(2).tolist(),
        "high": high.T.round(2).tolist(),
        "frequencies": shortened_all(frequencies[1:]),
        "decibels": decibels.T.round(1).tolist(),
        "map": None if places is None else _map(places, mixing[:, :number], variables),
    }


def _map(places: np.ndarray, mixing: np.ndarray, variables: Sequence[str]) -> dict[str, object]:
    """Places in the plane, as seen from above, in a circle of radius 1: by their angle from the vertex."""
    centred = np.asarray(places, np.float64)
    distance = np.linalg.norm(centred, axis=1)
    upward = np.arccos(np.clip(centred[:, 2] / np.where(distance > 0, distance, 1.0), -1.0, 1.0))
    around = np.arctan2(centred[:, 1], centred[:, 0])
    radius = upward / max(float(upward.max()), np.pi / 2)
    largest = np.abs(mixing).max(axis=0)
    weights = mixing / np.where(largest > 0, largest, 1.0)
    return {
        "names": list(variables),
        "x": (radius * np.cos(around)).round(4).tolist(),
        "y": (radius * np.sin(around)).round(4).tolist(),
        "weights": weights.T.round(3).tolist(),
    }
