"""Particles along the reverse diffusion, twisted by what is known of the scenario.

After the Twisted Diffusion Sampler (Wu et al., 2023, arXiv:2306.17775). With ψ_σ(x) the
log-probability of the scenario at the belief N(D(x, σ), C_σ), a step from σ to σ_s, r = σ_s²/σ², is

p = N(D + r (x - D), P),   P = σ_s² (1 - r) I + (1 - r)² C_σ              without the scenario
q = N(D'' + r (x - D''), P'),  P' = σ_s² (1 - r) I + (1 - r)² C'         as it is proposed

where D'', C' are of the belief given the scenario (`beliefs`), and a particle's log-weight grows by
log p - log q + ψ_s - ψ. Particles are resampled where few of them carry the weight. The last step
draws the clean point itself, equations met by construction (`truncated`), and the formula is then
judged on finished values. The mean weight estimates the scenario's probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.guidance import truncated
from surrogate.guidance.posterior import Belief, Pull
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.smc import effective, systematic
from surrogate.sampling.steps import walk

RESAMPLE = 0.5  # share of particles that must carry the weight


@dataclass
class Particles:
    """A finished batch: x (N, D), log_weights (N,), and how it went."""

    x: Tensor
    log_weights: Tensor  # their mean estimates the scenario's probability
    least: float  # effective particles at worst
    lineage: Tensor  # the first particle that each comes from, (N,)
    met: float  # share that satisfied the formula before any was chosen

    @property
    def ancestors(self) -> int:
        """First particles that those with a weight come from."""
        return len(torch.unique(self.lineage[self.log_weights > -torch.inf]))

    @property
    def log_z(self) -> float:
        return truncated.log_mean(self.log_weights)

    @property
    def effective(self) -> float:
        return effective(self.log_weights)


@dataclass
class _Cloud:
    """The particles at one noise level."""

    x: Tensor
    estimate: Tensor  # D
    tilted: Tensor  # D''
    psi: Tensor
    log_weights: Tensor
    lineage: Tensor

    def chosen(self, rows: Tensor) -> _Cloud:
        even = torch.full_like(self.log_weights, truncated.log_mean(self.log_weights))
        return _Cloud(
            self.x[rows],
            self.estimate[rows],
            self.tilted[rows],
            self.psi[rows],
            even,
            self.lineage[rows],
        )


@torch.no_grad()
def twisted(
    scenario: Scenario,
    count: int,
    sigmas: Tensor,
    generator: Generator,
    progress: Callable[[int], None] = lambda step: None,
) -> Particles:
    """One batch of `count` particles down the noise levels `sigmas` (n + 1,), the last 0."""
    covariance = scenario.covariance
    wide = (covariance.values + float(sigmas[0]) ** 2).sqrt()
    x = covariance.apply(wide, _white(scenario, count, generator))
    belief, cloud = _seen(scenario, x, sigmas[0])
    cloud.log_weights = cloud.psi.clone()
    cloud.lineage = torch.arange(count)
    least = float(count)
    for sigma, below in walk(sigmas, progress):
        carrying = effective(cloud.log_weights)
        least = min(least, carrying)
        if carrying < RESAMPLE * count:
            if carrying == 0:
                break
            cloud = cloud.chosen(systematic(cloud.log_weights, count, generator))
        if float(below) == 0:
            done = _finished(scenario, belief, cloud, least, generator)
            progress(1)
            return done
        x, change = _step(belief, cloud, sigma, below, generator)
        before = cloud
        belief, cloud = _seen(scenario, x, below)
        cloud.log_weights = before.log_weights + change + cloud.psi - before.psi
        cloud.lineage = before.lineage
    nothing = torch.full((count,), -torch.inf, dtype=torch.float64)
    return Particles(cloud.x, nothing, 0.0, cloud.lineage, 0.0)


def _white(scenario: Scenario, count: int, generator: Generator) -> Tensor:
    return torch.randn((count, scenario.size), generator=generator, dtype=torch.float64)


def _seen(scenario: Scenario, x: Tensor, sigma: Tensor) -> tuple[Belief, _Cloud]:
    """The belief at a level, and what it makes of the points there."""
    model = scenario.model
    points = scenario.shaped(x).to(model.device, torch.float32)
    pull: Pull | None = None
    if scenario.jacobian_of == "network" and scenario.rest is not None:
        points.requires_grad_()
        with torch.enable_grad():
            made = model.bounded(points, sigma.float())

        def pull(v: Tensor) -> Tensor:
            (found,) = torch.autograd.grad(made, points, scenario.shaped(v).to(made))
            return scenario.joined(found.double().cpu())

    else:
        made = model.bounded(points, sigma.float())
    estimate = scenario.joined(made.detach().double().cpu())
    belief = scenario.belief(sigma, estimate)
    psi, tilted = belief.tilt(estimate, pull)
    return belief, _Cloud(x, estimate, tilted, psi, psi, torch.arange(len(x)))


def _step(
    belief: Belief, cloud: _Cloud, sigma: Tensor, below: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Points at the next level, and log p - log q of each."""
    scenario, covariance = belief.scenario, belief.covariance
    r = float((below / sigma) ** 2)
    rest = 1 - r
    count = len(cloud.x)
    # noise of covariance C', by conditioning a draw of C_σ on the equations
    noise = covariance.apply(belief.values.sqrt(), _white(scenario, count, generator))
    equations = belief.equations
    width = ((equations.high - equations.low) / 12**0.5).expand(count, -1)
    jitter = width * torch.randn(width.shape, generator=generator, dtype=torch.float64)
    noise = noise - (noise @ equations.rows.mT + jitter) @ belief.gain.mT
    noise = rest * noise + float(below) * rest**0.5 * _white(scenario, count, generator)
    x = cloud.tilted + r * (cloud.x - cloud.tilted) + noise

    values = float(below) ** 2 * rest + rest**2 * belief.values  # eigenvalues of P
    shift = rest * (cloud.tilted - cloud.estimate)
    # (m'' - m)ᵀ P⁻¹ (x - m + x - m''), half of it
    change = -0.5 * (covariance.apply(1 / values, shift) * (2 * noise + shift)).sum(1)
    if len(equations):
        # P' = P - W Wᵀ: its inverse and determinant by the Woodbury identity
        w = rest * belief.gain @ belief.factor  # (D, k)
        inverse = covariance.apply(1 / values, w.mT)  # Wᵀ P⁻¹, (k, D)
        small = torch.linalg.cholesky(torch.eye(len(equations)).to(w) - inverse @ w)
        white = torch.linalg.solve_triangular(small, inverse @ noise.mT, upper=False)
        change = change + 0.5 * white.square().sum(0) + small.diagonal().log().sum()
    return x, change


