"""Examples of modules whose optional package is not installed are not run; figures are drawn without a window."""

import os
from importlib.util import find_spec

collect_ignore = [] if find_spec("mne") else ["givens/mne"]
os.environ.setdefault("MPLBACKEND", "Agg")
