"""The API reference shows the public names. The parameters in their docstrings are those of the signatures, with their defaults.

One entry per parameter, in the order of the signature: `name : type` if it is required, `name : type, optional` if its default is
None, and `name : type, default=value` otherwise. Choices in braces begin with the default, because the reference shows the first
as the default whatever follows; so they cannot be used with None.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import givens

ROOT = Path(__file__).resolve().parent.parent
DIRECTIVE = re.compile(r"^::: (?P<name>[\w.]+)$(?:\n +options:(?P<options>(?:\n +.*)*))?", re.MULTILINE)
ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, *\*{0,2}\w+)*)(?: : (?P<type>.*))?$")
RECORDS = (
    "givens.autodiff.WithGradient",
    "givens.datasets.Correlations",
    "givens.datasets.MixtureSample",
    "givens.datasets.Modules",
    "givens.datasets.TopicSample",
    "givens.result.Certificate",
    "givens.result.PhaseSummary",
    "givens.result.Snapshot",
    "givens.result.Trace",
    "givens.rotations.Factors",
    "givens.sparse_pca.path.SparsePath",
    "givens.tensors.decompose.Decomposition",
)
"""Classes that public names return or hold, and that nobody needs to import: the reference shows them too."""

DEFAULT = re.compile(r"^(?P<type>.*?), (?:optional|default=(?P<value>.+))$")


def located(path: str) -> Any:
    """The object at a dotted path, which may lead through modules that are not imported yet."""
    home, _, name = path.rpartition(".")
    return getattr(import_module(home), name) if home else import_module(name)


def public() -> dict[str, Any]:
    """The public names: those of `givens.__all__`, and of the `__all__` of each module there, which counts as a name itself."""
    found: dict[str, Any] = {}
    for name in givens.__all__:
        found[f"givens.{name}"] = value = located(f"givens.{name}")
        if isinstance(value, ModuleType):
            found |= {f"{value.__name__}.{key}": getattr(value, key) for key in value.__all__}
    return found


def shown() -> list[str]:
    """The names that the pages of `docs/api` show; of a module its listed members."""
    found = []
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        for match in DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            members = re.search(r"members:\s+\[(.*)\]", match["options"] or "")
            found += (
                [f"{match['name']}.{name}" for name in members[1].split(", ")] if members else [match["name"]]
            )
    return found


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each public function and class, and the records that they return, with the public methods of the classes."""
    for name, value in {**public(), **{name: located(name) for name in RECORDS}}.items():
        if not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        yield name, value
        if inspect.isclass(value):
            for key, method in vars(value).items():
                method = getattr(method, "__func__", method)  # of a static or class method
                if inspect.isfunction(method) and not key.startswith("_"):
                    yield f"{name}.{key}", method


def entries(doc: str) -> list[tuple[str, str]]:
    """The lines of the section "Parameters" that are not indented: names, and what stands after the colon."""
    section = re.search(
        r"^Parameters\n-+\n(?P<body>.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", doc, re.MULTILINE | re.DOTALL
    )
    if section is None:
        return []
    lines = [line for line in section["body"].splitlines() if line.strip() and not line.startswith(" ")]
    matches = [(line, ENTRY.match(line)) for line in lines]
    assert not (bad := [line for line, match in matches if match is None]), f"cannot be read: {bad}"
    return [(match["names"], match["type"] or "") for _, match in matches if match]


def same(stated: str, default: object) -> bool:
    """Whether a stated default is that of the signature: as a literal, or as the name of a member of an enumeration."""
    try:
        value = ast.literal_eval(stated)
    except (ValueError, SyntaxError):
        return isinstance(default, Enum) and stated == str(default)
    return type(value) is type(default) and value == default


def complaints(function: Callable[..., Any]) -> list[str]:
    """What the section "Parameters" of a docstring says otherwise than the signature."""
    described = entries(inspect.getdoc(function) or "")
    if not described:
        return []
    parameters = {}
    # `__init__` has the parameters of a class; its `__new__` may be a dispatcher.
    own = inspect.isclass(function) and function.__init__ is not object.__init__
    for parameter in inspect.signature(function.__init__ if own else function).parameters.values():
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.name not in ("self", "cls"):
            parameters[stars + parameter.name] = parameter
    wrong = []
    if (names := [name for name, _ in described]) != list(parameters):
        wrong.append(f"describes {names}, the signature has {list(parameters)}")
    for name, kind in described:
        if name not in parameters:
            continue
        default = parameters[name].default
        match = DEFAULT.match(kind)
        if default is inspect.Parameter.empty:
            if match:
                wrong.append(f"{name} : {kind}, but it is required")
        elif default is None:
            if match is None or match["value"] is not None or kind.startswith("{"):
                wrong.append(f"{name} : {kind}, but the default is None: `type, optional`, without braces")
        elif match is None or match["value"] is None or not same(match["value"], default):
            wrong.append(f"{name} : {kind}, but the default is {default!r}: `type, default=value`")
        elif kind.startswith("{") and not same(kind[1:].split(",")[0].split("}")[0], default):
            wrong.append(f"{name} : {kind}, but the choices must begin with the default, {default!r}")
    return wrong


def test_the_reference_shows_the_public_names_and_what_they_return():
    names = [name for name, value in public().items() if not isinstance(value, ModuleType)]
    assert sorted({*shown()}) == sorted([*names, *RECORDS])


def test_no_other_module_lists_names():
    modules = {value.__name__ for value in public().values() if isinstance(value, ModuleType)}
    found = {"givens"}
    for path in (ROOT / "src" / "givens").rglob("*.py"):
        if re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            parts = path.relative_to(ROOT / "src").with_suffix("").parts
            if parts[1] != "app":
                found.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    assert found == modules | {"givens"}


def test_parameters_are_those_of_the_signature():
    wrong = {name: complaints(value) for name, value in callables()}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_estimators_describe_their_parameters():
    estimators = {name: value for name, value in callables() if hasattr(value, "get_params")}
    assert len(estimators) > 8
    silent = [name for name, value in estimators.items() if not entries(inspect.getdoc(value) or "")]
    assert [name for name in silent if inspect.signature(estimators[name]).parameters] == []
