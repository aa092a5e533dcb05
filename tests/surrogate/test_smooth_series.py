"""Smooth series of real numbers: a denoiser that is preconditioned with their covariance.

Untrained it is the exact denoiser of Gaussian data, so that samples, plain and conditioned, have
closed forms.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import surrogate as sg
from simulators import models, simulate
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Preconditioned, Whitened
from surrogate.diffusion.presets import preset_named
from surrogate.fitting import Run
from surrogate.guidance.sampler import sample
from surrogate.kinds.rule_options import RuleOptions
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.sites import Sites
from surrogate.model import Surrogate

STEPS = 12


def curves(samples: int, seed: int = 0) -> xr.Dataset:
    """Gaussian combinations of three waves."""
    weights = np.random.default_rng(seed).normal(size=(samples, 3)) * [2.0, 1.0, 0.5]
    waves = np.cos(np.arange(3)[:, None] * np.linspace(0, 2, STEPS))
    return xr.Dataset(
        {"x": (("sample", "time"), weights @ waves)}, {"time": np.arange(float(STEPS))}
    )


def roughness(data: xr.Dataset) -> float:
    return float(data.x.diff("time", 3).std())


@pytest.fixture(scope="module")
def model() -> Surrogate:
    data = curves(5_000)
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, slice(None), torch.Generator().manual_seed(0))
    made = Surrogate.untrained(codec, 0, width=8, depth=1, covariance=lambda: Covariance.of(x))
    assert made.decoder is not None
    made.decoder.measure(x)
    made.about["solver"] = "ode"
    return made


def test_plain_samples_are_as_smooth_as_the_data(model: Surrogate) -> None:
    data, made = curves(2_000, 1), model.sample(2_000, seed=1)
    assert roughness(made) == pytest.approx(roughness(data), rel=0.1)
    difference = np.cov(made.x.values.T) - np.cov(data.x.values.T)
    assert np.abs(difference).max() < 6 * 5.25 * math.sqrt(2 / 2_000)


def test_given_equations_samples_are_the_one_curve_that_meets_them(model: Surrogate) -> None:
    """Three values determine three weights."""
    curve = curves(1, 3).x.values[0]
    where = " and ".join(f"x({t}) = {float(curve[t])!r} +- 0.001" for t in (0, 5, 11))
    answer = sample(model, 100, where, seed=0, method="twisted")
    found = answer.dataset.x.values
    assert bool(answer.dataset.satisfied.all())
    np.testing.assert_allclose(found.mean(0), curve, atol=0.02)
    assert roughness(answer.dataset) < 0.01


def test_bounds_are_met_without_the_decoder(model: Surrogate) -> None:
    data = curves(100_000, 4)
    share = float((data.x.max("time") <= 0.5).mean())
    answer = sample(model, 500, "max(x) <= 0.5", seed=0, method="twisted")
    assert bool(answer.dataset.satisfied.all())
    assert answer.diagnostics.log_probability == pytest.approx(math.log(share), abs=0.15)


def test_a_stored_model_samples_as_before(model: Surrogate, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = sg.load(tmp_path / "model")
    assert isinstance(again.denoiser, Whitened)
    assert again.decoder is not None
    assert again.decoder.plain_handover is None
    assert again.sample(20, seed=2).identical(model.sample(20, seed=2))


def test_series_are_free_of_laws_or_bound_by_them() -> None:
    free = curves(100)
    assert Sites(TimeSeriesCodec.fit(free)).unbound
    counts = simulate(models.sir(), samples=100, seed=0)
    assert not Sites(TimeSeriesCodec.fit(counts)).unbound


def test_a_run_learns_smooth_series_down_to_clean_points() -> None:
    run = Run(curves(400), 0, preset_named("quick", 2))
    assert isinstance(run.model.denoiser, Whitened)
    assert run.trainer.decoder_share < 1
    model = run.fit()
    assert model.about["solver"] in ("ode", "autoregressive")
    assert model.draw(3).isfinite().all()


def test_rough_series_are_left_to_the_decoder() -> None:
    data = curves(400)
    data["x"] = data.x + 0.5 * np.random.default_rng(1).normal(size=data.x.shape)
    run = Run(data, 0, preset_named("quick", 2))
    assert type(run.model.denoiser) is Preconditioned
    assert run.trainer.decoder_share == 1
    assert run.model.decoder is not None
    assert run.model.decoder.early


def test_a_declared_law_binds_them() -> None:
    data = curves(400)
    data["y"] = data.x + 1
    run = Run(data, 0, preset_named("quick", 2), rules=RuleOptions("x <= y"))
    assert type(run.model.denoiser) is Preconditioned
