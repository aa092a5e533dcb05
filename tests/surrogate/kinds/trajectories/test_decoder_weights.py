"""The weights of a decoder's draws, computed again from the draws."""

from __future__ import annotations

import pytest
import torch

from surrogate.kinds.decoder import Pins
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.decoder import TrajectoryDecoder
from tests.surrogate.kinds.trajectories.trajectories import KINDS, generator, trajectories, weather

SIGMA = 0.3


def decoder(kind: str) -> tuple[TrajectoryDecoder, torch.Tensor]:
    """With random weights, and encoded samples."""
    data = weather() if kind == "weather" else trajectories(kind)
    codec = TimeSeriesCodec.fit(data)
    clean = codec.encode(data, slice(40), generator())
    torch.manual_seed(0)
    made = TrajectoryDecoder(codec, width=16, depth=1)
    made.measure(clean)
    for weights in made.parameters():
        torch.nn.init.normal_(weights, std=0.1)
    return made, clean


@pytest.mark.parametrize("instances", [1, 2])
@pytest.mark.parametrize("kind", [*KINDS, "weather"])
def test_the_weights_of_draws_are_found_again_from_their_values(kind: str, instances: int) -> None:
    made, clean = decoder(kind)
    noisy = clean + SIGMA * torch.randn(clean.shape, generator=generator(1))
    size = instances * clean[0].numel()
    rows = torch.zeros(3, size, dtype=torch.float64)
    rows[0, 2], rows[1, size - 1], rows[2, 0], rows[2, size - 2] = 1.0, 1.0, 1.0, -1.0
    values = made.sites.codec.values(clean.double())
    spread = max(float(each.abs().max()) for each in values.values())
    reach = 1.55 if kind == "rates" else 1.0  # into the tails of what is drawn, not beyond them
    low = torch.tensor([-0.3, -0.2, -0.4]).double() * spread * reach
    pins = Pins(rows, low, -low + 0.5 * spread)
    draw = made.draw(noisy, SIGMA, generator(2), pins)
    x, weights = draw.x, draw.log_weights
    again = made.log_weight(x, noisy, SIGMA, pins)
    assert bool(weights.isfinite().any())
    assert float(weights[weights.isfinite()].min()) < -1e-3
    torch.testing.assert_close(again, weights, rtol=1e-4, atol=1e-4)
