"""The report in a real Chromium: it works, loads nothing, and a hostile name is text."""

from __future__ import annotations

import numpy as np
import pytest

from givens.report import Report
from givens.report.views import MOST_ENTRIES, MOST_POINTS, components_view, scores_view, trace_view
from givens.result import Trace

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def bars(page) -> list[tuple[str, float]]:
    rows = page.eval_on_selector_all(
        "#bars tbody tr", "rows => rows.map(r => [r.cells[0].textContent, r.cells[2].textContent])"
    )
    return [(name, float(value.replace("−", "-"))) for name, value in rows]


def test_bars_sort_by_size_weight_and_name(open_page, report_file):
    page = open_page(report_file)
    by_size = bars(page)
    assert len(by_size) == 9
    assert [abs(w) for _, w in by_size] == sorted((abs(w) for _, w in by_size), reverse=True)
    page.click("button[data-sort=weight]")
    assert [w for _, w in bars(page)] == sorted((w for _, w in by_size), reverse=True)
    page.click("button[data-sort=name]")
    names = [name for name, _ in bars(page) if name != HOSTILE]
    assert names == sorted(names, key=lambda name: int(name.split()[1]))
    assert page.get_attribute("button[data-sort=name]", "aria-pressed") == "true"
    assert page.get_attribute("button[data-sort=size]", "aria-pressed") == "false"


def test_search_filters_and_leads_to_other_components(open_page, report_file):
    page = open_page(report_file)
    everything = {}
    for k in range(4):
        page.click(f"#tab-{k}")
        everything[k] = bars(page)
    page.click("#tab-0")
    wanted = next(name for name, _ in everything[2] if name not in dict(everything[0]))
    page.fill("#search", wanted.upper())
    assert bars(page) == [row for row in everything[0] if wanted in row[0]]
    page.click(f"#elsewhere button:has-text('{wanted} in Component 3')")
    assert page.get_attribute("#tab-2", "aria-selected") == "true"
    assert wanted in dict(bars(page))
    assert page.inner_text("#bars mark").lower() in wanted
    page.fill("#search", "no such gene")
    assert bars(page) == []
    assert "No variable" in page.inner_text("#elsewhere")
    page.fill("#search", "")
    assert bars(page) == everything[2]


def test_hover_tells_of_variables_and_samples(open_page, report_file):
    page = open_page(report_file)
    assert page.is_hidden("#tip")
    page.hover("#bars tbody tr:first-child")
    assert page.inner_text("#tip strong") == HOSTILE
    # The variable stands in two components, and the hover names both.
    assert "Component 1 +5.000" in page.inner_text("#tip").replace("\xa0", " ").replace("  ", " ")
    assert "Component 2 −0.100" in page.inner_text("#tip").replace("  ", " ")
    page.mouse.move(5, 5)
    assert page.is_hidden("#tip")
    # The first sample lies alone in the upper right corner of the scatter.
    mark = page.locator("#scatter g path").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.inner_text("#tip strong") == HOSTILE
    assert "group: a" in page.inner_text("#tip")


def test_a_hostile_name_is_text_everywhere(open_page, report_file):
    page = open_page(report_file)
    page.fill("#search", "script")
    for selector in ("#tab-1", "#tab-0", ".legend button >> nth=0", "#theme"):
        page.click(selector)
    page.hover("#bars tbody tr:first-child")
    assert page.title() == f"A test of {HOSTILE}"
    assert page.inner_text("h1") == f"A test of {HOSTILE}"
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator(f".legend button:has-text('{HOSTILE[:20]}')").count() == 1


def test_even_an_injected_script_would_not_run(browser, report_file):
    """The page's policy names its own script by hash: what else gets in is refused."""
    context = browser.new_context()
    page = context.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(report_file.as_uri())
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; document.body.append(s); "
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.hacked = 4\">'); }"
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in text for text in refused)
    context.close()


def test_keyboard(open_page, report_file):
    page = open_page(report_file)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("gene")
    assert all("gene" in name for name, _ in bars(page))
    page.focus("#tab-0")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "tab-1"
    assert page.get_attribute("#tab-1", "aria-selected") == "true"
    page.keyboard.press("End")
    assert page.get_attribute("#tab-3", "aria-selected") == "true"
    page.focus("#bars tbody tr:first-child")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#tip strong") == bars(page)[1][0]
    page.focus("#scatter svg")
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#tip strong")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#tip strong") != first
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")


