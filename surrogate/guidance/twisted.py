"""The Twisted Diffusion Sampler: particles along the reverse diffusion, twisted by the scenario.

After Wu et al. 2023, arXiv:2306.17775, algorithm 1. With ψ_σ(x) the log-probability of the scenario
under the posterior N(D(x, σ), C_σ) (`posterior`), the particle filter is

x_T ~ N(0, C + σ_T² I),                  log w_T = ψ_T(x_T)
x_s ~ q(x_s | x_t),                      log w_s = log w_t + log p - log q + ψ_s(x_s) - ψ_t(x_t)

with the target p and the proposal q of `reverse_kernel`. Particles are resampled where their
effective sample size falls below half of them. The last step draws the clean point itself,
equations met by construction (`truncated`), and the exact verdict on finished values takes the
place of ψ. The mean weight estimates the probability of the scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.guidance import smc, truncated
from surrogate.guidance.posterior import JacobianProduct, Posterior, Posteriors
from surrogate.guidance.reverse_kernel import PosteriorKernel
from surrogate.guidance.scenario import Scenario
from surrogate.sampling.steps import walk, white

RESAMPLING_THRESHOLD = 0.5  # share of the particles below which their ESS has them resampled


@dataclass(frozen=True)
class Particles:
    """A finished batch of N particles."""

    x: Tensor
    """Clean points, (N, D), float64."""
    log_weights: Tensor
    """(N,); the mean weight estimates the probability of the scenario."""
    min_ess: float
    """Smallest effective sample size at any noise level, in particles."""
    ancestors: Tensor
    """Index of the initial particle that each descends from, (N,)."""
    met: float
    """Share that satisfied the formula, whatever the weight."""

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


@dataclass(frozen=True)
class Cloud:
    """N particles at one noise level, as their posterior sees them."""

    x: Tensor
    """Noisy points x_t, (N, D)."""
    denoised: Tensor
    """D(x_t), (N, D)."""
    guided: Tensor
    """Mean D'' of the clean point given the scenario, (N, D)."""
    psi: Tensor
    """Log-probability ψ_t of the scenario, (N,)."""

    def __getitem__(self, rows: Tensor) -> Cloud:
        return Cloud(self.x[rows], self.denoised[rows], self.guided[rows], self.psi[rows])


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
    x = covariance.apply(deviations, white(points, generator))
    posterior, cloud = _look(posteriors, x, sigmas[0], jacobian)
    log_weights, ancestors = cloud.psi.clone(), torch.arange(count)
    min_ess = float(count)
    for sigma_t, sigma_s in walk(sigmas, progress):
        ess = float(smc.ess(log_weights))
        min_ess = min(min_ess, ess)
        if ess == 0:
            break
        if ess < RESAMPLING_THRESHOLD * count:
            rows = smc.systematic(log_weights, count, generator)
            log_weights = torch.full_like(log_weights, float(smc.log_mean_exp(log_weights)))
            cloud, ancestors = cloud[rows], ancestors[rows]
        if float(sigma_s) == 0:
            x, log_ratio = draw_clean(posterior, cloud.denoised, generator)
            met, _ = scenario.satisfied(x)
            log_weights = log_weights + log_ratio - cloud.psi + scenario.log_value(x)
            progress(1)
            return Particles(x, log_weights, min_ess, ancestors, float(met.double().mean()))
        kernel = PosteriorKernel(posterior, sigma_t, sigma_s)
        p = kernel.target(cloud.x, cloud.denoised)
        q = kernel.proposal(cloud.x, cloud.guided)
        x_s = q.sample(generator)
        log_ratio = q.log_ratio(p, x_s)
        psi_t = cloud.psi
        posterior, cloud = _look(posteriors, x_s.x, sigma_s, jacobian)
        log_weights = log_weights + log_ratio + cloud.psi - psi_t
    nothing = torch.full((count,), -torch.inf, dtype=torch.float64)
    return Particles(cloud.x, nothing, 0.0, ancestors, 0.0)


def _look(
    posteriors: Posteriors, x: Tensor, sigma: Tensor, jacobian: str
) -> tuple[Posterior, Cloud]:
    """The posterior at a level, and the points (N, D) there as it sees them."""
    scenario = posteriors.scenario
    prior = scenario.prior
    points = scenario.shaped(x).to(prior.device, torch.float32)
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
    psi, guided = posterior.guide(denoised, product)
    return posterior, Cloud(x, denoised, guided, psi)


def draw_clean(posterior: Posterior, mean: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Clean points (B, D) of N(mean, C_σ) that meet the equations, with their mean moved towards
    the rest of the formula, and log p - log q of each: (B,)."""
    scenario, equations = posterior.scenario, posterior.equations
    x = mean + posterior.covariance.apply(posterior.values.sqrt(), white(mean, generator))
    log_ratio = mean.new_zeros(len(mean))
    if len(equations):
        factor = posterior.exact_factor()
        ends = truncated.shrunk(equations.low, equations.high)
        at = mean @ equations.rows.mT
        u, log_ratio = truncated.box(at, factor, *ends, generator)
        log_ratio = log_ratio - posterior.log_within(mean)
        gain = torch.cholesky_solve(posterior.loaded, factor).mT  # (D, k)
        x = x + (u - x @ equations.rows.mT) @ gain.mT
        mean = mean + (u - at) @ gain.mT
    if scenario.rest is not None:
        _, gradient = posterior.rest(mean)
        moved = posterior.covariance.apply(posterior.values, gradient)
        if len(equations):  # along the equations nothing moves
            moved = moved - (gradient @ posterior.loaded.mT) @ gain.mT
        log_ratio = log_ratio - (gradient * (x - mean)).sum(1) - 0.5 * (gradient * moved).sum(1)
        x = x + moved
    return scenario.within(x), log_ratio
