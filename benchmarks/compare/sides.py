"""The two sides of a comparison: a source tree, perhaps with a switch, and the process that answers for it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "benchmarks" / "results" / "compare"
# The threads of a BLAS look out for more work for a tenth of a second after their last, and take a core from the next call.
REST_SECONDS = 0.25


@dataclass(frozen=True)
class Side:
    """A source tree (`src` of a checkout), a switch ("module:name") if any, and the folder of its compiled code."""

    source: Path
    cache: Path
    switch: str | None = None

    def environment(self) -> dict[str, str]:
        """That of this process, with the side's source first and its own cache."""
        return {
            **os.environ,
            "PYTHONPATH": f"{self.source}{os.pathsep}{ROOT}",
            "NUMBA_CACHE_DIR": str(self.cache),
        }


def present() -> Side:
    """The source of this checkout."""
    return Side(ROOT / "src", FOLDER / "cache" / "present")


def at(revision: str) -> Side:
    """The source of a commit, taken from the repository once and kept, so that its compiled code can be used again."""
    answer = subprocess.run(
        ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    commit = answer.stdout.strip()
    tree = FOLDER / "trees" / commit
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
            archive = Path(folder) / "archive.tar"
            subprocess.run(["git", "archive", "-o", archive, commit, "src"], cwd=ROOT, check=True)
            with tarfile.open(archive) as file:
                file.extractall(Path(folder) / "tree", filter="data")
            (Path(folder) / "tree").rename(tree)
    return Side(tree / "src", FOLDER / "cache" / commit)


def switched(side: Side, switch: str, compiles_alike: bool = False) -> Side:
    """The same source with a switch. Its compiled code is its own, and begins as the side's if the switch compiles alike."""
    name = hashlib.sha256(f"{side.source} {switch}".encode()).hexdigest()[:16]
    cache = FOLDER / "cache" / f"switch-{name}"
    shutil.rmtree(cache, ignore_errors=True)
    if compiles_alike and side.cache.exists():
        shutil.copytree(side.cache, cache)
    return Side(side.source, cache, switch)


class Child:
    """A process that has the data of one row and calls it when asked."""

    def __init__(self, side: Side, row: str) -> None:
        self.side = side
        side.cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.compare.child", row]
        command += ["--source", str(side.source)] + (["--switch", side.switch] if side.switch else [])
        self.process = subprocess.Popen(
            command,
            env=side.environment(),
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ready(self) -> Self:
        """Wait until the data are made; once, before the first call."""
        self._answer()
        return self

    def run(self) -> dict[str, Any]:
        """Call the row once, after the threads of the call before have settled."""
        time.sleep(REST_SECONDS)
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of {self.side.source} has ended without an answer")
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.terminate()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def warm(child: Child, row: str) -> tuple[Child, dict[str, Any]]:
    """Call the row once in a process that is ready, and return the process to go on with, and the answer.

    If this call has compiled something, another process takes its place, since the memory of compiling is not the row's.
    """
    cache = child.side.cache
    before = _compiled(cache)
    answer = child.run()
    if _compiled(cache) == before:
        return child, answer
    child.__exit__()
    again = Child(child.side, row).ready()
    return again, again.run()


def _compiled(cache: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in cache.rglob("*.nb[ic]")}
