from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paper.page import COUNTED
from paper.verdicts import (
    DEPENDS,
    FAILS,
    HOLDS,
    TIE,
    UNCLEAR,
    VERDICTS,
    Interval,
    at_least,
    better,
    interval,
    together,
)
from tests.properties import examples


@examples(20)
@given(st.lists(st.floats(-10, 10), min_size=2, max_size=30))
def test_the_interval_is_students(values):
    found = interval(values)
    if np.ptp(values) > 1e-9:
        expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.low <= found.mean + 1e-12
    assert found.pairs == len(values)


@pytest.mark.parametrize(
    ("low", "high", "is_better", "is_at_least"),
    [
        (0.2, 0.3, HOLDS, HOLDS),
        (-0.3, -0.2, FAILS, FAILS),
        (-0.05, 0.05, TIE, HOLDS),
        (0.01, 0.05, TIE, HOLDS),
        (-0.2, 0.3, UNCLEAR, UNCLEAR),
        (-0.05, 0.3, UNCLEAR, HOLDS),
        (-0.2, -0.05, FAILS, UNCLEAR),
    ],
)
def test_verdicts(low, high, is_better, is_at_least):
    found = Interval((low + high) / 2, low, high, 20)
    assert better(found, 0.1) == is_better
    assert at_least(found, 0.1) == is_at_least
    opposite = {HOLDS: FAILS, FAILS: HOLDS}
    assert better(found.reversed(), 0.1) == opposite.get(is_better, is_better)


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, FAILS, UNCLEAR], DEPENDS),
        ([HOLDS, TIE], DEPENDS),
        ([HOLDS, UNCLEAR], UNCLEAR),
        ([FAILS, TIE], FAILS),
        ([FAILS, UNCLEAR], FAILS),
        ([FAILS, TIE, UNCLEAR], FAILS),
        ([TIE, TIE], TIE),
        ([TIE, UNCLEAR], UNCLEAR),
        ([], UNCLEAR),
    ],
)
def test_the_verdict_on_several_cases(cases, verdict):
    assert together(cases) == verdict


PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "results.md"


def test_the_published_verdicts_follow_from_their_cases():
    text = PUBLISHED.read_text(encoding="utf-8")
    claims = re.findall(r"^\| (.*) \| (.*;<br>.*) \| (.*) \|$", text, re.MULTILINE)
    ending = re.compile(rf", ({'|'.join(VERDICTS)})$")
    judged = 0
    for statement, measured, verdict in claims:
        cases = [found[1] for case in measured.split(";<br>") if (found := ending.search(case))]
        judged += bool(cases)
        assert not cases or together(cases) == verdict, statement
    assert judged > 30


@pytest.mark.parametrize("about", ["the paper's algorithms", "ours"])
def test_the_published_counts_are_those_of_the_list(about):
    text = PUBLISHED.read_text(encoding="utf-8")
    verdicts = re.findall(rf"^\| .* \| .* \| {about} \| (.*) \|$", text, re.MULTILINE)
    words = ", ".join(f"{verdicts.count(one)} {word}" for one, word in COUNTED.items() if one in verdicts)
    assert f"- **Of {len(verdicts)} claims about {about}: {words}.**\n" in text
