"""The section on parameters: which there are, their intervals, the range that they came from."""

from __future__ import annotations

import numpy as np
import xarray as xr

from simulators import models, simulate
from surrogate.kinds.trajectories.parameters import names, pairs, parameters
from surrogate.kinds.trajectories.report import read


def drawn(**more: object) -> xr.Dataset:
    ranges = {"beta": (0.5, 3.0), "gamma": (0.2, 1.0)}
    data = simulate(models.sir(), samples=300, seed=0, parameters=ranges, points=3)
    return data.assign(kept=("sample", np.full(300, 2.0)), **more)


def test_numbers_that_differ_between_trajectories_are_parameters() -> None:
    assert names(drawn(log_weight=("sample", np.linspace(-1, 0, 300)))) == ["beta", "gamma"]
    assert parameters(read(simulate(models.sir(), samples=20, points=3), None)) == []


def test_the_section_has_intervals_and_names_the_range() -> None:
    (made,) = parameters(read(drawn(), None))
    assert made.count("<tr>") == 3
    assert "the range that simulations drew it from" in made
    data = drawn()
    assert f"{float(data.beta.quantile(0.05)):.4g} to {float(data.beta.quantile(0.95)):.4g}" in made


def test_pairs_are_below_the_diagonal_and_the_range_is_outlined() -> None:
    content = read(drawn(), None).content
    axes = pairs(content, ["beta", "gamma"], {"beta": (0.5, 3.0)}).axes
    assert [axis.get_visible() for axis in axes] == [True, False, True, True]
    assert len(axes[0].patches) == 2  # the histogram, and the range
    assert len(axes[3].patches) == 1
