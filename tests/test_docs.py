"""Every Python block of the README and the documentation runs, and every link between pages leads somewhere.

The blocks of a page share one namespace, in the order a reader meets them. Shell blocks are another test's.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

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


def test_readme_shows_python():
    assert blocks((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_runner_of_blocks_sees_failures(tmp_path):
    page = "Text.\n\n```python\nx = 1\n```\n\n- item\n\n    ```python\n    y = x + 1\n    ```\n\n"
    page += "```sh\nfalse\n```\n"
    assert run(tmp_path, page)["y"] == 2
    assert [line for line, _ in blocks(page)] == [4, 10]
    with pytest.raises(ZeroDivisionError) as raised:
        run(tmp_path, page + "```python\nz = 1\nz / 0\n```\n")
    assert raised.traceback[-1].lineno + 1 == 18
