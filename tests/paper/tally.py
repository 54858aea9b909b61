"""Count the operations that the package's own source executes, by rewriting it as it is imported.

Every `a + b` of a module of `givens` or `paper` becomes `tally.binary("add", a, b)`, which counts one addition if the
outcome is a float, one per entry if it is an array of floats; whole numbers (indices) are not counted. Matrix products, sums
and the like are counted by the sizes of what they are given; LAPACK's factorisations, into which nobody can look from here,
by the figures of textbooks (Golub and Van Loan). The compiled kernels are rewritten like all else and run as plain Python,
NUMBA_DISABLE_JIT=1.

A conditional expression of sums and products counts both of its arms: compiled, it is a selection between the two.
Bookkeeping (any statement that sets something called `flops`, or that calls `flop_counts.count`) is not rewritten.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import operator
import sys
from collections import Counter

import numpy as np
from scipy.linalg.lapack import dgesv, dposv, sposv

OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
FUNCTIONS = {
    np.sqrt, np.cos, np.sin, np.arctan2, np.arccos, np.hypot, np.cbrt, np.tan, np.exp, np.log,
}  # fmt: skip


def _size(value: object) -> int:
    """How many floats a value is."""
    if isinstance(value, np.ndarray):
        return value.size if value.dtype.kind == "f" else 0
    return int(isinstance(value, float | np.floating))


def _product(a: np.ndarray, b: np.ndarray) -> int:
    """Additions and multiplications of a @ b; of a @ a.T, which NumPy leaves to BLAS's syrk, those of one half."""
    rows = a.size // a.shape[-1] if a.size else 0
    if a.ndim == 2 and b.ndim > 2:  # one matrix for a stack of others
        rows *= int(np.prod(b.shape[:-2]))
    if a.ndim == b.ndim == 2 and a.ctypes.data == b.ctypes.data and a.strides == b.strides[::-1]:
        return rows * (rows + 1) * a.shape[-1]
    return 2 * rows * a.shape[-1] * (b.shape[-1] if b.ndim > 1 else 1)


def _einsum(subscripts: str, *operands: np.ndarray) -> int:
    given, result = subscripts.split("->")
    sizes = {}
    for letters, operand in zip(given.split(","), operands, strict=True):
        sizes.update(zip(letters, operand.shape, strict=True))
    terms = int(np.prod(list(sizes.values())))
    return terms * (len(operands) - 1 + (len(result) < len(sizes)))


def _qr(A: np.ndarray, mode: str = "reduced") -> float:
    m, n = max(A.shape), min(A.shape)
    return 2 * n * n * (m - n / 3) * (1 if mode == "r" else 2)


def _svd(A: np.ndarray) -> float:
    m, n = max(A.shape), min(A.shape)
    return 6 * m * n * n + 20 * n**3


def _posv(C: np.ndarray, X: np.ndarray) -> float:
    return len(C) ** 3 / 3 + 2 * len(C) * X.size


def _gesv(A: np.ndarray, B: np.ndarray) -> float:
    return 2 * len(A) ** 3 / 3 + 2 * len(A) * B.size


# What a call takes, by its arguments.
COSTS = {
    np.matmul: _product,
    np.dot: _product,
    np.einsum: _einsum,
    np.sum: lambda a: _size(a),
    np.mean: lambda a: _size(a),
    np.cumsum: lambda a: _size(a),
    np.square: lambda a: _size(a),
    np.outer: lambda a, b: a.size * b.size,
    np.linalg.norm: lambda a: 2 * a.size,
    np.linalg.inv: lambda a: 2 * len(a) ** 3,
    np.linalg.eigh: lambda a: 9 * len(a) ** 3,
    np.linalg.slogdet: lambda a: 2 * len(a) ** 3 / 3,
    np.linalg.qr: _qr,
    np.linalg.svd: _svd,
    dgesv: _gesv,
    dposv: _posv,
    sposv: _posv,
}
SORTS = {np.sort, np.argsort, np.partition, np.argpartition}


