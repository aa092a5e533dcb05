"""Tables of text as people have them: what is understood of a file, and where one is broken."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surrogate.errors import ModelError
from surrogate.io import formats


def read(tmp_path: Path, content: bytes, name: str = "a.csv") -> tuple[pd.DataFrame, list[str]]:
    """The table in such a file, and what is said of it."""
    place = tmp_path / name
    place.write_bytes(content)
    said: list[str] = []
    found = formats.read(place, {}, said.append)[1]
    assert isinstance(found, pd.DataFrame)
    return found, said


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,x\n3,y\n",
        b"a;b\n1;x\n3;y\n",
        b"a\tb\n1\tx\n3\ty\n",
        b"a|b\n1|x\n3|y\n",
        b'"a","b"\n"1","x"\n"3","y"\n',
        b"a , b\n 1, x\n3 ,y \n",
        b"a,b\r\n1,x\r\n\r\n3,y\r\n",
        b"a,b\r1,x\r3,y\r",
        b"\n\na,b\n1,x\n   \n3,y",
        b"\xef\xbb\xbfa,b\n1,x\n3,y\n",
        "a;b\n1;x\n3;y\n".encode("utf-16"),
        gzip.compress(b"a,b\n1,x\n3,y\n", mtime=0),
    ],
)
def test_one_table_in_many_dialects(tmp_path: Path, content: bytes) -> None:
    table, said = read(tmp_path, content)
    assert list(table) == ["a", "b"]
    assert table["a"].tolist() == [1, 3]
    assert table["b"].str.strip().tolist() == ["x", "y"]
    assert said == []


@pytest.mark.parametrize(
    ("content", "names", "first"),
    [
        (b'"a;x",b\n"1;2",3\n"4;5",6\n', ["a;x", "b"], ["1;2", 3]),
        (b"a;b\nx, y, z;2\nu;3\n", ["a", "b"], ["x, y, z", 2]),
        (b"a\tb\n1, 2\t3\n4\t5\n", ["a", "b"], ["1, 2", 3]),
        (b'a,b\n"x\ny",2\nz,3\n', ["a", "b"], ["x\ny", 2]),
        (b'a,b\n"say ""hi""",2\n5" pipe,3\n', ["a", "b"], ['say "hi"', 2]),
        (b"full name\nJohn Smith\nJane Roe\n", ["full name"], ["John Smith"]),
        (b",a\n0,1\n1,2\n", ["Unnamed: 0", "a"], [0, 1]),
        (b"0,1,2\n5,6,7\n", ["0", "1", "2"], [5, 6, 7]),
    ],
)
def test_delimiters_and_quotes_are_recognised(
    tmp_path: Path, content: bytes, names: list[str], first: list[object]
) -> None:
    table, _ = read(tmp_path, content)
    assert list(table) == names
    assert table.iloc[0].tolist() == first


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv.gz", "a.TSV.GZ"])
def test_compressed_files_are_read(tmp_path: Path, name: str) -> None:
    table, _ = read(tmp_path, gzip.compress(b"a\tb\n1\t2\n"), name)
    assert table["b"].tolist() == [2]


def test_other_encodings_are_read_and_reported(tmp_path: Path) -> None:
    table, (said,) = read(tmp_path, "größe,preis\n1,5 €\n".encode("cp1252"))
    assert list(table) == ["größe", "preis"]
    assert table["preis"].tolist() == ["5 €"]
    assert "not UTF-8; it is read as Western European text (cp1252)" in said
    late = "a,b\n" + "1,2\n" * 300_000 + "3,ü\n"
    table, (said,) = read(tmp_path, late.encode("latin-1"))
    assert table["b"].iloc[-1] == "ü"
    assert "(latin-1)" in read(tmp_path, b"a,b\n\x81,2\n")[1][0]


def test_decimal_commas_are_parsed(tmp_path: Path) -> None:
    content = b"a;b;c;d\n1,5;2;x,y;1.234,5\n-2,25e3;3;z;?\n;4;;0,5\n"
    table, said = read(tmp_path, content)
    assert said == ["numbers with decimal commas: a, d"]
    np.testing.assert_array_equal(table["a"], [1.5, -2250.0, np.nan])
    np.testing.assert_array_equal(table["d"], [1234.5, np.nan, 0.5])
    assert table["b"].tolist() == [2, 3, 4]
    assert table["c"].tolist()[:2] == ["x,y", "z"]
    assert read(tmp_path, b'a,b\n"1,5",2\n')[0]["a"].tolist() == ["1,5"]