def test_scatter_axes_and_legend(open_page, report_file):
    page = open_page(report_file)
    assert page.locator("#scatter g path").count() == 90
    page.click(".legend button >> nth=1")
    assert page.locator("#scatter g path").count() == 60
    before = page.locator("#scatter g path").first.get_attribute("d")
    page.select_option("#across", "2")
    assert page.locator("#scatter g path").first.get_attribute("d") != before
    assert "Component 3 across" in page.get_attribute("#scatter svg", "aria-label")


def test_the_contents_say_where_the_reader_is(open_page, report_file):
    page = open_page(report_file, height=1600)
    assert page.inner_text("#contents [aria-current]") == "Overview"
    page.evaluate("document.querySelector('#scores').scrollIntoView()")
    page.wait_for_selector("#contents [aria-current]:text-is('Scores')")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 820, 1600])
def test_light_and_dark_wide_and_narrow(open_page, report_file, theme, width):
    page = open_page(report_file, width=width, theme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in light[4:-1].split(",")]
    assert (sum(channels) > 600) == (theme == "light")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    for section in ("#components", "#scores", "#path", "#convergence", "#diagnostics", "#method"):
        box = page.locator(section).bounding_box()
        assert box["width"] > 250
        assert box["height"] > 80
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_prints_every_component_in_light(open_page, report_file):
    page = open_page(report_file, theme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.is_visible("#printed")
    assert page.is_hidden("#picker")
    assert page.is_hidden("#contents")
    assert page.locator("#printed h3").all_inner_texts()[3].startswith("Component 4")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    pdf = page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_large_results_stay_a_page_that_can_be_opened(open_page, tmp_path):
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(3, 5000))
    scores = rng.normal(size=(20_000, 3))
    report = Report(
        "Large",
        components=components_view(weights, [f"v{k}" for k in range(5000)]),
        scores=scores_view(
            scores,
            [f"s{k}" for k in range(20_000)],
            axes=["1", "2", "3"],
            labels=[str(k) for k in range(20_000)],
        ),
    )
    path = tmp_path / "large.html"
    path.write_text(report.html(), encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    page = open_page(path)
    assert page.locator("#scatter g path").count() == MOST_POINTS
    assert f"{MOST_POINTS:,} of 20,000 samples" in page.inner_text("#scores .lead")
    assert "the largest of 5,000" in page.inner_text("#shown")
    page.click("#more")
    assert len(bars(page)) == MOST_ENTRIES


def test_hard_values_do_not_break_the_page(open_page, tmp_path):
    names = [
        "",
        " ",
        "a" * 300,
        "日本語",
        "\u2028",
        "@data@",
        "@script@",
        "\ud800",
        "</script>",
        "&amp;",
        "<!--",
        "${x}",
    ]
    weights = np.zeros((2, len(names)))
    weights[0] = np.linspace(-1, 1, len(names))
    trace = Trace([0, 1], [0.0, 0.1], [0.0, 1.0], [1.0, 1.0], [float("nan"), float("nan")])
    report = Report(
        "@title@ </title>",
        components=components_view(weights, names, share=[0.0, 0.0]),
        scores=scores_view(np.zeros((3, 1)), names[:3], axes=["only"], labels=["", "", ""], label_name=""),
        trace=trace_view(trace, ""),
    )
    path = tmp_path / "hard.html"
    path.write_text(report.html(), encoding="utf-8")
    page = open_page(path, width=390)
    assert {"@data@", "@script@", "</script>", "&amp;", "日本語"} <= {name for name, _ in bars(page)}
    assert page.title() == "@title@ </title>"
    page.click("#tab-1")
    assert bars(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_marks_follow_the_axes_and_words_have_their_name(open_page, tmp_path):
    scores = np.random.default_rng(0).random((20, 3))
    marks = [("1", np.array([0.0, 1.0, 0.5])), (HOSTILE, np.array([1.0, 0.0, 0.5]))]
    report = Report(
        title="Marks",
        components=components_view(np.eye(3), ["a", "b", "c"], variable="word"),
        scores=scores_view(scores, [str(n) for n in range(20)], axes=["x", "y", "z"], marks=marks),
    )
    (tmp_path / "marks.html").write_text(report.html(), encoding="utf-8")
    page = open_page(tmp_path / "marks.html")
    assert page.get_attribute("#search", "placeholder").startswith("Find a word")
    texts = page.locator("#scatter text.mark")
    assert texts.all_text_contents() == ["1", HOSTILE]
    places = [float(texts.nth(n).get_attribute("x")) for n in range(2)]
    assert places[0] < places[1]
    page.select_option("#across", "2")
    places = [float(page.locator("#scatter text.mark").nth(n).get_attribute("x")) for n in range(2)]
    assert places[0] == places[1]