class Tally:
    """What was executed: flops (additions and multiplications), and apart from them all else."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.resting = False

    def add(self, kind: str, number: float) -> None:
        if not self.resting:
            self.counts[kind] += number

    def resting_in(self, function):
        """The same function, in which nothing is counted."""
        return self._within(function, True)

    def counting_in(self, function):
        """The same function, in which everything is counted, wherever it is called."""
        return self._within(function, False)

    def _within(self, function, resting: bool):
        def replacement(*args, **options):
            before, self.resting = self.resting, resting
            try:
                return function(*args, **options)
            finally:
                self.resting = before

        return replacement

    def binary(self, name: str, a: object, b: object, where: str = "") -> object:
        result = getattr(operator, where + name)(a, b)
        if name == "matmul":
            self.add("flops", _product(a, b) if _size(result) else 0)
        elif name == "truediv":
            self.add("divisions", _size(result))
        elif name == "pow" and (isinstance(b, np.ndarray) or b != 2):
            self.add("functions", _size(result))
        else:
            self.add("flops", _size(result))
        return result

    def in_place(self, name: str, a: object, b: object) -> object:
        return self.binary(name, a, b, "i")

    def select(self, condition: object, a: object, b: object) -> object:
        return a if condition else b

    def compare(self, name: str, a: object, b: object) -> object:
        self.add("comparisons", max(_size(a), _size(b)))
        return getattr(operator, name)(a, b)

    def call(self, function: object, *args: object, **options: object) -> object:
        result = function(*args, **options)
        if function in FUNCTIONS:
            self.add("functions", _size(result))
        elif function in SORTS:
            self.add("sorted", _size(args[0]))
        elif function in COSTS:
            known = {"mode": options["mode"]} if function is np.linalg.qr and "mode" in options else {}
            operands = args[:2] if function in (np.matmul, np.dot) else args
            self.add("flops", COSTS[function](*operands, **known))
        return result

    def method(self, name: str, owner: object, *args: object, **options: object) -> object:
        if name in ("sum", "mean"):
            self.add("flops", _size(owner))
        return getattr(owner, name)(*args, **options)


tally = Tally()


class _Rewrite(ast.NodeTransformer):
    """Send arithmetic, comparisons and NumPy's calls through the tally."""

    def _tallied(self, name: str, node: ast.AST, *args: ast.expr, rest: ast.Call | None = None) -> ast.expr:
        function = ast.Attribute(ast.Name("__tally__", ast.Load()), name, ast.Load())
        call = ast.Call(function, list(args), [])
        if rest is not None:
            call.args += rest.args
            call.keywords = rest.keywords
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        symbol = OPERATORS.get(type(node.op))
        return (
            node
            if symbol is None
            else self._tallied("binary", node, ast.Constant(symbol), node.left, node.right)
        )

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        kind = COMPARISONS.get(type(node.ops[0]))
        if len(node.ops) > 1 or kind is None:
            return node
        return self._tallied("compare", node, ast.Constant(kind), node.left, node.comparators[0])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if not (_is_plain(node.body) and _is_plain(node.orelse)):
            return node
        return self._tallied("select", node, node.test, node.body, node.orelse)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return node if ast.unparse(node).startswith("flop_counts.count(") else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        return node if any(map(_is_bookkeeping, node.targets)) else self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if _is_bookkeeping(node.target):
            return node
        self.generic_visit(node)
        symbol = OPERATORS.get(type(node.op))
        if symbol is None:
            return node
        loaded = ast.parse(ast.unparse(node.target), mode="eval").body
        value = self._tallied("in_place", node, ast.Constant(symbol), loaded, node.value)
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name):
            lapack = node.func.id in ("dgesv", "dposv", "sposv")
            return self._tallied("call", node, node.func, rest=node) if lapack else node
        if not isinstance(node.func, ast.Attribute):
            return node
        if node.func.attr in ("sum", "mean") and not _is_numpy(node.func):
            return self._tallied("method", node, ast.Constant(node.func.attr), node.func.value, rest=node)
        return self._tallied("call", node, node.func, rest=node) if _is_numpy(node.func) else node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def _is_plain(node: ast.expr) -> bool:
    """Sums and products of names and numbers, which can be worked out whether they are wanted or not."""
    if isinstance(node, ast.Call):
        tallied = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "__tally__"
        symbol = getattr(node.args[0], "value", None) if tallied else None
        return symbol in ("add", "sub", "mul") and all(map(_is_plain, node.args[1:]))
    return isinstance(node, ast.Name | ast.Constant)


def _is_bookkeeping(target: ast.expr) -> bool:
    return getattr(target, "id", getattr(target, "attr", "")) in ("flops", "cost")


def _is_numpy(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "np"


def rewritten(source: str, filename: str = "<counted>"):
    """The code of a module whose arithmetic is counted."""
    return compile(_Rewrite().visit(ast.parse(source)), filename, "exec")


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str):
        return rewritten(self.get_data(self.path).decode(), self.path)

    def exec_module(self, module) -> None:
        module.__tally__ = tally
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname.split(".")[0] not in ("givens", "paper"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def install() -> None:
    """Rewrite whatever of the package, or of the methods it is compared with, is imported from now on."""
    sys.meta_path.insert(0, _Finder())
