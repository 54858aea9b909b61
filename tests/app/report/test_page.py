"""The report in a real Chromium: it works, loads nothing, and a hostile name is text."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from givens.app.report import views
from givens.app.report.views import MOST_POINTS, components_view, scores_view, trace_view
from givens.result import Trace

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def cells(page, *columns: int, rows: str = "#bars tbody tr") -> list[list[str]]:
    """The texts of some columns of a table, or of all."""
    texts = page.eval_on_selector_all(rows, "rows => rows.map(r => [...r.cells].map(c => c.textContent))")
    return [[row[k] for k in columns or range(len(row))] for row in texts]


def bars(page) -> list[tuple[str, float]]:
    return [(name, float(value.replace("−", "-"))) for name, value in cells(page, 0, 2)]


def point_at_first_sample(page) -> None:
    mark = page.locator("#scatter g path").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


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
    point_at_first_sample(page)  # it lies alone in the upper right corner of the scatter
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
    assert "Component 3 (horizontal)" in page.get_attribute("#scatter svg", "aria-label")


def test_the_contents_say_where_the_reader_is(open_page, report_file):
    page = open_page(report_file, height=1600)
    assert page.inner_text("#contents [aria-current]") == "Overview"
    page.evaluate("document.querySelector('#scores').scrollIntoView()")
    page.wait_for_selector("#contents [aria-current]:text-is('Scores')")


@pytest.mark.parametrize(("theme", "width"), [("light", 320), ("dark", 390), ("dark", 820), ("light", 1600)])
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


def test_prints_everything_in_light(open_page, report_file):
    page = open_page(report_file, theme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for hidden in ("#picker", "#contents", ".tools >> nth=0", "#more"):
        assert page.is_hidden(hidden)
    assert page.locator("#printed h3").all_inner_texts()[3].startswith("Component 4")
    weights = page.locator("#printed section >> nth=1 >> div").all_inner_texts()
    assert len(weights) == 9
    tables = ("#path table", "#convergence table", "#separation tr >> nth=8")
    for shown in ("#printed", "#notes li", "#settings", *tables):
        assert page.is_visible(shown)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    pdf = page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="screen")
    assert page.is_hidden("#path table")


def test_large_results_stay_a_page_that_can_be_opened(open_report, tmp_path):
    rng = np.random.default_rng(1)
    numbers = {"number": [str(k) for k in range(20_000)]}
    names = [f"s{k}" for k in range(20_000)]
    page = open_report(
        components=components_view(rng.normal(size=(3, 5000)), [f"v{k}" for k in range(5000)]),
        scores=scores_view(rng.normal(size=(20_000, 3)), names, axes=["1", "2", "3"], labels=numbers),
    )
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    assert page.locator("#scatter g path").count() == MOST_POINTS
    assert f"{MOST_POINTS:,} of 20,000 samples" in page.inner_text("#scores .lead")
    assert "5,000 non-zero weights" in page.inner_text("#shown")
    assert page.inner_text("#more") == "Show 1,000 more"
    page.click("#more")
    assert len(bars(page)) == 1060


def cut_page(open_report, monkeypatch, names=100_000):
    """A page that may hold only the 10 largest of 40 weights of the first component; the second has two."""
    monkeypatch.setattr(views, "MOST_WEIGHTS", 0)
    monkeypatch.setattr(views, "LEAST_ENTRIES", 10)
    monkeypatch.setattr(views, "MOST_NAMES", names)
    weights = np.zeros((2, 50))
    weights[0, :40] = np.linspace(4, 0.1, 40)
    weights[1, [20, 45]] = 0.5, 0.25
    return open_report(components=components_view(weights, [f"gene {k:02d}" for k in range(50)]))


def test_the_search_tells_the_truth_about_weights_that_the_page_does_not_hold(open_report, monkeypatch):
    page = cut_page(open_report, monkeypatch)
    assert "10 non-zero weights in Component 1, the largest of 40" in page.inner_text("#shown")
    page.fill("#search", "gene 30")  # a weight that is left to components.csv
    assert bars(page) == []
    told = "Not among the 10 largest of the 40 weights of Component 1 that this page holds: gene 30."
    assert told in page.inner_text("#elsewhere")
    page.fill("#search", "gene 20")  # left out of the first component, held in the second
    assert "gene 20 in Component 2 (+0.500)" in page.inner_text("#elsewhere")
    assert told.replace("gene 30", "gene 20") in page.inner_text("#elsewhere")
    page.click("#tab-1")  # not cut: here the variable has no weight, which can be said
    page.fill("#search", "gene 30")
    assert page.inner_text("#elsewhere") == "gene 30: no weight in Component 2."


def test_the_search_does_not_deny_names_it_does_not_know(open_report, monkeypatch):
    page = cut_page(open_report, monkeypatch, names=3)
    page.fill("#search", "gene 30")
    told = "No name of a variable in this page contains “gene 30”; components.csv has them all."
    assert page.inner_text("#elsewhere") == told


def saved(page, button: str) -> tuple[str, str]:
    """The name and the content of the file that a button saves."""
    with page.expect_download() as download:
        page.click(button)
    # Line ends as they are: read_text would translate them.
    return download.value.suggested_filename, Path(download.value.path()).read_bytes().decode("utf-8")


def copied(page) -> list[str]:
    page.click("#panel .tools button:text-is('Copy names')")
    page.wait_for_selector("#panel .tools button:text-is('Copied')")
    return page.evaluate("navigator.clipboard.readText()").split("\n")


def test_a_component_can_be_copied_and_downloaded(open_page, report_file):
    page = open_page(report_file)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert copied(page) == [name for name, _ in bars(page)]
    page.click("#tab-1")
    page.fill("#search", "gene")
    name, text = saved(page, "#panel .tools button:has-text('Download component')")
    header, *lines = csv.reader(io.StringIO(text))
    assert (name, header) == ("component_2.csv", ["variable", "weight"])
    assert [(variable, round(float(weight), 3)) for variable, weight in lines] == bars(page)
    page.fill("#search", "")
    _, text = saved(page, "#panel .tools button:has-text('Download all')")
    header, *lines = csv.reader(io.StringIO(text))
    assert (header, len(lines)) == (["component", "variable", "weight"], 4 * 8 + 2)
    assert ["Component 1", HOSTILE, "5"] in lines


@pytest.mark.parametrize("section", ["components", "scores", "path", "convergence"])
def test_every_figure_can_be_saved_as_svg(open_page, report_file, section):
    page = open_page(report_file)
    _, text = saved(page, f"#{section} .tools button:has-text('SVG')")
    drawing = ElementTree.fromstring(text)
    shapes = [node for node in drawing.iter() if node.tag.endswith(("path", "rect", "circle"))]
    assert len(shapes) > 5
    assert "var(" not in text
    assert "<script" not in text
    assert all(node.get("fill") for node in shapes)
    texts = [node.text or "" for node in drawing.iter() if node.tag.endswith("text")]
    assert section != "scores" or any(word.startswith("a (30)") for word in texts)
    assert page.locator("#scatter g path").count() == 90  # the page is as it was


@pytest.mark.parametrize(
    ("section", "lines"),
    [("separation", 9), ("scores", 91), ("path", 5), ("convergence", 10), ("diagnostics", 2)],
)
def test_every_table_can_be_saved_as_csv(open_page, report_file, section, lines):
    _, text = saved(open_page(report_file), f"#{section} .tools button:has-text('CSV')")
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == lines
    assert len({len(row) for row in rows}) == 1


def test_samples_are_coloured_by_any_label(open_page, report_file):
    page = open_page(report_file)
    colour = "() => document.querySelector('#scatter g path').style.fill"
    assert page.locator("#colour option").all_inner_texts() == ["group", "age", "nothing"]
    assert page.locator(".legend button").count() == 3
    page.select_option("#colour", "1")
    assert page.evaluate(colour).startswith("rgb")
    assert page.locator(".legend .scale").count() == 1
    page.select_option("#colour", "-1")
    assert page.evaluate(colour) == "var(--c0)"
    assert page.inner_text("#legend") == ""
    point_at_first_sample(page)
    assert "group: a" in page.inner_text("#tip")
    assert "age: 20" in page.inner_text("#tip")


def test_the_table_of_labels_leads_to_bars_and_scores(open_page, report_file):
    page = open_page(report_file)
    rows = cells(page, rows="#separation tbody tr")
    assert len(rows) == 8
    assert [float(row[7]) for row in rows] == sorted(float(row[7]) for row in rows)
    wanted = next(k for k, row in enumerate(rows) if row[1] == "age" and row[0] != "Component 1")
    page.click(f"#separation tbody tr >> nth={wanted} >> button")
    component = int(rows[wanted][0].split()[1]) - 1
    assert page.get_attribute(f"#tab-{component}", "aria-selected") == "true"
    assert page.input_value("#across") == str(component)
    assert page.input_value("#colour") == "1"


def test_hard_values_do_not_break_the_page(open_report):
    markup = ["@data@", "@script@", "</script>", "&amp;", "<!--", "${x}"]
    names = ["", " ", "a" * 300, "日本語", "\u2028", "\ud800", *markup]
    weights = np.stack([np.linspace(-1, 1, len(names)), np.zeros(len(names))])
    trace = Trace([0, 1], [0.0, 0.1], [0.0, 1.0], [1.0, 1.0], [float("nan"), float("nan")])
    page = open_report(
        width=390,
        title="@title@ </title>",
        components=components_view(weights, names, share=[0.0, 0.0]),
        scores=scores_view(np.zeros((3, 1)), names[:3], axes=["only"], labels={"": ["", "", ""]}),
        trace=trace_view(trace, ""),
    )
    assert {"@data@", "@script@", "</script>", "&amp;", "日本語"} <= {name for name, _ in bars(page)}
    assert page.title() == "@title@ </title>"
    page.click("#tab-1")
    assert bars(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_marks_follow_the_axes_and_words_have_their_name(open_report):
    scores = np.random.default_rng(0).random((20, 3))
    marks = [("1", np.array([0.0, 1.0, 0.5])), (HOSTILE, np.array([1.0, 0.0, 0.5]))]
    page = open_report(
        components=components_view(np.eye(3), ["a", "b", "c"], variable="word"),
        scores=scores_view(scores, [str(n) for n in range(20)], axes=["x", "y", "z"], marks=marks),
    )
    assert page.get_attribute("#search", "placeholder").startswith("Find a word")
    texts = page.locator("#scatter text.mark")
    assert texts.all_text_contents() == ["1", HOSTILE]
    places = [float(texts.nth(n).get_attribute("x")) for n in range(2)]
    assert places[0] < places[1]
    page.select_option("#across", "2")
    places = [float(texts.nth(n).get_attribute("x")) for n in range(2)]
    assert places[0] == places[1]


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (1e-5, ["+8.000", "−0.600", "in units of 10⁻⁶"]),
        (0.1, ["+0.080", "−0.006", "2 non-zero weights in Component 1"]),
        (1e13, ["+8.000", "−0.600", "in units of 10¹²"]),
    ],
)
@pytest.mark.parametrize("width", [320, 1280])
def test_weights_of_any_unit_show_their_digits(open_report, size, shown, width):
    view = components_view(size * np.array([[0.8, -0.06, 0.0]]), ["a", "b", "c"])
    page = open_report(width=width, components=view)
    assert cells(page, 2) == [[text] for text in shown[:2]]
    assert page.inner_text("#shown").endswith(shown[2])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("signed", "width"), [(False, 320), (True, 1280)])
def test_a_second_bar_stands_beside_each_weight(open_report, signed, width):
    weights = np.array([[0.8, -0.6, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    second = np.array([[0.5, -0.9, 0.2, 0.0], [0.0, 0.0, 1.0, 0.0]])
    second = second if signed else np.abs(second)
    view = components_view(weights, list("abcd"), second=second, second_title="Selected")
    page = open_report(width=width, components=view)
    texts = ["+0.500", "−0.900", "+0.200"] if signed else ["50 %", "90 %", "20 %"]
    assert cells(page, 0, 2, 4) == [
        ["a", "+0.800", texts[0]],
        ["b", "−0.600", texts[1]],
        ["c", "0.000", texts[2]],
    ]
    page.click("button[data-sort=second]")
    assert cells(page, 0) == [["b"], ["a"], ["c"]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lengths = page.eval_on_selector_all(
        "#bars tbody tr", "rows => rows.map(r => r.querySelector('.second i').getBoundingClientRect().width)"
    )
    np.testing.assert_allclose(np.array(lengths) / lengths[0], np.array([0.9, 0.5, 0.2]) / 0.9, rtol=0.02)
    _, text = saved(page, "#panel .tools button:has-text('Download component')")
    assert text.splitlines()[0] == "variable,weight,Selected"


@pytest.mark.parametrize("either", [False, True])
def test_variables_that_only_halves_selected_are_no_part_of_the_component(open_report, either):
    weights = np.array([[0.8, -0.6, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    second = np.array([[0.5, 0.9, 0.95, 0.1], [0.1, 0.0, 1.0, 0.0]])
    view = components_view(weights, list("abcd"), second=second, second_title="Selected", either=either)
    page = open_report(components=view)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    members = list("abcd" if either else "ab")
    told = page.inner_text("#shown")
    assert told.startswith(f"{len(members)} non-zero weights in Component 1")
    assert ("2 with weight 0, shown for “Selected”: not part of Component 1" in told) == (not either)
    assert page.inner_text("#tab-0").split() == ["Component", "1", str(len(members))]
    grey = page.eval_on_selector_all("#bars tr.outside", "rows => rows.map(r => r.cells[0].textContent)")
    assert grey == [name for name in "cd" if name not in members]
    for order in ("size", "weight", "name", "second"):
        page.click(f"button[data-sort={order}]")
        if not either:  # below the component, however it is sorted
            assert cells(page, 0)[2:] == [["c"], ["d"]]
    assert sorted(copied(page)) == members
    for button, count in (("Download component", len(members)), ("Download all", 6 if either else 3)):
        _, text = saved(page, f"#panel .tools button:has-text('{button}')")
        assert len(text.splitlines()) == 1 + count
    _, text = saved(page, "#panel .tools button:has-text('SVG')")
    drawn = {node.text for node in ElementTree.fromstring(text).iter() if node.tag.endswith("text")}
    assert drawn & set("abcd") == set(members)
    page.fill("#search", "c")
    assert page.inner_text("#shown").startswith(f"{int(either)} of {len(members)} in Component 1")
    page.hover("#bars tbody tr:first-child")
    assert ("not in Component 1" in page.inner_text("#tip")) == (not either)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#printed section >> nth=0 >> div").count() == 1 + len(members)


def traced(open_report, values):
    count = len(values)
    trace = Trace(list(range(count)), [0.1] * count, [1.0] * count, list(values), [1e-9] * count)
    return open_report(trace=trace_view(trace, "done", "criterion"))


def test_rounding_errors_are_no_figure(open_report):
    page = traced(open_report, [17.5, 17.5 - 4e-15])
    assert page.locator("#convergence svg").count() == 0
    assert page.locator("#convergence tr").count() == 3
    assert page.is_visible("#convergence table")
    assert "17.5 at the start, and the steps" in page.inner_text("#convergence .lead")


@pytest.mark.parametrize("size", [1e-6, 17.5, 3e6])
def test_marks_of_an_axis_are_told_apart_however_little_values_differ(open_report, size):
    page = traced(open_report, [size, size * (1 + 8e-9), size * (1 + 9e-9)])
    texts = page.locator("#convergence svg text[text-anchor=end]").all_text_contents()
    assert len(set(texts)) == len(texts) >= 2
    assert page.is_hidden("#convergence table")
