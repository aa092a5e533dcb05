"""Conditioned ensembles by particle filters: for networks that the master equation cannot hold.

Works for every network, events and drawn parameters included, and every condition and likelihood.
With fixed parameters it is a bootstrap filter (`particles`), with drawn ones SMC² (`smc_squared`).
Trajectories come by ancestry: all of them descend from few states where observations are many and
sharp, which `ancestors` tells. Several independent filters give the error of the log evidence.

Efficient where what is observed at a step is not rare among the states that were simulated for it.
An equation such as S(25) = 30 is met by one particle in some dozens; a state that one in a million
reaches by none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student_t

from simulators import dataset
from simulators.engine import Beginning, Engine
from simulators.ensemble import advance, check_count, make_engine, time_grid
from simulators.errors import Setting, SimulationError
from simulators.exact.conditions import Predicate
from simulators.exact.particles import Cloud, PathFactor, Seeds, Target, systematic
from simulators.exact.rejection import conditions_of, refuse_arrays
from simulators.exact.smc_squared import smc_squared
from simulators.network import ReactionNetwork
from simulators.random import uniforms
from simulators.start import Initial, Start

RUNS = 8  # independent filters, or
RUNS_OF_PARAMETERS = 4  # independent runs of SMC²
PARTICLES = 40_000  # in all
STATE_PARTICLES = 64  # of the filter of a parameter draw, at first
PARTICLES_OF_PARAMETERS = RUNS_OF_PARAMETERS * 512 * STATE_PARTICLES
NORMAL_SHARE = 0.975  # of errors within 1.96 stated ones, although the runs are few
MIN_GROUPS = 16  # parameter draws of a run


def particle_filter(
    network: ReactionNetwork,
    where: Mapping[Any, Predicate] | None = None,
    samples: int = 1_000,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    points: int | None = None,
    until: float | None = None,
    paths: Mapping[int, Sequence[PathFactor]] | None = None,
    particles: int | None = None,
    method: str = "direct",
    threads: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> xr.Dataset:
    """Draws from the law of trajectories given `where` (conditions and likelihoods at steps) and
    `paths` (step -> factors that read trajectories up to it, weights (n,) >= 0): dims (sample,
    time). Parameters that vary are drawn from their posterior.

    `particles`: how many in all [default: 40,000; with parameters that vary 512 x 64 in each of
    four runs, more if needed]. Attributes: `log_probability`, the evidence, with its error from
    independent runs; `ancestors` and `parameter_draws`, the distinct ones that samples descend
    from; `particles`. The same seed gives the same numbers, whatever the threads.
    """
    refuse_arrays({**(parameters or {}), **(initial if isinstance(initial, Mapping) else {})})
    grid = time_grid(network, times, points, until)
    engine = make_engine(network, samples, grid, seed, initial, parameters, method)
    conditions = conditions_of(where or {}, network, engine.times, parameters)
    own = engine.start.varying
    target = Target(engine, initial, parameters or {}, conditions, dict(paths or {}), threads)
    if particles is None:
        particles = PARTICLES_OF_PARAMETERS if own else PARTICLES
    fewest = RUNS_OF_PARAMETERS * MIN_GROUPS * STATE_PARTICLES if own else 2 * RUNS
    check_count("particles", particles, fewest)
    engine.prepare()
    if own:
        clouds, log_z = _runs_of_parameters(target, particles, progress)
    else:
        clouds, log_z = _runs(target, particles, progress)
    total = float(logsumexp(log_z) - np.log(len(log_z)))
    if not np.isfinite(total):
        raise SimulationError(
            f"none of {particles:,} particles could have produced what was observed or required",
            value=particles,
            remedy=(
                "use more ", Setting("particles"),
                ", check the observations and their noise, or the start and the parameters",
            ),
        )  # fmt: skip
    spread = np.std(log_z, ddof=1) if np.isfinite(log_z).all() else np.inf
    spread *= student_t(len(log_z) - 1).ppf(NORMAL_SHARE) / norm.ppf(NORMAL_SHARE)
    chosen, found = _draws(target, clouds, log_z, samples)
    data = _completed(target, chosen, found)
    data.attrs |= {
        "title": f"{network.title or network.name}: trajectories by a particle filter",
        "where": str(conditions),
        "particles": int(sum(cloud.groups * cloud.size for cloud in clouds)),
        "log_probability": total,
        "log_probability_error": float(spread / np.sqrt(len(log_z))),
        "ancestors": sum(
            cloud.ancestors(groups, places) for cloud, groups, places in chosen if len(groups)
        ),
    }
    if own:
        drawn = np.stack([found[name] for name in own], axis=1)
        data.attrs["parameter_draws"] = len(np.unique(drawn, axis=0))
    return data


Chosen = list[tuple[Cloud, np.ndarray, np.ndarray]]  # filters and particles of each cloud, (n_j,)


def _runs(
    target: Target, particles: int, progress: Callable[[float], None]
) -> tuple[list[Cloud], np.ndarray]:
    """One cloud whose filters are the runs, and their log Ẑ."""
    seeds = Seeds(target.engine.seed, 0)
    cloud = Cloud(target, RUNS, particles // RUNS, {}, seeds.next())
    for k, stop in enumerate(target.stops):
        cloud.extend(stop, seeds)
        progress((k + 1) / len(target.stops))
    return [cloud], cloud.log_z


def _runs_of_parameters(
    target: Target, particles: int, progress: Callable[[float], None]
) -> tuple[list[Cloud], np.ndarray]:
    """A cloud for each run, and their log Ẑ."""
    groups = particles // (RUNS_OF_PARAMETERS * STATE_PARTICLES)
    clouds, log_z = [], []
    for run in range(RUNS_OF_PARAMETERS):
        cloud, found = smc_squared(
            target, groups, STATE_PARTICLES, Seeds(target.engine.seed, run + 1),
            lambda share, run=run: progress((run + share) / RUNS_OF_PARAMETERS),  # type: ignore[misc]
        )  # fmt: skip
        clouds.append(cloud)
        log_z.append(found)
    return clouds, np.array(log_z)


def _draws(
    target: Target, clouds: list[Cloud], log_z: np.ndarray, samples: int
) -> tuple[Chosen, dict[str, np.ndarray]]:
    """Particles of all runs by their weights, and the parameters that vary, each (samples,)."""
    parts = []
    if len(clouds) == 1:  # whose filters are runs
        parts.append(clouds[0].log_weights + log_z[:, None])
    else:
        parts = [
            cloud.log_weights - np.log(cloud.groups) + each
            for cloud, each in zip(clouds, log_z, strict=True)
        ]
    flat = np.concatenate([part.ravel() for part in parts])
    weights = np.exp(flat - logsumexp(flat))
    u = uniforms(Seeds(target.engine.seed, 1 << 20).next(), 0, 0, 1)
    picked = systematic(weights[None], samples, u)[0]
    chosen: Chosen = []
    first = 0
    for cloud, part in zip(clouds, parts, strict=True):
        mine = picked[(picked >= first) & (picked < first + part.size)] - first
        chosen.append((cloud, *np.divmod(mine, cloud.size)))
        first += part.size
    found = {
        name: np.concatenate([cloud.drawn[name][groups] for cloud, groups, _ in chosen])
        for name in target.engine.start.varying
    }
    return chosen, found


def _completed(target: Target, chosen: Chosen, found: Mapping[str, np.ndarray]) -> xr.Dataset:
    """The trajectories of chosen particles, each with a future of its own."""
    engine = target.engine
    samples = sum(len(groups) for _, groups, _ in chosen)
    start = Start(
        engine.network, None, {**target.parameters, **found}, samples=samples, seed=engine.seed
    )
    own = Engine(engine.network, start, engine.times, engine.seed, engine.method)
    past = np.concatenate([cloud.paths(*where) for cloud, *where in chosen if len(where[0])])
    begun = past.shape[2]
    if begun < engine.times.size:
        seed = Seeds(engine.seed, 1 << 20, used=1).next()
        begin = Beginning(
            np.ascontiguousarray(past[:, :, -1]), start.parameters(0, samples),
            engine.times[begun - 1 :], seed, resumed=True,
        )  # fmt: skip
        future = advance(own, begin, threads=target.threads)
        past = np.concatenate([past, future[:, :, 1:]], axis=2)
    made = dataset.block(own, 0, past)
    return dataset.frame(engine, made, samples, 0)
