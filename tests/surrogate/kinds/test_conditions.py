"""Linear conditions on values drawn one after another, against all points of small boxes."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from surrogate.kinds.conditions import Conditions
from surrogate.kinds.decoder import Factor, Pins, Uniforms
from tests.surrogate.analytic import generator

SIDE = 3  # values of a site: 0, 1, 2
WEIGHTS = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 1.0, 3.0])


def pins(rows: list[list[float]], low: list[float], high: list[float]) -> Pins:
    return Pins(*(torch.tensor(each, dtype=torch.float64) for each in (rows, low, high)))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[int, Pins, list[int]]:
    """Sites, conditions on them (each with a weight other than 0), and an order of drawing."""
    sites = draw(st.integers(1, 4))
    row = st.lists(WEIGHTS, min_size=sites, max_size=sites).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=3))
    low = [float(draw(st.integers(-6, 6))) for _ in rows]
    high = [end + draw(st.integers(0, 4)) for end in low]
    order = draw(st.permutations(range(sites)))
    return sites, pins(rows, low, high), order


def lawful(given: Pins, point: Tensor) -> bool:
    at = given.rows @ point
    return bool(((at >= given.low - 1e-9) & (at <= given.high + 1e-9)).all())


@given(boxes())
def test_points_that_keep_to_every_interval_are_those_that_meet_all_conditions(
    box: tuple[int, Pins, list[int]],
) -> None:
    """Every point of the box at once, value by value in the order of drawing."""
    sites, given_pins, order = box
    points = torch.tensor(list(product(range(SIDE), repeat=sites)), dtype=torch.float64)
    conditions = Conditions(given_pins, len(points), order, lambda site: [site])
    kept = torch.ones(len(points), dtype=torch.bool)
    for site in order:
        remainder = conditions.at(site, [site])
        if remainder is not None:
            low, high = remainder.interval()
            kept &= (points[:, site] >= low - 1e-9) & (points[:, site] <= high + 1e-9)
        conditions.add(points[:, [site]], [site])
    assert kept.tolist() == [lawful(given_pins, point) for point in points]


@given(boxes())
def test_a_condition_is_settled_by_its_last_site_alone(box: tuple[int, Pins, list[int]]) -> None:
    sites, given_pins, order = box
    conditions = Conditions(given_pins, 1, order, lambda site: [site])
    settled: dict[int, int] = {}
    for site in order:
        remainder = conditions.at(site, [site])
        settled[site] = 0 if remainder is None else len(remainder.weights)
    for site in range(sites):
        ends_here = [
            row
            for row in given_pins.rows.tolist()
            if max((k for k in range(sites) if row[k]), key=order.index) == site
        ]
        assert settled[site] == len(ends_here)


def test_nothing_is_settled_without_conditions() -> None:
    none = Conditions(Pins.none(2), 3, [0, 1], lambda site: [site])
    assert none.at(0, [0]) is None
    none.add(torch.ones(3, 1, dtype=torch.float64), [0])
    assert none.sums.shape == (3, 0)


def test_conditions_of_one_site_intersect() -> None:
    """2 <= y, y <= 7, and -y <= -4 written with a negative weight."""
    inf = torch.inf
    given_pins = pins([[1.0], [1.0], [-1.0]], [2.0, -inf, -inf], [inf, 7.0, -4.0])
    remainder = Conditions(given_pins, 1, [0], lambda site: [site]).at(0, [0])
    assert remainder is not None
    low, high = remainder.interval()
    assert (low.item(), high.item()) == (4.0, 7.0)


def test_copies_of_a_value_add_their_weights() -> None:
    """A static stands at three coordinates: y + y + y = 6 leaves y = 2."""
    given_pins = pins([[1.0, 1.0, 1.0]], [6.0], [6.0])
    remainder = Conditions(given_pins, 1, ["static"], lambda _: [0, 1, 2]).at("static", [0], 3)
    assert remainder is not None
    low, high = remainder.interval()
    assert (low.item(), high.item()) == (2.0, 2.0)


@given(boxes())
def test_allowed_categories_are_those_that_meet_all_conditions(
    box: tuple[int, Pins, list[int]],
) -> None:
    """A word of `sites` categories: exactly one of its weights is 1."""
    categories, given_pins, _ = box
    every = list(range(categories))
    remainder = Conditions(given_pins, 1, ["word"], lambda _: every).at("word", every)
    assert remainder is not None
    choices = torch.eye(categories, dtype=torch.float64)
    expected = [lawful(given_pins, choice) for choice in choices]
    assert remainder.allows(choices)[0].tolist() == expected


@pytest.mark.parametrize("total", [5, 9])
def test_the_first_uniform_numbers_do_not_depend_on_the_count(total: int) -> None:
    few = Uniforms(generator(1), 2, total)
    many = Uniforms(generator(1), total)
    for each in (1, 2, 1):
        assert torch.equal(few(each), many(each)[:, :2])


# --- factors of the likelihood --------------------------------------------------------------------


def product_of(coordinates: list[int]) -> Factor:
    def log_density(y: Tensor) -> Tensor:
        return y.sum(1)

    return Factor(coordinates, log_density, log_density, lambda y, at: at)


@given(st.permutations(range(4)), st.lists(st.integers(0, 3), min_size=1, unique=True))
def test_a_factor_is_known_after_the_last_value_that_it_depends_on(
    order: list[int], coordinates: list[int]
) -> None:
    given_pins = Pins.none(4, (product_of(coordinates),))
    conditions = Conditions(given_pins, 5, order, lambda site: [site])
    y = torch.rand(5, 4, generator=generator(), dtype=torch.float64)
    known = []
    for site in order:
        conditions.add(y[:, [site]], [site])
        found = conditions.known_after(site)
        if found is not None:
            known.append(site)
            assert found[0] == [0]  # after all conditions, of which there are none
            torch.testing.assert_close(found[1], y[:, coordinates].sum(1))
    assert known == [max(coordinates, key=order.index)]
    assert bool((conditions.log_weights() == 0).all())
    assert conditions.concern([coordinates[0]])


def test_a_factor_that_reads_a_constant_is_known_at_the_end() -> None:
    given_pins = Pins.none(3, (product_of([0, 2]), product_of([1])))
    conditions = Conditions(given_pins, 2, [0, 1], lambda site: [site])  # nobody draws the last
    y = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]], dtype=torch.float64)
    for site in (0, 1, 2):
        conditions.add(y[:, [site]], [site])
    assert conditions.known_after(0) is None
    found = conditions.known_after(1)
    assert found is not None
    assert found[1].tolist() == [2.0, 5.0]
    assert conditions.late == [0]
    assert conditions.log_weights().tolist() == [5.0, 7.0]
    conditions.select(torch.tensor([1, 1]))
    assert conditions.log_weights().tolist() == [7.0, 7.0]
