"""Blocks read by one call of NumPy give what reading field by field gives, or are left to it."""

from __future__ import annotations

import numpy as np
import pytest

from givens.app.tables import DataError, read_table, text

NUMBERS = [
    "1", "-2.5", "+3.25", " 4.5", "4.5 ", "1e5", "1E-5", "0.1234567890123456789", "123456789012345678", "1e308",
    "4.9e-324", "1e400",
    "-0", ".5", "5.", "nan", "NA", "", "-", "inf", "-inf", "Infinity", "0x10", "1_000", "1d5", "True", "1,5", "1 5", "--1", "١",
    "1e", "e5", "0.30000000000000004", "2.2250738585072011e-308", "9007199254740993", "\u00a01",
]  # fmt: skip


def outcome(path, **options):
    try:
        table = read_table(path, samples="rows", **options)
        return table.values, table.samples, table.variables, table.labels
    except DataError as error:
        return str(error)


def same(first, second):
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return first[1:] == second[1:] and np.array_equal(first[0].view(np.int64), second[0].view(np.int64))


def both_outcomes(monkeypatch, path, **options):
    """Read blocks whole, and field by field."""
    whole = outcome(path, **options)
    with monkeypatch.context() as context:
        context.setattr(text.TextRows, "_whole", lambda *block: None)
        return whole, outcome(path, **options)


@pytest.mark.parametrize("token", NUMBERS)
@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_every_spelling_of_a_number(monkeypatch, tmp_path, token, separator):
    lines = [separator.join(["name", "a", "b", "c"])]
    lines += [separator.join([f"s{k}", "1.5", token if k == 7 else "2", "0.25"]) for k in range(20)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert same(*both_outcomes(monkeypatch, path))


NAMES = [
    "plain",
    '"quoted"',
    '"with, comma"',
    '"two ""marks"""',
    " blank ",
    "NA",
    "",
    "é",
    '"open',
    "a'b",
    "1",
    "#",
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_name_and_line(monkeypatch, tmp_path, name, end, encoding):
    lines = ["name,a,kind,b"] + [f"{name if k == 7 else f's{k}'},{k}.5,x{k % 2},{k / 7!r}" for k in range(20)]
    path = tmp_path / "x.csv"
    path.write_bytes(end.join(lines).encode(encoding))
    assert same(*both_outcomes(monkeypatch, path, labels="kind"))


@pytest.mark.parametrize("seed", range(2))
def test_random_tables_in_several_blocks(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(30, 60)), int(rng.integers(1, 9))
    values = rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-30, 30, (rows, columns))
    quote = '"' if seed % 2 else ""
    lines = [",".join(["name", *(f"v{k}" for k in range(columns))])]
    lines += [",".join([f"{quote}s{k}{quote}", *map(repr, row.tolist())]) for k, row in enumerate(values)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    blocks = list(text.TextRows(path, block=300).blocks())
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate([block.values for block in blocks]), values)
    assert [name for block in blocks for name in block.names] == [f"s{k}" for k in range(rows)]
