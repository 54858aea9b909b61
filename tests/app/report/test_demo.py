"""`givens demo`, then its report in a real Chromium."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("demo of <b>")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-m", "givens", "demo"], cwd=folder, env=environment, capture_output=True, text=True
    )


def address(demo) -> Path:
    assert demo.returncode == 0, demo.stderr
    return Path(unquote(urlparse(re.findall(r"file://\S+", demo.stderr)[-1]).path))


def test_the_demo_ends_with_the_address_of_its_report(demo):
    path = address(demo)
    assert path.name == "report.html"
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["breast_cancer.csv", "components.csv", "report.html", "scores.csv", "summary.json"]
    assert demo.stdout == ""


def test_its_report_works(demo, open_page):
    page = open_page(address(demo))
    assert page.inner_text("h1") == "Sparse components of breast_cancer.csv"
    assert page.locator("#picker button").count() == 4
    assert page.locator("#bars tbody tr").count() == 8
    assert page.locator("#scatter g path").count() == 569
    assert page.locator(".legend button").all_inner_texts() == ["benign (357)", "malignant (212)"]
    for section in ("#path", "#convergence", "#diagnostics", "#method"):
        assert page.is_visible(section)
    assert page.locator("#path .chosen").count() == 1
    page.fill("#search", "radius")
    matched = page.locator("#bars tbody tr").count() + page.locator("#elsewhere button").count()
    assert matched > 0
    page.click("button[data-sort=name]")
    page.fill("#search", "")
    names = page.eval_on_selector_all("#bars tbody th", "cells => cells.map(cell => cell.textContent)")
    assert names == sorted(names)
