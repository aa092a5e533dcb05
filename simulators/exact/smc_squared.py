"""SMC²: particles of parameters, each with a particle filter.

Chopin, Jacob & Papaspiliopoulos, J. R. Stat. Soc. B 75 (2013) 397.

A filter of states alone would lose the parameters, which never change: after a few sharp
observations all particles descend from a handful of draws. Here G draws θ of the parameters each
have a filter, whose estimate Ẑ_k(θ) of the likelihood is without bias, so that weights

    ω_k(θ) = Ẑ_k(θ)

give the posterior of θ exactly as G grows, and the mean gain in ω the evidence. Where few θ carry
the weight they are resampled and moved by particle marginal Metropolis–Hastings (Andrieu, Doucet &
Holenstein 2010), which proposes θ' and runs a new filter for it; where it accepts too little, the
filters are made larger.

Parameters are coordinates z of a standard normal prior: θ = F⁻¹(Φ(z)) for any distribution F.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from simulators.exact.particles import Cloud, Seeds, Target, systematic
from simulators.random import uniforms

RESAMPLE_BELOW = 0.5  # of the parameter draws: effective sample size
MIN_ACCEPTANCE = 0.15  # of proposals; below, filters get twice the particles
MAX_STATE_PARTICLES = 4096  # of a filter
MOVES, FINAL_MOVES = 1.0, 3.0  # accepted for each parameter draw, on average
MAX_PASSES = 12  # of proposals at a time
JITTER = 1e-9  # of the covariance of proposals
MIN_UNIFORM = 1e-15


def smc_squared(
    target: Target, groups: int, size: int, seeds: Seeds, progress: Callable[[float], None]
) -> tuple[Cloud, float]:
    """Filters (G,) whose parameters are draws from their posterior, and log Ẑ; -inf if none of them
    could have produced the data. `progress`: the share of stops passed."""
    names = target.engine.start.varying
    z = ndtri(_uniforms(seeds, groups, len(names)))
    cloud = _filters(target, names, z, size, seeds, [])
    log_weights, log_z = np.full(groups, -np.log(groups)), 0.0
    stops = target.stops
    for k, stop in enumerate(stops):
        before = cloud.log_z
        cloud.extend(stop, seeds)
        gained = np.full(groups, -np.inf)
        alive = np.isfinite(cloud.log_z)
        gained[alive] = cloud.log_z[alive] - before[alive]
        log_weights = log_weights + gained
        total = float(logsumexp(log_weights))
        if not np.isfinite(total):
            return cloud, -np.inf
        log_weights -= total
        log_z += total
        last = stop == stops[-1]
        if last or np.exp(-logsumexp(2 * log_weights)) < RESAMPLE_BELOW * groups:
            done = stops[: k + 1]
            wanted = FINAL_MOVES if last else MOVES
            cloud, z, log_weights = _moved(cloud, names, z, log_weights, done, wanted, seeds)
        progress((k + 1) / len(stops))
    return _resampled(cloud, z, log_weights, seeds)[0], log_z


def _moved(
    cloud: Cloud,
    names: tuple[str, ...],
    z: np.ndarray,
    log_weights: np.ndarray,
    stops: list[int],
    wanted: float,
    seeds: Seeds,
) -> tuple[Cloud, np.ndarray, np.ndarray]:
    """Resampled and moved, `wanted` moves accepted for each on average."""
    groups, dimensions = z.shape
    accepted = 0.0
    for _ in range(MAX_PASSES):
        if accepted == 0.0 or log_weights.min() < log_weights.max():
            spread = np.atleast_2d(np.cov(z.T, aweights=np.exp(log_weights), ddof=0))
            step = np.linalg.cholesky(spread + JITTER * np.eye(dimensions))
            step *= 2.38 / np.sqrt(dimensions)  # Roberts, Gelman & Gilks 1997
            cloud, z = _resampled(cloud, z, log_weights, seeds)
            log_weights = np.full(groups, -np.log(groups))
        proposed = z + ndtri(_uniforms(seeds, groups, dimensions)) @ step.T
        others = _filters(cloud.target, names, proposed, cloud.size, seeds, stops)
        log_ratio = others.log_z - cloud.log_z - ((proposed**2).sum(1) - (z**2).sum(1)) / 2
        better = np.log(_uniforms(seeds, groups, 1)[:, 0]) < log_ratio
        cloud.replace(better, others)
        z = np.where(better[:, None], proposed, z)
        rate = float(better.mean())
        accepted += rate
        if accepted >= wanted:
            break
        if rate < MIN_ACCEPTANCE and 2 * cloud.size <= MAX_STATE_PARTICLES:
            larger = _filters(cloud.target, names, z, 2 * cloud.size, seeds, stops)
            gained = larger.log_z - cloud.log_z  # the exchange of filters, as a weight
            if np.isfinite(gained).any():
                cloud, log_weights = larger, gained - float(logsumexp(gained))
    return cloud, z, log_weights


def _filters(
    target: Target,
    names: tuple[str, ...],
    z: np.ndarray,
    size: int,
    seeds: Seeds,
    stops: list[int],
) -> Cloud:
    """Filters for parameters at z (G, d), up to the last of these stops."""
    shares = np.clip(ndtr(z), MIN_UNIFORM, 1.0 - MIN_UNIFORM)
    places = {name: shares[:, j] for j, name in enumerate(names)}
    cloud = Cloud(target, len(z), size, target.engine.start.parameters_at(places), seeds.next())
    for stop in stops:
        cloud.extend(stop, seeds)
    return cloud


def _resampled(
    cloud: Cloud, z: np.ndarray, log_weights: np.ndarray, seeds: Seeds
) -> tuple[Cloud, np.ndarray]:
    weights = np.exp(log_weights - logsumexp(log_weights))
    u = uniforms(seeds.next(), 0, 0, 1)
    chosen = systematic(weights[None], len(weights), u)[0]
    cloud.chosen(chosen)
    return cloud, z[chosen]


def _uniforms(seeds: Seeds, count: int, columns: int) -> np.ndarray:
    """(count, columns) uniform numbers."""
    seed = seeds.next()
    return np.stack([uniforms(seed, j, 0, count) for j in range(columns)], axis=1)
