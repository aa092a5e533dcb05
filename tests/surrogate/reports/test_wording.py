"""Probabilities, durations, times and requirements in words."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from constraints import parse
from surrogate.kinds.labels import label
from surrogate.reports.wording import duration, give_or_take, odds, stamp
from tests.surrogate.reports.pages import facts


@pytest.mark.parametrize(
    ("log_p", "words"),
    [
        (0.0, ">99 %"),
        (math.log(0.43), "43 %"),
        (math.log(0.05), "1 in 20"),
        (-11.2324, "1 in 76,000"),
        (math.log(1 / 1.24e6), "1 in 1.2 million"),
        (-40.0, "1 in 2.4 × 10¹⁷"),
        (-2000.0, "1 in 3.9 × 10⁸⁶⁸"),
    ],
)
def test_odds(log_p: float, words: str) -> None:
    assert odds(log_p) == words


def test_other_words() -> None:
    assert duration(9.71) == "9.7 seconds"
    assert duration(100_000) == "28 hours"
    assert duration(1e12) == "32,000 years"
    assert give_or_take(0.05) == "give or take 5 %"
    assert give_or_take(0.7) == "within a factor of about 2.0"
    assert give_or_take(268.0).startswith("within a factor of about 2")
    assert "10¹¹⁶" in give_or_take(268.0)
    assert "× 10" in give_or_take(1e6)
    assert stamp(np.linspace(0, 3.2, 30), 25) == "2.76"
    assert stamp(np.arange(9.0), 3) == "3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("S(0) = 95", "S is 95 at the start"),
        ("S(29) >= 5", "S is at least 5 at the end"),
        ("S(25) = 30 +- 2", "S is between 28 and 32 at time 2.76 (step 25)"),
        ("forall t in [0, 10]: I(t) <= 9", "I is at most 9 up to time 1.1 (step 10)"),
        ("exists t: I(t) >= 25", "I is at least 25 at some time"),
        ("mean(I) >= 2", None),
    ],
)
def test_requirements_in_words(plain: xr.Dataset, text: str, words: str | None) -> None:
    found = facts(label(plain, [parse(text)]))
    assert found.requirements is not None
    assert found.requirements.parts[0].words == words
