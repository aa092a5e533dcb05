"""What of a scenario can be drawn: bridges, bounds, windows, alternatives; the rest stays text."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from constraints import bridge, parse
from constraints.physics.rules import from_network
from simulators import models, simulate
from surrogate.kinds.labels import label
from surrogate.kinds.signals import described
from surrogate.kinds.trajectories.requirements import Mark, marks_of, requirements


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return simulate(models.esirs(), samples=20, seed=0)


def marks(data: xr.Dataset, text: str) -> tuple[Mark, ...]:
    found = requirements(label(data, [parse(text)]))
    assert found is not None
    return marks_of(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("S(25) = 30", [Mark("S", 25, 25, 30, 30)]),
        ("S@0 = 30", [Mark("S", 0, 0, 30, 30)]),
        ("S(25) = 30 +- 2", [Mark("S", 25, 25, 28, 32)]),
        ("28 <= S(25) <= 32", [Mark("S", 25, 25, 28, 32)]),
        ("2 * S(25) <= 60", [Mark("S", 25, 25, -math.inf, 30)]),
        ("S(25) > 30", [Mark("S", 25, 25, 31)]),
        ("forall t: I(t) <= 20", [Mark("I", 0, 29, -math.inf, 20)]),
        ("max(I) <= 20", [Mark("I", 0, 29, -math.inf, 20)]),
        ("always(I < 20)", [Mark("I", 0, 29, -math.inf, 19)]),
        ("not (exists t: I(t) > 20)", [Mark("I", 0, 29, -math.inf, 20)]),
        ("forall t in [5, 10]: I(t + 1) >= 3", [Mark("I", 6, 11, 3)]),
        ("forall t in [5, 10]: 3 <= I(t) <= 9", [Mark("I", 5, 10, 3, 9)]),
        ("exists t in [20, 29]: I(t) >= 25", [Mark("I", 20, 29, 25, kind="some")]),
        (
            "S(25) = 30 or S(25) = 40",
            [Mark("S", 25, 25, 30, 30, "either"), Mark("S", 25, 25, 40, 40, "either")],
        ),
        ("forall t: S(t) + I(t) <= 90", []),
        ("forall t: I(t) <= 20 or S(t) >= 50", []),
        ("S(25) = 30 or S(20) >= 40", []),
        ("mean(I) <= 20", []),
        ("exists t: I(t) >= 25 and S(t) <= 40", []),
    ],
)
def test_marks(data: xr.Dataset, text: str, found: list[Mark]) -> None:
    assert list(marks(data, text)) == found


def test_what_the_network_implies_is_apart(data: xr.Dataset) -> None:
    physics = from_network(described(data))
    rules = {"mine": bridge("S0=95,S25=30"), "sums": parse("sum(I) >= 3")} | physics
    found = requirements(label(data, rules))
    assert found is not None
    assert [part.text for part in found.parts] == ["S(0) = 95", "S(25) = 30", "sum(I) >= 3"]
    assert [len(part.marks) for part in found.parts] == [1, 1, 0]
    assert set(found.physics) == {str(rule) for rule in physics.values()}


def test_windows_beyond_the_grid_are_cut(data: xr.Dataset) -> None:
    found = requirements(label(data, [parse("forall t in [25, 40]: I(t) <= 9")], end="weak"))
    assert found is not None
    assert marks_of(found) == (Mark("I", 25, 29, -math.inf, 9),)


@pytest.mark.parametrize("text", ["forall forall", "Q(3) = 4", "S(999) = 3", "((((", "\0"])
def test_text_that_means_nothing_stays_text(data: xr.Dataset, text: str) -> None:
    found = requirements(data.assign_attrs(surrogate_constraint=text))
    assert found is not None
    assert marks_of(found) == ()
    assert found.parts[0].text == text


@pytest.mark.parametrize("value", ["", "  ", 3, np.array([1, 2])])
def test_no_scenario(data: xr.Dataset, value: object) -> None:
    assert requirements(data) is None
    assert requirements(data.assign_attrs(surrogate_constraint=value)) is None
