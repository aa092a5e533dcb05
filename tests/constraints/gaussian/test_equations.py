"""Equations of a conjunction, and the rest of it."""

from __future__ import annotations

import pytest
import torch

from constraints import Layout, Signal, compiled, parse
from constraints.gaussian.equations import bounds, conditions, split

COUNTS = Layout.series("S I", 4, integer=True)
REAL = Layout((Signal("x", "series", (3,), span=10.0),), (0.0, 1.0, 2.0))


def test_equations_are_rows_of_the_flat_sample() -> None:
    equations, rest = split(compiled(parse("S(0) = 5 and S(3) + 2 * I(1) = 7"), COUNTS))
    assert rest is None
    assert len(equations) == 2
    first, second = torch.zeros(8).double(), torch.zeros(8).double()
    first[0], second[3], second[5] = 1, 1, 2
    found = {tuple(row.tolist()): i for i, row in enumerate(equations.rows)}
    for row, value in ((first, 5.0), (second, 7.0)):
        i = found[tuple(row.tolist())]
        assert (float(equations.low[i]), float(equations.high[i])) == (value - 0.5, value + 0.5)


def test_the_rest_is_the_formula_without_its_equations() -> None:
    whole = compiled(parse("S(0) = 2 and (forall t: I(t) <= 1) and S(1) != 3"), COUNTS)
    equations, rest = split(whole)
    assert len(equations) == 1
    assert rest is not None
    every = torch.randint(0, 4, (2000, 8), generator=torch.Generator().manual_seed(0)).double()
    met = (every @ equations.rows.mT >= equations.low).all(1)
    met &= (every @ equations.rows.mT <= equations.high).all(1)
    assert torch.equal(whole.verdict(every), met & rest.verdict(every))
    assert 0 < int(whole.verdict(every).sum()) < 2000


def test_forall_gives_one_equation_for_each_step() -> None:
    whole = compiled(parse("(forall t in [1, 2]: S(t) + I(t-1) = 3) and I(3) >= 1"), COUNTS)
    equations, rest = split(whole)
    assert [row.nonzero().flatten().tolist() for row in equations.rows] == [[1, 4], [2, 5]]
    assert rest is not None
    every = torch.randint(0, 4, (2000, 8), generator=torch.Generator().manual_seed(0)).double()
    sums = every @ equations.rows.mT
    met = ((sums >= equations.low) & (sums <= equations.high)).all(1)
    assert torch.equal(whole.verdict(every), met & rest.verdict(every))
    assert 0 < int(met.sum()) < 2000


@pytest.mark.parametrize(
    "text",
    [
        "S(0) = 5 or S(1) = 5",
        "S(0) * I(0) = 6",
        "max(I) = 3",
        "S(0) >= 5",
        "(S(0) = 5) {k=3}",
        "exists t: S(t) = 2",
    ],
)
def test_inequalities_and_nonlinear_atoms_are_no_equations(text: str) -> None:
    equations, rest = split(compiled(parse(text), COUNTS))
    assert len(equations) == 0
    assert rest is not None


def test_equations_of_real_numbers_have_a_tolerance() -> None:
    equations, _ = split(compiled(parse("x(1) = 3 +- 0.25"), REAL))
    assert (float(equations.low[0]), float(equations.high[0])) == pytest.approx((2.75, 3.25))
    equations, _ = split(compiled(parse("x(1) - x(0) = 3"), REAL))
    assert 0.01 < float(equations.high[0] - equations.low[0]) < 0.1
    assert (equations.rows[0] * equations.rows[0, 1]).tolist() == [-1, 1, 0]


def test_constants_move_to_the_right_hand_side() -> None:
    equations, _ = split(compiled(parse("2 * x(1) + 4 = 10 +- 0.5"), REAL))
    row, low, high = equations.rows[0], equations.low[0], equations.high[0]
    assert float((low + high) / 2 / row[1]) == pytest.approx(3)


def test_linear_inequalities_of_a_conjunction_are_bounds() -> None:
    layout = Layout.image((1, 4, 4))
    text = "mean(upper) >= mean(lower) + 0.3 and image(0, 0) in [0.2, 0.9] and image(1, 1)^2 <= 0.5"
    found = bounds(compiled(text, layout))
    x = torch.rand(50, 16, dtype=torch.float64)
    halves = x[:, :8].mean(1) - x[:, 8:].mean(1)
    values = torch.stack([halves, x[:, 0]], 1)
    at = x @ found.rows.mT
    inside = (at >= found.low) & (at <= found.high)
    wanted = torch.stack([values[:, 0] >= 0.3, (values[:, 1] >= 0.2) & (values[:, 1] <= 0.9)], 1)
    assert (inside == wanted).all()


def test_a_band_for_all_pixels_is_equations_with_room() -> None:
    layout = Layout((Signal("image", "image", (1, 4, 4), low=0.0, high=1.0, span=1.0),))
    found, rest = split(compiled("forall p: image(p) = mirror(image)(p) +- 0.05", layout))
    assert rest is None
    assert len(found) == 8
    torch.testing.assert_close(found.high - found.low, torch.full((8,), 0.1).double())


def test_open_ends_of_single_values_are_moved_inwards_and_those_of_counts_to_the_next() -> None:
    columns = Layout((Signal("x", "column"), Signal("n", "column", integer=True)))
    program = compiled(parse("x > 1 and n > 2 and x + n < 9"), columns)
    found = conditions(program)
    ends = {
        tuple(row): low for row, low in zip(found.rows.tolist(), found.low.tolist(), strict=True)
    }
    assert 1 < ends[1.0, 0.0] < 1 + 1e-6
    assert ends[0.0, 1.0] == 2.5
    assert float(found.high.isfinite().sum()) == 1
    assert float(found.high.min()) == 9  # a rounded sum may lie on either side
