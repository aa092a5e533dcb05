"""Values of columns: numbers, dates, categories and booleans as the arrays that codecs encode."""

from __future__ import annotations

import numpy as np
import pandas as pd

from surrogate.errors import ModelError
from surrogate.kinds.label_names import ABSENT
from surrogate.kinds.signals import days_of


def as_numbers(name: str, kind: str, values: np.ndarray) -> np.ndarray:
    """Values (n,) as float64, NaN where they are missing; dates as days since 1970."""
    if kind == "date":
        try:
            return days_of(values.astype("datetime64[ns]"))
        except (TypeError, ValueError):
            raise ModelError(f"{name} holds {values.dtype} where dates were") from None
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{name} holds {values.dtype} where numbers were") from None
    if np.isinf(found).any():
        raise ModelError(f"{name} is infinite in row {int(np.isinf(found).argmax())}")
    return found


def as_dates(days: np.ndarray) -> np.ndarray:
    """Days since 1970 (n,), NaN where missing, as datetime64."""
    there = np.isfinite(days)
    exact = np.round(np.where(there, days, 0.0) * 86_400).astype(np.int64)
    found = exact.astype("datetime64[s]").astype("datetime64[ns]")
    return np.where(there, found, np.datetime64("NaT", "ns"))


def to_text(values: np.ndarray) -> np.ndarray:
    """Values (n,) as text, the missing ones as ABSENT."""
    if values.dtype.kind == "b":
        return np.where(values, "True", "False").astype(object)
    codes, found = pd.factorize(np.asarray(values, dtype=object))
    words = np.array([*(str(each) for each in found), ABSENT], dtype=object)  # code -1 is the last
    return np.asarray(words[codes])


def to_booleans(words: np.ndarray) -> np.ndarray:
    """The words "True", "False" and ABSENT as booleans; as objects if some are missing."""
    return with_missing(words == "True", words)


def with_missing(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Values (n,), None where the word is ABSENT."""
    absent = words == ABSENT
    if not absent.any():
        return values
    found = values.astype(object)
    found[absent] = None
    return found
