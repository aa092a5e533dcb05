"""Schedules against autograd, their inverses and their published definitions."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surrogate.diffusion.schedule import (
    EDM,
    SCHEDULES,
    VE,
    VP,
    Schedule,
    SubVP,
    from_config,
    karras,
    schedule,
)
from surrogate.errors import ModelError

ALL = [VE(), VP(), SubVP(), EDM(), VE(0.1, 3.0), VP(0.5, 9.0), SubVP(1.0, 5.0), EDM(0.01, 10, 3)]
TIMES = torch.linspace(0.01, 1, 60, dtype=torch.float64)


def slope(y: Tensor, t: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(y.sum(), t, allow_unused=True)
    return torch.zeros_like(t) if found is None else found


@pytest.mark.parametrize("each", ALL, ids=repr)
class TestEvery:
    def test_drift_and_diffusion_are_the_derivatives(self, each: Schedule) -> None:
        t = TIMES.clone().requires_grad_()
        alpha, sigma = each(t)
        drift, diffusion = each.drift_and_diffusion(TIMES)
        log_slope = slope(alpha.log(), t) if alpha.requires_grad else torch.zeros_like(t)
        torch.testing.assert_close(drift, log_slope)
        expected = slope(each(t)[1] ** 2, t) - 2 * log_slope * sigma.detach() ** 2
        torch.testing.assert_close(diffusion, expected)

    def test_time_of_inverts_the_ratio(self, each: Schedule) -> None:
        torch.testing.assert_close(each.time_of(each.ratio(TIMES)), TIMES)
        short = TIMES.float()
        torch.testing.assert_close(each.time_of(each.ratio(short)), short, atol=1e-4, rtol=1e-4)

    def test_time_of_stays_in_range(self, each: Schedule) -> None:
        least, most = each.ratio(torch.tensor([0.0, 1.0], dtype=torch.float64))
        times = each.time_of(torch.stack([least / 2, most * 2]))
        torch.testing.assert_close(times, times.new_tensor([0, 1]))

    def test_noise_grows(self, each: Schedule) -> None:
        assert (each.ratio(TIMES).diff() > 0).all()

    @pytest.mark.parametrize("shape", [(), (3,), (2, 1, 4)])
    def test_keeps_shape_and_type(self, each: Schedule, shape: tuple[int, ...]) -> None:
        for kind in (torch.float32, torch.float64):
            t = torch.full(shape, 0.3, dtype=kind)
            made = [*each(t), *each.drift_and_diffusion(t), each.time_of(t), each.ratio(t)]
            assert {(tuple(x.shape), x.dtype) for x in made} == {(shape, kind)}

    def test_survives_json(self, each: Schedule) -> None:
        assert from_config(json.loads(json.dumps(each.to_config()))) == each


def test_definitions() -> None:
    t = TIMES
    b = 0.1 * t + 19.9 * t**2 / 2
    torch.testing.assert_close(VE()(t)[1], 0.01 * 5000**t)
    alpha, sigma = VP()(t)
    torch.testing.assert_close(alpha, torch.exp(-b / 2))
    torch.testing.assert_close(alpha**2 + sigma**2, torch.ones_like(t))
    alpha, sigma = SubVP()(t)
    torch.testing.assert_close(alpha, torch.exp(-b / 2))
    torch.testing.assert_close(sigma, 1 - alpha**2)
    ends = EDM()(torch.tensor([0.0, 1.0], dtype=torch.float64))[1]
    torch.testing.assert_close(ends, ends.new_tensor([0.002, 80]))


def test_small_times_keep_their_digits_in_single_precision() -> None:
    t = torch.tensor([1e-6, 1e-4])
    for each in (VP(), SubVP()):
        exact = each.ratio(t.double())
        torch.testing.assert_close(each.ratio(t).double(), exact, rtol=1e-5, atol=0)
        torch.testing.assert_close(each.time_of(exact.float()), t, rtol=1e-5, atol=0)


@given(n=st.integers(2, 50), low=st.floats(1e-3, 0.5), high=st.floats(1, 100), rho=st.floats(1, 9))
@settings(max_examples=30, derandomize=True)
def test_karras(n: int, low: float, high: float, rho: float) -> None:
    sigmas = karras(n, low, high, rho)
    i = torch.arange(n, dtype=torch.float64)
    a, z = high ** (1 / rho), low ** (1 / rho)
    torch.testing.assert_close(sigmas[:-1], (a + i / (n - 1) * (z - a)) ** rho)
    assert len(sigmas) == n + 1
    assert sigmas[-1] == 0
    assert (sigmas.diff() < 0).all()


def test_karras_of_one_step() -> None:
    torch.testing.assert_close(karras(1, 0.002, 80), torch.tensor([80.0, 0]).double())


@given(name=st.sampled_from(sorted(SCHEDULES)), low=st.floats(1e-3, 1), factor=st.floats(1.5, 1e4))
@settings(max_examples=30, derandomize=True)
def test_configurations_round_trip(name: str, low: float, factor: float) -> None:
    kind = "beta" if name in ("vp", "sub-vp") else "sigma"
    made = schedule(name, **{f"{kind}_min": low, f"{kind}_max": low * factor})
    assert from_config(json.loads(json.dumps(made.to_config()))) == made


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"name": "vpp"}, "unknown noise schedule 'vpp'; choose one of ve, vp, sub-vp, edm"),
        ({"name": ["ve"]}, "unknown noise schedule"),
        ({"sigma_min": 1.0}, "needs a name (have: ve"),
        ({"name": "ve", "sigma": 1}, "ve has no setting 'sigma' (have: sigma_min, sigma_max"),
        ({"name": "ve", "sigma_min": -1}, "sigma_min of schedule ve must be a number > 0, not -1"),
        ({"name": "vp", "beta_max": "20"}, "beta_max of schedule vp must be a number > 0"),
        ({"name": "vp", "beta_max": math.nan}, "must be a number > 0, not nan"),
        ({"name": "edm", "rho": True}, "rho of schedule edm must be a number > 0, not True"),
        ({"name": "edm", "sigma_max": 0.001}, "sigma_min of schedule edm must be less than"),
    ],
)
def test_bad_settings(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message.replace("(", r"\(")):
        from_config(config)


def test_bad_levels() -> None:
    with pytest.raises(ModelError, match="at least 1 step, not 0"):
        karras(0, 0.002, 80)
    with pytest.raises(ModelError, match="sigma_min"):
        karras(5, 80, 0.002)
