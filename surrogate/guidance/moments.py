"""Moment-matching guidance: every sample is led by what is known of its own clean point.

At noise σ the clean point has the mean D(x, σ) and the covariance V = σ² ∂D/∂x (Tweedie's second
formula): that of the network, by products with its Jacobian, or C_σ of a Gaussian with the data's
covariance. Linear equations A x_0 = b, known up to variances R, and a formula with the
log-probability ψ move the mean to

D'  = D + V Aᵀ (A V Aᵀ + R)⁻¹ (b - A D)        (ΠGDM, Song et al., 2023; MMPS, Rozet et al., 2024,
D'' = D' + λ V ∇ψ(D')                           arXiv:2405.13712; universal guidance, forward)

and a step from σ to σ_s, r = σ_s²/σ², is N(D'' + r (x - D''), σ_s² (1 - r) I). With the network's V
the system is solved by conjugate gradients, each of which is one pass back through the network.

What an image shows is decided while there is noise: below some level classes have no slope, for the
shortest way to another class is then an image that only the classifier mistakes for one.

Each sample may have several particles: a step that was led has the weight of the step that was not,
times the growth of ψ (the Twisted Diffusion Sampler, Wu et al., 2023, arXiv:2306.17775), and the
particles of a sample are chosen among themselves. Samples stay independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.guidance.scenario import Scenario
from surrogate.sampling.steps import Progress, walk, white

ITERATIONS = 5  # of conjugate gradients: the first ones tell most, and the next level goes on
TOGETHER = 200_000  # numbers in points whose way through the network is kept in memory
TURNS = 60  # of meeting the equations and staying in range, at the end
EXACT = 0.01  # of a tolerance is left to rounding: what has no more is met in its middle
NEARLY = 0.5  # noise at which it is
HAIR = 0.01  # deviations by which an inequality is met
FIRM = 1e-4  # standard deviation that an exact equation is known up to, in normalised units
SETTLED = 2.0  # noise below which it is decided what an image shows, in normalised units
RESAMPLE = 0.5  # share of a sample's particles that must carry the weight
Apply = Callable[[Tensor], Tensor]


@dataclass
class Led:
    """A batch (B, D): the clean points as the network and as the scenario has them, and ψ (B,)."""

    estimate: Tensor
    tilted: Tensor
    psi: Tensor

    def chosen(self, rows: Tensor) -> Led:
        return Led(self.estimate[rows], self.tilted[rows], self.psi[rows])


class Moments:
    """What a scenario makes of points at a noise level; `jacobian` "network", or a Gaussian's."""

    def __init__(
        self,
        scenario: Scenario,
        jacobian: str = "network",
        strength: float = 1.0,
        iterations: int = ITERATIONS,
    ) -> None:
        self.scenario, self.jacobian = scenario, jacobian
        self.strength, self.iterations = strength, iterations
        self._flat = False  # whether the formula had no slope when it was last asked
        found = scenario.equations_about(torch.zeros(scenario.size, dtype=torch.float64))
        self.rows = found.rows.float()  # A, (k, D)
        self.wanted = ((found.low + found.high) / 2).float()
        self.low, self.high = found.low, found.high
        self.room = ((found.high - found.low).square() / 12 + FIRM**2).float()  # R

    def __call__(self, x: Tensor, sigma: Tensor) -> Led:
        """Of flat points (B, D) at σ."""
        self.scenario.settled = float(sigma) < SETTLED
        each = max(1, TOGETHER // self.scenario.size)
        parts = [self._led(part, sigma) for part in torch.split(x, each)]
        return Led(*(torch.cat([getattr(p, n) for p in parts]) for n in Led.__annotations__))

    def _led(self, x: Tensor, sigma: Tensor) -> Led:
        if self.jacobian != "network":
            estimate = self.scenario.denoised(x, sigma)
            belief = self.scenario.belief(sigma, estimate)
            psi, tilted = belief.tilt(estimate, strength=self.strength)
            return Led(estimate.to(x), self.scenario.within(tilted.to(x)), psi.to(x))
        if self._flat and not len(self.rows):  # no way back through the network is needed, it seems
            estimate = self.scenario.joined(self._denoised(self.scenario.shaped(x), sigma))
            value, slope = self._rest(estimate, sigma)
            if not slope.any():
                inside = self.scenario.within(estimate)
                return Led(inside, inside, value.to(x))
        with torch.enable_grad():
            points = self.scenario.shaped(x).detach().requires_grad_()
            made = self._denoised(points, sigma)

        def spread(v: Tensor) -> Tensor:
            """V v, for flat v."""
            (found,) = torch.autograd.grad(
                made, points, self.scenario.shaped(v).to(made), retain_graph=True
            )
            return float(sigma) ** 2 * self.scenario.joined(found)

        estimate = self.scenario.joined(made.detach())
        tilted, psi = self._conditioned(estimate, spread)
        if self.scenario.rest is not None:
            value, slope = self._rest(tilted, sigma)
            self._flat = not slope.any()
            tilted = tilted if self._flat else tilted + self.strength * spread(slope.to(x))
            psi = psi + value.to(x)
        return Led(self.scenario.within(estimate), self.scenario.within(tilted), psi)

    def _denoised(self, points: Tensor, sigma: Tensor) -> Tensor:
        """D as the network has it, whose slope is known outside of the range of data too."""
        made: Tensor = self.scenario.model.denoiser(points, sigma.float())
        return made

    def _rest(self, mean: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """ψ (B,) of what is no equation, and its slope (B, D)."""
        belief = self.scenario.belief(sigma, mean.double())
        return belief.rest(self.scenario.within(mean).double())

    def _conditioned(self, mean: Tensor, spread: Apply) -> tuple[Tensor, Tensor]:
        """D', and the log-density of the equations up to what is common to all points."""
        if not len(self.rows):
            return mean, mean.new_zeros(len(mean))
        missing = self.wanted - mean @ self.rows.mT
        solved = conjugate_gradients(
            lambda u: spread(u @ self.rows) @ self.rows.mT + self.room * u,
            missing,
            self.iterations,
        )
        return mean + spread(solved @ self.rows), -0.5 * (missing * solved).sum(1)

    def projected(self, x: Tensor) -> Tensor:
        """Points (B, D) moved to meet the equations, the linear inequalities that they miss, and
        the range of data, in turn."""
        bounds = self.scenario.bounds()
        if not len(self.rows) and not len(bounds):
            return x
        rows, x = self.rows.double(), x.double()
        kept = ((self.high - self.low) / 2 - EXACT).clamp_min(0)
        low, high = self.wanted - kept, self.wanted + kept
        room = 1e-9 * torch.eye(len(rows)).to(rows) * float(rows.square().sum(1).mean())
        factor = torch.linalg.cholesky(rows @ rows.mT + room) if len(rows) else rows
        covariance = self.scenario.covariance
        nearly = covariance.posterior(torch.tensor(NEARLY))  # as images vary when all but finished
        spread = covariance.apply(nearly, bounds.rows)
        power = (spread * bounds.rows).sum(1)
        some = HAIR * power.sqrt()  # so that rounding does not undo it
        for _ in range(TURNS):
            if len(rows):
                at = x @ rows.mT
                missing = (low - at).clamp_min(0) - (at - high).clamp_min(0)
                x = x + torch.cholesky_solve(missing.mT, factor).mT @ rows
            for row, moved, least, most, total, hair in zip(
                bounds.rows, spread, bounds.low, bounds.high, power, some, strict=True
            ):
                at = x @ row
                gap = (least + hair - at).clamp_min(0) - (at + hair - most).clamp_min(0)
                x = x + gap[:, None] * moved / total
            x = self.scenario.within(x)
        return x


def conjugate_gradients(matrix: Apply, wanted: Tensor, iterations: int) -> Tensor:
    """u (B, k) with matrix(u) ≈ wanted, for a symmetric positive matrix of each row's own.

    A row whose matrix turns out not to be positive, as a network's may, stays where it is.
    """
    u = torch.zeros_like(wanted)
    left, way = wanted, wanted
    size = left.square().sum(1, keepdim=True)
    first = size
    for _ in range(iterations):
        through = matrix(way)
        bend = (way * through).sum(1, keepdim=True)
        moving = (bend > 0) & (size > 1e-10 * first)
        length = torch.where(moving, size / bend.clamp_min(1e-30), 0.0)
        u, left = u + length * way, left - length * through
        before, size = size, left.square().sum(1, keepdim=True)
        way = left + torch.where(moving, size / before.clamp_min(1e-30), 0.0) * way
    return u


@dataclass
class Walked:
    """Samples (n, D), and the log of the mean weight of each one's particles (n,)."""

    x: Tensor
    log_z: Tensor
    least: float  # share of a sample's particles that carried the weight, at worst
    met: float  # share of all particles that met the scenario at the end


@torch.no_grad()
def walked(
    moments: Moments,
    count: int,
    sigmas: Tensor,
    generator: Generator,
    particles: int = 1,
    recurrence: int = 1,
    progress: Progress | None = None,
) -> Walked:
    """`count` independent samples down the levels `sigmas` (n + 1,), the last 0, each chosen among
    its particles. Every step is taken `recurrence` times, noised again in between, which leaves
    the law at a level as it is and forgets errors of the levels before."""
    scenario = moments.scenario
    x = float(sigmas[0]) * white(torch.zeros(count * particles, scenario.size), generator)
    weights, log_z, least = torch.zeros(count, particles), torch.zeros(count), 1.0
    known = x.new_zeros(len(x))  # ψ at the level before
    for sigma, below in walk(sigmas, progress):
        led = moments(x, sigma)
        for _ in range(recurrence - 1):
            x, _ = _stepped(x, led, sigma, below, generator)
            x = x + float((sigma**2 - below**2).sqrt()) * white(x, generator)
            led = moments(x, sigma)
        weights = weights + (led.psi - known).reshape(count, particles)
        worth = torch.exp(2 * weights.logsumexp(1) - (2 * weights).logsumexp(1)) / particles
        least = min(least, float(worth.min()))
        poor = worth < RESAMPLE
        rows = _chosen(weights, poor, generator)
        x, led = x[rows], led.chosen(rows)
        gained = torch.where(poor, log_mean(weights), 0.0)
        log_z = log_z + gained
        weights = torch.where(poor[:, None], 0.0, weights)
        known = led.psi
        x, change = _stepped(x, led, sigma, below, generator)
        weights = weights + change.reshape(count, particles)
    x = moments.projected(x)
    value = scenario.log_value(x.double()).float()
    met = float((value > -torch.inf).double().mean())
    final = weights + (value - known).reshape(count, particles)
    hopeless = ~(final > -torch.inf).any(1)  # none of them met it: the best of those there are
    best = torch.where(hopeless[:, None], weights, final)
    chosen = torch.multinomial(torch.softmax(best, 1), 1, generator=generator)[:, 0]
    at = torch.arange(count) * particles + chosen
    return Walked(x[at], log_z + log_mean(final), least, met)


def _stepped(
    x: Tensor, led: Led, sigma: Tensor, below: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Points (B, D) at the next level, and log p - log q of each (B,)."""
    r = float((below / sigma) ** 2)
    shift = (1 - r) * (led.tilted - led.estimate)
    deviation = float(below) * (1 - r) ** 0.5
    noise = deviation * white(x, generator)
    made = led.tilted + r * (x - led.tilted) + noise
    if deviation == 0:
        return made, made.new_zeros(len(made))
    return made, -(shift * (2 * noise + shift)).sum(1) / (2 * deviation**2)


def _chosen(weights: Tensor, poor: Tensor, generator: Generator) -> Tensor:
    """Numbers (n K,) of the particles that go on: those of `poor` samples by their weights (n, K),
    by systematic resampling, all others as they are."""
    count, each = weights.shape
    ends = torch.softmax(weights, 1).cumsum(1)
    at = (torch.arange(each) + torch.rand((count, 1), generator=generator)) / each
    found = torch.searchsorted(ends, at * ends[:, -1:]).clamp_max(each - 1)
    own = torch.where(poor[:, None], found, torch.arange(each))
    return (own + each * torch.arange(count)[:, None]).flatten()


def log_mean(weights: Tensor) -> Tensor:
    """log of the mean of e^weights along the last axis."""
    return weights.logsumexp(-1) - math.log(weights.shape[-1])
