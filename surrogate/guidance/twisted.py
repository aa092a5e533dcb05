"""The Twisted Diffusion Sampler: particles along the reverse diffusion, twisted by the scenario.

After Wu et al. 2023, arXiv:2306.17775, algorithm 1. The twisting function e^ψ is the probability of
the scenario under the posterior N(D(x, σ), C_σ) (`posterior`), and the particle filter is

x_T ~ N(0, C + σ_T² I),                  log w_T = ψ_T(x_T)
x_s ~ q(x_s | x_t),                      log w_s = log w_t + log p - log q + ψ_s(x_s) - ψ_t(x_t)

with the target p(x_s | x_t) and the proposal q(x_s | x_t) of `reverse_kernel`. Particles are
resampled where their effective sample size falls below half of them. The last step draws the clean
point itself, equations met by construction (`truncated`), and the value e^c of the formula at
finished samples, times the likelihood of observations, takes the place of e^ψ. The mean weight
estimates P(scenario), or the evidence, without bias for the discretised diffusion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.guidance import smc
from surrogate.guidance.posterior import JacobianProduct, Posterior, Posteriors, Twisted
from surrogate.guidance.reverse_kernel import PosteriorKernel
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.decoder import Filter
from surrogate.sampling.steps import walk, white


@dataclass(frozen=True)
class Particles:
    """A finished batch of N particles."""

    x: Tensor
    """Clean points, (N, D), float64."""
    log_weights: Tensor
    """log w_0, (N,), not normalised: the mean weight estimates P(scenario)."""
    min_ess: float
    """Smallest effective sample size at any noise level, in particles."""
    ancestors: Tensor
    """Index of the initial particle that each descends from, (N,)."""
    met: float
    """Share of the particles that satisfy the formula, unweighted."""

    @property
    def distinct_ancestors(self) -> int:
        """Initial particles with descendants of positive weight."""
        return smc.distinct(self.ancestors[self.log_weights > -torch.inf])

    @property
    def log_z(self) -> float:
        """The estimate of log P(scenario)."""
        return float(smc.log_mean_exp(self.log_weights))

    @property
    def ess(self) -> float:
        """Effective sample size."""
        return float(smc.ess(self.log_weights))


@torch.no_grad()
def twisted(
    scenario: Scenario,
    count: int,
    sigmas: Tensor,
    generator: Generator,
    progress: Callable[[int], None] = lambda step: None,
    *,
    jacobian: str = "gaussian",
    posteriors: Posteriors | None = None,
) -> Particles:
    """One batch of `count` particles down the noise levels `sigmas` (n + 1,), the last 0.

    `jacobian`: "gaussian" or "network" (`guidance.jacobian`). `posteriors`: shared by batches.
    """
    posteriors = posteriors or Posteriors(scenario)
    covariance = scenario.covariance
    deviations = (covariance.values + float(sigmas[0]) ** 2).sqrt()
    points = torch.zeros(count, scenario.size, dtype=torch.float64)
    x_t = covariance.apply(deviations, white(points, generator))
    posterior, state = twist(posteriors, x_t, sigmas[0], jacobian)
    log_weights, ancestors = state.psi.clone(), torch.arange(count)
    min_ess = float(count)
    for sigma_t, sigma_s in walk(sigmas, progress):
        ess = float(smc.ess(log_weights))
        min_ess = min(min_ess, ess)
        if ess == 0:
            break
        if ess < smc.RESAMPLING_THRESHOLD * count:
            rows = smc.systematic(log_weights, count, generator)
            log_weights = torch.full_like(log_weights, float(smc.log_mean_exp(log_weights)))
            x_t, state, ancestors = x_t[rows], state[rows], ancestors[rows]
        if float(sigma_s) == 0:
            if scenario.handover is not None:
                foreseen = posterior.foreseen(state.denoised, state.psi)
                particles = Filter(log_weights, foreseen, smc.resampling(generator))
                x_0, made = scenario.decode(x_t, float(sigma_t), generator, particles)
                psi = (state.psi - foreseen.sum(1))[made.rows]
                log_weights, ancestors = made.log_weights - psi, ancestors[made.rows]
                min_ess = min(min_ess, float(smc.ess(log_weights)))
            else:
                x_0, log_ratio = draw_clean(posterior, state.denoised, generator)
                log_weights = log_weights + log_ratio - state.psi + scenario.log_likelihood(x_0)
            verdicts = scenario.satisfied(x_0)
            log_weights = log_weights + scenario.log_value(x_0, verdicts)
            progress(1)
            met = float(verdicts.satisfied.double().mean())
            return Particles(x_0, log_weights, min_ess, ancestors, met)
        kernel = PosteriorKernel(posterior, sigma_t, sigma_s)
        p = kernel.target(x_t, state.denoised)
        q = kernel.proposal(x_t, state.guided)
        draw = q.sample(generator)
        log_ratio = q.log_ratio(p, draw)
        psi_t, x_t = state.psi, draw.x_s
        posterior, state = twist(posteriors, x_t, sigma_s, jacobian)
        log_weights = log_weights + log_ratio + state.psi - psi_t
    zero_weights = torch.full((count,), -torch.inf, dtype=torch.float64)
    return Particles(x_t, zero_weights, 0.0, ancestors, 0.0)


def twist(
    posteriors: Posteriors, x_t: Tensor, sigma: Tensor, jacobian: str
) -> tuple[Posterior, Twisted]:
    """The posterior at a noise level, and its estimates and twisting function at points (N, D)."""
    scenario = posteriors.scenario
    prior = scenario.prior
    points = scenario.shaped(x_t).to(prior.device, torch.float32)
    product: JacobianProduct | None = None
    if jacobian == "network" and scenario.rest is not None:
        points.requires_grad_()
        with torch.enable_grad():
            made = prior.bounded(points, sigma.float())

        def product(v: Tensor) -> Tensor:
            (found,) = torch.autograd.grad(made, points, scenario.shaped(v).to(made))
            return scenario.joined(found.double().cpu())

    else:
        made = prior.bounded(points, sigma.float())
    denoised = scenario.joined(made.detach().double().cpu())
    posterior = posteriors.at(sigma, denoised)
    return posterior, posterior.guide(denoised, product)


def draw_clean(
    posterior: Posterior, denoised: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """The last step: clean points x_0 (B, D), and log p(x_0 | x_t) - log q(x_0 | x_t), (B,).

    target    p = N(D, C_σ) within the ranges of data
    proposal  q = N(D, C_σ) given the equations, whose mean is moved by C'∇ψ of the other rules

    The weight of the equations is that of the GHK simulator over the probability of the ranges; a
    mean moved by C'∇ψ has log p - log q = -∇ψᵀ(x_0 - mean) - ½ ∇ψᵀC'∇ψ.
    """
    scenario = posterior.scenario
    draw = posterior.sample(denoised, generator)
    x_0, log_ratio = draw.x, draw.log_weight
    if len(posterior.equations):
        log_ratio = log_ratio - posterior.log_range_probability(denoised)
    if scenario.rest is not None:
        _, gradient = posterior.rest(draw.mean)
        gain = posterior.exact_gain if len(posterior.equations) else None
        shift = posterior.conditional_product(gradient, gain)  # nothing moves along the equations
        noise = x_0 - draw.mean
        log_ratio = log_ratio - (gradient * noise).sum(1) - 0.5 * (gradient * shift).sum(1)
        x_0 = x_0 + shift
    return scenario.within(x_0), log_ratio
