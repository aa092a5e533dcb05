"""Readers of tables of text beside each other: ours, DuckDB's sniffer, pyarrow.csv.

Each table is a file of people's own or an odd one from the tests, with what a reader should find:
column names, number of rows, and columns that are numbers. A reader passes if all three agree. The
odd tables were collected while our reader was written, which favours it.
pip install duckdb pyarrow; python -m benchmarks.tables_reading [FOLDER WITH CSV FILES]
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from surrogate.io.delimited import read_table


@dataclass(frozen=True)
class Case:
    """A table in bytes; `numbers` are the columns that hold numbers, `rows` None for a refusal."""

    name: str
    content: bytes
    columns: tuple[str, ...]
    rows: int | None
    numbers: tuple[str, ...] = ()


CASES = [
    Case("commas", b"a,b\n1,x\n3,y\n", ("a", "b"), 2, ("a",)),
    Case("semicolons", b"a;b\n1;x\n3;y\n", ("a", "b"), 2, ("a",)),
    Case("tabs", b"a\tb\n1\tx\n3\ty\n", ("a", "b"), 2, ("a",)),
    Case("bars", b"a|b\n1|x\n3|y\n", ("a", "b"), 2, ("a",)),
    Case("quoted numbers", b'"a","b"\n"1","x"\n"3","y"\n', ("a", "b"), 2, ("a",)),
    Case("blanks around cells", b"a , b\n 1, x\n3 ,y \n", ("a", "b"), 2, ("a",)),
    Case("old line ends", b"a,b\r1,x\r3,y\r", ("a", "b"), 2, ("a",)),
    Case("blank lines", b"\n\na,b\n1,x\n   \n3,y", ("a", "b"), 2, ("a",)),
    Case("byte order mark", b"\xef\xbb\xbfa,b\n1,x\n3,y\n", ("a", "b"), 2, ("a",)),
    Case("UTF-16", "a;b\n1;x\n3;y\n".encode("utf-16"), ("a", "b"), 2, ("a",)),
    Case("Windows letters", "größe,x\n1,5 €\n".encode("cp1252"), ("größe", "x"), 1, ("größe",)),
    Case("gzip without .gz", gzip.compress(b"a,b\n1,x\n3,y\n", mtime=0), ("a", "b"), 2, ("a",)),
    Case("semicolons in quotes", b'"a;x",b\n"1;2",3\n"4;5",6\n', ("a;x", "b"), 2, ("b",)),
    Case("commas in cells", b"a;b\nx, y, z;2\nu;3\n", ("a", "b"), 2, ("b",)),
    Case("line end in quotes", b'a,b\n"x\ny",2\nz,3\n', ("a", "b"), 2, ("b",)),
    Case("lone quote", b'a,b\n"say ""hi""",2\n5" pipe,3\n', ("a", "b"), 2, ("b",)),
    Case("one column of words", b"full name\nJohn Smith\nJane Roe\n", ("full name",), 2),
    Case("steps as names", b"0,1,2\n5,6,7\n", ("0", "1", "2"), 1, ("0", "1", "2")),
    Case("decimal commas", b"a;b\n1,5;x\n-2,25;y\n0,5;z\n", ("a", "b"), 3, ("a",)),
    Case("thousands and commas", b"a;b\n1.234,5;x\n0,5;y\n", ("a", "b"), 2, ("a",)),
    Case("codes with zeros", b"zip,x\n00501,1\n10001,2\n", ("zip", "x"), 2, ("x",)),
    Case("no header", b"7,0.27\n6,0.3\n", (), None),
    Case("field too many", b"a,b\n1,2\n\n3,4,5\n", (), None),
    Case("field too few", b"a,b,c\n1,2,3\n1,2\n", (), None),
    Case("quote not closed", b'a,b\n1,2\n3,"4\n5,6\n7,8\n', (), None),
    Case("same name twice", b"a,b,a\n1,2,3\n", (), None),
    Case("no text", b"a,b\n1,\x00\n", (), None),
    Case("gzip cut short", gzip.compress(b"a,b\n" + b"1,2\n" * 5000, mtime=0)[:40], (), None),
]
FILES = {  # columns and rows of tables at hand
    "winequality-white.csv": (12, 4898),
    "adult.csv.gz": (15, 32561),
    "measles_england_wales.csv": (8, None),
    "stock_data.csv": (6, 3685),
    "ETTh1.csv.gz": (8, 17420),
    "Bike_Sharing.csv": (None, None),
}


def ours(place: Path) -> pd.DataFrame:
    return read_table(place, lambda text: None)


def duckdb(place: Path) -> pd.DataFrame:
    import duckdb

    return duckdb.sql(f"SELECT * FROM read_csv('{place}')").df()


def pyarrow(place: Path) -> pd.DataFrame:
    """It has no sniffer; the delimiter is the one that csv.Sniffer finds."""
    import csv

    from pyarrow import csv as arrow

    try:
        delimiter = csv.Sniffer().sniff(place.read_text()[:10_000], ",;\t|").delimiter
    except (csv.Error, UnicodeDecodeError):
        delimiter = ","
    return arrow.read_csv(place, parse_options=arrow.ParseOptions(delimiter=delimiter)).to_pandas()


def verdict(read: Callable[[Path], pd.DataFrame], place: Path, case: Case) -> str:
    try:
        found = read(place)
    except Exception:  # whatever a reader raises is a refusal
        return "ok" if case.rows is None else "refused"
    if case.rows is None:
        return "read what is broken"
    if tuple(str(name).strip() for name in found.columns) != case.columns:
        return "other columns"
    if len(found) != case.rows:
        return "other rows"
    numbers = [n for n in found.columns if pd.api.types.is_numeric_dtype(found[n].dtype)]
    return "ok" if tuple(str(n).strip() for n in numbers) == case.numbers else "other types"


def main(folder: Path | None) -> None:
    readers = {"ours": ours, "DuckDB": duckdb, "pyarrow.csv": pyarrow}
    print("| table | " + " | ".join(readers) + " |\n|---|" + "---|" * len(readers))
    passed = dict.fromkeys(readers, 0)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "a.csv"
        for case in CASES:
            place.write_bytes(case.content)
            found = {name: verdict(read, place, case) for name, read in readers.items()}
            for name, each in found.items():
                passed[name] += each == "ok"
            print(f"| {case.name} | " + " | ".join(found.values()) + " |")
    print("| **passed** | " + " | ".join(f"{n} of {len(CASES)}" for n in passed.values()) + " |")
    for name in FILES if folder is not None else ():
        place = folder / name
        if not place.exists():
            continue
        cells = []
        for read in readers.values():
            start = time.perf_counter()
            try:
                table = read(place)
                size = f"{len(table):,} x {table.shape[1]}"
            except Exception as problem:
                size = type(problem).__name__
            cells.append(f"{size}, {time.perf_counter() - start:.2f} s")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
