"""CSV and TSV: numbers to the last bit, layouts found out, and sentences for what is wrong."""

from __future__ import annotations

import csv
import gzip
import struct

import numpy as np
import pandas
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from givens.app.tables import DataError, Table, open_rows, read_table
from givens.app.tables.text import TextRows


def doubles(folder, tokens, decimal="."):
    """Read a column of numbers, NaN and infinity included."""
    path = folder / "x.csv"
    # From most of the numbers it is seen which sign they have.
    tokens = [*[f"1{decimal}5"] * (len(tokens) + 1), *tokens]
    path.write_text("name;a\n" + "".join(f"s{k};{token}\n" for k, token in enumerate(tokens)))
    return np.concatenate([block.values for block in TextRows(path).blocks()])[len(tokens) // 2 + 1 :, 0]


def bits(numbers):
    return [struct.pack("d", number) for number in numbers]


formats = st.sampled_from(["{!r}", "{:.17g}", "{:.19g}", "{:.18e}", "{:.3f}", "{:+.6e}", "{:.40f}"])


@given(
    st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), formats), min_size=1, max_size=50)
)
@example(
    [
        (x, "{!r}")
        for x in (0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0)
    ]
)
def test_numbers_are_those_of_python_to_the_last_bit(tmp_path_factory, cases):
    folder = tmp_path_factory.mktemp("csv")
    tokens = [pattern.format(x) for x, pattern in cases]
    assert bits(doubles(folder, tokens)) == bits(map(float, tokens))
    commas = [token.replace(".", ",") for token in tokens]
    assert bits(doubles(folder, commas, ",")) == bits(map(float, tokens))


def test_what_stands_for_a_missing_number(tmp_path):
    tokens = ["", "NA", "na", "NaN", "N/A", "null", "NULL", "None", "Missing", "?", ".", "-"]
    assert np.isnan(doubles(tmp_path, tokens)).all()
    assert np.isnan(doubles(tmp_path, tokens, ",")).all()
    np.testing.assert_array_equal(
        doubles(tmp_path, ["inf", "-Infinity", " 1 ", "+2", ".5", "3."]), [np.inf, -np.inf, 1, 2, 0.5, 3]
    )


words = st.text(
    st.characters(blacklist_categories=("Cs", "Cc")) | st.sampled_from("\u2028\u2029\x85\f"), max_size=12
)


@example([":\u2028:\u2028:\u2028:", ""], 7, "\t", 20)
@given(
    st.lists(words.map(str.strip), min_size=2, max_size=6, unique=True),
    st.integers(1, 12),
    st.sampled_from(",\t;"),
    st.integers(20, 200),
)
def test_what_the_csv_module_writes_is_read_back_whatever_the_blocks(
    tmp_path_factory, names, rows, separator, block
):
    columns = [f"c{k}" + name.replace("\x00", "") for k, name in enumerate(names)]
    values = np.arange(rows * len(names), dtype=float).reshape(rows, -1) / 7
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=separator)
        writer.writerow(["id", *columns])
        writer.writerows([[f"r{k} {names[0]}".strip(), *row] for k, row in enumerate(values.tolist())])
    table = read_table(path, samples="rows")
    np.testing.assert_array_equal(table.values, values)
    assert table.variables == columns
    assert table.samples == [f"r{k} {names[0]}".strip() for k in range(rows)]
    blocks = list(TextRows(path, block=block).blocks())
    np.testing.assert_array_equal(np.concatenate([part.values for part in blocks]), values)
    assert [name for part in blocks for name in part.names] == table.samples


