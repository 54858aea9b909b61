"""What this machine is and how fast it really is: the yardstick beside every figure.

Run as a program it prints JSON, so that its threads and its memory are gone before anything is measured.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks._measure import race

PACKAGES = (
    "givens",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "pandas",
    "pymanopt",
    "autograd",
    "python-picard",
)
PACKAGES += ("pyriemann", "statsmodels", "factor_analyzer", "tensorly", "sparsepca", "anndata")


def versions() -> dict[str, str]:
    """Versions of Python and of whatever is measured, as far as it is installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def describe() -> dict[str, Any]:
    """The processor, the cores this process may use, the memory, the system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "processor": _processor(),
        "cores": cores,
        "memory_gb": round(memory, 1),
        "system": platform.system(),
    }


def measure(order: int = 2000, megabytes: int = 256, repeat: int = 4) -> dict[str, Any]:
    """Describe the machine and measure, with one thread and two, matrix products and memory bandwidth."""
    from threadpoolctl import threadpool_info

    machine = describe()
    speeds = {
        str(threads): _speeds(threads, order, megabytes, repeat)
        for threads in range(1, min(machine["cores"], 2) + 1)
    }
    for figure in ("gflops", "read_gbs", "copy_gbs"):
        machine[figure] = {threads: round(speed[figure], 1) for threads, speed in speeds.items()}
    machine["blas"] = sorted(
        {info["internal_api"] for info in threadpool_info() if info["user_api"] == "blas"}
    )
    return machine


def _speeds(threads: int, order: int, megabytes: int, repeat: int) -> dict[str, float]:
    import numpy as np
    from threadpoolctl import threadpool_limits

    A = np.random.default_rng(0).standard_normal((order, order))
    x = np.ones(megabytes * 131072)
    y = np.empty_like(x)
    pieces = list(zip(np.array_split(x, threads), np.array_split(y, threads)))
    with threadpool_limits(threads, "blas"):
        product = race({"": lambda: A @ A}, repeat, warm=1)[""].best
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        works = {
            "read": lambda: list(pool.map(lambda piece: piece[0] @ piece[0], pieces)),
            "copy": lambda: list(pool.map(lambda piece: np.copyto(piece[1], piece[0]), pieces)),
        }
        streams = race(works, repeat, warm=1)
    return {
        "gflops": 2 * order**3 / product / 1e9,
        "read_gbs": x.nbytes / streams["read"].best / 1e9,
        "copy_gbs": 2 * x.nbytes / streams["copy"].best / 1e9,
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    json.dump({"machine": measure(), "versions": versions()}, sys.stdout)
