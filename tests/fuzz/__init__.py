"""Random attacks on the library: `python -m tests.fuzz`."""

from __future__ import annotations

import importlib
import traceback
import warnings

import numpy as np

from tests.fuzz.judge import Finding

KINDS = {"inputs": 1, "files": 2, "saves": 3}


def run(kind: str, seed: int) -> dict[str, str]:
    """Attack once: an empty dictionary, or what was found."""
    told: list[str] = []
    module = importlib.import_module(f"tests.fuzz.{kind}")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            module.attack(np.random.default_rng([KINDS[kind], seed]), told.append)
    except Finding as finding:
        return {"found": finding.kind, "detail": finding.detail, "case": " ".join(told)}
    except Exception:
        return {"found": "raw exception", "detail": traceback.format_exc(), "case": " ".join(told)}
    return {}
