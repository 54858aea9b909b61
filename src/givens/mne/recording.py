"""Files of recordings, through MNE's readers, as samples x channels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from givens.support.imports import require

SUFFIXES = (".edf", ".bdf", ".gdf", ".set", ".fif", ".vhdr")


@dataclass(frozen=True)
class Recording:
    """The data channels of a recording, without bad channels and without what is annotated as bad.

    Attributes
    ----------
    values : array, shape (samples, channels)
    channels : list of str
    times : array, shape (samples,)
        Seconds from the start of the recording; they jump where something was left out.
    rate : float
        Samples per second.
    places : array, shape (channels, 3), or None
        Of the electrodes or sensors: x to the right, y to the front, z upwards. None if they are not known.
    notes : list of str
    """

    values: np.ndarray
    channels: list[str]
    times: np.ndarray
    rate: float
    places: np.ndarray | None
    notes: list[str]


def read_recording(file: Path, high_pass: float | None = None) -> Recording:
    """Read a file whose suffix is in `SUFFIXES`; what MNE cannot read is a ValueError of one sentence."""
    mne = require("mne", extra="mne")
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    try:
        raw = mne.io.read_raw(file, preload=True, verbose="error").pick(
            "data", exclude="bads", verbose="error"
        )
    except Exception as error:  # the readers of a dozen formats raise what their parsers raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"MNE cannot read {file.name}: {reason}") from error
    rate = float(raw.info["sfreq"])
    seconds = raw.n_times / rate
    notes = [f"read {len(raw.ch_names)} channels of {seconds:,.1f} s at {rate:g} samples per second"]
    if high_pass:
        raw.filter(high_pass, None, picks="all", verbose="error")
        notes.append(f"filtered out what is slower than {high_pass:g} Hz")
    elif raw.info["highpass"] < 0.1:
        notes.append(
            "the recording is not high-pass filtered: slow drifts may fill components (--high-pass 1)"
        )
    data, times = raw.get_data(reject_by_annotation="omit", return_times=True, verbose="error")
    values = data.T
    if len(values) < raw.n_times:
        notes.append(f"left out {raw.n_times - len(values):,} samples that are annotated as bad")
    places = np.array([channel["loc"][:3] for channel in raw.info["chs"]])
    known = bool(np.isfinite(places).all()) and len(np.unique(places, axis=0)) == len(places)
    return Recording(values, list(raw.ch_names), times, rate, places if known else None, notes)
