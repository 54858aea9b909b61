"""What the commands print and write is what `outputs/` says: exit codes, messages, files, columns, labels, keys.

`output_cases` has the command lines, `output_files` the tables. Every change of an output is a line in a diff:
`python -m tests.net.test_outputs [commands]` writes the files anew. A number with decimals may differ by one unit of its last
digit, or by 1e-6, so that no processor's rounding counts. The sentences that say what ran and why it stopped are left out: they
describe the method, not the output.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

import givens
from givens.app.commands.app import app
from tests.net.output_cases import CASES, Case
from tests.net.output_files import write_file

OUTPUTS = Path(__file__).with_name("outputs")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
NOISE = [
    (re.compile(r"\x1b\[[\d;]*m"), ""),
    (re.compile(r"\d+\.\d+ s\b"), "# s"),
    (re.compile(r"\b[\d,]+ (step|sweep|rotation|pass)(?:e?s)?\b"), r"# \1s"),
    (re.compile(r"on \d+ \w+ \d{4} at \d\d:\d\d"), "on DATE"),
    # What other libraries say of a file.
    (re.compile(r"(damaged [^()]* file|cannot read [\w.]+|answers at \w+) \(.*\)"), r"\1 (...)"),
    (re.compile(r"http://\S+/status"), "DASHBOARD"),
    (re.compile(r"inproc://[\w./]+"), "ADDRESS"),
    (re.compile(r"\b" + re.escape(givens.__version__) + r"\b"), "VERSION"),
    (re.compile(" {2,}"), "  "),
]
TIMED = ("seconds", "seconds_compiling", "steps", "passes", "gradient_norm")  # of a run, not of its result
MOST = 24  # words that are listed in full


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    folder: Path
    files: list[Path]

    @property
    def summary(self) -> dict[str, Any]:
        found = [path for path in self.files if path.name == "summary.json"]
        return json.loads(found[0].read_text(encoding="utf-8")) if found else {}

    def plain(self, text: str) -> str:
        """The text without what differs from run to run, and without the sentences on the method."""
        summary = self.summary
        for key in ("method", "message"):
            if sentence := summary.get(key):
                for spelling in (sentence, sentence[:1].upper() + sentence[1:].rstrip(".")):
                    text = text.replace(spelling, f"<{key}>")
        text = text.replace(f"{summary.get('gradient_norm') or 0:.2e}", "<gradient norm>")
        text = text.replace(str(self.folder), "FOLDER")
        for pattern, word in NOISE:
            text = pattern.sub(word, text)
        return text.rstrip()


@cache
def cluster() -> Any:
    """A cluster in this process."""
    from distributed import LocalCluster

    return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")


@pytest.fixture(scope="module", autouse=True)
def cluster_is_closed() -> Iterator[None]:
    """It would go on measuring itself beside all other tests."""
    yield
    if cluster.cache_info().currsize:
        cluster().close()
        cluster.cache_clear()


@contextlib.contextmanager
def compiled(begun: Callable[[bool], None]) -> Iterator[Callable[[], float]]:
    """Say nothing of compiling: whether it is needed depends on what ran before."""
    yield lambda: 0.0


@cache
def command() -> Any:
    """The command as Click has it, which takes longer to make than to run."""
    return typer.main.get_command(app)


def run(words: list[str]) -> tuple[int, str, str]:
    """Run the command in this process, as a user does in a wide terminal."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["givens", *words]),
        mock.patch.dict(os.environ, COLUMNS="1000"),
        mock.patch("givens.kernels.compile.compiling", compiled),
        mock.patch("givens.app.tables.chunks.CHUNK_BYTES", 8 * 8 * 7),  # so that a stream has several chunks
        mock.patch("givens.app.tables.stores.DEFAULT_CHUNK_BYTES", 8 * 8 * 7),
    ):
        try:
            command()(words)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def present(folder: Path) -> dict[Path, tuple[int, ...]]:
    """Every file and empty folder, and what changes when it is written anew."""
    paths = [path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir())]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def outcome(case: Case, folder: Path) -> Outcome:
    """Write the files of a case, run its commands, and find what the last of them wrote."""
    lines = [shlex.split(line) for line in case.line.split("&&")]
    for word in dict.fromkeys(word for words in lines for word in words):
        write_file(folder, word)
    with contextlib.chdir(folder):
        for words in lines:
            before = present(folder)
            code, out, err = run(
                [cluster().scheduler_address if word == "ADDRESS" else word for word in words]
            )
    written = [path for path, stamp in present(folder).items() if before.get(path) != stamp]
    return Outcome(code, out, err, folder, sorted(written))


