"""Moment matching: every sample is guided by the mean and the covariance of its own clean point.

At noise σ the clean point has the mean D(x, σ) and the covariance V = σ² ∂D/∂x (Tweedie's second
formula): from the network, by products with its Jacobian, or C_σ of a Gaussian with the covariance
of the data. Linear equations A x_0 = b, up to variances R, and a formula with the log-probability ψ
move the mean to

D'  = D + V Aᵀ (A V Aᵀ + R)⁻¹ (b - A D)        (ΠGDM, Song et al., 2023; MMPS, Rozet et al., 2024,
D'' = D' + λ V ∇ψ(D')                           arXiv:2405.13712; universal guidance, forward)

and a step from σ to σ_s, r = σ_s²/σ², is N(D'' + r (x - D''), σ_s² (1 - r) I). With the network's V
the system is solved by conjugate gradients, each iteration of which is one backward pass.

What an image shows is decided at high noise: below some level classifiers have no gradient, for the
nearest point of another class is then an adversarial example of the classifier.

Each sample may have several particles: a guided step has the weight of the unguided one, times the
growth of ψ (the Twisted Diffusion Sampler, Wu et al., 2023, arXiv:2306.17775), and the particles of
a sample are resampled among themselves. Samples stay independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.diffusion.schedule import karras
from surrogate.guidance import smc
from surrogate.guidance.methods.moments import PARTICLES_OF_EACH_SAMPLE, MomentsSettings
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.posterior import Posteriors, Twisted
from surrogate.guidance.reverse_kernel import IsotropicKernel
from surrogate.guidance.scenario import Scenario
from surrogate.random import Sampling, stream
from surrogate.sampling.steps import SIGMA_MAX, Progress, walk, white

CG_ITERATIONS = 5  # of conjugate gradients: the first matter most, and the next level continues
MAX_GRAPH_SIZE = 200_000  # numbers in points whose pass through the network is kept in memory
PROJECTION_SWEEPS = 60  # over the equations, the inequalities and the ranges, at the end
ROUNDING_ROOM = 0.01  # of a tolerance is left to rounding: equations without it hold in the middle
PROJECTION_SIGMA = 0.5  # noise whose posterior covariance projects onto inequalities
INEQUALITY_MARGIN = 0.01  # standard deviations by which an inequality is met
EQUATION_DEVIATION = 1e-4  # standard deviation of an exact equation, in normalised units
CLASS_SIGMA = 2.0  # noise below which classes have no gradient, in normalised units
MOMENTS_SIGMA_MIN = 0.02  # the last noise level before the clean point
MAX_REDRAWS = 5  # rounds of drawing samples that do not meet the scenario again
MAX_RELATIVE_ERROR = 0.5  # of a probability, above which it is not reported
Apply = Callable[[Tensor], Tensor]


class Moments:
    """Estimates of the clean point given a scenario; `jacobian` is "network" or "gaussian".

    rows: A (k, D) of the equations; wanted: middles of their intervals, (k,); tolerance: R, (k,).
    """

    def __init__(
        self,
        scenario: Scenario,
        jacobian: str = "network",
        strength: float = 1.0,
        iterations: int = CG_ITERATIONS,
    ) -> None:
        self.scenario, self.jacobian = scenario, jacobian
        self.strength, self.iterations = strength, iterations
        self.posteriors = Posteriors(scenario)
        # whether the last gradient was 0: the next probably is, and needs no backward pass (speed)
        self._flat = False
        found = scenario.equations_about(torch.zeros(scenario.size, dtype=torch.float64))
        self.rows = found.rows.float()
        self.wanted = ((found.low + found.high) / 2).float()
        self.low, self.high = found.low, found.high
        self.tolerance = ((found.high - found.low).square() / 12 + EQUATION_DEVIATION**2).float()

    def __call__(self, x: Tensor, sigma: Tensor) -> Twisted:
        """Of flat points (B, D) at σ."""
        count = max(1, MAX_GRAPH_SIZE // self.scenario.size)
        parts = [self._guide(part, sigma) for part in torch.split(x, count)]
        return Twisted(
            torch.cat([part.denoised for part in parts]),
            torch.cat([part.guided for part in parts]),
            torch.cat([part.psi for part in parts]),
        )

    def _guide(self, x: Tensor, sigma: Tensor) -> Twisted:
        if self.jacobian != "network":
            denoised = self.scenario.denoised(x, sigma)
            posterior = self.posteriors.at(sigma, denoised)
            found = posterior.guide(
                denoised, strength=self.strength, class_gradients=_has_class_gradients(sigma)
            )
            guided = self.scenario.within(found.guided.to(x))
            return Twisted(denoised.to(x), guided, found.psi.to(x))
        if self._flat and not len(self.rows):
            denoised = self.scenario.joined(self._denoised(self.scenario.shaped(x), sigma))
            value, gradient = self._rest(denoised, sigma)
            if not gradient.any():
                inside = self.scenario.within(denoised)
                return Twisted(inside, inside, value.to(x))
        with torch.enable_grad():
            points = self.scenario.shaped(x).detach().requires_grad_()
            made = self._denoised(points, sigma)

        def covariance(v: Tensor) -> Tensor:
            """V v, for flat v."""
            (found,) = torch.autograd.grad(
                made, points, self.scenario.shaped(v).to(made), retain_graph=True
            )
            return float(sigma) ** 2 * self.scenario.joined(found)

        denoised = self.scenario.joined(made.detach())
        guided, psi = self._condition(denoised, covariance)
        if self.scenario.rest is not None:
            value, gradient = self._rest(guided, sigma)
            self._flat = not gradient.any()
            guided = guided if self._flat else guided + self.strength * covariance(gradient.to(x))
            psi = psi + value.to(x)
        return Twisted(self.scenario.within(denoised), self.scenario.within(guided), psi)

    def _denoised(self, points: Tensor, sigma: Tensor) -> Tensor:
        """D as the network has it, with a gradient outside of the range of data too."""
        made: Tensor = self.scenario.prior.denoiser(points, sigma.float())
        return made

    def _rest(self, mean: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """ψ (B,) of the formula without its equations, and its gradient (B, D)."""
        posterior = self.posteriors.at(sigma, mean.double())
        return posterior.rest(self.scenario.within(mean).double(), _has_class_gradients(sigma))

    def _condition(self, mean: Tensor, covariance: Apply) -> tuple[Tensor, Tensor]:
        """D' (B, D), and the log-density of the equations up to a constant (B,)."""
        if not len(self.rows):
            return mean, mean.new_zeros(len(mean))
        residual = self.wanted - mean @ self.rows.mT
        solved = conjugate_gradients(
            lambda u: covariance(u @ self.rows) @ self.rows.mT + self.tolerance * u,
            residual,
            self.iterations,
        )
        return mean + covariance(solved @ self.rows), -0.5 * (residual * solved).sum(1)

    def projected(self, x: Tensor) -> Tensor:
        """Points (B, D) projected in turn onto the equations, the linear inequalities that they
        violate, and the range of data."""
        bounds = self.scenario.inequalities()
        if not len(self.rows) and not len(bounds):
            return x
        rows, x = self.rows.double(), x.double()
        kept = ((self.high - self.low) / 2 - ROUNDING_ROOM).clamp_min(0)
        low, high = self.wanted - kept, self.wanted + kept
        ridge = 1e-9 * torch.eye(len(rows)).to(rows) * float(rows.square().sum(1).mean())
        factor = torch.linalg.cholesky(rows @ rows.mT + ridge) if len(rows) else rows
        covariance = self.scenario.covariance
        values = covariance.posterior(torch.tensor(PROJECTION_SIGMA))
        directions = covariance.apply(values, bounds.rows)  # C_σ aᵀ of each inequality a x <= b
        variances = (directions * bounds.rows).sum(1)
        margins = INEQUALITY_MARGIN * variances.sqrt()  # so that rounding does not undo it
        for _ in range(PROJECTION_SWEEPS):
            if len(rows):
                at = x @ rows.mT
                residual = (low - at).clamp_min(0) - (at - high).clamp_min(0)
                x = x + torch.cholesky_solve(residual.mT, factor).mT @ rows
            for row, direction, low_end, high_end, variance, margin in zip(
                bounds.rows, directions, bounds.low, bounds.high, variances, margins, strict=True
            ):
                at = x @ row
                gap = (low_end + margin - at).clamp_min(0) - (at + margin - high_end).clamp_min(0)
                x = x + gap[:, None] * direction / variance
            x = self.scenario.within(x)
        return x


