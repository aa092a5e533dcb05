"""Rules are found where data show an edge or an exact identity, and not by chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from constraints import Layout, compiled, parse
from surrogate.kinds.found_rules import (
    FoundRule,
    Quantity,
    find,
    find_unproved,
    thinned,
    touches_zero,
)


def search(values: Mapping[str, np.ndarray], whole: bool = False, **more: bool) -> list[FoundRule]:
    quantities = [Quantity(name, whole) for name in values]
    return find(quantities, values, lambda: [values], **({"series": True} | more))


def names(found: list[FoundRule]) -> list[str]:
    return [rule.name for rule in found]


def prices(rng: np.random.Generator, days: int = 4_800) -> dict[str, np.ndarray]:
    """Opening, highest, lowest and closing price of days, in windows of 24."""
    walk = np.exp(np.cumsum(rng.normal(0, 0.003, (days, 40)), 1) + rng.normal(0, 0.5, (days, 1)))
    found = {"Open": walk[:, 0], "High": walk.max(1), "Low": walk.min(1), "Close": walk[:, -1]}
    return {name: column.reshape(-1, 24) for name, column in found.items()}


def test_prices_show_their_order_and_nothing_else() -> None:
    found = search(prices(np.random.default_rng(0)))
    assert names(found) == ["Open <= High", "Low <= Open", "Low <= Close", "Close <= High"]
    layout = Layout.series("Open High Low Close", 24)
    data = prices(np.random.default_rng(1))
    for rule in found:
        assert compiled(rule.formula, layout).verdict(data).all()
        assert parse(str(rule.formula)) == rule.formula


def test_a_rule_that_one_value_breaks_is_not_found() -> None:
    data = prices(np.random.default_rng(0))
    data["Low"][7, 5] = data["Open"][7, 5] * 1.0001
    assert "Low <= Open" not in names(search(data))


def gaussian(mean: float) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        common = rng.normal(0, 5, (400, 25))
        return {"A": common, "B": common + rng.normal(mean, 1, common.shape)}

    return make


CHANCE: dict[str, Callable[[np.random.Generator], dict[str, np.ndarray]]] = {
    "a gap whose tail ends near 0": gaussian(4.0),
    "a gap far from 0": gaussian(12.0),
    "apart in their ranges": lambda rng: {
        "A": rng.uniform(0, 1, (400, 25)),
        "B": rng.uniform(1, 2, (400, 25)),
    },
    "independent": lambda rng: {n: rng.normal(size=(400, 25)) for n in "ABCD"},
    "random walks": lambda rng: {n: rng.normal(size=(400, 25)).cumsum(1) for n in "ABCD"},
    "counts of very different size": lambda rng: {
        "A": rng.poisson(3, (400, 25)).astype(float),
        "B": rng.poisson(30, (400, 25)).astype(float),
    },
    "nearly an identity": lambda rng: _with_sum(rng, 1e-4),
    "both mostly 0": lambda rng: {
        "A": np.where(rng.random((400, 25)) < 0.003, 1.0, 0.0),
        "B": np.where(rng.random((400, 25)) < 0.003, 2.0, 0.0),
    },
    "a trend": lambda rng: {"A": np.arange(25.0) * 3 + rng.normal(0, 0.1, (400, 25))},
    "constants": lambda rng: {"A": np.ones((400, 25)), "B": np.full((400, 25), 2.0)},
    "few samples": lambda rng: {n: v[:10] for n, v in prices(rng).items()},
}


def _with_sum(rng: np.random.Generator, noise: float) -> dict[str, np.ndarray]:
    a, b = rng.normal(size=(2, 400, 25))
    return {"A": a, "B": b, "C": a + b + noise * rng.normal(size=a.shape)}


@pytest.mark.parametrize("case", CHANCE)
@pytest.mark.parametrize("seed", range(5))
def test_chance_makes_no_rule(case: str, seed: int) -> None:
    assert names(search(CHANCE[case](np.random.default_rng(seed)))) == []


@pytest.mark.parametrize("mean", np.linspace(3.5, 5.0, 7))
def test_a_tail_that_ends_anywhere_near_0_is_no_edge(mean: float) -> None:
    for seed in range(40):
        gap = np.random.default_rng(seed).normal(mean, 1, (400, 25))
        assert (gap < 0).any() or not touches_zero(gap, whole=False)
        assert (gap < -0.5).any() or not touches_zero(np.rint(gap), whole=True)


def test_counts_that_include_each_other_are_ordered() -> None:
    rng = np.random.default_rng(0)
    tested = rng.poisson(6, (400, 25))
    positive = rng.binomial(tested, 0.5)
    assert names(search({"positive": positive * 1.0, "tested": tested * 1.0}, whole=True)) == [
        "positive <= tested"
    ]


def test_cumulative_counts_never_fall() -> None:
    new = np.random.default_rng(0).poisson(1.5, (400, 25))
    found = search({"total": new.cumsum(1) * 1.0, "left": 99.0 - new.cumsum(1)}, whole=True)
    assert names(found) == ["total + left = 99", "total never falls", "left never rises"]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda a, b, c: {"a": a, "b": b, "both": a + b}, "both = a + b"),
        (lambda a, b, c: {"both": a + b, "a": a, "b": b}, "both = a + b"),
        (lambda a, b, c: {"a": a, "copy": a, "b": b}, "copy = a"),
        (lambda a, b, c: {"a": a, "b": b, "c": c, "both": a + b - c}, "a + b - c - both = 0"),
        (lambda a, b, c: {"a": a, "b": b, "both": a + 2 * b}, "both = a + 2 * b"),
        (lambda a, b, c: {"a": a, "b": b, "rest": 100 - a - b}, "a + b + rest = 100"),
        (lambda a, b, c: {"a b": a, "twice": 2 * a}, 'twice = 2 * "a b"'),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_identities(make: Callable[..., dict[str, np.ndarray]], name: str, whole: bool) -> None:
    rng = np.random.default_rng(0)
    a, b, c = np.rint(9 * rng.normal(size=(3, 400, 25))) if whole else rng.normal(size=(3, 400, 25))
    assert names(search(make(a, b, c), whole)) == [name]


def test_identities_of_single_precision_are_exact_up_to_its_rounding() -> None:
    a, b = np.random.default_rng(0).normal(50, 9, (2, 400, 25)).astype(np.float32)
    values = {"a": a, "b": b, "both": a + b}
    as_read = {name: value.astype(np.float64) for name, value in values.items()}
    single = float(np.finfo(np.float32).eps)
    quantities = [Quantity(name, False, single) for name in values]
    assert names(find(quantities, as_read, lambda: [as_read], series=True)) == ["both = a + b"]


def test_orders_that_a_sum_implies_are_not_repeated() -> None:
    casual, registered = np.random.default_rng(0).poisson((3, 9), (10_000, 2)).T[:, :, None] * 1.0
    values = {"casual": casual, "registered": registered, "total": casual + registered}
    assert names(search(values, whole=True, series=False)) == ["total = casual + registered"]


def test_evidence_is_of_samples_that_share_no_values() -> None:
    assert thinned(10, 24, 0).tolist() == list(range(10))
    assert thinned(10, 24, 3).tolist() == [0, 4, 8]
    assert len(thinned(1_000_000, 100, 0)) * 100 <= 400_000


# --- too few values -------------------------------------------------------------------------------


def unproved(values: Mapping[str, np.ndarray], series: bool = False) -> list[str]:
    quantities = [Quantity(name, False) for name in values]
    found = find_unproved(quantities, values, lambda: [values], series=series)
    assert found.values == next(iter(values.values())).size
    return names(list(found.rules))


def rows(values: Mapping[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    return {name: each.reshape(-1, 1)[:count] for name, each in values.items()}


def test_orders_are_unproved_with_few_values_and_found_with_many() -> None:
    data = prices(np.random.default_rng(0))
    few, wanted = rows(data, 400), ["Open <= High", "Low <= Open", "Low <= Close", "Close <= High"]
    assert search(few, series=False) == []
    assert unproved(few) == wanted
    assert unproved(rows(data, 1_000)) == []
    assert names(search(rows(data, 1_000), series=False)) == wanted
    assert unproved(rows(data, 200)) == []  # which any order would pass


def test_an_order_that_one_value_breaks_is_not_unproved() -> None:
    few = rows(prices(np.random.default_rng(0)), 400)
    few["Low"][7] = few["Open"][7] * 1.0001
    assert "Low <= Open" not in unproved(few)


def test_identities_and_courses_are_unproved_with_few_values() -> None:
    rng = np.random.default_rng(0)
    assert unproved(rows(_with_sum(rng, 0.0), 150)) == ["C = A + B"]
    assert names(search(rows(_with_sum(rng, 0.0), 250), series=False)) == ["C = A + B"]
    rising = {"A": rng.exponential(1, (60, 12)).cumsum(1)}
    assert unproved(rising, series=True) == ["A never falls"]


@pytest.mark.parametrize("kind", [kind for kind in CHANCE if kind != "few samples"])
@pytest.mark.parametrize("count", [300, 400, 900])
def test_chance_is_not_unproved(kind: str, count: int) -> None:
    for seed in range(5):
        assert unproved(rows(CHANCE[kind](np.random.default_rng(seed)), count)) == []
