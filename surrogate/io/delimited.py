"""Reading tables of text (CSV, TSV): encoding, delimiter, header, and the line of a defect.

pandas parses; the rest is our own because DuckDB's sniffer passes 15 and pyarrow.csv 17 of the 28
odd tables of our tests (UTF-16, cp1252, decimal commas, broken lines): benchmarks/tables_reading.py
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from surrogate.errors import ModelError

DELIMITERS = ",;\t|"
DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
READ_CHUNK_BYTES = 1 << 20
SNIFFED_CHARACTERS = 1 << 20  # from which the delimiter is inferred
SNIFFED_LINES = 100  # from which the delimiter is inferred
SNIFFED_ROWS = 1_000  # rows in which leading zeros are looked for
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BINARY_SIGNATURES = {
    b"PK\x03\x04": "a zip or Excel file",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
}
CONTROL_BYTES = bytes({*range(32)} - {*b"\t\n\x0b\x0c\r\x1a\x1b"})  # never in text
MISSING_CELLS = ("", "?", "na", "n/a", "nan", "null", "none", "-", "--")
DECIMAL_COMMA = r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][-+]?\d+)?\s*"  # 1.234,5 or 0,5 or 7

Say = Callable[[str], None]


def read_table(place: Path, say: Say) -> pd.DataFrame:
    """The table in a file of text, maybe compressed; `say` receives what was assumed about it."""
    encoding = _encoding(place, say)
    delimiter = _delimiter(place, encoding)
    names = _checked_header(place, encoding, delimiter)
    settings: dict[str, Any] = {
        "sep": delimiter,
        "names": names,
        "header": 0,
        "index_col": False,
        "skipinitialspace": True,
        "low_memory": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        with _text(place, encoding) as file:
            table = pd.read_csv(file, **settings)
        spelled = [name for name in names if _is_boolean(table[name])]
        if spelled:  # pandas parses only True and False; yes, no, true and false stay words
            with _text(place, encoding) as file:
                words = pd.read_csv(file, **settings, usecols=spelled, dtype=str)
            for name in spelled:
                if not set(words[name].dropna().unique()) <= {"True", "False"}:
                    table[name] = words[name]
        _restore_leading_zeros(
            table, lambda **more: _reread_as_text(place, encoding, {**settings, **more})
        )
    return table if delimiter == "," else _with_decimal_commas(table, say)


def _reread_as_text(place: Path, encoding: str, settings: dict[str, Any]) -> pd.DataFrame:
    """Some columns, read again as text."""
    with _text(place, encoding) as file:
        table: pd.DataFrame = pd.read_csv(file, **settings, dtype=str)
    return table


def _restore_leading_zeros(table: pd.DataFrame, read: Callable[..., pd.DataFrame]) -> None:
    """Restore leading zeros: columns of digits of one length, some with a leading 0, are text.

    The first rows rule out nearly all columns; the others are read again as text.
    """
    whole = [name for name in table.columns if _may_be_code(table[name])]
    if not whole:
        return
    head = read(usecols=whole, nrows=SNIFFED_ROWS)
    maybe = []
    for name in whole:
        lengths = set(head[name].dropna().str.strip().str.len())
        length = lengths.pop() if len(lengths) == 1 else 0
        least, most = (len(str(int(end))) for end in (table[name].min(), table[name].max()))
        if length > 1 and least < length and most <= length:
            maybe.append(name)
    if maybe:
        words = read(usecols=maybe)
        for name in maybe:
            found = words[name].dropna().str.strip().unique()
            alike = len({len(word) for word in found}) == 1
            if alike and all(word.isdecimal() for word in found):
                table[name] = words[name].str.strip()


def _may_be_code(column: pd.Series[Any]) -> bool:
    if column.dtype.kind not in "iuf" or not column.notna().any() or not column.min() >= 0:
        return False
    if column.dtype.kind != "f":
        return True
    known = column[column.notna()]  # whole numbers with gaps are read as floats
    return bool(((known % 1) == 0).all() and known.max() < 1e15)


def _is_boolean(column: pd.Series[Any]) -> bool:
    if column.dtype == bool:
        return True
    return str(column.dtype) == "object" and set(map(type, column.dropna())) == {bool}


# --- bytes ----------------------------------------------------------------------------------------


def _bytes(place: Path) -> IO[bytes]:
    """The file's content; a compressed one may have any name."""
    with place.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    if packed or place.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(place, "rb"))
    return place.open("rb")


