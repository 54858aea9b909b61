"""Every Python block of the README and the documentation runs, and every link between pages leads somewhere.

The blocks of a page share one namespace, in the order a reader meets them. Shell blocks are another test's.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

from givens import SparsePCA

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(
    r"^(?P<indent> *)```python(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"(?<!`)\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[tuple[int, str]]:
    """The first line's number and the code of each Python block, but for those whose title is a library that is missing."""
    found = []
    for match in FENCE.finditer(text):
        title = re.search(r'title="(.*)"', match["options"])
        if title and find_spec(title[1].lower().removeprefix("py")) is None:
            continue
        indent = len(match["indent"])
        code = "".join(
            line[indent:] if line.strip() else line for line in match["code"].splitlines(keepends=True)
        )
        found.append((text.count("\n", 0, match.start("code")) + 1, code))
    return found


def run(path: Path, text: str) -> dict[str, object]:
    """Run a page from top to bottom; a traceback shows the page and the line in it."""
    namespace: dict[str, object] = {"__name__": "page"}
    for line, code in blocks(text):
        exec(compile("\n" * (line - 1) + code, str(path), "exec"), namespace)
    return namespace


@pytest.mark.parametrize(
    "path", [page for page in PAGES if blocks(page.read_text(encoding="utf-8"))], ids=name
)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run(path, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_somewhere(path):
    targets = [match["target"] for match in LINK.finditer(path.read_text(encoding="utf-8"))]
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (path.parent / target).exists()] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    entries = re.findall(r"[\w/]+\.md$", navigation, re.MULTILINE)
    pages = [
        path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.is_relative_to(ROOT / "docs")
    ]
    # Pages of single benchmarks are reached from the page of all of them.
    front = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    single = [page for page in pages if page.startswith("benchmarks/")]
    assert all(f"]({page})" in front for page in single)
    assert sorted(entries) == sorted(set(pages) - set(single))


def published(benchmark: str) -> dict:
    """The claims of a benchmark, and the rows of the tables of its page."""
    claims = json.loads((ROOT / "docs" / "claims.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "benchmarks" / f"{benchmark}.md").read_text(encoding="utf-8")
    rows = []
    for table in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        names, _, *lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
        rows += [dict(zip(names, map(number, cells))) for cells in lines]
    return {"rows": rows, **next(result for result in claims if result["name"] == benchmark)}


def number(cell: str) -> float | str:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return cell


def in_words(numbers: list[str]) -> str:
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}"


def topics_figures() -> list[str]:
    result = published("topics")
    claims = {claim["text"]: str(claim["measured"]).split()[0] for claim in result["claims"]}
    ratios = {
        way: in_words([claims[f"AP, {k} topics: {way}"] for k in (10, 20, 50, 100)])
        for way in ("refined, in less time", "moments alone, in less time than 10 passes")
    }
    longer = claims["four times as many documents take"]
    streamed = [row for row in result["rows"] if "streamed documents" in row]
    few, many = (f"{row['L1 error']:.3g}" for row in streamed)
    return [
        f"{ratios['refined, in less time']} times less time than scikit-learn's 50 passes",
        f"{ratios['moments alone, in less time than 10 passes']} times less than ten passes",
        f"take {longer} times as long",
        f"falls from {few} to {many}",
    ]


def ica_figures() -> list[str]:
    rows = published("ica_estimator")["rows"]
    starts = next(row for row in rows if "eeg starts" in row)
    apart = max(row["components apart"] for row in rows if "blas kernel" in row)
    shared = int(starts["all of ours find"])
    return [
        f"all {starts['eeg starts']:.0f} starts share {shared} of 32 sources",
        f"differ by at most {apart:.1e}".replace("e-0", "e-"),
    ]


def eigenvectors_figures() -> list[str]:
    seconds = {
        row["method"]: row["seconds"]
        for row in published("joint_diagonal")["rows"]
        if row.get("order") == 200
    }
    return [
        f"`scipy.linalg.eigh`, which is {seconds['givens'] / seconds['scipy eigh']:.0f} times faster at order 200"
    ]


def streaming_figures() -> list[str]:
    text = (ROOT / "docs" / "experiments" / "results.md").read_text(encoding="utf-8")
    cells, brain = re.findall(r"rotated in (\d+)% of (\d+) fits within 20 % non-zeros", text)
    return [
        "with up to 20 % non-zeros, these were the rotated ones in "
        f"{cells[0]} % of {cells[1]} fits of blood cells and in {brain[0]} % of {brain[1]} fits of the brain atlas"
    ]


@pytest.mark.parametrize(
    ("page", "figures"),
    [
        ("docs/topics.md", topics_figures),
        ("docs/ica.md", ica_figures),
        ("docs/streaming.md", streaming_figures),
        ("docs/index.md", eigenvectors_figures),
        ("README.md", eigenvectors_figures),
    ],
)
def test_figures_in_the_text_are_the_published_ones(page, figures):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert [phrase for phrase in figures() if phrase not in text] == []


def test_the_picture_of_the_report_shows_what_the_demo_finds():
    model = SparsePCA(4, n_nonzero=8, scale=True, random_state=0).fit(load_breast_cancer().data)
    shares = in_words([f"{100 * share:.1f}" for share in model.explained_variance_ratio_])
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"explain {shares} % of the variance](docs/images/report.png)" in text