def _finished(
    scenario: Scenario,
    belief: Belief,
    cloud: _Cloud,
    least: float,
    generator: Generator,
) -> Particles:
    x, change = draw_clean(belief, cloud.estimate, generator)
    met, _ = scenario.satisfied(x)
    log_weights = cloud.log_weights + change - cloud.psi + scenario.log_value(x)
    return Particles(x, log_weights, least, cloud.lineage, float(met.double().mean()))


def draw_clean(belief: Belief, mean: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Clean points (B, D) of N(mean, C_σ) that meet the equations, tilted towards the rest of the
    formula, and log p - log q of each: (B,).
    """
    scenario, equations = belief.scenario, belief.equations
    x = mean + belief.covariance.apply(belief.values.sqrt(), _white(scenario, len(mean), generator))
    change = mean.new_zeros(len(mean))
    if len(equations):
        factor = belief.exact_factor()
        ends = truncated.shrunk(equations.low, equations.high)
        at = mean @ equations.rows.mT
        u, change = truncated.box(at, factor, *ends, generator)
        change = change - belief.log_within(mean)
        gain = torch.cholesky_solve(belief.loaded, factor).mT  # (D, k)
        x = x + (u - x @ equations.rows.mT) @ gain.mT
        mean = mean + (u - at) @ gain.mT
    if scenario.rest is not None:
        _, slope = belief.rest(mean)
        moved = belief.covariance.apply(belief.values, slope)
        if len(equations):  # along the equations nothing moves
            moved = moved - (slope @ belief.loaded.mT) @ gain.mT
        change = change - (slope * (x - mean)).sum(1) - 0.5 * (slope * moved).sum(1)
        x = x + moved
    return scenario.within(x), change
