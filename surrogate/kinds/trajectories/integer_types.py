"""Integer types of counts; apart from `variables`, because tables are read before torch."""

from __future__ import annotations

from typing import Any

import numpy as np


def smallest_integer_type(low: float, high: float) -> type[np.signedinteger[Any]]:
    """The smallest type that holds all whole numbers from low to high."""
    types = (np.int8, np.int16, np.int32, np.int64)
    fits = (k for k in types if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return next(fits, np.int64)
