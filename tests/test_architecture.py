"""The layers of the package point one way, and no two modules or classes share a name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import givens
import givens.app

ROOT = Path(givens.__file__).parent

# A module may import from its own layer and from those above it in this list.
LAYERS = [
    {"support"},
    {"kernels"},
    {"numerics"},
    {"rotations", "metrics", "schedules", "result"},
    {"data"},
    {"objectives"},
    {"solve"},
    {"sparse_pca", "streaming", "tensors", "ica", "factors", "mixtures", "topics"},
    {"anndata", "mne", "autodiff", "plotting", "datasets", "checks"},
    {"app", "__main__"},
]
# The two estimators of sparse PCA share their search.
SAME_ROOM = {"streaming": "sparse_pca"}
# Commands bear the name of what they run, kernels that of what they compile, and every room has its estimator.
SHARED = {"__init__", "__main__", "estimator"}
TWINS = {"app", "kernels"}


def modules() -> dict[str, Path]:
    """Dotted name, without the package's, of every module."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def layer(module: str) -> int:
    room = module.partition(".")[0]
    for number, rooms in enumerate(LAYERS):
        if room in rooms:
            return number
    raise AssertionError(f"give {room!r} a layer in {Path(__file__).name}")


def runs(node: ast.AST) -> list[ast.AST]:
    """The nodes below a node, but for what only a type checker reads."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        found += [child, *runs(child)]
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    found = set()
    for node in runs(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "givens":
            base = (node.module or "").removeprefix("givens").lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                if inner in known:
                    found.add(inner)
                elif base:
                    found.add(base)
                else:
                    home = givens._HOMES.get(alias.name)
                    if home:
                        found.add(home.removeprefix("givens."))
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("givens.") for alias in node.names if alias.name.startswith("givens.")
            }
    return found


def edges() -> list[tuple[str, str]]:
    known = modules()
    return [
        (module, other)
        for module, path in known.items()
        if module and path.name != "__main__.py"
        for other in imports(path, known)
    ]


def test_layers_point_one_way():
    wrong = [
        f"{module} imports {other}" for module, other in edges() if other and layer(other) > layer(module)
    ]
    assert not wrong


def cycles(graph: set[tuple[str, str]]) -> set[frozenset[str]]:
    """The largest sets whose members all reach each other, those of one member apart."""
    nodes = {node for edge in graph for node in edge}
    reach = {node: {b for a, b in graph if a == node} for node in nodes}
    for middle in nodes:
        for node in nodes:
            if middle in reach[node]:
                reach[node] |= reach[middle]
    found = {frozenset({node, *(other for other in reach[node] if node in reach[other])}) for node in nodes}
    return {members for members in found if len(members) > 1}


def test_modules_do_not_import_each_other_in_a_circle():
    assert not cycles({(module, other) for module, other in edges() if other})


def test_folders_do_not_import_each_other_in_a_circle():
    rooms = {tuple(name.partition(".")[0] for name in edge) for edge in edges()}
    assert not cycles({(SAME_ROOM.get(a, a), SAME_ROOM.get(b, b)) for a, b in rooms if b})


def test_the_package_does_not_import_the_paper():
    wrong = [
        str(path)
        for path in modules().values()
        if re.search(r"^\s*(from|import) paper\b", path.read_text(), re.M)
    ]
    assert not wrong


def test_only_kernels_are_compiled():
    elsewhere = [path for path in modules().values() if path.parent.name != "kernels"]
    assert not [path for path in elsewhere if re.search(r"^\s*(from|import) numba\b", path.read_text(), re.M)]


def test_no_two_modules_share_a_name():
    places = defaultdict(list)
    for module in modules():
        parts = module.split(".")
        if parts[0] not in TWINS and parts[-1] not in SHARED:
            places[parts[-1]].append(module)
    assert not [where for where in places.values() if len(where) > 1]


def test_a_class_name_has_one_meaning():
    places = defaultdict(list)
    for module, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_the_top_of_the_package_is_small():
    assert len(list(ROOT.glob("*.py"))) <= 14


def stated() -> set[str]:
    """The names that the docstring of the application allows it to import."""
    table = re.findall(r"^ {4}(givens[\w.]*)? +(\S.*)$", givens.app.__doc__ or "", re.M)
    found, module = set(), ""
    for home, names in table:
        module = home or module
        found |= {f"{module}.{name}" for name in names.rstrip(",").split(", ")}
    return found


def test_the_application_imports_the_names_that_its_docstring_states():
    imported = set()
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and re.match(r"givens\b(?!\.app)", node.module or ""):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names if re.match(r"givens\.(?!app\b)", alias.name)}
            elif (
                isinstance(node, ast.Attribute) and ast.unparse(node.value) == "givens" and node.attr != "app"
            ):
                imported.add(f"givens.{node.attr}")
    assert imported == stated()
