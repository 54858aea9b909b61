"""The section of sources, in a real Chromium."""

from __future__ import annotations

import numpy as np
import pytest

from givens.app.report.time_courses import MOST_BINS, sources_view

HOSTILE = "<img src=x onerror='window.hacked = 1'>"


@pytest.fixture
def sources():
    rng = np.random.default_rng(0)
    t = np.arange(4000) / 200
    values = np.column_stack((np.sin(2 * np.pi * 10 * t) * 2**0.5, rng.laplace(size=(4000, 2)) / 2**0.5))
    return values, sources_view(
        values,
        share=np.array([0.5, 0.3, 0.2]),
        kurtosis=np.array([-1.5, 3.2, 2.9]),
        stability=np.array([0.99, 0.4, 0.7]),
        rate=200.0,
        mixing=rng.standard_normal((4, 3)),
        variables=[HOSTILE, "Cz", "Pz", "Oz"],
        places=np.array([[-0.05, 0.05, 0.05], [0, 0, 0.09], [0.01, -0.04, 0.07], [0, -0.08, 0.02]]),
    )


def test_the_view_holds_the_range_of_every_part_and_the_peak_of_the_spectrum(sources):
    values, view = sources
    assert len(view["times"]) == MOST_BINS
    assert max(view["high"][1]) == round(values[:, 1].max(), 2)
    assert min(view["low"][2]) == round(values[:, 2].min(), 2)
    peak = view["frequencies"][int(np.argmax(view["decibels"][0]))]
    assert abs(peak - 10) < 0.5
    assert np.hypot(view["map"]["x"], view["map"]["y"]).max() <= 1


def test_the_table_sorts_and_a_click_chooses(open_report, sources):
    page = open_report(sources=sources[1])

    def order():
        return page.eval_on_selector_all("#sources tbody th", "cells => cells.map(c => c.textContent)")

    assert order() == ["1", "2", "3"]
    page.click("#sources thead button:has-text('Stability')")
    assert order() == ["1", "3", "2"]
    page.click("#sources thead button:has-text('Stability')")
    assert order() == ["2", "3", "1"]
    before = page.inner_html("#time-course")
    page.click("#sources tbody tr:first-child button")
    assert page.get_attribute("#sources tbody tr:first-child", "aria-selected") == "true"
    assert page.inner_html("#time-course") != before
    assert page.evaluate("window.hacked") is None


def test_the_zoom_shows_less_time_and_moves(open_report, sources):
    page = open_report(sources=sources[1])
    assert page.is_disabled("#pan")
    whole = page.inner_html("#time-course")
    page.click("#sources [data-zoom='0.5']")
    page.click("#sources [data-zoom='0.5']")
    near = page.inner_html("#time-course")
    assert near != whole
    assert not page.is_disabled("#pan")
    page.evaluate("p = document.querySelector('#pan'); p.value = 0; p.dispatchEvent(new Event('input'))")
    assert page.inner_html("#time-course") != near
    for _ in range(3):
        page.click("#sources [data-zoom='2']")
    assert page.inner_html("#time-course") == whole
