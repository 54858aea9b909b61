"""What is shipped, what an import costs, and what happens where compiled code cannot be cached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "givens"

SOLVE = """
import json, sys, warnings
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from givens import minimize
    {problems}
statistics, cached = {{}}, []
for name, module in list(sys.modules.items()):
    if name.startswith("givens.kernels."):
        for entry in vars(module).values():
            if hasattr(entry, "stats") and entry.py_func.__module__ == name and entry.signatures:
                hits, misses = entry.stats.cache_hits, entry.stats.cache_misses
                statistics[entry.py_func.__qualname__] = [sum(hits.values()), sum(misses.values())]
                if type(entry._cache).__name__ != "NullCache":
                    cached.append(entry.py_func.__qualname__)
heard = [str(w.message) for w in caught]
print(json.dumps({{"values": values, "statistics": statistics, "cached": cached, "warnings": heard}}))
"""
# The values are bits, of descent and of sweeps.
SEVERAL = SOLVE.format(
    problems="""
    from givens.objectives import Columns, SymmetricTensor
    from givens.rotations import random_orthogonal
    rng = np.random.default_rng(0)
    axes = random_orthogonal(20, rng)
    noise = rng.standard_normal((20, 20, 20))
    T = np.einsum("a,ia,ja,ka->ijk", np.linspace(2, 1, 20), axes, axes, axes, optimize=True) + 0.02 * noise
    values = []
    for problem in (SymmetricTensor(T, symmetrize=True), Columns(rng.laplace(size=(300, 6)), "logcosh")):
        start = random_orthogonal(problem.n, rng)
        for phase in ("descent", "sweeps"):
            found = minimize(problem, start, method=phase, max_iter=5 if phase == "descent" else 2)
            values.append(found.U.tobytes().hex())
"""
)
ONE = SOLVE.format(
    problems="""
    from givens.objectives import JointDiagonal
    A = np.random.default_rng(0).standard_normal((40, 4))
    values = [minimize(JointDiagonal(A.T @ A), random_state=0).value]
"""
)


def python(code: str, source: Path = SOURCE.parent, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds the package in a given folder."""
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "PYTHON", "XDG_"))
    }
    variables = {**clean, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and a source distribution, made by the build backend itself."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def shipped_files() -> set[str]:
    """Everything that stands in the package's folder, data included."""
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(SOURCE.parent).as_posix() for path in files}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    package = {name for name in names if ".dist-info/" not in name}
    assert "givens/py.typed" in package
    assert package == shipped_files()
    assert any(name.endswith("LICENSE") for name in names)


def test_the_source_distribution_can_be_tested(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "mkdocs.yml"}
    wanted |= {"benchmarks/__main__.py", "tests/test_packaging.py", "docs/index.md"}
    assert wanted <= names
    assert {f"src/{name}" for name in shipped_files()} <= names
    assert not any(name.startswith(("benchmarks/results", ".venv", "site")) for name in names)


def test_import_loads_only_what_it_must():
    code = "import sys, givens; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(python(code).stdout.split())
    assert "givens" in loaded
    assert not loaded & {
        "numba",
        "llvmlite",
        "pandas",
        "sklearn",
        "matplotlib",
        "rich",
        "typer",
        "anndata",
        "joblib",
    }


def test_the_command_starts_without_what_only_its_work_needs():
    code = "import sys, givens.app.commands.app; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(python(code).stdout.split())
    assert "typer" in loaded
    assert not loaded & {"numba", "pandas", "sklearn", "matplotlib", "anndata"}


FIRST_FIT = """
import numpy as np
from numba.core import event
from givens import SparsePCA

class Compiled(event.Listener):
    def on_start(self, happening):
        print(happening.data["dispatcher"].py_func.__module__)
    def on_end(self, happening):
        pass

event.register("numba:compile", Compiled())
SparsePCA(2, n_nonzero=3, random_state=0).fit(np.random.default_rng(0).standard_normal((20, 8)))
"""


def test_a_first_fit_compiles_no_texts(tmp_path):
    """Assigning one array to another compiles numba's strings, for the sentence of an error: half of all that is compiled."""
    compiled = set(python(FIRST_FIT, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split())
    assert "givens.kernels.sparse_blocks" in compiled
    assert "numba.cpython.unicode" not in compiled


def test_every_module_can_be_imported_first():
    """No module relies on another having been imported before it."""
    modules = [path.relative_to(SOURCE.parent).with_suffix("") for path in SOURCE.rglob("*.py")]
    names = sorted(".".join(path.parts).removesuffix(".__init__") for path in modules)
    code = f"""
import importlib, sys
for name in {[name for name in names if not name.endswith("__main__")]!r}:
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "givens"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{{name}}: {{error}}")
"""
    assert python(code).stdout == ""


def test_the_next_process_hits_the_cache_and_has_the_same_bits(tmp_path):
    """Helpers that are not written out into their entries would be linked to one body here, and to another one there."""
    first, second = (json.loads(python(SEVERAL, NUMBA_CACHE_DIR=str(tmp_path)).stdout) for _ in range(2))
    assert first["statistics"], "no compiled code ran"
    # Helpers are compiled for their entries; once these come from the cache, nobody asks for the helpers.
    entries = {name: first["statistics"][name] for name in first["cached"]}
    assert set(entries) == set(second["statistics"])
    assert all(misses > 0 for _, misses in entries.values())
    assert all(hits > 0 and misses == 0 for hits, misses in second["statistics"].values())
    assert len(first["values"]) == 4
    assert first["values"] == second["values"]
    assert first["warnings"] == second["warnings"] == []


def test_a_read_only_install_works_with_one_warning(tmp_path):
    """No folder can be written to: neither the package's own nor the user's.

    Permissions do not stop a superuser. A file where a folder should be stops everyone.
    """
    package = tmp_path / "site"
    shutil.copytree(SOURCE, package / "givens", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package / "givens", *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    nowhere = tmp_path / "file"
    nowhere.touch()
    cache = str(nowhere / "cache")
    told = json.loads(python(ONE, package, HOME=str(nowhere), XDG_CACHE_HOME=cache).stdout)
    assert len(told["warnings"]) == 1
    assert "NUMBA_CACHE_DIR" in told["warnings"][0]
    assert all(hits == 0 for hits, _ in told["statistics"].values())
    usual = json.loads(python(ONE).stdout)
    np.testing.assert_allclose(told["values"], usual["values"], rtol=1e-13)
