"""Dates in a column of text: ISO 8601, or day and month in an order that the column itself shows.

03/04/2020 is the third of April or the fourth of March. Where some date of the column can be read
in one order only (31/01/2020), all are read in it; otherwise the column is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from surrogate.errors import ModelError

_PARTS = r"\s*(\d{1,2})([./-])(\d{1,2})\2(\d{4})((?:[T ].*)?)\s*"
_YEAR_FIRST = r"\s*(\d{4})[./](\d{1,2})[./](\d{1,2})((?:[T ].*)?)\s*"
_REMEDY = "write dates as 1948-01-31"


def read_dates(column: pd.Series[Any], name: str) -> tuple[np.ndarray, str]:
    """Dates (N,) in UTC, and what was assumed about them; ModelError for what is no date."""
    text = column.astype(str)
    if text.str.fullmatch(_YEAR_FIRST).all():
        parts = text.str.extract(_YEAR_FIRST)
        return _iso(column, _joined(parts[0], parts[1], parts[2], parts[3]), name), ""
    if not text.str.fullmatch(_PARTS).all():
        return _iso(column, text, name), ""
    parts = text.str.extract(_PARTS)
    first, second = parts[0].astype(int), parts[2].astype(int)
    day_first, month_first = bool((first > 12).any()), bool((second > 12).any())
    if day_first == month_first:
        row = 0 if not day_first else int(((second > 12) != (second > 12).iloc[0]).argmax())
        what = "two orders of day and month" if day_first else "day and month in either order"
        raise ModelError(
            f"{name} is {column.iloc[row]!r} in row {row}: the dates have {what}",
            value=column.iloc[row],
            remedy=f"{_REMEDY}, the year first",
        )
    day, month = (parts[0], parts[2]) if day_first else (parts[2], parts[0])
    order = "day/month/year" if day_first else "month/day/year"
    return _iso(column, _joined(parts[3], month, day, parts[4]), name), f"dates are {order}"


def _joined(
    year: pd.Series[Any], month: pd.Series[Any], day: pd.Series[Any], time: pd.Series[Any]
) -> pd.Series[Any]:
    return year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + time


def _iso(column: pd.Series[Any], text: pd.Series[Any], name: str) -> np.ndarray:
    read = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
    if read.isna().any():
        wrong = read.isna().to_numpy()
        other = pd.to_numeric(column, errors="coerce").isna().to_numpy()
        row = int((other if other.sum() < wrong.sum() else wrong).argmax())
        raise ModelError(
            f"{name} is {column.iloc[row]!r} in row {row}, neither a number nor a date",
            value=column.iloc[row],
            remedy=_REMEDY,
        )
    return utc_dates(read)


def utc_dates(column: pd.Series[Any]) -> np.ndarray:
    """Dates with or without a time zone, as numpy has them: (N,)."""
    zoned = isinstance(column.dtype, pd.DatetimeTZDtype)
    plain = column.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else column
    return plain.to_numpy("datetime64[us]")
