"""How many small errors do the tests notice? `python -m tests.net.mutants`, or `make mutants`.

A mutant is the source with one node changed: a number, an operator, a condition, a sign. Each is judged by the tests of its own
folder, which for the application include the golden outputs, and by the golden fits (`test_fits.py`), in a temporary copy of the
tree. Places are drawn from every folder in proportion
to its lines of code, by a hash of the code around them, so that moved files and changes elsewhere leave the choice as it was.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FITS = "tests/net/test_fits.py"
OUTPUTS = "tests/net/test_outputs.py"
PAPER = {"experiments", "baselines", "reproduce"}  # no part of the library and its command
NO_OWN_TESTS = {"result": "solve"}
TEST_CPU_SECONDS = 120  # a test that takes longer hangs: the slowest takes 20, and compiling everything 60
RUN_SECONDS = 1500  # for deadlocks, which use no processor
SWAPPED = {"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "And": "Or", "Or": "And"}
SWAPPED |= {"Lt": "LtE Gt", "Gt": "GtE Lt", "LtE": "Lt", "GtE": "Gt"}


def pytest_runtest_setup() -> None:
    """As a plugin of the judging runs: end the process if one test uses too much time of the processor."""
    signal.setitimer(signal.ITIMER_PROF, TEST_CPU_SECONDS)


@dataclass(order=True)
class Mutant:
    rank: str  # a hash; first, since mutants are sorted by it
    folder: str
    path: str
    line: int
    before: str
    after: str
    start: int  # bytes of the file that are replaced
    end: int
    tests: str = ""  # what the tests of the folder said
    fits: str = ""

    def applied(self, content: bytes) -> bytes:
        """The content of the file with the change."""
        return content[: self.start] + f"({self.after})".encode() + content[self.end :]


def nodes(tree: Any, inside: str = "") -> Iterator[tuple[Any, str]]:
    """Nodes that may be changed, and the functions around them: no types, no messages of errors, no text."""
    for field, value in ast.iter_fields(tree):
        for child in value if isinstance(value, list) else [value]:
            text = field in ("annotation", "returns") or isinstance(child, ast.Raise | ast.JoinedStr)
            if isinstance(child, ast.AST) and not text:
                yield child, inside
                yield from nodes(child, f"{inside}.{getattr(child, 'name', '')}".strip("."))


def changes(node: Any) -> list[ast.expr]:
    """What may stand in the place of a node, or of its condition."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [ast.UnaryOp(ast.Not(), node.test)] if ast.unparse(node.test) != "TYPE_CHECKING" else []
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        values = {2 * node.value, node.value + 1, -node.value} - {node.value}
        return [ast.Constant(value) for value in sorted(values)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [node.operand]
    operator, *more = getattr(node, "ops", [getattr(node, "op", None)])
    others = [getattr(ast, name)() for name in SWAPPED.get(type(operator).__name__, "").split()]
    if isinstance(node, ast.Compare) and not more:
        return [ast.Compare(node.left, [other], node.comparators) for other in others]
    if isinstance(node, ast.BoolOp):
        return [ast.BoolOp(other, node.values) for other in others]
    if isinstance(node, ast.BinOp) and not re.search("['\"]", ast.unparse(node)):  # sums of text
        return [ast.BinOp(node.left, other, node.right) for other in others]
    return []


def mutants_of(path: str, content: bytes, seed: int) -> Iterator[Mutant]:
    """For every node that can be changed, the change of the least rank."""
    lines = content.splitlines(keepends=True)
    name = [part for part in Path(path).with_suffix("").parts[2:] if part != "app"]
    for node, inside in nodes(ast.parse(content)) if PAPER.isdisjoint(name) else ():
        found = []
        for new in changes(node):
            old = getattr(node, "test", node)
            start = sum(map(len, lines[: old.lineno - 1])) + old.col_offset
            end = sum(map(len, lines[: old.end_lineno - 1])) + old.end_col_offset
            before, after = ast.unparse(old), ast.unparse(new)
            key = f"{seed} {name} {inside} {lines[old.lineno - 1].decode().strip()} {before} {after}"
            rank, folder = hashlib.sha256(key.encode()).hexdigest(), name[0] if name[1:] else ""
            found.append(Mutant(rank, folder, path, old.lineno, before, after, start, end))
        yield from sorted(found)[:1]


def chosen(tree: Path, seed: int, count: int) -> list[Mutant]:
    """Mutants of every folder, in proportion to its lines of code: those of the least rank, one per line."""
    places: dict[str, dict[tuple[str, int], Mutant]] = {}
    lines: Counter[str] = Counter()
    for path in sorted((tree / "src/givens").rglob("*.py")):
        found = list(mutants_of(str(path.relative_to(tree)), path.read_bytes(), seed))
        for mutant in sorted(found):
            places.setdefault(mutant.folder, {}).setdefault((mutant.path, mutant.line), mutant)
        if found:
            code = ast.walk(ast.parse(path.read_bytes()))
            lines[found[0].folder] += len({getattr(node, "lineno", 0) for node in code})
    shares = {folder: count * lines[folder] / lines.total() for folder in places}
    left = count - sum(map(int, shares.values()))
    rounded_up = sorted(shares, key=lambda folder: int(shares[folder]) - shares[folder])[:left]
    picked = []
    for folder, share in shares.items():
        picked += sorted(places[folder].values())[: int(share) + (folder in rounded_up)]
    return picked


def tests_of(mutant: Mutant, tree: Path) -> list[str]:
    """The tests of a mutant's folder, those of its own file first; of the application also the golden outputs."""
    stem = Path(mutant.path).stem
    name = mutant.folder or NO_OWN_TESTS.get(stem, stem)
    for folder in (tree / "tests", tree / "tests/app"):
        found = sorted((folder / name).rglob("test_*.py")) or list(folder.glob(f"test_{name}.py"))
        if found:
            found.sort(key=lambda path: path.stem != f"test_{stem}")
            found += [tree / OUTPUTS] if "/app/" in mutant.path else []
            return [str(path.relative_to(tree)) for path in found]
    return []


def run(tree: Path, tests: list[str]) -> str:
    """What pytest says: `passed`, `timeout`, or the first test that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "--tb=no", "-p", "tests.net.mutants"]
    out = tree.parent / "out"
    try:
        with out.open("wb") as file:
            there = {"cwd": tree, "env": {**os.environ, "PYTHONPATH": str(tree / "src")}, "stdout": file}
            status = subprocess.call([*command, *tests], **there, timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return "timeout"
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out.read_text(errors="replace"), re.MULTILINE)
    return {0: "passed", -signal.SIGPROF: "timeout"}.get(status, [*failed, f"exit status {status}"][0])


def copied(tree: Path, folder: str) -> Path:
    """A copy of a checkout, which no change reaches."""
    # Compiled code lies beside its source, and is copied with it; a changed kernel has all of them compiled.
    ignore = shutil.ignore_patterns(".*", "site", "build", "results")
    return shutil.copytree(tree, Path(folder) / "clean", ignore=ignore)


def judged(clean: Path, path: str, content: bytes, tests: list[str]) -> str:
    """What the tests say about another content of a file, in a tree of links to the clean one but for this file."""
    with tempfile.TemporaryDirectory(dir=clean.parent) as folder:
        tree = shutil.copytree(clean, Path(folder) / "tree", copy_function=os.link)
        (tree / path).unlink()
        (tree / path).write_bytes(content)
        said = run(tree, tests)
    if "::" in said and run(clean, [said]) != "passed":
        return f"fails without the change too: {said}"
    return said


def noticed(said: str) -> bool:
    """Whether this is what tests say that notice a change."""
    return not said.startswith(
        ("passed", "no tests", "fails without", "exit status 5")
    )  # 5: pytest has found no tests


def report(mutants: list[Mutant]) -> None:
    tests, fits = ([noticed(getattr(m, by)) for m in mutants] for by in ("tests", "fits"))
    either = [any(both) for both in zip(tests, fits)]
    for m, found in zip(mutants, either):
        print("caught" if found else "MISSED", f"{m.path}:{m.line}  {m.before} -> {m.after}")
        print(f"    tests of the folder: {m.tests}; golden fits: {m.fits}")
    by_each = f"{sum(tests)} by the tests of their folder, {sum(fits)} by the golden fits"
    print(f"Of {len(mutants)} mutants, {sum(either)} are caught: {by_each}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=60, help="what is not judged by then is left out")
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[2], help="another checkout")
    parser.add_argument("--json", type=Path, default=Path(os.devnull), help="file for the results")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    done: list[Mutant] = []
    with tempfile.TemporaryDirectory() as folder:
        clean = copied(options.tree, folder)
        shutil.copy(__file__, clean / "tests/net/mutants.py")
        judges = [(mutant, tests_of(mutant, clean)) for mutant in chosen(clean, options.seed, options.count)]
        for mutant, tests in sorted(judges, key=lambda judge: (judge[0].folder == "kernels", len(judge[1]))):
            if time.monotonic() < end:
                content = mutant.applied((clean / mutant.path).read_bytes())
                mutant.tests = judged(clean, mutant.path, content, tests) if tests else "no tests"
                there = (clean / FITS).exists()
                mutant.fits = judged(clean, mutant.path, content, [FITS]) if there else "no tests"
                done.append(mutant)
                options.json.write_text(json.dumps([asdict(mutant) for mutant in done], indent=1))
    report(done)


if __name__ == "__main__":
    main()
