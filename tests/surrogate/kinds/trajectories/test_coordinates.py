"""Levels or logarithms: what moves by amounts, and what moves by percentages."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
import xarray as xr

from simulators import models, simulate
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.coordinates import MIN_SAMPLES, choose, log_likelihood
from surrogate.kinds.trajectories.transforms import Identity, Log
from surrogate.kinds.trajectories.variables import survey

OVER = ("sample", "time")


def data_of(samples: int = 400, steps: int = 12) -> xr.Dataset:
    """Prices, whose returns do not depend on the price, and walks, whose steps do not."""
    rng = np.random.default_rng(0)
    returns = 0.02 * rng.normal(size=(samples, steps)).cumsum(1)
    start = np.exp(rng.normal(4, 1, (samples, 1)))
    walk = rng.normal(size=(samples, steps)).cumsum(1) + rng.uniform(20, 400, (samples, 1))
    return xr.Dataset(
        {
            "price": (OVER, start * np.exp(returns)),
            "walk": (OVER, walk),
            "loss": (OVER, -start * np.exp(returns)),
            "cases": (OVER, rng.poisson(start * np.exp(20 * returns))),
            "rate": ("sample", rng.uniform(0.5, 3, samples)),
        }
    )


def test_prices_and_cases_are_learned_as_logarithms_and_walks_as_levels() -> None:
    codec = TimeSeriesCodec.fit(data_of(), transforms={"*": "auto"})
    kinds = {v.name: v.transform.kind for v in codec.variables}
    assert kinds == {
        "price": "log",
        "walk": "identity",
        "loss": "identity",
        "cases": "log",
        "rate": "identity",
    }
    assert set(codec.gains) == {"price", "cases"}
    assert "logarithms of price, cases, by a trial on held-out samples: price +" in codec.learned
    again = TimeSeriesCodec.from_config(codec.to_config())
    assert again.gains == codec.gains


def test_parameters_drawn_from_a_range_are_uniform_to_an_untrained_decoder() -> None:
    """The logit between the ends makes uniform values one logistic."""
    drawn = {"beta": (0.5, 3.0), "N": (50, 60)}
    data = simulate(models.esirs(), samples=2_000, seed=0, parameters=drawn, points=3)
    codec = TimeSeriesCodec.fit(data, transforms={"*": "auto"})
    kinds = {v.name: v.transform.kind for v in codec.variables if v.static}
    assert kinds == {"beta": "logit", "N": "logit"}
    z = torch.logit(torch.linspace(0.001, 0.999, 999, dtype=torch.float64))
    for name, mean in (("beta", 1.75), ("N", 55.0)):
        (v,) = (each for each in codec.variables if each.name == name)
        y = v.transform.inverse(z)
        assert float(y.mean()) == pytest.approx(mean, rel=1e-3)
        assert torch.allclose(y.diff(), y.diff().mean(), rtol=1e-6)


def test_a_requested_transform_is_not_tried() -> None:
    codec = TimeSeriesCodec.fit(data_of(), transforms={"*": "auto", "price": "identity"})
    assert {v.name: v.transform.kind for v in codec.variables}["price"] == "identity"
    assert "price" not in codec.gains


def test_the_gain_is_that_of_samples_that_were_not_learned() -> None:
    data = data_of()[["price"]]
    learned = np.arange(100)
    _, variables, _ = survey(data)
    known, held_out = (
        torch.from_numpy(data.price.values[rows]) for rows in (learned, slice(100, None))
    )
    logs, levels = (log_likelihood(f, known, held_out) for f in (Log(0.0), Identity()))
    assert choose(data, variables, learned)["price"].gain == pytest.approx(logs - levels)


def test_few_samples_keep_levels() -> None:
    data = data_of(2 * MIN_SAMPLES - 2)
    codec = TimeSeriesCodec.fit(data, transforms={"*": "auto"})
    assert {v.transform.kind for v in codec.variables} == {"identity"}


@pytest.mark.parametrize("transform", [Identity(), Log(0.0)])
def test_the_log_likelihood_is_that_of_laplace_increments(transform: Identity | Log) -> None:
    rng = np.random.default_rng(2)
    known, held_out = np.exp(rng.normal(size=(2, 30, 3)))
    z, y = (transform.forward(torch.from_numpy(each)).numpy() for each in (known, held_out))
    total = 0.0
    for step in range(3):
        own, new = (each[:, step] - (each[:, step - 1] if step else 0) for each in (z, y))
        middle = torch.from_numpy(own).median().item()  # the lower of two middle ones
        law = scipy.stats.laplace(middle, np.abs(own - middle).mean())
        total += law.logpdf(new).mean() / 3
    if isinstance(transform, Log):
        total -= np.log(held_out).mean()
    found = log_likelihood(transform, torch.from_numpy(known), torch.from_numpy(held_out))
    assert found == pytest.approx(total, abs=1e-9)
