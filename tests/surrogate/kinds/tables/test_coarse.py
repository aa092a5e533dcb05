"""Coarse quantiles: the same values, smooth latents."""

from __future__ import annotations

import numpy as np
import pytest

from surrogate.kinds.tables.coarse import MIN_GAP, coarse
from surrogate.kinds.tables.quantiles import Quantiles

MIDDLE = 0.5


@pytest.mark.parametrize("rows", [80, 1_000, 20_000])
def test_skewed_columns_have_few_knots_and_the_same_values(rows: int) -> None:
    values = np.exp(np.random.default_rng(0).normal(size=rows))
    fine = Quantiles.fit(values)
    made = coarse(fine)
    assert len(made.start) < min(40, len(fine.start))
    assert made.values == fine.values
    assert (np.diff(made.bounds) >= MIN_GAP).all()
    assert (made.stop[:-1] == made.start[1:]).all()
    z = made.forward(values, np.full(rows, MIDDLE))
    np.testing.assert_allclose(made.finish(z), values, rtol=1e-6)
    assert (np.diff(z[values.argsort()]) > 0).all()


def test_atoms_stay_where_they_are() -> None:
    random = np.random.default_rng(1)
    values = np.where(random.uniform(size=2_000) < 0.3, 0.0, random.exponential(size=2_000) + 1)
    fine = Quantiles.fit(values)
    made = coarse(fine)
    assert made.start[0] == made.stop[0] == 0
    assert made.edges[1] == fine.edges[1]
    assert len(made.start) < len(fine.start)
    stepped = Quantiles.fit(np.arange(20.0).repeat(10))
    again = coarse(stepped)
    np.testing.assert_array_equal(again.start, stepped.start)
    np.testing.assert_array_equal(again.edges, stepped.edges)


def test_the_latent_of_a_column_without_heavy_tails_is_its_value() -> None:
    values = np.random.default_rng(2).uniform(-3, 5, 1_000)
    made = coarse(Quantiles.fit(values))
    z = made.forward(values, np.full(1_000, MIDDLE))
    slope = np.diff(z) / np.diff(values)
    np.testing.assert_allclose(slope, slope[0], rtol=1e-6)
    assert z.std() == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(made.finish(z), values, rtol=1e-6)
