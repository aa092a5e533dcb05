"""The proposal of statics: its weights are those of the density that it draws from."""

from __future__ import annotations

import math

import torch

from surrogate.kinds.decoder import Uniforms
from surrogate.kinds.trajectories.static_proposal import KernelProposal
from surrogate.random import stream

COUNT = 40_000


def test_weights_turn_proposed_draws_into_those_of_the_decoder() -> None:
    """p: z_1 ~ N(0, 1), z_2 ~ N(z_1 / 2, 1); kernels about points on one side of it."""
    points = torch.randn(500, 2, generator=stream(0), dtype=torch.float64) * 0.4 + 1.0
    proposing = KernelProposal.of({"a": points[:, 0], "b": points[:, 1]}).started(COUNT)
    uniform, normal = Uniforms(stream(1), COUNT), stream(2)
    mean = torch.zeros(COUNT, dtype=torch.float64)
    log_weights, drawn = torch.zeros_like(mean), []
    for name in ("a", "b"):
        own = mean + torch.randn(COUNT, generator=normal, dtype=torch.float64)
        z = proposing.offered(name, own, uniform)
        log_p = -0.5 * (z - mean).square() - 0.5 * math.log(2 * math.pi)
        log_weights += proposing.log_ratio(name, z, log_p)
        drawn.append(z)
        mean = z / 2
    weights = log_weights.exp()
    assert float(weights.max()) <= 10 + 1e-9  # a tenth of the draws are the decoder's own
    error = float(weights.std()) / math.sqrt(COUNT)
    assert abs(float(weights.mean()) - 1) < 5 * error
    a, b = drawn
    assert float(a.mean()) > 0.7  # of the points, not of the decoder
    for function, exact in ((a, 0.0), (b, 0.0), (a * b, 0.5), (b * b, 1.25)):
        values = weights * function
        bound = 5 * float(values.std()) / math.sqrt(COUNT)
        assert abs(float(values.mean()) - exact) < bound


def test_a_number_that_is_given_conditions_those_after_it() -> None:
    """Kernels along a diagonal: given the first number, the second is near it."""
    line = torch.linspace(-3, 3, 200, dtype=torch.float64)
    noise = 0.05 * torch.randn(200, generator=stream(0), dtype=torch.float64)
    proposing = KernelProposal.of({"a": line, "b": line + noise}).started(1_000)
    proposing.given("a", torch.full((1_000,), 2.0, dtype=torch.float64))
    far = torch.full((1_000,), 50.0, dtype=torch.float64)
    b = proposing.offered("b", far, Uniforms(stream(1), 1_000))
    assert 0.05 < float((b == 50.0).double().mean()) < 0.15
    # the kernels are as correlated as the points, so that they all lead to about 2
    assert abs(float(b[b != 50.0].mean()) - 2.0) < 0.1
