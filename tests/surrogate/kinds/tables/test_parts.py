"""Parts of columns in intervals, against all values and latents."""

from __future__ import annotations

import numpy as np
import pytest

from surrogate.kinds.tables.parts import FAR, outer_bounds, part
from surrogate.kinds.tables.quantiles import Quantiles

RANDOM = np.random.default_rng(0)
COLUMNS = {
    "all atoms": np.repeat(RANDOM.integers(0, 9, 40), 4) * 0.5,
    "real": RANDOM.normal(size=500),
    "rounded": np.round(RANDOM.normal(size=3_000) * 20, 2),
    "zeros and rounded": np.concatenate([np.zeros(300), np.round(RANDOM.exponential(9, 400), 2)]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_latents_of_a_part_are_those_whose_values_lie_in_the_interval(name: str) -> None:
    q = Quantiles.fit(COLUMNS[name])
    z = np.linspace(q.low, q.high, 40_001)[1:-1]
    y = q.finish(z)
    ends = np.sort(RANDOM.choice(y, (60, 2)), 1)
    ends[:20] += RANDOM.normal(size=(20, 1)) * 0.01  # between values, too
    found = part(q, ends[:, 0], ends[:, 1])
    for i, (low, high) in enumerate(ends):
        inside = (y >= low) & (y <= high)
        assert found.empty[i] == (not inside.any()) or found.first[i] <= found.last[i]
        if not inside.any():
            continue
        assert low - 1e-9 <= found.first[i] <= y[inside].min()
        assert y[inside].max() <= found.last[i] <= high + 1e-9
        # the grid of z is finer than this
        assert found.low[i] <= z[inside][0] + 1e-9
        assert found.high[i] >= z[inside][-1] - 1e-9
        outside = z[~inside]
        within = (outside > found.low[i] + 1e-9) & (outside < found.high[i] - 1e-9)
        assert not within.any()


def test_a_part_without_values_is_empty_and_an_open_one_is_all() -> None:
    q = Quantiles.fit(np.repeat([1.0, 2.0, 4.0], 10))
    found = part(q, np.array([2.5, 5.0, -np.inf, 4.0]), np.array([3.5, 9.0, np.inf, np.inf]))
    assert found.empty.tolist() == [True, True, False, False]
    assert (found.first[2], found.last[2]) == (1.0, 4.0)
    assert (found.low[2], found.high[2]) == (-FAR, FAR)
    assert found.low[3] == q.bounds[2]
    low, high = outer_bounds(q)
    assert (high[:-1] == low[1:]).all()
