"""Lines of code without docstrings, comments and blanks."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path


def of(places: Iterable[str], folder: Path) -> int:
    """Lines of files ("phases/newton.py") and of names in files ("loop.py:Run._leap"), each counted once."""
    counted: set[tuple[str, int]] = set()
    for place in places:
        file, _, name = place.partition(":")
        text = (folder / file).read_text()
        try:
            counted.update((file, number) for number in _code(text, name))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    return len(counted)


def _code(text: str, name: str) -> set[int]:
    tree = ast.parse(text)
    node: ast.AST = tree
    for part in name.split(".") if name else ():
        node = _child(node, part)
    first, last = (1, text.count("\n") + 1) if node is tree else _span(node)
    skipped = _docstrings(tree)
    return {
        number
        for number, line in enumerate(text.split("\n"), 1)
        if first <= number <= last
        and number not in skipped
        and line.strip()
        and not line.strip().startswith("#")
    }


def _child(node: ast.AST, name: str) -> ast.AST:
    for child in getattr(node, "body", ()):
        targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
        names = [getattr(child, "name", None), *(getattr(target, "id", None) for target in targets)]
        if name in names:
            return child
    raise ValueError(f"there is no {name!r} among the names of the code")


def _span(node: ast.AST) -> tuple[int, int]:
    first = min(
        [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]  # type: ignore[attr-defined]
    )
    return first, node.end_lineno  # type: ignore[attr-defined]


def _docstrings(tree: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found
