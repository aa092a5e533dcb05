"""Transforms: inverses, derivatives, domains, and how they are written."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.kinds.trajectories import transforms as channels
from surrogate.kinds.trajectories.transforms import Identity, Log, Logit, Transform

EVERY = [Identity(), Log(0.0), Log(-3.5), Logit(0.0, 1.0), Logit(-2.0, 7.0)]


def within(transform: Transform) -> torch.Tensor:
    """Points of the domain."""
    low = transform.low if math.isfinite(transform.low) else -5.0
    high = transform.high if math.isfinite(transform.high) else low + 10.0
    return low + (high - low) * torch.linspace(0.01, 0.99, 50, dtype=torch.float64)


@pytest.mark.parametrize("transform", EVERY, ids=str)
def test_every_transform_has_an_inverse_and_derivatives(transform: Transform) -> None:
    y = within(transform)
    z = transform.forward(y)
    assert bool((z.diff() > 0).all())
    torch.testing.assert_close(transform.inverse(z), y, rtol=1e-12, atol=1e-12)
    z.requires_grad_()
    assert torch.autograd.gradcheck(transform.inverse, (z,))
    assert torch.autograd.gradcheck(transform.forward, (y.requires_grad_(),))


@pytest.mark.parametrize("transform", EVERY, ids=str)
def test_a_config_gives_the_same_transform(transform: Transform) -> None:
    text = json.dumps(transform.to_config(), allow_nan=False)
    assert channels.from_config(json.loads(text), name="S") == transform


@given(
    st.integers(0, 1000),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(["identity", "log", "logit(0, 1000)"]),
)
@settings(max_examples=200)
def test_counts_come_back_from_noise_even_in_single_precision(n: int, u: float, text: str) -> None:
    transform = channels.from_text(text, name="S", integer=True)
    noisy = channels.dequantised(torch.tensor(float(n), dtype=torch.float64), u)
    assert abs(float(noisy) - n) < 0.5
    z = transform.forward(noisy)
    assert math.isfinite(float(z))
    assert float(channels.rounded(transform.inverse(z.float().double()))) == n


@given(st.floats(-1e4, 1e4))
@settings(max_examples=100)
def test_counts_stay_within_their_bounds_wherever_the_model_goes(z: float) -> None:
    for text, low, high in (("log", 0.0, math.inf), ("logit(3, 10)", 3.0, 10.0)):
        transform = channels.from_text(text, name="S", integer=True)
        count = channels.rounded(transform.inverse(torch.tensor(z, dtype=torch.float64)))
        assert low <= float(count) <= high


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sqrt", r"unknown transform 'sqrt' \(have: identity, log"),
        ("log(a)", "not numbers"),
        ("log(1, 2)", "two ends"),
        ("logit", r"logit needs both; write .* logit\(0, 100\)"),
        ("logit(1)", "needs both"),
        ("logit(2, 1)", "no interval"),
        ("logit(nan, 1)", "needs both"),
        ("identity(3)", "unknown transform"),
        (3, "unknown transform 3"),
    ],
)
def test_what_cannot_be_a_transform(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        channels.from_text(text, name="S", integer=False)


@pytest.mark.parametrize(
    "config",
    [3, {}, {"kind": "sqrt"}, {"kind": "log"}, {"kind": "logit", "low": 2.0, "high": 1.0},
     {"kind": "log", "low": "0"}],
)  # fmt: skip
def test_configs_that_are_no_transform(config: object) -> None:
    with pytest.raises(ModelError, match=r"^S: "):
        channels.from_config(config, name="S")  # type: ignore[arg-type]


def test_known_bounds_serve_logit() -> None:
    made = channels.from_text("logit", name="S", integer=False, known=(0.0, 100.0))
    assert made == Logit(0.0, 100.0)