LAYOUTS = {
    "comma": ("a,b\n1,2\n3,4\n", ["a", "b"], None),
    "tab, names": ("gene\ta\tb\nx\t1\t2\ny\t3\t4\n", ["x", "y"], ["a", "b"]),
    "semicolon, decimal comma": ("a;b\n1,5;2\n3;4,25\n", ["a", "b"], None),
    "R's short header": ("a b\nx 1 2\ny 3 4\n", ["a", "b"], ["x", "y"]),
    "pandas' blank corner": (",2019,2020\n0,1,2\n1,3,4\n", ["2019", "2020"], ["0", "1"]),
    "a line for Excel": ("sep=,\na,b\n1,2\n3,4\n", ["a", "b"], ["sample 1", "sample 2"]),
    "no header": ("1,2\n3,4\n", ["variable 1", "variable 2"], ["sample 1", "sample 2"]),
    "numpy.savetxt": ("1.0e+00 2.0e+00\n3.0e+00 4.0e+00\n", ["variable 1", "variable 2"], None),
    "bars": ("a|b\n1|2\n3|4\n", ["a", "b"], None),
    "CRLF, BOM, comment": ("\ufeff# made today\r\na,b\r\n1,2\r\n3,4\r\n", ["a", "b"], None),
    "quotes": ('"a","b, ""c"""\n"1","2"\n3,4\n', ["a", 'b, "c"'], None),
    "line break in a name": ('n,a,b\n"x\ny",1,2\nz,3,4\n', ["a", "b"], ["x\ny", "z"]),
    "no line end": ("a,b\n1,2\n3,4", ["a", "b"], None),
    "blank lines": ("a,b\n\n1,2\n\n3,4\n\n", ["a", "b"], None),
    "trailing separator": ("a,b,\n1,2,\n3,4,\n", ["a", "b"], None),
    "trailing separators": ("a,b,,\n1,2,,\n3,4,,\n", ["a", "b"], None),
    "trailing separator but for the header": ("a,b\n1,2,\n3,4,\n", ["a", "b"], ["sample 1", "sample 2"]),
    "trailing separator, names": ("name,a,b\nx,1,2,\ny,3,4,\n", ["a", "b"], ["x", "y"]),
    "trailing separator, no header": ("1,2,\n3,4,\n", ["variable 1", "variable 2"], None),
    "trailing column of pandas": ("a,b,Unnamed: 2\n1,2,\n3,4,\n", ["a", "b"], None),
    "blank records above the header": (",,\na,b\n,,\n1,2\n3,4\n", ["a", "b"], None),
    "separators of Unicode, which end no line": (
        "name,a\u2028b,c\x85d\x0ce\x1cf\nx,1,2\ny,3,4\n",
        ["a\u2028b", "c\x85d\x0ce\x1cf"],
        ["x", "y"],
    ),
    "blanks around": ("a , b\n 1 , 2 \n3,4\n", ["a", "b"], None),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_layouts_are_found_out(tmp_path, name, ending):
    content, variables, samples = LAYOUTS[name]
    path = tmp_path / f"x{ending}"
    data = content.encode()
    path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    table = read_table(path)
    expected = np.array([[1.0, 2.0], [3.0, 4.0]])
    if "decimal comma" in name:
        expected = np.array([[1.5, 2.0], [3.0, 4.25]])
        assert any("decimal" in note for note in table.notes)
    np.testing.assert_array_equal(table.values, expected.T if "gene" in content else expected)
    assert table.variables == variables
    if samples is not None:
        assert table.samples == samples
    assert any("as samples" in note for note in table.notes)
    assert any("no heading and" in note for note in table.notes) == ("trailing" in name)


def test_labels_from_a_column_from_a_first_row_and_text_left_out(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,kind,a,b,place\ns1,x,1,2,here\ns2,y,3,4,there\n")
    table = read_table(path, labels="kind")
    assert table.labels == ["x", "y"]
    assert table.variables == ["a", "b"]
    assert any("'place'" in note for note in table.notes)
    path.write_text("gene,s1,s2\nclass,Tumor,Normal\ng1,1,2\ng2,3,4\n")
    table = read_table(path, labels="class")
    assert (table.labels, table.samples, table.variables) == (["Tumor", "Normal"], ["s1", "s2"], ["g1", "g2"])
    np.testing.assert_array_equal(table.values, [[1, 3], [2, 4]])
    with pytest.raises(DataError, match="no column 'colour' for --labels"):
        read_table(path, labels="colour")
    path.write_text("id,a,b,c\ns1,1,2,7\ns2,3,4,8\n")
    assert read_table(path, labels="c", drop=["b"]).variables == ["a"]
    assert read_table(path, labels="c").labels == ["7", "8"]
    assert read_table(path, names="c").samples == ["7", "8"]


def test_the_orientation_is_guessed_and_can_be_told(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("\ta\tb\n" + "".join(f"g{k}\t{k}\t1\n" for k in range(1500)))
    assert read_table(path).shape == (2, 1500)
    assert any("1,500 named rows" in note for note in read_table(path).notes)
    assert read_table(path, samples="rows").shape == (1500, 2)
    path.write_text("\ta\tb\n" + "".join(f"g{k}\t{k}\t1\n" for k in range(15)))
    assert read_table(path).shape == (15, 2)


def test_names_by_their_heading(tmp_path):
    path = tmp_path / "x.tsv"
    # A gene that stands twice is said, and not taken for a column of text in a table that then lies on its side.
    path.write_text("Gene Symbol\ta\tb\nTP53\t1\t2\nKLK3\t3\t4\nTP53\t5\t6\n")
    with pytest.raises(DataError, match="'TP53' for rows 1 and 3: make them unique, or leave"):
        read_table(path)
    table = read_table(path, drop=["Gene Symbol"], samples="columns")
    assert (table.samples, table.variables) == (["a", "b"], ["variable 1", "variable 2", "variable 3"])
    # Identifiers made of digits are names; measurements are not.
    path.write_text("gene_id\ta\tb\n7157\t1\t2\n354\t3\t4\n")
    assert read_table(path).variables == ["7157", "354"]
    path.write_text("protein,fat\n1.5,2\n3,4\n")
    assert read_table(path).variables == ["protein", "fat"]


def test_a_series_matrix_with_more_comments_than_the_first_look(tmp_path):
    comments = "".join(f'!Sample_{k}\t"{"x" * 1000}"\n' for k in range(400))
    rows = '"ID_REF"\t"GSM1"\t"GSM2"\n"1007_s_at"\t1\t2\n"1053_at"\t3\t4\n'
    path = tmp_path / "GSE1_series_matrix.txt"
    path.write_text(comments + "!series_matrix_table_begin\n" + rows + "!series_matrix_table_end\n")
    table = read_table(path)
    assert (table.samples, table.variables) == (["GSM1", "GSM2"], ["1007_s_at", "1053_at"])
    np.testing.assert_array_equal(table.values, [[1, 3], [2, 4]])
    path.write_text(comments + rows + "!series_matrix_table_end\n1\t2\t3\n")
    with pytest.raises(DataError, match="line 404 has 1 field"):
        read_table(path)


BAD = {
    "empty": ("", "x.csv is empty"),
    "only blank lines": ("\n \n", "x.csv is empty"),
    "only comments": ("# a\n# b\n", "only comments"),
    "only a header": ("a,b\n", "a header and no rows"),
    "text in a number's place": (
        "n,a,b\nx,1,2\ny,3,oops\n",
        "line 3, column 3 \\('b'\\): 'oops' is not a number",
    ),
    "a row of labels": (
        "n,a,b\ntissue,u,v\nx,1,2\ny,3,4\n",
        "line 2: the row 'tissue' holds text, such as 'u', and no numbers: --labels 'tissue' takes it as labels, or",
    ),
    "a later row of labels": (
        "n,a,b\nx,1,2\ntissue,u,v\ny,3,4\n",
        "line 3: .* --labels 'tissue' takes it as labels, if it is the first below the header, or leave the row out",
    ),
    "text after a blank line": ("n,a,b\nx,1,2\n\ny,3,oops\n", "line 4, column 3"),
    "a short row": ("a,b\n1,2\n3\n", "line 3 has 1 field where the others have 2"),
    "a long row": ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields"),
    "a missing value": (
        "n,a,b\nx,1,2\ny,NA,4\nz,,1\n",
        "2 values of 6 are missing \\(NaN\\), at line 3 \\('y'\\)",
    ),
    "infinity": ("a,b\n1,2\n3,inf\n", "1 value of 4 is infinite, at line 3"),
    "duplicate columns": ("a,a\n1,2\n3,4\n", "'a' for columns 1 and 2"),
    "duplicate rows": ("n,a,b\nx,1,2\nx,3,4\n", "'x' for rows 1 and 2"),
    "an open quote": ('a,b\n1,2\n"3,4\n', "line 3: a quotation mark is opened"),
    "signs for thousands": (
        'n,a,b\nx,"1,234.5",2\ny,"12,000",4\n',
        "column 2 \\('a'\\) holds numbers as people write them, such as '1,234.5'",
    ),
    "per cent": ("n,a,b\nx,12 %,2\ny,9.5%,4\n", "such as '12 %'"),
    "money": ("n;a;b\nx;1.000,50 €;2\ny;3 €;4\n", "such as '1.000,50 €'"),
    "no numbers": ("a,b\nx,y\nz,w\n", "no column of numbers"),
    "zero bytes": ("a,b\n1,\0\n", "not text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text_gets_one_sentence(tmp_path, name):
    content, match = BAD[name]
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode())
    arguments = {"names": "n"} if content.startswith("n,") else {}
    with pytest.raises(DataError, match=match) as caught:
        read_table(path, **arguments)
    assert "\n" not in str(caught.value)


def test_damaged_gzip_and_wrong_encodings(tmp_path):
    path = tmp_path / "x.csv.gz"
    whole = gzip.compress(
        b"a,b\n" + b"".join(b"%d,%d\n" % (k * 7919 % 1009, k * 104729 % 7) for k in range(60000))
    )
    for size in (12, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="truncated"):
            read_table(path)
    path.write_bytes(whole[:4000] + b"\xff" * 50 + whole[4050:])
    with pytest.raises(DataError, match=r"damaged gzip|is not a number|fields where|gzip file"):
        read_table(path)
    path = tmp_path / "x.csv"
    path.write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        read_table(path)
    path.write_bytes("Größe,b\n1,2\n".encode("latin-1"))
    table = read_table(path)
    assert table.variables == ["Größe", "b"]
    assert any("Latin-1" in note for note in table.notes)


COUNTING = {
    # heading of the column that counts the rows: variables, note
    "Unnamed: 0": "took 'Unnamed: 0', which counts the rows, as their names",
    "rownames": "took 'rownames', which counts the rows, as their names",
    "": "took the first column, which counts the rows, as their names",
}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("heading", COUNTING)
def test_a_first_column_that_counts_the_rows_is_no_variable(tmp_path, heading, first):
    path = tmp_path / "x.csv"
    rows = [(k + first, (7 * k) % 5, k * k) for k in range(1500)]
    for number in (12, 1500):  # numbers of rows do not make a long table one of genes
        path.write_text(f"{heading},a,b\n" + "".join(f"{k},{a},{b}\n" for k, a, b in rows[:number]))
        table = read_table(path)
        assert table.variables == ["a", "b"]
        assert COUNTING[heading] in table.notes
        assert table.samples == [str(k) for k, *_ in rows[:number]]
        assert sum(len(chunk.values) for chunk in open_rows(path)) == number


@pytest.mark.parametrize(
    ("header", "line", "note"),
    [
        # A table saved, read and saved again by pandas.
        (",Unnamed: 0.1,a", "{k},{k},{a}", "left out 'Unnamed: 0.1', which counts the rows"),
        ("a,", "{a},{k}", "left out 'column 2', which counts the rows"),
    ],
)
def test_another_column_that_counts_the_rows_is_left_out(tmp_path, header, line, note):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n" + "".join(line.format(k=k, a=7 * k % 5) + "\n" for k in range(12)))
    table = read_table(path)
    assert table.variables == ["a"]
    assert note in table.notes


def test_measurements_under_what_pandas_makes_of_an_empty_heading_stay(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("Unnamed: 0,a\n" + "".join(f"{k * k},{7 * k % 5}\n" for k in range(12)))
    assert read_table(path).variables == ["Unnamed: 0", "a"]


@pytest.mark.parametrize("heading", ["time", "Time (s)", "frame", "timestamp"])
def test_time_among_the_variables_is_noted(tmp_path, heading):
    path = tmp_path / "x.csv"
    path.write_text(f"{heading},a\n" + "".join(f"{k / 128:.3f},{7 * k % 5}\n" for k in range(12)))
    table = read_table(path)
    assert table.variables == [heading, "a"]
    (note,) = (note for note in table.notes if note.startswith(f"took '{heading}' as a variable"))
    assert f"--drop '{heading}' leaves it out" in note
    path.write_text(f"{heading},a\n" + "".join(f"{k % 4},{7 * k % 5}\n" for k in range(12)))
    assert not any("as time does" in note for note in read_table(path).notes)


NUMBERED = {
    # the text, the names of the variables if they are in it, and the samples
    "years over fractions": ("country,2010,2011,2012\nx,1.5,2,3\ny,4,5,6\n", "2010 2011 2012", "xy"),
    "identifiers under a heading": ("sample,12,7,9\nx,1,2,3\ny,4,5,6\n", "12 7 9", "xy"),
    "pandas' columns without an index": ("0,1,2\n1.5,2,3\n4,5,6\n", "0 1 2", ["sample 1", "sample 2"]),
    "whole numbers throughout": ("0,1,2\n3,4,5\n", None, ["sample 1", "sample 2"]),
    "names without a header": ("x,3,2,1\ny,4.5,5,6\n", None, "xy"),
}


@pytest.mark.parametrize("case", NUMBERED)
def test_headers_of_whole_numbers_are_told_from_data(case, tmp_path):
    text, variables, samples = NUMBERED[case]
    path = tmp_path / "table.csv"
    path.write_text(text)
    table = read_table(path, samples="rows")
    names = variables.split() if variables else [f"variable {k}" for k in (1, 2, 3)]
    assert (table.variables, table.samples, table.values.shape) == (names, list(samples), (2, 3))
    said = any("though they are whole numbers" in note for note in table.notes)
    assert said == (variables is not None)


@pytest.mark.parametrize("third", ["LAL5", "04006"])
@pytest.mark.parametrize("label", ["T", "NA"])
def test_a_header_of_numbers_above_a_row_of_labels(tmp_path, third, label):
    path = tmp_path / "x.tsv"
    rows = [["gene", "01005", "01010", third, "03002"], ["lineage", "B", "T", "B", label]]
    rows += [[f"{k}_at", k, 2, k % 2, 7] for k in range(5)]
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    table = read_table(path, labels="lineage")
    assert (table.samples, table.labels) == (rows[0][1:], ["B", "T", "B", label])
    assert any("names of the columns, though" in note for note in table.notes)
    with pytest.raises(
        DataError, match=r"line 2: the row 'lineage' holds text.* --labels 'lineage' takes it"
    ):
        read_table(path)


def streamed(path, **options):
    rows = open_rows(path, **options)
    chunks = list(rows)
    names = [name for chunk in chunks for name in chunk.names]
    return Table(np.concatenate([chunk.values for chunk in chunks]), names, rows.variables)


ABOVE = [["measured in 2020", "", ""], ["", "", ""], ["# not a comment", "", ""]]
TOLD = {
    # rows above the numbers, options, names of the columns
    "no names": ([], {"header": 0}, None),
    "numbers are names": ([[7, 5, 9]], {"header": 1}, ["7", "5", "9"]),
    "below what to skip": ([*ABOVE, list("abc")], {"skip_rows": 3}, list("abc")),
    "counted after those": ([*ABOVE, [9, 8, 7]], {"skip_rows": 1, "header": 3}, ["9", "8", "7"]),
    "alone": ([*ABOVE, [9, 8, 7]], {"header": 4}, ["9", "8", "7"]),
    "like a comment": ([["#a", "b", "c"]], {"header": 1}, ["#a", "b", "c"]),
    "more than are read at first": (ABOVE * 70_000, {"skip_rows": 210_000, "header": 0}, None),
}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".xlsx"])
@pytest.mark.parametrize("name", TOLD)
def test_the_rows_of_names_and_those_to_skip_can_be_told(tmp_path, ending, name):
    above, options, variables = TOLD[name]
    numbers, path = [[1, 2, 3], [4.5, 5, 6]], tmp_path / f"x{ending}"
    rows = [*above, *numbers]
    if ending == ".xlsx":
        pandas.DataFrame(rows[-10:]).to_excel(path, index=False, header=False)
        options = options | {"skip_rows": min(options.get("skip_rows", 0), 8)}
    else:
        text = "".join(",".join(map(str, row)).rstrip(",") + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    for read in (read_table,) if ending == ".xlsx" else (read_table, streamed):
        table = read(path, **options)
        assert table.variables == (variables or [f"variable {k}" for k in (1, 2, 3)])
        np.testing.assert_array_equal(table.values, numbers)


MISFITS = {
    "more than there are": ({"skip_rows": 4}, "no row after line 4: --skip-rows or --header counts too many"),
    "a header below the end": ({"header": 7}, "x.csv has no row after line 6"),
    "a blank header": ({"header": 2}, "x.csv, line 2 is empty, and --header says that it holds the names"),
    "a title": ({"header": 1}, "line 1 has 1 field, and the rows below it have 3: --skip-rows leaves out"),
    "a title, unasked": ({}, "line 1 has 1 field, and the rows below it have 3: --skip-rows leaves out"),
    "the last row": ({"header": 4}, "a header and no rows"),
    "negative": ({"header": -1}, "header must be a whole number of at least 0, not -1"),
    "half a row": ({"skip_rows": 0.5}, "skip_rows must be a whole number of at least 0, not 0.5"),
}


@pytest.mark.parametrize("missing", ["NA", "1234567890123456789012345", "inf", "5e-324"])
def test_a_wide_line_of_nothing_but_awkward_fields(tmp_path, missing):
    """A sample without values in a table of more than 65,536 columns once ran for ever."""
    names = [f"v{k}" for k in range(65_600)]
    path = tmp_path / "wide.csv"
    lines = [
        ",".join(["sample", *names]),
        "a," + ",".join(["1"] * 65_600),
        "b," + ",".join([missing] * 65_600),
    ]
    path.write_text("\n".join(lines) + "\n")
    if float(missing.replace("NA", "nan")) < np.inf:
        np.testing.assert_array_equal(read_table(path).values[1], float(missing))
        np.testing.assert_array_equal(next(iter(open_rows(path))).values[1], float(missing))
        return
    kind = "missing" if missing == "NA" else "infinite"
    with pytest.raises(DataError, match=f"65,600 values of 131,200 are {kind}"):
        read_table(path)
    with pytest.raises(DataError, match=f"65,600 values of 131,200 are {kind}"):
        list(open_rows(path))


def test_lines_longer_than_the_first_look(tmp_path):
    """Samples in rows and genes in columns: one line alone is longer than what is usually looked at."""
    names = [f"gene_number_{k}" for k in range(40_000)]
    values = np.random.default_rng(0).normal(size=(3, 40_000))
    path = tmp_path / "wide.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample", *names])
        writer.writerows([[f"s{k}", *row] for k, row in enumerate(values.tolist())])
    table = read_table(path)
    np.testing.assert_array_equal(table.values, values)
    assert table.variables == names


def test_a_row_without_any_value_is_no_row_of_labels(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("s1,u,1.5,2\ns2,v,NA,NA\ns3,w,3,4\n")
    table = read_table(path, impute="drop")
    assert table.samples == ["s1", "s3"]
    np.testing.assert_array_equal(table.values, [[1.5, 2], [3, 4]])


@pytest.mark.parametrize("name", MISFITS)
def test_rows_that_do_not_fit_the_file_get_one_sentence(tmp_path, name):
    options, match = MISFITS[name]
    path = tmp_path / "x.csv"
    path.write_text("measured in 2020\n\n1,2,3\n4,5,6\n")
    for read in (read_table, streamed):
        with pytest.raises(DataError, match=match) as caught:
            read(path, **options)
        assert "\n" not in str(caught.value)
