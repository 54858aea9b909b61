"""Run the tests as other machines would: other processors, another order, the oldest and the newest dependencies.

    python tests/portable.py [--only NAME,NAME] [--seed N] [pytest arguments]

| configuration | what differs |
|---|---|
| prescott, haswell, skylakex | the kernels that OpenBLAS chooses, and with them every rounding |
| generic | the processor that numba compiles for |
| oldest | the lowest versions that pyproject.toml allows, in `.venv-oldest` |
| newest | the newest of everything that installs together, in `.venv-newest` |
| pandas3 | the newest pandas, and what installs with it, in `.venv-pandas3` |

Kernels whose instructions this processor lacks are left out, and the last lines say so (SkylakeX needs AVX-512).

Tests run in random order and every property draws 500 new examples. The seed of both is printed; `--seed` repeats a run.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROCESSORS = {
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "generic": {"NUMBA_CPU_NAME": "generic"},
}
# How uv chooses versions, and what else it has to install. The newest scanpy and anndata for this Python hold pandas back, and
# the last anndata that does not cannot read sparse matrices of files with newer versions of SciPy.
RESOLUTIONS = {
    "oldest": ("lowest-direct", []),
    "newest": ("highest", []),
    "pandas3": ("highest", ["pandas>=3", "scipy<1.17"]),
}


def environment(name: str) -> str:
    """Make a virtual environment with the oldest or the newest dependencies; return its Python."""
    folder = ROOT / f".venv-{name}"
    python = str(folder / "bin" / "python")
    uv = [sys.executable, "-m", "uv"]
    if not folder.exists():
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    install = [*uv, "pip", "install", "--quiet", "--upgrade", "--python", python]
    resolution, more = RESOLUTIONS[name]
    install += ["--resolution", resolution, "-e", f"{ROOT}[test,portable]", *more]
    subprocess.run(install, check=True)
    return python


def can_run(variables: dict[str, str]) -> bool:
    """Whether this processor has the instructions of the kernels that these variables choose."""
    product = "import numpy, scipy.linalg as s; a = numpy.ones((300, 300)); a @ a; s.cholesky(a + 300 * numpy.eye(300))"
    return subprocess.run([sys.executable, "-c", product], env={**os.environ, **variables}).returncode == 0


def run(name: str, seed: int, arguments: list[str]) -> bool:
    """Run the tests in one configuration; whether they pass."""
    variables = {**os.environ, **PROCESSORS.get(name, {}), "HYPOTHESIS_PROFILE": "portable"}
    python = sys.executable
    if name in RESOLUTIONS:
        python = environment(name)
        # Versions of numba overwrite each other's compiled code. That of other processors lies beside our own.
        variables["NUMBA_CACHE_DIR"] = str(ROOT / f".venv-{name}" / "numba")
    command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-p", "randomly"]
    if name == "oldest":
        # What old packages say of others that are newer than they.
        command += ["-W", "ignore::DeprecationWarning"]
    command += [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}", *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables).returncode == 0


def main() -> int:
    """Run every configuration, and say at the end which failed."""
    names = [*PROCESSORS, *RESOLUTIONS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=names)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    options, arguments = parser.parse_known_args()
    unknown = sorted(set(options.only) - set(names))
    if unknown:
        parser.error(f"there is no configuration {unknown[0]!r}; it is one of {', '.join(names)}")
    outcomes = {}
    for name in options.only:
        print(f"== {name}, seed {options.seed}", flush=True)
        if not can_run(PROCESSORS.get(name, {})):
            outcomes[name] = "not run: this processor lacks the instructions"
            continue
        outcomes[name] = "passed" if run(name, options.seed, arguments) else "FAILED"
    for name, outcome in outcomes.items():
        print(f"{name:10} {outcome}  (seed {options.seed})")
    return 1 if "FAILED" in outcomes.values() else 0


if __name__ == "__main__":
    sys.exit(main())
