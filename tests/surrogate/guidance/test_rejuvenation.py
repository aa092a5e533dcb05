"""Moves leave the conditional distribution invariant: a finite system, summed exactly."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
import xarray as xr
from scipy.stats import chisquare
from torch import Generator, Tensor

from constraints import parse
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.exact import Exact
from surrogate.guidance.rejuvenation import rejuvenate
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.decoder import Decoder, Draw, Filter, Pins
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.random import stream
from tests.surrogate.guidance.bed import Bed

STEPS, TOP = 3, 4
STATES = torch.tensor(list(product(range(TOP + 1), repeat=STEPS)), dtype=torch.float64)


class Table(Decoder):
    """p(x_0 | x_σ) of a table of probabilities, drawn value by value; one series of counts."""

    def __init__(self, codec: TimeSeriesCodec, log_p: Tensor) -> None:
        super().__init__()
        self.codec, self.log_p = codec, log_p
        self.encoded = (STATES - codec.mean[0]) / codec.scale[0]

    def measure(self, clean: Tensor) -> None:
        raise NotImplementedError

    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        raise NotImplementedError

    def log_prob(self, clean: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def coordinates(self) -> int:
        return STEPS

    def signals(self, y: Tensor) -> dict[str, Tensor]:
        return {"X": y.reshape(-1, STEPS)}

    def draw(
        self,
        noisy: Tensor,
        sigma: float,
        generator: Generator,
        pins: Pins | None = None,
        particles: Filter | None = None,
        *,
        total: int | None = None,
    ) -> Draw:
        assert pins is not None
        x, log_weights = self._visit(noisy, sigma, pins, generator, None)
        return Draw(x, log_weights, torch.arange(len(log_weights)))

    def log_weight(self, clean: Tensor, noisy: Tensor, sigma: float, pins: Pins) -> Tensor:
        y = torch.round(clean.reshape(-1, STEPS) * self.codec.scale[0] + self.codec.mean[0])
        return self._visit(noisy, sigma, pins, None, y)[1]

    def _visit(
        self, noisy: Tensor, sigma: float, pins: Pins, generator: Generator | None, y: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        x = noisy.reshape(-1, 1, STEPS)
        log_p = self.log_p - (x - self.encoded).square().sum(2) / (2 * sigma**2)  # (B, states)
        weight, made = torch.zeros(len(x)).double(), torch.zeros(len(x), STEPS).double()
        last = [int(row.nonzero().max()) for row in pins.rows]
        for t in range(STEPS):
            options = torch.stack(  # log p of each value, given those before it
                [
                    log_p.masked_fill(STATES[:, t] != value, -torch.inf).logsumexp(1)
                    for value in range(TOP + 1)
                ],
                1,
            )
            options = torch.log_softmax(options, 1)
            allowed = torch.ones_like(options, dtype=torch.bool)
            for row, low, high, own in zip(pins.rows, pins.low, pins.high, last, strict=True):
                if own == t:
                    values = made[:, :t] @ row[:t]
                    at = values[:, None] + row[t] * torch.arange(TOP + 1)
                    allowed &= (at >= low) & (at <= high)
            kept = options.masked_fill(~allowed, -torch.inf)
            weight = weight + kept.logsumexp(1)
            if y is not None:
                made[:, t] = y[:, t]
            else:
                possible = torch.where(allowed.any(1, keepdim=True), kept, options)
                shares = torch.softmax(possible, 1)
                made[:, t] = torch.multinomial(shares, 1, generator=generator)[:, 0].double()
            log_p = log_p.masked_fill(STATES[:, t] != made[:, t, None], -torch.inf)
        encoded = (made - self.codec.mean[0]) / self.codec.scale[0]
        return encoded.reshape(-1, 1, STEPS), weight


def system() -> tuple[Exact, Tensor]:
    """A model of a random table of probabilities, and that table."""
    rng = np.random.default_rng(4)
    p = torch.tensor(rng.dirichlet(np.full(len(STATES), 0.5)))
    draws = STATES[torch.multinomial(p, 5_000, True, generator=stream(0))].to(torch.int64)
    data = xr.Dataset(
        {"X": (("sample", "time"), draws.numpy())}, coords={"time": np.arange(STEPS, dtype=float)}
    )
    codec = TimeSeriesCodec.fit(data)
    spread = torch.eye(STEPS, dtype=torch.float64)
    denoiser = GaussianDenoiser(torch.zeros(STEPS).double(), spread)
    made = Exact(codec, denoiser, Covariance(spread), {}, decoder=Table(codec, p.log()))  # type: ignore[arg-type]
    return made, p


def test_moves_with_a_decoder_leave_the_conditional_distribution_invariant() -> None:
    """Equations, a bound and a product: 19 states of 125, of very different probabilities."""
    model, p = system()
    scenario = Scenario(model, parse("X(0) + X(2) = 4 and X(1) >= 1 and X(0) * X(1) <= 8"))
    assert len(scenario.pins) == 2
    encoded = model.decoder.encoded  # type: ignore[union-attr]
    met = scenario.satisfied(encoded).satisfied
    target = torch.where(met, p, 0.0) / p[met].sum()
    start = torch.multinomial(target, 40_000, True, generator=stream(1))
    moved = rejuvenate(scenario, encoded[start], stream(2))
    index = (moved[:, None] - encoded).abs().sum(2).argmin(1)
    assert float((index != start).double().mean()) > 0.1
    counts = torch.bincount(index, minlength=len(p))
    assert int(counts[~met].sum()) == 0
    often = target * len(index) >= 5
    expected = target[often] / target[often].sum() * counts[often].sum()
    assert chisquare(counts[often].numpy(), expected.numpy()).pvalue > 1e-3


def test_samples_of_a_model_without_a_decoder_are_not_moved() -> None:
    bed = Bed("a", 11)
    scenario = Scenario(bed.model, parse("a(3) >= 0"))
    x = torch.randn(20, 11, generator=stream(0), dtype=torch.float64)
    assert torch.equal(rejuvenate(scenario, x, stream(1)), x)
