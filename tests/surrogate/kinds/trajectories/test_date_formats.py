"""Dates in text: one order of day and month, or none."""

from __future__ import annotations

import pandas as pd
import pytest

from surrogate.errors import ModelError
from surrogate.kinds.trajectories.date_formats import read_dates


@pytest.mark.parametrize(
    ("texts", "first", "note"),
    [
        (["2020-01-31", "2020-02-01"], "2020-01-31", ""),
        (["2020/1/31", "2020/2/1"], "2020-01-31", ""),
        (["01/02/2020", "31/01/2020"], "2020-02-01", "dates are day/month/year"),
        (["1.2.2020", "31.1.2020"], "2020-02-01", "dates are day/month/year"),
        (["01/02/2020", "01/31/2020"], "2020-01-02", "dates are month/day/year"),
        (["2020-01-31 12:30", "2020-02-01 00:00"], "2020-01-31T12:30", ""),
        (["2020-01-31T12:30+02:00", "2020-02-01T12:30+02:00"], "2020-01-31T10:30", ""),
    ],
)
def test_formats_that_can_be_read_in_one_way(texts: list[str], first: str, note: str) -> None:
    dates, said = read_dates(pd.Series(texts), "day")
    assert str(dates[0]).startswith(first)
    assert said == note


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["03/04/2020", "05/04/2020"], "'03/04/2020' in row 0: .*day and month in either order"),
        (["31/01/2020", "01/31/2020"], "'01/31/2020' in row 1: the dates have two orders"),
        (["2020-01-31", "soon"], "'soon' in row 1, neither a number nor a date"),
        (["2020-01-31", "2020-02-30"], "'2020-02-30' in row 1, neither"),
        (["31/02/2020", "01/02/2020"], "'31/02/2020' in row 0, neither"),
        (["03/04/20", "05/04/20"], "'03/04/20' in row 0, neither"),
    ],
)
def test_others_are_refused_with_their_row(texts: list[str], words: str) -> None:
    with pytest.raises(ModelError, match=words) as problem:
        read_dates(pd.Series(texts), "day")
    assert "write dates as 1948-01-31" in str(problem.value)
