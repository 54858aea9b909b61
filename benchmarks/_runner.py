"""Run the benchmarks one by one, each in a fresh interpreter, and keep what is done.

The results of a benchmark are one file, `results/<name>.json`, replaced whole as soon as the benchmark ends.
They carry a hash of the code that was measured (the package and the benchmark's own file), so a run that was
interrupted goes on with what is not yet done, and results of other code never pass for results of this one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._chart import chart
from benchmarks._curves import curves
from benchmarks._markdown import detail, front, marked, page
from benchmarks._report import find_data

ROOT = Path(__file__).resolve().parent.parent


class Suite:
    """The benchmarks of a folder: an importable package whose modules have a function `run(report)`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"

    def names(self) -> list[str]:
        """Every module that has a `run`, by name."""
        files = sorted(self.folder.glob("[!_]*.py"))
        return [file.stem for file in files if "def run(" in file.read_text(encoding="utf-8")]

    def version(self, name: str) -> str:
        """Identify the code that a benchmark measures: the package and the benchmark itself."""
        digest = hashlib.sha256((self.folder / f"{name}.py").read_bytes())
        for file in package_files("givens"):
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    def result(self, name: str) -> dict[str, Any] | None:
        """The stored results of a benchmark, or None."""
        try:
            return json.loads((self.results / f"{name}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def status(self, name: str) -> str:
        """`done`, or why not."""
        result = self.result(name)
        if result is None:
            return "not measured"
        if result["error"]:
            return "crashed"
        if result["version"] != self.version(name):
            return "measured with other code"
        if any(find_data(missing) for missing in result["missing"]):
            return "measured without data that is now here"
        return "done"

    def run(self, only: Sequence[str] | None = None, fresh: bool = False) -> int:
        """Measure what is asked for, print the table, and return the exit code: 1 if a benchmark crashed."""
        todo = self._choose(only, fresh)
        start = time.perf_counter()
        crashed: list[str] = []
        if todo:
            print("measuring the machine ...", flush=True)
            context = self._context()
        for number, name in enumerate(todo, 1):
            last = self.result(name)
            hint = f", last time {last['seconds']:.0f} s" if last else ""
            print(f"\n[{number}/{len(todo)}] {name}{hint}", flush=True)
            before = time.perf_counter()
            try:
                if not self._measure(name, context):
                    crashed.append(name)
            except KeyboardInterrupt:
                self._write_table()
                left = len(todo) - number + 1
                print(
                    f"\ninterrupted in {name}; {left} left, what is done is kept: run again to go on",
                    flush=True,
                )
                return 130
            print(f"  {time.perf_counter() - before:.1f} s", flush=True)
        print("\n" + self._write_table())
        print(
            f"{len(todo)} measured in {time.perf_counter() - start:.0f} s; "
            f"table and figures are in {os.path.relpath(self.results)}"
        )
        for name in crashed:
            print(f"CRASHED: {name}", file=sys.stderr)
        return 1 if crashed else 0

    def publish(self, docs: Path) -> Path:
        """Write the front page, its chart, a page per benchmark and the claims of all into the documentation.

        Results of other code are published too, and marked; what was never measured is listed. A crashed benchmark is refused.
        A benchmark that was not measured here keeps the page and the claims that were published before, from another checkout
        perhaps.
        """
        file = docs / "claims.json"
        before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
        measured = {name: result for name in self.names() if (result := self.result(name))}
        crashed = [name for name, result in measured.items() if result["error"]]
        if crashed:
            raise ValueError(f"a benchmark that crashed is not published; run again: {', '.join(crashed)}")
        known = {result["name"]: result for result in before} | measured
        results = [known[name] for name in self.names() if name in known]
        if not results:
            raise ValueError("nothing is measured yet")
        stale = {result["name"] for result in results if result["version"] != self.version(result["name"])}
        folder = docs / "benchmarks"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.md"):
            if old.stem not in self.names() or old.stem not in known:
                old.unlink()
        for result in results:
            path = folder / f"{result['name']}.md"
            text = detail(result) if result["name"] in measured else path.read_text(encoding="utf-8")
            replace(path, marked(text) if result["name"] in stale else text)
            for figure in result.get("figures", []):
                replace(folder / f"{figure['name']}.svg", curves(figure))
        replace(folder / "chart.svg", chart([row for result in results for row in result.get("ratios", [])]))
        replace(file, claims_file(results))
        unmeasured = [name for name in self.names() if name not in known]
        replace(docs / "benchmarks.md", front(results, stale, unmeasured))
        return docs / "benchmarks.md"

    def _choose(self, only: Sequence[str] | None, fresh: bool) -> list[str]:
        names = self.names()
        if only is not None:
            wanted = [name.strip() for name in only if name.strip()]
            unknown = sorted(set(wanted) - set(names))
            if unknown or not wanted:
                raise ValueError(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(names)}")
            return wanted
        states = {name: self.status(name) for name in names}
        done = [name for name in names if states[name] == "done" and not fresh]
        if done:
            print(f"already done with this code: {', '.join(done)} (--fresh measures them anew)")
        return [name for name in names if name not in done]

    def _context(self) -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks._machine"]
        answer = subprocess.run(
            command, env=environment(self.folder), check=True, stdout=subprocess.PIPE, text=True
        )
        return json.loads(answer.stdout)

    def _measure(self, name: str, context: dict[str, Any]) -> bool:
        """Run one benchmark to its end; a child that is killed leaves a result that says so."""
        version = self.version(name)
        command = [sys.executable, "-m", "benchmarks._child", str(self.folder), name]
        child = subprocess.Popen(command, env=environment(self.folder), stdin=subprocess.PIPE, text=True)
        try:
            child.communicate(json.dumps({**context, "version": version}))
        except BaseException:
            child.terminate()
            child.wait()
            raise
        result = self.result(name)
        if child.returncode != 0 and (result is None or not result["error"] or result["version"] != version):
            blank: dict[str, Any] = {"rows": [], "claims": [], "notes": [], "missing": [], "seconds": 0.0}
            died = f"the process ended with code {child.returncode} before its results were written"
            blank |= {"name": name, "title": name, "date": "", **context, "version": version, "error": died}
            write(self.results / f"{name}.json", blank)
        return child.returncode == 0

    def _write_table(self) -> str:
        results = [result for name in self.names() if (result := self.result(name))]
        stale = {result["name"] for result in results if result["version"] != self.version(result["name"])}
        text = page(results, stale=stale)
        self.results.mkdir(exist_ok=True)
        replace(self.results / "table.md", text)
        return text


def package_files(package: str) -> list[Path]:
    """The Python files of a package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"{package} is not installed")
    return sorted(file for place in spec.submodule_search_locations for file in Path(place).rglob("*.py"))


def environment(folder: Path) -> dict[str, str]:
    """The environment of a child: it finds this package and the suite's."""
    paths = [str(ROOT), str(folder.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def write(path: Path, figures: Any) -> None:
    """Write JSON, the old file staying whole until the new one is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(plain(figures), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


PUBLISHED = ("name", "title", "date", "version", "seconds", "machine", "versions", "ratios", "claims")


def claims_file(results: Sequence[dict[str, Any]]) -> str:
    """What is claimed, and with which code and machine it was measured, as JSON: one claim per line, for readable changes."""
    blocks = []
    for result in results:
        fields = []
        for name in PUBLISHED:
            figures = plain(result.get(name, []))
            if name in ("ratios", "claims"):
                lines = ",\n".join(f"   {json.dumps(figure, ensure_ascii=False)}" for figure in figures)
                fields.append(f'  "{name}": [\n{lines}\n  ]')
            else:
                fields.append(f'  "{name}": {json.dumps(figures, ensure_ascii=False)}')
        blocks.append(" {\n" + ",\n".join(fields) + "\n }")
    return "[\n" + ",\n".join(blocks) + "\n]\n"


def replace(path: Path, text: str) -> None:
    """Put a text in a file's place in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def plain(figure: Any) -> Any:
    """NumPy's numbers and arrays as Python's own; NaN and infinity, which JSON lacks, as words."""
    if isinstance(figure, dict):
        return {str(key): plain(value) for key, value in figure.items()}
    if isinstance(figure, list | tuple):
        return [plain(value) for value in figure]
    if hasattr(figure, "tolist"):
        return plain(figure.tolist())
    if isinstance(figure, float) and not math.isfinite(figure):
        return str(figure)
    return figure