def shown(case: Case, folder: Path) -> list[str]:
    """What a case prints and writes, as lines."""
    found = outcome(case, folder)
    lines = [f"$ givens {case.line}", f"exit {found.code}"]
    if found.out:
        same = found.out.startswith("{") and json.loads(found.out) == found.summary
        lines += ["stdout: the summary"] if same else [f"stdout: {line}" for line in found.out.splitlines()]
    lines += [f"stderr: {line}" for line in messages(found.err)]
    for path in found.files:
        lines.append(f"wrote {path.relative_to(folder)}")
        if path.suffix == ".csv":
            lines += [f"  {line}" for line in table_lines(path)]
        elif case.whole:
            content = found.summary if path.suffix == ".json" else page_data(path)
            lines += [f"  {line}" for line in tree(content)]
    return [found.plain(line) for line in lines]


def blocks(lines: list[str]) -> list[list[str]]:
    """The lines before those of the first file, then the lines of each file."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("wrote "):
            found.append([])
        found[-1].append(line)
    return found


def shortened(lines: list[str], earlier: dict[str, list[str]]) -> list[str]:
    """The lines, with a name in the place of those of a table that an earlier case has written too."""
    head, *files = blocks(lines)
    for k, file in enumerate(files):
        for name, other in earlier.items():
            if len(file) > 1 and any(len(file) == len(b) and settled(file, b) == b for b in blocks(other)):
                files[k] = [f"{file[0]} as in '{name}'"]
                break
    return sum(files, head)


def messages(text: str) -> list[str]:
    """The lines on standard error; of the box that Typer draws around an error, which option it is about."""
    lines = text.splitlines()
    # The rest of the sentence differs between versions of Typer.
    boxed = [line.strip("│ ").partition(": ")[0].lower() for line in lines if line.startswith("│")]
    return boxed or lines


def table_lines(path: Path) -> Iterator[str]:
    """The header of a table, its columns of text, and its first and last row of numbers."""
    with open(path, encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    yield f"{len(rows)} rows: {', '.join(header)}"
    columns = list(zip(*rows))
    texts = [k for k, column in enumerate(columns) if not k or not all(map(is_number, column))]
    for k in texts:
        yield f"{header[k]}: {listed(list(columns[k]))}"
    for row in (rows[0], rows[-1]):
        yield "numbers: " + ", ".join(cell(float(row[k])) for k in range(len(header)) if k not in texts)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def cell(value: object) -> str:
    return (
        f"{value + 0.0:.5g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False).strip('"')
    )


def listed(values: list[Any]) -> str:
    """The values in a line; of many, their number, the first and the last."""
    words = [cell(value) for value in values]
    return ", ".join(words) if len(words) <= MOST else f"{len(words)}, from {words[0]} to {words[-1]}"


def tree(value: Any, name: str = "") -> Iterator[str]:
    """The entries of JSON in the order of the file; of lists of more than 8 entries, the first and the last."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from tree(part, f"{name}.{key}" if name else key)
    elif name.split(".")[-1] in TIMED or name in ("trace.points", "trace.table"):
        yield f"{name}: ..."
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        yield f"{name}: {len(value)} entries"
        for k, part in enumerate(value):
            if len(value) <= 8 or k in (0, len(value) - 1):
                yield from tree(part, f"{name}[{k}]")
    else:
        yield f"{name}: {listed(value) if isinstance(value, list) else cell(value)}"


def page_data(path: Path) -> dict[str, Any]:
    """What the page of a report shows, without the texts that are the same in all of them."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    return {key: value for key, value in data.items() if key not in ("settings", "citations")}


class Skeleton(HTMLParser):
    """The parts of a page that a reader or another program finds: ids, headings, headers of tables, texts for screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.skipped = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.skipped = tag in ("script", "style")
        named = (
            "id",
            "data-title",
            "aria-label",
            "alt",
            "role",
            "placeholder",
            "data-sort",
            "data-zoom",
            "data-rows",
            "href",
        )
        words = [f"{name}={value}" for name, value in attributes if name in named]
        if words or tag in ("h1", "h2", "title"):
            self.lines.append(" ".join([f"<{tag}>", *words]))

    def handle_data(self, data: str) -> None:
        if data.strip() and not self.skipped:
            self.lines.append("  " + " ".join(data.split()))

    def handle_endtag(self, tag: str) -> None:
        self.skipped = False


