"""Writing tables, and Parquet; `surrogate.io.delimited` reads tables of text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def write_delimited(table: pd.DataFrame, place: Path, separator: str) -> None:
    """A table of text; dates are written in ISO 8601."""
    _with_iso_dates(table).to_csv(place, index=False, sep=separator)


def read_parquet(place: Path) -> pd.DataFrame:
    return pd.read_parquet(place)


def write_parquet(table: pd.DataFrame, place: Path) -> None:
    plain = table.copy(deep=False)
    plain.attrs = {k: v for k, v in table.attrs.items() if isinstance(v, (str, int, float))}
    plain.to_parquet(place, index=False)


def iso(dates: np.ndarray) -> list[str]:
    """Dates (N,) as ISO text: only the day where all of them are days."""
    unit = "D" if date_format(dates) == "date" else "s"
    return [str(each) for each in dates.astype(f"datetime64[{unit}]")]


def date_format(dates: np.ndarray) -> str:
    """How dates (N,) are written: "date" where all are days, else "datetime"."""
    known = dates[~np.isnat(dates)]
    return "date" if bool((known == known.astype("datetime64[D]")).all()) else "datetime"


def _with_iso_dates(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as text, 2020-01-31 or 2020-01-31T12:30:00; missing ones are empty."""
    changed = {}
    for name in table.columns:
        if pd.api.types.is_datetime64_dtype(table[name].dtype):
            values = table[name].to_numpy("datetime64[ns]")
            text = np.array(iso(values), dtype=object)
            changed[name] = np.where(np.isnat(values), "", text)
    return table.assign(**changed)
