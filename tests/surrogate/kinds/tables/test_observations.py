"""An observed row of a table as statements."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from constraints import Layout, Signal, conjunction, parse
from surrogate.errors import SurrogateError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.tables.observations import observations

LAYOUT = Layout((Signal("x", "column"), Signal("y", "column"), Signal("theta", "column")))


@pytest.mark.parametrize(
    "row",
    [
        {"x": 0.3, "y": None, "other": 5},
        pd.Series({"x": 0.3, "y": float("nan")}),
        pd.DataFrame({"x": [0.3]}),
    ],
)
def test_what_is_known_of_a_row_is_stated(row: Any) -> None:
    found = observations(row, LAYOUT, ObservationOptions())
    assert conjunction(*found.statements.values()) == parse("x = 0.3")
    noisy = observations(row, LAYOUT, ObservationOptions(noise=("x ~ normal(x, 0.1)",)))
    assert conjunction(*noisy.statements.values()) == parse("0.3 ~ normal(x, 0.1)")


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({"x": "high"}, {}, "only numbers can be observed"),
        ({"x": None}, {}, "all values are missing"),
        (pd.DataFrame({"x": [1.0, 2.0]}), {}, "2 rows were given"),
        ({"x": 1.0}, {"upto": "3"}, "about observed series"),
        ([1.0], {}, "not list"),
    ],
)
def test_other_rows_are_refused(row: Any, options: Any, says: str) -> None:
    with pytest.raises(SurrogateError) as caught:
        observations(row, LAYOUT, ObservationOptions(**options))
    assert says in str(caught.value)
