"""Formulas in normalised coordinates: equations of logarithms, signals that are many."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from constraints import parse
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.exact import Exact
from surrogate.guidance.posterior import Posteriors
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.random import stream
from tests.surrogate.guidance.bed import Bed


def growing(n: int = 4000, steps: int = 6) -> xr.Dataset:
    """Counts whose logarithm wanders: a long tail."""
    rng = np.random.default_rng(0)
    walk = 4 + 0.4 * rng.standard_normal((n, steps)).cumsum(1)
    return xr.Dataset(
        {"N": (("sample", "time"), np.exp(walk).round().astype(np.int64) + 1)},
        coords={"time": np.arange(float(steps))},
    )


@pytest.fixture(scope="module")
def logs() -> Exact:
    data = growing()
    codec = TimeSeriesCodec.fit(data, transforms={"N": "log"})
    x = codec.encode(data, slice(None), stream(0), torch.float64).flatten(1)
    covariance = torch.cov(x.T)
    law = GaussianDenoiser(x.mean(0), covariance)
    return Exact(codec, law, Covariance(covariance), {})  # type: ignore[arg-type]


def test_an_equation_for_a_logarithm_is_exact(logs: Exact) -> None:
    goal = Scenario(logs, parse("N(2) = 300 and N(4) = 20"))
    equations = goal.equations_about(torch.zeros(6, dtype=torch.float64))
    for at, wanted, row, low, high in zip(
        (2, 4), (300, 20), equations.rows, equations.low, equations.high, strict=True
    ):
        assert row.nonzero().flatten().tolist() == [at]
        for end, value in ((low, wanted - 0.5), (high, wanted + 0.5)):
            point = torch.zeros(1, 6, dtype=torch.float64)
            point[0, at] = end
            assert float(goal.signals(point)[0, at]) == pytest.approx(value)


def test_a_bridge_of_counts_with_a_long_tail(logs: Exact) -> None:
    """log P against the Gaussian that the logarithms are; every sample meets it."""
    settings = {"method": "twisted", "particles": 1200, "steps": 30}
    data = sample(logs, 300, "N(0) = 60 and N(5) = 400", seed=1, **settings).dataset
    assert bool(data.satisfied.all())
    assert set(data.N.values[:, 5]) == {400}
    codec, spread = logs.codec, logs.covariance.matrix(logs.covariance.values)
    ends = []
    for step, value in ((0, 60), (5, 400)):
        z = np.log(np.array([value - 0.5, value + 0.5]) + 0.5)
        ends.append((z - float(codec.mean[0, step])) / float(codec.scale[0, step]))
    two = spread[[0, 5]][:, [0, 5]]
    middle = torch.tensor([sum(each) / 2 for each in ends], dtype=torch.float64)
    width = np.prod([each[1] - each[0] for each in ends])
    law = torch.distributions.MultivariateNormal(torch.zeros(2).double(), two)
    exact = float(law.log_prob(middle)) + np.log(width)
    assert data.attrs["surrogate_log_probability"] == pytest.approx(exact, abs=0.15)


def test_a_sum_of_logarithms_is_met_too(logs: Exact) -> None:
    settings = {"method": "twisted", "particles": 1500, "steps": 30}
    data = sample(logs, 200, "N(1) + N(3) = 200", seed=1, **settings).dataset
    assert bool(data.satisfied.all())
    assert ((data.N.values[:, 1] + data.N.values[:, 3]) == 200).all()


def test_a_covariance_that_is_never_formed_acts_as_the_dense_one() -> None:
    bed = Bed("a b", 12)
    text = "(forall t: a(t) <= 1) and a(3) = 0.2 +- 0.1 and (max(b) - min(b)) >= 0.5"
    points = torch.randn(20, 24, generator=stream(1), dtype=torch.float64)
    found = []
    for max_dense in (10**9, 0):
        goal = Scenario(bed.model, parse(text), max_dense=max_dense)
        posterior = Posteriors(goal).at(torch.tensor(0.5, dtype=torch.float64), points)
        twisted = posterior.guide(points)
        found.append((twisted.psi, twisted.guided))
    for dense, acting in zip(*found, strict=True):
        torch.testing.assert_close(dense, acting)


def test_a_series_of_a_thousand_steps() -> None:
    """A Gaussian chain of 1,000 steps with a bridge: the exact mean in between."""
    steps = 1000
    time = torch.arange(steps, dtype=torch.float64)
    covariance = torch.exp(-(time[:, None] - time[None]).abs() / 200)
    draws = torch.linalg.cholesky(covariance) @ torch.randn(
        steps, 2000, generator=stream(0), dtype=torch.float64
    )
    data = xr.Dataset(
        {"y": (("sample", "time"), draws.T.numpy())}, coords={"time": np.arange(float(steps))}
    )
    codec = TimeSeriesCodec.fit(data)
    scale, mean = codec.scale.flatten(), codec.mean.flatten()
    normal = covariance / (scale[:, None] * scale[None])
    model = Exact(
        codec,
        GaussianDenoiser(-mean / scale, normal),
        Covariance.of(codec.encode(data, slice(None), stream(0), torch.float64), whole=500),
        {},
    )  # type: ignore[arg-type]
    settings = {"method": "twisted", "particles": 400, "steps": 20, "pilot_samples": 100}
    goal = parse("y(0) = 1 +- 0.05 and y(600) = -1 +- 0.05 and forall t in [700, 800]: y(t) <= 1.5")
    made = sample(model, 100, goal, seed=1, **settings).dataset
    assert bool(made.satisfied.all())
    known = covariance[[0, 600]][:, [0, 600]]
    wanted = covariance[:, [0, 600]] @ torch.linalg.solve(known, torch.tensor([1.0, -1.0]).double())
    error = np.abs(made.y.values.mean(0) - wanted.numpy())[:600]
    assert error.max() < 0.35  # 100 samples of deviation up to 0.85: 0.085 each, and 4 of them