def _text(place: Path, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(cast(Any, _bytes(place)), encoding=encoding, newline="")


def _encoding(place: Path, say: Say) -> str:
    """UTF-8, UTF-16 where a byte order mark says so, else Western European."""
    with _bytes(place) as file:
        head = file.read(4)
        if head[:2] in UTF16_MARKS:  # as spreadsheets write "Unicode text"
            return "utf-16"
        what = next(
            (said for start, said in BINARY_SIGNATURES.items() if head.startswith(start)), None
        )
        if what is not None:
            raise ModelError(
                f"cannot read {str(place)!r} as a table: it is {what}", remedy="save it as CSV"
            )
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        other: str | None = None
        chunk = head + file.read(READ_CHUNK_BYTES)
        while chunk:
            if len(chunk.translate(None, CONTROL_BYTES)) < len(chunk):
                raise ModelError(
                    f"cannot read {str(place)!r} as a table: it is a binary file",
                    remedy="save it as CSV in UTF-8",
                )
            following = file.read(READ_CHUNK_BYTES)
            if other is None:
                try:
                    decoder.decode(chunk, final=not following)
                except UnicodeDecodeError:
                    other = "cp1252"
            if other == "cp1252" and not _decodes_as(chunk, other):
                other = "latin-1"
            chunk = following
    if other is None:
        return "utf-8-sig"
    say(
        f"{place} is not UTF-8; it is read as Western European text ({other}): if letters look "
        "wrong, save it as UTF-8"
    )
    return other


def _decodes_as(chunk: bytes, encoding: str) -> bool:
    try:
        chunk.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


# --- lines ----------------------------------------------------------------------------------------


class _BrokenRecord(Exception):
    """A record that cannot be read: the line where it begins, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line, self.why = line, why


def _rows(file: Any, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """(first line, last line, fields) of each record that is not blank."""
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
    start = 1
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield start, reader.line_num, row
            start = reader.line_num + 1
    except csv.Error as problem:
        raise _BrokenRecord(start, str(problem)) from None


def _delimiter(place: Path, encoding: str) -> str:
    """The delimiter that splits the first lines into equally many fields, and into the most."""
    with _text(place, encoding) as file:
        head = file.read(SNIFFED_CHARACTERS)
        if len(head) == SNIFFED_CHARACTERS:  # the last line may be cut
            head = head[: head.rfind("\n") + 1] or head
    if not head.strip():
        raise ModelError(f"cannot read {str(place)!r} as a table: it is empty, without a header")
    found = {}
    for delimiter in DELIMITERS:
        widths: list[int] = []
        try:
            for _, _, row in _rows(io.StringIO(head, newline=""), delimiter):
                widths.append(len(row))
                if len(widths) == SNIFFED_LINES:
                    break
        except _BrokenRecord:  # perhaps with this delimiter only
            pass
        if widths and widths[0] > 1:
            alike = sum(width == widths[0] for width in widths) / len(widths)
            found[delimiter] = (alike, widths[0])
    if not found:
        _refuse_space_delimited(place, head)
        return ","
    return max(found, key=lambda each: found[each])


def _refuse_space_delimited(place: Path, head: str) -> None:
    """Reject columns of numbers that are separated by blanks."""
    lines = [line.split() for line in head.splitlines()[:SNIFFED_LINES] if line.strip()]
    wide = len(lines[0])
    if wide > 1 and len(lines) > 1 and all(len(line) == wide for line in lines):
        numbers = all(_is_number(cell) for line in lines[1:] for cell in line)
        if numbers:
            raise ModelError(
                f"cannot read {str(place)!r} as a table: its columns are separated by blanks",
                remedy=f"separate them by {', '.join(DELIMITER_NAMES.values())}",
            )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _checked_header(place: Path, encoding: str, delimiter: str) -> list[str]:
    """The names in the header; ModelError for a line with another number of fields."""

    def broken(line: int, what: str, hint: str) -> ModelError:
        return ModelError(f"cannot read {str(place)!r} as a table: line {line} {what}", remedy=hint)

    names: list[str] = []
    above = closed = False
    with _text(place, encoding) as file:
        try:
            for first, last, row in _rows(file, delimiter):
                if not names:
                    names, above = _header(place, row), True
                    continue
                if above and len(row) == len(names) + 1 and not row[-1].strip():
                    names.append(f"Unnamed: {len(names)}")  # all lines but the header end so
                    closed = True
                above = False
                if len(row) != len(names) or (closed and row[-1].strip()):
                    own = names[: len(names) - closed]
                    what = f"has {len(row):,} fields where the header has {len(own):,}"
                    raise broken(first, what, _field_count_remedy(first, last, row, own, delimiter))
        except _BrokenRecord as problem:
            if "expected after" in problem.why:
                what, hint = "has text behind a closing quote", 'write a quote in it twice: ""'
            else:
                what, hint = "opens a quote that is never closed", "close it, or drop it"
            raise broken(problem.line, what, hint) from None
    return names


def _field_count_remedy(
    first: int, last: int, row: list[str], names: list[str], delimiter: str
) -> str:
    """The likely remedy for a line with another number of fields."""
    if last > first:
        return f"quoted text in it goes on to line {last}: is a quote not closed?"
    if names[0].startswith("#") or (len(names) == 1 and len(row) > 1):
        return "remove the lines above the header"
    if len(row) == len(names) + 1 and not row[-1]:
        return f"drop the delimiter at its end, one of the {DELIMITER_NAMES[delimiter]}"
    if len(row) == len(names) + 1 and first == 2:
        return "if its first field is the row's name, the header needs a name for that column"
    if len(row) > len(names):
        return f"fields that have {DELIMITER_NAMES[delimiter]} in them need quotes"
    return "fields without a value are empty, with the delimiter kept"


def _header(place: Path, row: list[str]) -> list[str]:
    """Names of the columns; those without one are named as pandas names them."""
    cells = [cell.strip() for cell in row]
    if all(_is_number(cell) for cell in cells) and not _are_time_steps(cells):
        shown = ", ".join(cells[:4]) + (", ..." if len(cells) > 4 else "")
        raise ModelError(
            f"{str(place)!r} has no header: its first line holds numbers only ({shown})",
            remedy="put a line with the names of the columns above it",
        )
    names: list[str] = []
    for at, cell in enumerate(cells):  # an index that was saved twice, as pandas names it
        name = cell or f"Unnamed: {at}"
        names.append(f"{name}.{at}" if name.startswith("Unnamed: ") and name in names else name)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        places = [str(at + 1) for at, each in enumerate(names) if each == name]
        raise ModelError(
            f"{str(place)!r} has several columns named {name!r} (columns {', '.join(places)})",
            remedy="rename them",
        )
    return names


def _are_time_steps(cells: list[str]) -> bool:
    """Whether numbers in a header are the steps of runs: 0, 1, 2 or 0.5, 1.0, 1.5."""
    numbers = [float(cell.replace(",", ".")) for cell in cells]
    gaps = [b - a for a, b in pairwise(numbers)]
    return len(gaps) > 1 and gaps[0] > 0 and all(abs(gap / gaps[0] - 1) < 1e-6 for gap in gaps)


# --- values ---------------------------------------------------------------------------------------


def _with_decimal_commas(table: pd.DataFrame, say: Say) -> pd.DataFrame:
    """Convert columns with decimal commas to numbers, where commas are not the delimiter."""
    changed: dict[str, Any] = {}
    for name in table.columns:
        if not pd.api.types.is_string_dtype(table[name].dtype):
            continue
        codes, kinds = pd.factorize(table[name])
        words = [str(kind).strip() for kind in kinds]
        known = [word for word in words if word.lower() not in MISSING_CELLS]
        if not any("," in word for word in known):
            continue
        if not all(re.fullmatch(DECIMAL_COMMA, word) for word in known):
            continue
        plain = [word.replace(".", "").replace(",", ".") for word in words]
        numbers = pd.to_numeric(pd.Series([*plain, None], dtype=object), errors="coerce")
        changed[name] = numbers.to_numpy(float)[codes]
    if changed:
        shown, more = list(changed)[:12], len(changed) - 12
        say("numbers with decimal commas: " + ", ".join(shown) + f" and {more:,} more" * (more > 0))
    return pd.DataFrame({name: changed.get(name, table[name]) for name in table.columns})
