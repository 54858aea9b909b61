"""A real Chromium for the report: found, or installed where that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from givens.app.report import Report
from givens.app.report.labels import PERMUTATIONS, separations
from givens.app.report.views import components_view, path_view, scores_view, separation_view, trace_view
from givens.result import Trace

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def find_chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if shutil.which(name):
            return shutil.which(name)
    return None


def install_chromium() -> str:
    """Install Debian's Chromium; return what came of it."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return "no Chromium on this machine, and no right to install one with apt-get"
    for command in (
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        )
    return f"apt-get could not install chromium: {done.stderr.strip()[-200:]}"


@pytest.fixture(scope="package")
def browser():
    from playwright.sync_api import sync_playwright

    # Several test processes may come here at once; one of them installs, the others wait for it.
    with open(Path(tempfile.gettempdir()) / "givens-chromium.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = "" if find_chromium() else install_chromium()
    executable = find_chromium()
    if executable is None:
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Open a file in a fresh window; whatever it logs, requests or throws is collected and must be nothing."""
    contexts, troubles = [], []

    def open_file(path: Path, width: int = 1280, height: int = 900, theme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:")) else troubles.append(request.url)
            ),
        )
        page.goto(path.as_uri())
        page.wait_for_function("document.querySelector('#made').textContent !== ''")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def open_report(open_page, tmp_path):
    """Open a report of these views."""

    def open_views(width: int = 1280, **views):
        path = tmp_path / "report.html"
        path.write_text(Report(**({"title": "A report"} | views)).html(), encoding="utf-8")
        return open_page(path, width=width)

    return open_views


@pytest.fixture(scope="session")
def report_file(tmp_path_factory) -> Path:
    """A page of four components of 40 variables (one with a hostile name) and 90 samples in three groups."""
    rng = np.random.default_rng(0)
    variables = [f"gene {k}" for k in range(40)]
    variables[3] = HOSTILE
    weights = np.zeros((4, 40))
    for k in range(4):
        chosen = rng.choice(np.arange(4, 40), 8, replace=False)
        weights[k, chosen] = rng.normal(size=8)
    weights[0, 3], weights[1, 3] = 5.0, -0.1
    scores = rng.normal(size=(90, 4))
    scores[0] = [9.0, 9.0, 0.0, 0.0]
    trace = Trace(
        list(range(9)), [0.1 * k for k in range(9)], [1.0] * 9, [5 - 2.0**-k for k in range(9)], [1.0] * 9
    )
    report = Report(
        title=f"A test of {HOSTILE}",
        subtitle="90 samples × 40 variables",
        facts=[("Variance explained", "42.0 %", HOSTILE), ("Samples", "90", "three groups")],
        notes=[f"left out {HOSTILE}"],
        warnings=["it is only a test"],
        components=components_view(weights, variables, share=[0.4, 0.2, 0.1, 0.05], lead="Bars."),
        separation=separation_view(
            *separations(
                scores, {"group": ["a", "b", HOSTILE] * 30, "age": [str(20 + k) for k in range(90)]}
            ),
            [f"Component {k + 1}" for k in range(4)],
            PERMUTATIONS,
        ),
        scores=scores_view(
            scores,
            [f"sample {k}" if k else HOSTILE for k in range(90)],
            axes=[f"Component {k + 1}" for k in range(4)],
            labels={"group": ["a", "b", HOSTILE] * 30, "age": [str(20 + k) for k in range(90)]},
            lead="Points.",
        ),
        path=path_view([5, 10, 20, 40], [0.1, 0.2, 0.3, 0.35], (32, 0.33)),
        trace=trace_view(trace, "it is done"),
        diagnostics=[("Overlap", "0.1", HOSTILE)],
        settings=[("n_components", "4")],
        command="givens sparse-pca x.csv",
        version="0",
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report.html(), encoding="utf-8")
    return path