def skeleton(folder: Path) -> list[str]:
    """The page of a report without its data."""
    page = Skeleton()
    found = outcome(Case("page", "rotate loadings.csv"), folder)
    page.feed((folder / "results" / "report.html").read_text(encoding="utf-8"))
    return [found.plain(line) for line in page.lines]


def options() -> list[str]:
    """Every option of every command: its names, its default and its help."""
    lines = []
    for name, part in sorted(command().commands.items()):
        lines.append(f"{name}: {' '.join((part.help or '').split())}")
        for option in part.params:
            names = " ".join([*option.opts, *option.secondary_opts])
            given = "required" if option.required else f"default {option.default}"
            lines.append(f"  {names} ({given}): {option.help}")
    return lines


@cache
def references(file: str) -> dict[str, list[str]]:
    """The lines of each case in a file."""
    path = OUTPUTS / f"{file}.txt"
    parts = path.read_text(encoding="utf-8").split("\n## ") if path.exists() else []
    found = {}
    for part in parts:
        name, *lines = part.removeprefix("## ").rstrip("\n").split("\n")
        found[name] = lines
    return found


def settled(lines: list[str], reference: list[str]) -> list[str]:
    """The lines, each as the reference has it if they differ by no more than rounding."""
    pairs = zip(lines, reference)
    return [old if alike(new, old) else new for new, old in pairs] + lines[len(reference) :]


def alike(first: str, second: str) -> bool:
    """Whether two lines have the same words, and numbers that differ by one unit of the last digit at most.

    >>> alike("12.34 s 3e-16", "12.35 s 0"), alike("12.34", "12.37"), alike("gene 1", "gene 2")
    (True, False, False)
    """
    if NUMBER.split(first) != NUMBER.split(second):
        return False
    return all(close(*pair) for pair in zip(NUMBER.findall(first), NUMBER.findall(second)))


def close(first: str, second: str) -> bool:
    if first == second or not set(".e") & set(first + second):
        return first == second
    one, two = (text.replace(",", "") for text in (first, second))
    return abs(float(one) - float(two)) <= 1.01 * max(1e-6, min(unit(one), unit(two)))


def unit(number: str) -> float:
    """One unit of the last digit.

    >>> unit("12.34"), unit("1.5e+03"), unit("7")
    (0.01, 100.0, 1e-05)
    """
    digits, _, power = number.partition("e")
    if "." not in digits:
        return 10.0 ** int(power) if power else 1e-5
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def parameters() -> list[Any]:
    return [
        pytest.param(file, case, id=f"{file}: {case.name}") for file, cases in CASES.items() for case in cases
    ]


@pytest.mark.parametrize(("file", "case"), parameters())
def test_outputs_are_the_written_ones(tmp_path, file, case):
    earlier = references(file)
    reference = earlier[case.name]
    lines = shown(case, tmp_path)
    if not case.whole:
        before = list(earlier)[: list(earlier).index(case.name)]
        lines = shortened(lines, {name: earlier[name] for name in before})
    assert settled(lines, reference) == reference


def test_every_written_output_is_one_of_a_case():
    for file, cases in CASES.items():
        assert list(references(file)) == [case.name for case in cases]
    assert {path.stem for path in OUTPUTS.iterdir()} == {*CASES, "page", "options"}


def test_the_page_of_a_report_is_the_written_one(tmp_path):
    assert skeleton(tmp_path) == (OUTPUTS / "page.txt").read_text(encoding="utf-8").splitlines()


def test_options_are_the_written_ones():
    assert options() == (OUTPUTS / "options.txt").read_text(encoding="utf-8").splitlines()


def write(file: str) -> None:
    """Write a file anew."""
    found: dict[str, list[str]] = {}
    for case in CASES[file]:
        with tempfile.TemporaryDirectory() as folder:
            lines = shown(case, Path(folder).resolve())
        lines = lines if case.whole else shortened(lines, found)
        found[case.name] = settled(lines, references(file).get(case.name, []))
    parts = ["\n".join([f"## {name}", *lines]) for name, lines in found.items()]
    (OUTPUTS / f"{file}.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("error")
    chosen = sys.argv[1:] or [*CASES, "page", "options"]
    for name in chosen:
        if name == "page":
            with tempfile.TemporaryDirectory() as place:
                (OUTPUTS / "page.txt").write_text("\n".join(skeleton(Path(place).resolve())) + "\n")
        elif name == "options":
            (OUTPUTS / "options.txt").write_text("\n".join(options()) + "\n")
        else:
            write(name)