def test_words_for_booleans_are_kept(tmp_path: Path) -> None:
    table, _ = read(tmp_path, b"a,b,c,d\nTrue,true,yes,TRUE\nFalse,,no,FALSE\n")
    assert table["a"].tolist() == [True, False]
    assert table["b"].tolist()[0] == "true"
    assert table["c"].tolist() == ["yes", "no"]
    assert table["d"].tolist() == ["TRUE", "FALSE"]


def test_thousands_of_columns_are_read(tmp_path: Path) -> None:
    names = [f"a_rather_long_name_of_column_{i}" for i in range(3000)]
    content = ";".join(names) + "\n" + ";".join("1,5" for _ in names) + "\n"
    table, _ = read(tmp_path, content.encode())
    assert table.shape == (1, 3000)
    assert (table == 1.5).all(axis=None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is empty, without a header"),
        (b"\n \n", "it is empty, without a header"),
        (b"a,b\n", "0 rows below its header"),
        (b"a,b\n1,2\n\n3,4,5\n", "line 4 has 3 fields where the header has 2; fields that have co"),
        (b"a,b,c\n1,2,3\n1,2\n", "line 3 has 2 fields where the header has 3; fields without a"),
        (b"a,b\n1,2\n3,4,\n", "line 3 has 3 fields where the header has 2; drop the delimiter"),
        (b"a,b\n1,2,\n3,4,5\n", "line 3 has 3 fields where the header has 2; fields that"),
        (b"a,b\nx,1,2\ny,3,4\n", "line 2 has 3 fields where the header has 2; if its first field"),
        (b"# made\na,b\n1,2\n", "line 2 has 2 fields where the header has 1; remove the lines"),
        (b'a,b\n1,2\n3,"4\n5,6\n7,8\n', "line 3 opens a quote that is never closed"),
        (b'a,b\n1,2\n3,"4" x\n7,8\n', "line 3 has text behind a closing quote"),
        (
            b'a,b\n1,2\n"3\n5,6"\n7,8\n',
            "line 3 has 1 fields where the header has 2; quoted text in",
        ),
        (b'a,b\n1,"' + b"x" * 200_000 + b"\n2,3\n", "line 2 opens a quote that is never closed"),
        (b"7,0.27\n6,0.3\n", "has no header: its first line holds numbers only (7, 0.27)"),
        (b"7;0,27;5\n6;0,3;5\n", "has no header"),
        (b"a,b,a\n1,2,3\n", "has several columns named 'a' (columns 1, 3); rename them"),
        (b"a b c\n1 2 3\n4 5 6\n", "separated by blanks"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "it is a binary file"),
        (b"a,b\n1,\x00\n", "it is a binary file"),
        (b"PK\x03\x04rest", "it is a zip or Excel file; save it as CSV"),
        (b"\xff\xfea\x00,b\n1,2\n", "not in the encoding that its first bytes announce"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 5000, mtime=0)[:40], "ended before"),
    ],
)
def test_broken_files_are_refused_with_the_line(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ModelError) as problem:
        read(tmp_path, content)
    assert says in str(problem.value)
    assert "a.csv" in str(problem.value)


def test_leading_zeros_are_kept(tmp_path: Path) -> None:
    content = b"zip,n,late,gap,one,x\n"
    for i in range(3000):
        late = b"05" if i == 2500 else b"%d" % (10 + i % 80)
        content += b"0%04d,%d,%s,%s,%d,0%d\n" % (i, i, late, b"007" if i % 2 else b"", i % 2, i)
    table, _ = read(tmp_path, content)
    assert table["zip"].iloc[7] == "00007"
    assert table["late"].iloc[2500] == "05"
    assert table["gap"].dropna().unique().tolist() == ["007"]
    assert [table[name].dtype.kind for name in ("n", "one", "x")] == ["i"] * 3


def test_an_index_saved_twice_has_unique_names(tmp_path: Path) -> None:
    table, _ = read(tmp_path, b",Unnamed: 0,a\n0,0,1\n1,1,2\n")
    assert list(table) == ["Unnamed: 0", "Unnamed: 0.1", "a"]


def test_trailing_delimiters_are_accepted(tmp_path: Path) -> None:
    table, _ = read(tmp_path, b"a,b\n1,2,\n3,4,\n")
    assert list(table) == ["a", "b", "Unnamed: 2"]
    assert table["b"].tolist() == [2, 4]
    assert table["Unnamed: 2"].isna().all()