def _has_class_gradients(sigma: Tensor) -> bool:
    """Whether classifiers guide at this level: what an image shows is not decided yet."""
    return not float(sigma) < CLASS_SIGMA


def conjugate_gradients(matrix: Apply, wanted: Tensor, iterations: int) -> Tensor:
    """u (B, k) with matrix(u) ≈ wanted, for a symmetric positive matrix of each row's own.

    A row whose matrix turns out not to be positive definite, as a network's may be, stays where it
    is.
    """
    u = torch.zeros_like(wanted)
    residual, direction = wanted, wanted
    norm = residual.square().sum(1, keepdim=True)
    first = norm
    for _ in range(iterations):
        through = matrix(direction)
        curvature = (direction * through).sum(1, keepdim=True)
        moving = (curvature > 0) & (norm > 1e-10 * first)
        length = torch.where(moving, norm / curvature.clamp_min(1e-30), 0.0)
        u, residual = u + length * direction, residual - length * through
        before, norm = norm, residual.square().sum(1, keepdim=True)
        ratio = torch.where(moving, norm / before.clamp_min(1e-30), 0.0)
        direction = residual + ratio * direction
    return u


@dataclass(frozen=True)
class WeightedSamples:
    """Samples after the last noise level."""

    x: Tensor
    """Samples, (n, D)."""
    log_z: Tensor
    """Log of the mean weight of each sample's particles, (n,)."""
    min_ess: float
    """Smallest effective sample size of a sample's particles at any level, as a share of them."""
    met: float
    """Share of all particles that met the scenario at the end, unweighted."""


