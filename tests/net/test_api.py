"""The public API is what `api.txt` says: names, signatures, and the attributes that a fit sets.

Every change to it is a line in a diff: `python -m tests.net.test_api` writes the file anew.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import givens
from tests.test_docstrings import callables, public

ADDRESS = re.compile(" at 0x[0-9a-f]+")
SNAPSHOT = Path(__file__).with_name("api.txt")


def signatures() -> Iterator[str]:
    for name, value in callables():
        if inspect.isclass(value) and issubclass(value, Exception):
            yield name
            continue
        parameters = inspect.signature(value).parameters.values()
        # Types are for mypy, and are written differently by versions of Python.
        plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
        yield ADDRESS.sub("", f"{name}{inspect.Signature(plain)}")


def fitted() -> Iterator[str]:
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(300, 5)) @ rng.standard_normal((5, 5))
    counts = rng.poisson(rng.gamma(0.3, size=(60, 12)) * 5) + 1
    models = {
        givens.FactorRotation(): rng.standard_normal((8, 3)),
        givens.ICA(3): X,
        givens.JADE(3): X,
        givens.RotatedPCA(3): X,
        givens.SOBI(3): X,
        givens.SparsePCA(2, n_nonzero=3): X,
        givens.SphericalMixture(2): X,
        givens.StreamingSparsePCA(2, n_nonzero=3): X,
        givens.TopicModel(2): counts,
    }
    for model, data in models.items():
        model.fit(data)
        names = [
            name
            for name in dir(model)
            if name.endswith("_") and not name.startswith("_") and hasattr(model, name)
        ]
        yield f"{type(model).__name__}, fitted: {', '.join(names)}"


def api() -> str:
    return "\n".join([*sorted(signatures()), *fitted()]) + "\n"


def test_the_public_names_are_about_eighty():
    assert len(public()) <= 85


def test_the_public_api_is_the_written_one():
    assert api().splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    SNAPSHOT.write_text(api(), encoding="utf-8")
