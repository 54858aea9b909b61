"""Which code a measurement is made with, and its hash: numbers are kept as long as none of it has changed.

Comments, docstrings and the layout of lines are no part of it.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

import givens

# The folders of the two packages that a measurement runs.
ROOTS = {"givens": Path(givens.__file__).parent, "paper": Path(__file__).parent}


def code(module: str) -> str:
    """A hash of a module's source and of everything of `givens` and `paper` that it imports, directly or not."""
    digest = hashlib.sha256()
    for path in sources(module):
        digest.update(path.name.encode())
        digest.update(_meaning(path).encode())
    return digest.hexdigest()


def sources(module: str) -> list[Path]:
    """The files, in the order of their names."""
    found: dict[str, Path] = {}
    names = [module]
    while names:
        name = names.pop()
        path = _file(name)
        if name not in found and path is not None:
            found[name] = path
            names += _imported(path)
    return [found[name] for name in sorted(found)]


def _meaning(path: Path) -> str:
    """The syntax tree without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def _file(name: str) -> Path | None:
    package, *parts = name.split(".")
    if package not in ROOTS or not parts:
        return None
    place = ROOTS[package].joinpath(*parts)
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.exists():
            return path
    return None


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
