"""Run the tests as other machines would: other processors, another order, the oldest and the newest dependencies.

    python tests/portable.py [--only NAME,NAME] [--seed N] [pytest arguments]

| processor | what differs |
|---|---|
| prescott, haswell, skylakex | the kernels that OpenBLAS chooses, and with them every rounding |
| generic | the processor that numba compiles for |

| dependencies | what is installed |
|---|---|
| oldest | the lowest versions that pyproject.toml allows, in `.venv-oldest` |
| newest | the newest of everything that installs together, in `.venv-newest` |
| pandas3 | the newest pandas, and what installs with it, in `.venv-pandas3` |

Each of four runs has one processor and one set of dependencies, so that all seven are tested in four runs. The seed decides which
meet: seeds 0, 1 and 2 make all twelve pairs. `--only` takes names of processors or of dependencies. Kernels whose instructions
this processor lacks are replaced by its own, and the last lines say so (SkylakeX needs AVX-512).

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


def pairs(seed: int) -> list[tuple[str, str]]:
    """The processor and the dependencies of each run."""
    dependencies = list(RESOLUTIONS)
    return [(name, dependencies[(k + seed) % len(dependencies)]) for k, name in enumerate(PROCESSORS)]


def environment(name: str) -> str:
    """Make a virtual environment with these dependencies; return its Python."""
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


def can_run(python: str, variables: dict[str, str]) -> bool:
    """Whether this processor has the instructions of the kernels that these variables choose."""
    product = "import numpy, scipy.linalg as s; a = numpy.ones((300, 300)); a @ a; s.cholesky(a + 300 * numpy.eye(300))"
    return subprocess.run([python, "-c", product], env={**os.environ, **variables}).returncode == 0


def run(processor: str, dependencies: str, seed: int, arguments: list[str]) -> str:
    """Run the tests with one processor and one set of dependencies; say how that ended."""
    python, variables = environment(dependencies), PROCESSORS[processor]
    lacking = not can_run(python, variables)
    variables = {
        **os.environ,
        **({} if lacking else variables),
        "HYPOTHESIS_PROFILE": "portable",
        # Versions of numba overwrite each other's compiled code. That of other processors lies beside our own.
        "NUMBA_CACHE_DIR": str(ROOT / f".venv-{dependencies}" / "numba"),
    }
    command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-p", "randomly"]
    if dependencies == "oldest":
        # What old packages say of others that are newer than they.
        command += ["-W", "ignore::DeprecationWarning"]
    command += [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}", *arguments]
    passed = subprocess.run(command, cwd=ROOT, env=variables).returncode == 0
    outcome = "passed" if passed else "FAILED"
    return f"{outcome}, with this processor's own kernels" if lacking else outcome


def main() -> int:
    """Make every run, and say at the end which failed."""
    names = [*PROCESSORS, *RESOLUTIONS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=names)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    options, arguments = parser.parse_known_args()
    unknown = sorted(set(options.only) - set(names))
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; it is one of {', '.join(names)}")
    outcomes = {}
    for pair in pairs(options.seed):
        if set(pair) & set(options.only):
            title = f"{pair[0]} with {pair[1]}"
            print(f"== {title}, seed {options.seed}", flush=True)
            outcomes[title] = run(*pair, options.seed, arguments)
    for title, outcome in outcomes.items():
        print(f"{title:22} {outcome}  (seed {options.seed})")
    return 1 if any(outcome.startswith("FAILED") for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
