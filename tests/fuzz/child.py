"""Run a batch of attacks in this process, under limits, and report each as a line of JSON."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import signal
import sys
import traceback
import warnings

import numpy as np

from tests.fuzz.judge import Finding

KINDS = {"inputs": 1, "files": 2, "saves": 3}
MEMORY = 6 << 30


def limit() -> None:
    """So much memory, no core files; a file is never larger than a small disk."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def run(kind: str, seed: int) -> dict[str, str]:
    """One attack: an empty dictionary, or what was found."""
    told: list[str] = []
    rng = np.random.default_rng([KINDS[kind], seed])
    module = importlib.import_module(f"tests.fuzz.{kind}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.attack(rng, told.append)
    except Finding as finding:
        return {"found": finding.kind, "detail": finding.detail, "case": " ".join(told)}
    except Exception:
        return {"found": "raw exception", "detail": traceback.format_exc(), "case": " ".join(told)}
    return {}


def main() -> None:
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    limit()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    print(json.dumps({"ready": True}), file=out, flush=True)
    for seed in range(first, first + count):
        print(json.dumps({"begin": seed}), file=out, flush=True)
        print(json.dumps({"end": seed, **run(kind, seed)}), file=out, flush=True)


if __name__ == "__main__":
    main()