@torch.no_grad()
def walk_down(
    moments: Moments,
    count: int,
    sigmas: Tensor,
    generator: Generator,
    particles: int = 1,
    recurrence: int = 1,
    progress: Progress | None = None,
) -> WeightedSamples:
    """`count` independent samples down the levels `sigmas` (n + 1,), the last 0, each resampled
    among its particles. Every step is taken `recurrence` times with new noise in between, which
    leaves the distribution at a level invariant and forgets errors of the levels before."""
    scenario = moments.scenario
    x = float(sigmas[0]) * white(torch.zeros(count * particles, scenario.size), generator)
    log_weights, log_z, min_ess = torch.zeros(count, particles), torch.zeros(count), 1.0
    psi_t = x.new_zeros(len(x))
    for sigma_t, sigma_s in walk(sigmas, progress):
        kernel = IsotropicKernel(sigma_t, sigma_s)
        state = moments(x, sigma_t)
        for _ in range(recurrence - 1):
            x = kernel.proposal(x, state.guided).sample(generator).x_s
            x = x + float((sigma_t**2 - sigma_s**2).sqrt()) * white(x, generator)
            state = moments(x, sigma_t)
        log_weights = log_weights + (state.psi - psi_t).reshape(count, particles)
        ess = smc.ess(log_weights) / particles
        min_ess = min(min_ess, float(ess.min()))
        low = ess < smc.RESAMPLING_THRESHOLD
        rows = _resample(log_weights, low, generator)
        x, state = x[rows], state[rows]
        log_z = log_z + torch.where(low, smc.log_mean_exp(log_weights), 0.0)
        log_weights = torch.where(low[:, None], 0.0, log_weights)
        psi_t = state.psi
        p, q = kernel.target(x, state.denoised), kernel.proposal(x, state.guided)
        draw = q.sample(generator)
        x, log_weights = draw.x_s, log_weights + q.log_ratio(p, draw).reshape(count, particles)
    x = moments.projected(x)
    value = (scenario.log_value(x.double()) + scenario.log_likelihood(x.double())).float()
    met = float((value > -torch.inf).double().mean())
    final = log_weights + (value - psi_t).reshape(count, particles)
    all_failed = ~(final > -torch.inf).any(1)  # then one of the failing particles is returned
    selected = torch.where(all_failed[:, None], log_weights, final)
    index = torch.multinomial(torch.softmax(selected, 1), 1, generator=generator)[:, 0]
    at = torch.arange(count) * particles + index
    return WeightedSamples(x[at], log_z + smc.log_mean_exp(final), min_ess, met)


def _resample(log_weights: Tensor, low: Tensor, generator: Generator) -> Tensor:
    """Indices (n K,) of particles with log-weights (n, K): those of samples with a `low` effective
    sample size (n,) resampled, all others as they are."""
    count, particles = log_weights.shape
    found = smc.systematic(log_weights, particles, generator)
    own = torch.where(low[:, None], found, torch.arange(particles))
    return (own + particles * torch.arange(count)[:, None]).flatten()


def answer(question: Question[MomentsSettings]) -> Outcome:
    """Independent samples; those that do not meet the scenario are redrawn some times."""
    own, scenario, samples = question.settings, question.scenario, question.samples
    each = max(1, own.particles // samples) if own.particles else PARTICLES_OF_EACH_SAMPLE
    moments = Moments(scenario, own.jacobian, own.strength)
    sigmas = karras(own.steps, MOMENTS_SIGMA_MIN, SIGMA_MAX)
    passes = 2 + CG_ITERATIONS if len(moments.rows) else 2
    if moments.jacobian != "network":
        passes = 1
    progress = question.counted(own.steps)
    found: list[WeightedSamples] = []
    x = torch.zeros(samples, scenario.size, dtype=torch.float64)
    missing, spent = torch.arange(samples), 0
    for turn in range(MAX_REDRAWS):
        generator = stream(question.seed, Sampling.MOMENTS, turn)
        made = walk_down(moments, len(missing), sigmas, generator, each, own.recurrence, progress)
        found.append(made)
        spent += len(missing) * each * own.steps * passes * own.recurrence
        x[missing] = made.x.double()
        met, consistent = scenario.satisfied(x[missing])
        missing = missing[~(met & consistent)]
        if not len(missing) or not scenario.hard:
            break
    first = found[0]
    outcome = Outcome.even(
        x,
        particles=samples * each,
        steps=own.steps,
        evaluations=spent,
        met=first.met,
        min_ess=first.min_ess,
    )
    if not len(moments.rows) and samples > 1:
        # each sample's particles are an independent estimate; a mean that few dominate is unusable
        total = float(smc.log_mean_exp(first.log_z.double()))
        error = float(torch.exp(first.log_z.double() - total).std()) / math.sqrt(samples)
        if error < MAX_RELATIVE_ERROR:
            outcome.log_probability, outcome.log_probability_error = total, error
    if len(missing) and scenario.hard:
        outcome.warnings = [f"{len(missing) / samples:.1%} of the samples do not meet the scenario"]
    return outcome
