"""What the first fit of each estimator compiles: every kernel is a second or less that a user waits for."""

import json
import os
import subprocess
import sys

import pytest

FITS = """
import json
import warnings
import numpy as np
from numba.core import event
import givens

depth, compiled = 0, []

class Compiled(event.Listener):
    def on_start(self, happening):
        global depth
        function = happening.data["dispatcher"].py_func
        compiled.append((depth, function.__module__, function.__name__))
        depth += 1
    def on_end(self, happening):
        global depth
        depth -= 1

event.register("numba:compile", Compiled())
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.laplace(size=(400, 4)) @ rng.standard_normal((4, 4))
C = rng.standard_normal((3, 5, 5))
V = np.linalg.qr(rng.standard_normal((4, 4)))[0]
fits = {
    "minimize": lambda: givens.minimize(lambda U: float(np.sum(U[0] ** 4)), n=3, random_state=0),
    "joint_diagonalize": lambda: givens.joint_diagonalize(C + C.swapaxes(1, 2)),
    "ICA": lambda: givens.ICA(random_state=0).fit(X),
    "FactorRotation": lambda: givens.FactorRotation().fit(rng.standard_normal((30, 4))),
    "decompose": lambda: givens.decompose(np.einsum("ia,ja,ka->ijk", V, V, V), symmetrize=True),
    "SphericalMixture": lambda: givens.SphericalMixture(3, random_state=0).fit(np.concatenate((X, X + 30, X - 40))),
    "TopicModel": lambda: givens.TopicModel(3, random_state=0).fit(rng.poisson(3.0, size=(60, 12)) + 1),
}
found = {}
for name, fit in fits.items():
    compiled.clear()
    fit()
    found[name] = list(compiled)
print(json.dumps(found))
"""

TENSOR = {"tensor.derivatives", "tensor.directions", "tensor.symmetrize", "tensor.turn_pairs"}
KERNELS = {
    "minimize": {
        "harmonics.minimum",
        "quasi_newton.add",
        "quasi_newton.bounded",
        "quasi_newton.solve",
    },
    "joint_diagonalize": {"joint.look", "joint.turn_block"},
    "ICA": {"scalar.log_cosh_terms"},
    "FactorRotation": {"quartic.turn_pairs"},
    "decompose": TENSOR,
    "SphericalMixture": TENSOR,
    "TopicModel": TENSOR
    | {
        "dirichlet.infer",
        "sparse_products.add_by_words",
        "sparse_products.by_words",
        "sparse_products.project",
    },
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("nothing compiled"))}
    done = subprocess.run([sys.executable, "-c", FITS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", KERNELS)
def test_a_first_fit_compiles_no_more_than_these_kernels_once_each(compiled, name):
    """For one layout and one precision; assigning one array to another would also compile numba's strings, for an error."""
    entries = [
        f"{module.removeprefix('givens.kernels.')}.{function}"
        for depth, module, function in compiled[name]
        if depth == 0
    ]
    assert set(entries) <= KERNELS[name]
    assert len(entries) == len(set(entries))
    assert not any(module == "numba.cpython.unicode" for _, module, _ in compiled[name])
