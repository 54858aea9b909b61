"""Golden fits: what every estimator and function finds is as good as it was, by oracles that know only the formulas.

`fits.json` has, for each fit, the value of its objective, and the arrays of its outcome where the optimum is unique.
`python -m tests.net.test_fits [names]` writes the references of these fits anew (without names, of all fits). It prints the old
and the new values, which belong into the message of the commit.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tests.net import calls
from tests.net.fit_cases import FITS, FORMS, offset

REFERENCES = Path(__file__).with_name("fits.json")
SAMPLES = 3  # whose scores are compared
SINGLE = 1e-4  # the share of a value that float32 may lose
CASES = [(name, form) for name, fit in FITS.items() for form in fit.forms]


def references() -> dict[str, Any]:
    return json.loads(REFERENCES.read_text(encoding="utf-8"))


def outcome(name: str, form: str) -> tuple[float, calls.Outcome]:
    """The value of a fit by its oracle, and what is compared where the optimum is unique."""
    fit = FITS[name]
    data = fit.data()
    given = FORMS[form](data) if form != "float64" else data
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # what the library says about small data is tested elsewhere
        found = calls.run(fit.call, fit.how, given, fit.given, **fit.fitting)
    if form == "offset" and fit.call == "SphericalMixture":
        found["components"] = found["components"] - offset(data)
    if form == "float32":
        data = data.astype(np.float32).astype(np.float64)
    value = fit.value(data, {key: np.asarray(array, dtype=np.float64) for key, array in found.items()})
    if "scores" in found:
        found["scores"] = found["scores"][:, :SAMPLES]
    return value, found


def as_in(found: calls.Outcome, reference: dict[str, Any]) -> calls.Outcome:
    """The outcome with its components in the order and with the signs of the reference."""
    mine, theirs = (
        side["components"] / np.linalg.norm(side["components"], axis=1, keepdims=True)
        for side in (found, reference)
    )
    cosines = mine @ theirs.T
    _, order = linear_sum_assignment(-np.abs(cosines.T))
    signs = np.sign(cosines[order, np.arange(len(order))])
    return {key: array[order] * (signs[:, None] if array.ndim == 2 else 1.0) for key, array in found.items()}


@pytest.mark.parametrize(("name", "form"), CASES, ids=[f"{name}, {form}" for name, form in CASES])
def test_a_fit_is_as_good_as_its_reference(name, form):
    fit = FITS[name]
    reference = references()[fit.like or name]
    value, found = outcome(name, form)
    share = max(fit.share, SINGLE) if form == "float32" else fit.share
    assert value >= reference["value"] - share * abs(reference["value"])
    if not fit.unique:
        return
    assert value <= reference["value"] + max(share, 1e-6) * abs(reference["value"]), (
        "better than a unique optimum"
    )
    kept = {key: np.array(array) for key, array in reference.items() if key != "value"}
    tolerance = max(fit.close, 1e-3) if form == "float32" else fit.close
    for key, array in as_in(found, kept).items():
        np.testing.assert_allclose(
            array, kept[key], rtol=0, atol=tolerance * np.abs(kept[key]).max(), err_msg=key
        )


def rounded(array: np.ndarray) -> Any:
    if array.ndim > 1:
        return [rounded(row) for row in array]
    numbers = [float(f"{x:.6g}") for x in array]
    return [int(x) if x.is_integer() else x for x in numbers]


def rewritten(names: list[str]) -> None:
    kept = references() if REFERENCES.exists() else {}
    owners = [name for name, fit in FITS.items() if not fit.like]
    for name in names or owners:
        fit = FITS[name]
        value, found = outcome(name, fit.forms[0])
        before = kept.get(name, {}).get("value", float("nan"))
        print(f"{name}: {before:.12g} -> {value:.12g}")
        kept[name] = {"value": value}
        if fit.unique:
            kept[name] |= {key: rounded(np.asarray(array)) for key, array in found.items()}
    lines = []
    for name in owners:
        parts = [f"  {json.dumps(key)}: {json.dumps(part)}" for key, part in kept[name].items()]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n }")
    REFERENCES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    rewritten(sys.argv[1:])
