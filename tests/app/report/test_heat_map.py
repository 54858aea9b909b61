"""The heat map of loadings before and after a rotation, in a real Chromium."""

from __future__ import annotations

import numpy as np

from givens.app.report.views import MOST_ROWS, heat_map_view

HOSTILE = "<img src=x onerror='window.hacked = 1'>"


def heat_map(rows, factors):
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, rows, factors))
    variables = [HOSTILE, *(f"item {k}" for k in range(1, rows))]
    names = [f"factor {k + 1}" for k in range(factors)]
    return heat_map_view(before, after, variables, names, names), before, after, variables


def test_rows_are_put_together_by_factor_or_as_in_the_file(open_report):
    view, before, after, variables = heat_map(12, 3)
    page = open_report(heat_map=view)
    cells = "rows => rows.map(r => [...r.cells].map(c => c.textContent))"
    shown = page.eval_on_selector_all("#heat-map tbody tr", cells)
    assert sorted(row[0] for row in shown) == sorted(variables)
    order = [variables.index(row[0]) for row in shown]
    peaks = np.abs(after[order]).argmax(axis=1)
    assert np.all(np.diff(peaks) >= 0)
    numbers = [[float(text.replace("−", "-")) for text in row[1:]] for row in shown]
    np.testing.assert_allclose(numbers, np.hstack([before, after])[order], atol=0.005 + 1e-9)
    page.click("[data-rows=given]")
    shown = page.eval_on_selector_all("#heat-map tbody tr", cells)
    assert [row[0] for row in shown] == variables
    assert page.get_attribute("[data-rows=given]", "aria-pressed") == "true"
    page.hover("#heat-map tbody tr:first-child td >> nth=0")
    assert page.inner_text("#tip strong") == HOSTILE
    assert page.evaluate("window.hacked") is None


def test_many_factors_are_colours_and_fit_a_telephone(open_report):
    page = open_report(heat_map=heat_map(40, 20)[0], width=390)
    assert page.inner_text("#heat-map tbody tr:first-child td >> nth=0") == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_many_variables_are_cut():
    values = np.random.default_rng(1).normal(size=(MOST_ROWS + 50, 2))
    view = heat_map_view(values, values, [str(k) for k in range(len(values))], ["a", "b"], ["a", "b"])
    assert len(view["variables"]) == MOST_ROWS
    assert f"Of {len(values)} variables, the {MOST_ROWS} with the largest loadings are shown." in view["lead"]
    kept = np.abs(values[view["places"]]).max(axis=1)
    assert kept.min() >= np.sort(np.abs(values).max(axis=1))[50]
