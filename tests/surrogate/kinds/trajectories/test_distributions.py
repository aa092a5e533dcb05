"""Distributions of single values: numbers that take few values are drawn as choices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from surrogate.errors import ModelError
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.decoder import TrajectoryDecoder
from surrogate.kinds.trajectories.distributions import Choices
from tests.surrogate.analytic import generator

LEVELS = (0.1, 0.5, 2.0)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def choices(count: int = 1) -> Choices:
    return Choices(numbers(0.2, 0.5, 0.3).log().float().expand(count, 3), numbers(*LEVELS))


def everywhere(count: int = 1) -> tuple[Tensor, Tensor]:
    return torch.full((count,), -math.inf).double(), torch.full((count,), math.inf).double()


def test_probabilities_of_levels_add_to_one_in_any_support() -> None:
    own = choices(3)
    found = own.log_likelihood(numbers(*LEVELS), everywhere(3)).exp()
    torch.testing.assert_close(found.double(), numbers(0.2, 0.5, 0.3), atol=1e-6, rtol=0)
    within = numbers(0.3, 0.3), numbers(3.0, 3.0)
    found = choices(2).log_likelihood(numbers(0.5, 2.0), within).exp()
    torch.testing.assert_close(found.double(), numbers(0.625, 0.375), atol=1e-6, rtol=0)


def test_the_share_of_an_interval_is_that_of_its_levels() -> None:
    within = numbers(0.0), numbers(1.0)
    share = choices().log_share(numbers(0.4), numbers(0.6), within).exp()
    assert float(share) == pytest.approx(0.5 / 0.7, rel=1e-5)
    assert choices().log_share(numbers(0.6), numbers(0.9), within).tolist() == [-math.inf]


def test_draws_are_levels_with_their_probabilities() -> None:
    n = 20_000
    uniform = torch.rand((2, n), generator=generator(1), dtype=torch.float64)
    drawn = choices(n).sample(*everywhere(n), uniform)
    for level, share in zip(LEVELS, (0.2, 0.5, 0.3), strict=True):
        error = math.sqrt(share * (1 - share) / n)
        assert float((drawn == level).double().mean()) == pytest.approx(share, abs=5 * error)


def test_a_rate_that_an_event_changes_keeps_its_values() -> None:
    """0.5 until I has passed 30, then 0.1: with any weights, and from a stored codec."""
    rng = np.random.default_rng(0)
    infected = np.abs(rng.normal(3, 3, (200, 9)).cumsum(1)).round().astype(int)
    after = np.maximum.accumulate(infected, 1) > 30
    over = ("sample", "time")
    data = xr.Dataset({"I": (over, infected), "beta": (over, np.where(after, 0.1, 0.5))})
    codec = TimeSeriesCodec.fit(data)
    assert {v.name: v.levels for v in codec.variables} == {"I": (), "beta": (0.1, 0.5)}
    again = TimeSeriesCodec.from_config(codec.to_config())
    assert again.variables[1].levels == (0.1, 0.5)
    torch.manual_seed(1)
    decoder = TrajectoryDecoder(again)
    decoder.measure(codec.encode(data, np.arange(200), generator(0)))
    drawn = codec.to_dataset(decoder.draw(torch.zeros(50, *codec.shape), math.inf, generator(2)).x)
    assert set(np.unique(drawn.beta.values.round(12))) == {0.1, 0.5}


def test_many_values_and_few_of_each_are_numbers() -> None:
    rng = np.random.default_rng(0)
    over = ("sample", "time")
    many = xr.Dataset({"x": (over, rng.normal(size=(60, 5)))})
    assert TimeSeriesCodec.fit(many).variables[0].levels == ()
    few = xr.Dataset({"x": (over, rng.integers(0, 10, (10, 5)) + 0.5)})
    assert TimeSeriesCodec.fit(few).variables[0].levels == ()


def test_levels_of_a_damaged_codec_are_refused() -> None:
    over = ("sample", "time")
    values = np.tile([0.1, 0.5], (40, 4))
    values[::2] = 0.5
    codec = TimeSeriesCodec.fit(xr.Dataset({"beta": (over, values)}))
    config = codec.to_config()
    config["variables"][0]["levels"] = [0.5, "x"]
    with pytest.raises(ModelError, match="levels"):
        TimeSeriesCodec.from_config(config)
