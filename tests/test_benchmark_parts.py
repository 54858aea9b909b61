"""The parts of the benchmark of ICA: what is done is kept and said again, and measured anew with other code."""

from __future__ import annotations

import pytest

from benchmarks import ica_estimator
from benchmarks._report import Report


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Two parts that count how often they run."""
    calls = []

    def laplace(report):
        calls.append("laplace")
        report.row(problem="laplace", seconds=1.0)
        report.note("seen")
        figures = dict.fromkeys(("picard", "fastica"), 2.0)
        for rival in ("Picard", "FastICA"):
            figures |= {f"contrast_above_{rival}": 0.0, f"reduction_short_of_{rival}": 0.0}
        return figures

    def bits(report):
        calls.append("bits")
        report.claim("the same bits", "yes", "yes", True)
        return {}

    (tmp_path / "ica_estimator.py").write_text("# the code that is measured")
    monkeypatch.setattr("benchmarks._parts.HERE", tmp_path)
    monkeypatch.setattr(ica_estimator, "SMALL", False)
    monkeypatch.setattr(ica_estimator, "PARTS", {"laplace": laplace, "bits": bits})
    monkeypatch.delenv("GIVENS_ICA_PARTS", raising=False)
    return calls


def test_parts_are_kept_and_said_again(parts, monkeypatch, tmp_path):
    monkeypatch.setenv("GIVENS_ICA_PARTS", "laplace")
    ica_estimator.run(Report())
    monkeypatch.delenv("GIVENS_ICA_PARTS")
    reports = [Report(), Report()]
    for report in reports:
        ica_estimator.run(report)
    assert parts == ["laplace", "bits"]
    assert reports[0].rows == reports[1].rows == [{"problem": "laplace", "seconds": 1.0}]
    assert reports[0].claims == reports[1].claims
    assert [claim["holds"] for claim in reports[0].claims[:2]] == [True, False]
    (tmp_path / "ica_estimator.py").write_text("# other code")
    ica_estimator.run(Report())
    assert parts == ["laplace", "bits", "laplace", "bits"]


def test_an_interrupted_run_keeps_what_was_done(parts, monkeypatch):
    def interrupted(report):
        raise KeyboardInterrupt

    whole = dict(ica_estimator.PARTS)
    monkeypatch.setitem(ica_estimator.PARTS, "bits", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ica_estimator.run(Report())
    monkeypatch.setattr(ica_estimator, "PARTS", whole)
    ica_estimator.run(Report())
    assert parts == ["laplace", "bits"]


def test_parts_that_do_not_exist_are_refused(parts, monkeypatch):
    monkeypatch.setenv("GIVENS_ICA_PARTS", "laplace,none")
    with pytest.raises(ValueError, match=r"there are no parts \['none'\]; they are laplace, bits"):
        ica_estimator.run(Report())
