"""Probabilities of rare events by splitting: weighted ensembles on the simulator itself.

    P = E 1[x meets the rule],     P̂ = mean of R independent ensembles, each without bias,

see `weighted_ensemble`. The level is that of a rule with a forecast: the state as it is, or, where
few pilot runs hit anything with it, the mean field from it on. The interval is

    exp(log P̂ ± t_{R-1} s / (P̂ √R)),     s the standard deviation of the R estimates.

Pilot runs also say how many copies a bin needs; they are not part of the estimate, which stays
unbiased. Trajectories that meet the rule come with their weights: together they stand for the
conditional law of the process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from simulators import dataset
from simulators.engine import Engine
from simulators.ensemble import check_count, make_engine, simulate, thread_count, time_grid
from simulators.errors import InputError, SimulationError
from simulators.exact.weighted_ensemble import (
    Outcome,
    Plan,
    Rule,
    Values,
    WeightedEnsemble,
    systematic,
)
from simulators.network import ReactionNetwork
from simulators.random import Word, check_seed, uniforms, words
from simulators.start import Initial

REPLICATES = 10
PILOTS = 6  # ensembles for each forecast
PILOT_COPIES = 40
BINS = 30
SELECTIONS = 100  # resampling times of a trajectory, at least
MIN_COPIES, MAX_COPIES = 60, 1_000
MAX_COPIES_AHEAD = 100  # where the mean field is solved for each of them
WANTED_SPREAD = 0.25  # relative standard deviation of one ensemble
CAUTION = 1.5  # the spread of few pilots is often too small
CONFIDENCE = 0.95
MAX_TRAJECTORIES = 20_000  # kept of all replicates
CHECKED = 100_000  # plain trajectories that bound what splitting never hit


@dataclass(frozen=True)
class Splitting:
    """What splitting found.

    probability: the estimate; low, high: its interval of 95 %, for which nothing but the spread of
    `replicates` (R,) counts; where nothing was hit, probability is 0 and `high` a bound. data:
    weighted trajectories that meet the rule, or None. ess: effective number of them; ancestors: of
    how many distinct trajectories after the start. simulated: stretches between resampling times.
    forecast: "present" or "mean field". complete: whether all replicates were run.
    """

    probability: float
    low: float
    high: float
    replicates: np.ndarray
    data: xr.Dataset | None
    ess: float
    ancestors: int
    simulated: int
    forecast: str
    complete: bool = True

    @property
    def relative_error(self) -> float:
        """Standard error of the probability, relative to it."""
        count = len(self.replicates)
        if not self.probability or count < 2:
            return np.inf
        return float(self.replicates.std(ddof=1) / np.sqrt(count) / self.probability)

    def draw(self, samples: int, seed: int = 0) -> xr.Dataset:
        """Trajectories of equal weight, resampled from the weighted ones."""
        check_count("samples", samples, 1)
        if self.data is None:
            raise SimulationError(
                f"no trajectory met the rule: its probability is below {self.high:.2g}",
                value=self.high,
            )
        weights = np.exp(self.data["log_weight"].values)
        u = uniforms(check_seed(seed), Word.SPLITTING, 0, 1)
        chosen, _ = systematic(weights, samples, float(u[0]))
        drawn = self.data.isel(sample=chosen).drop_vars("log_weight")
        index = drawn["sample"].copy(data=np.arange(samples))
        return drawn.assign_coords(sample=index)


def split(
    network: ReactionNetwork,
    rule: Rule,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    points: int | None = None,
    until: float | None = None,
    copies: int | None = None,
    replicates: int = REPLICATES,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Splitting:
    """The probability that trajectories meet a rule, and weighted trajectories that do.

    `rule`: names, levels and verdicts, see `Rule`; `surrogate.rule("max(I) >= 50", like=data)`
    makes one of a formula. `copies`: trajectories in each of up to 30 bins; pilot runs choose where
    not given. `progress` is called with the number of ensembles run, and of all. The same seed
    gives the same numbers, whatever the threads. After Ctrl-C the result is of the replicates run
    so far.
    """
    check_count("replicates", replicates, 2)
    if copies is not None:
        check_count("copies", copies, 2)
    grid = time_grid(network, times, points, until)
    if len(grid) < 2:
        raise InputError("splitting needs a grid of at least two times", value=len(grid))
    engine = make_engine(network, 1, grid, seed, initial, parameters, latch=rule.latches)
    engine.prepare()
    parts = -(-SELECTIONS // (len(grid) - 1))
    few = min(PILOT_COPIES, copies or PILOT_COPIES)
    pilot = Plan(engine, initial, dict(parameters or {}), rule, _seed(seed, 0), BINS, few, parts)
    plans = {"present": pilot}
    drift = _mean_field(engine)
    if drift is not None:
        plans["mean field"] = replace(pilot, drift=drift, parts=1)
    whole = PILOTS * len(plans) + replicates
    team = _Team(thread_count(threads), engine, progress, whole)
    pilots: dict[str, list[Outcome]] = {}
    for name, each in plans.items():
        if any(_good(found) for found in pilots.values()):
            team.whole -= PILOTS
        else:
            pilots[name] = team.run(each, PILOTS)
    if team.interrupted:
        raise KeyboardInterrupt
    if not any(each.climbed for found in pilots.values() for each in found):
        raise SimulationError(
            "the level of this rule does not change along a run, so splitting cannot climb",
            value=str(rule),
            remedy="use rejection, or a rule with margins",
        )
    forecast = _chosen(pilots)
    spread = _spread([each.probability for each in pilots[forecast]])
    most = MAX_COPIES if plans[forecast].drift is None else MAX_COPIES_AHEAD
    wanted = copies or min(most, _copies(spread))
    plan = replace(plans[forecast], seed=_seed(seed, 1), copies=wanted)
    outcomes = team.run(plan, replicates)
    if team.interrupted and not outcomes:
        raise KeyboardInterrupt
    simulated = sum(each.simulated for found in (*pilots.values(), outcomes) for each in found)
    found = np.array([each.probability for each in outcomes])
    if not found.any():
        bound = _bound(engine, rule, plan, simulated)
        return Splitting(
            0.0, 0.0, bound, found, None, 0.0, 0, simulated, forecast, not team.interrupted
        )
    low, high = interval(found)
    data, ess = _weighted(plan, outcomes)
    ancestors = sum(len(np.unique(each.ancestors)) for each in outcomes)
    return Splitting(
        float(found.mean()), low, high, found, data, ess, ancestors, simulated, forecast,
        not team.interrupted,
    )  # fmt: skip


def interval(replicates: np.ndarray) -> tuple[float, float]:
    """The interval of confidence of the mean of independent estimates (R,), in logarithms."""
    count, mean = len(replicates), float(replicates.mean())
    if count < 2:
        return 0.0, 1.0
    error = replicates.std(ddof=1) / mean / np.sqrt(count)
    width = float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2) * error)
    return mean * float(np.exp(-width)), min(1.0, mean * float(np.exp(width)))


# --- pilots ---------------------------------------------------------------------------------------


def _seed(seed: int, purpose: int) -> int:
    return int(words(check_seed(seed), Word.SPLITTING, purpose, 1)[0])


def _mean_field(engine: Engine) -> Engine | None:
    """The engine of the mean field; None for networks that it cannot take."""
    try:
        drift = Engine(engine.network, engine.start, engine.times, engine.seed, "ode")
        drift.prepare()
    except InputError:
        return None
    drift.stop = engine.stop
    return drift


def _spread(found: Sequence[float]) -> float:
    """The relative standard deviation of estimates; infinite if all are 0."""
    values = np.asarray(found)
    return float(values.std(ddof=1) / values.mean()) if values.any() else np.inf


def _good(outcomes: Sequence[Outcome]) -> bool:
    """Whether enough pilots hit anything for no other forecast, which costs more, to be tried."""
    return 2 * sum(each.probability > 0 for each in outcomes) >= PILOTS


def _chosen(pilots: Mapping[str, Sequence[Outcome]]) -> str:
    """The forecast whose estimates agree best; the present state unless another is clearly better.

    Runs that end in one family agree by chance: those that hit more often come first.
    """
    scores = {}
    for name, outcomes in pilots.items():
        found = [each.probability for each in outcomes]
        preference = 1.0 if name == "present" else 1.5
        scores[name] = (-np.count_nonzero(found), preference * _spread(found))
    return min(scores, key=lambda name: scores[name])


def _copies(spread: float) -> int:
    """Copies a bin for the spread wanted: the variance falls with their number."""
    if not np.isfinite(spread):
        return MAX_COPIES
    wanted = PILOT_COPIES * (CAUTION * spread / WANTED_SPREAD) ** 2
    return int(np.clip(wanted, MIN_COPIES, MAX_COPIES))


def _bound(engine: Engine, rule: Rule, plan: Plan, simulated: int) -> float:
    """An upper bound of 95 % confidence where splitting hit nothing: plain trajectories."""
    drawn = simulate(
        engine.network, CHECKED, engine.times, plan.seed, plan.initial, plan.parameters,
        latch=engine.latches,
    )  # fmt: skip
    values: Values = {name: np.asarray(drawn[name].values, np.float64) for name in rule.names}
    hits = int(rule.verdict(values).sum())
    if hits:
        raise SimulationError(
            f"splitting hit nothing, but {hits} of {CHECKED:,} plain trajectories meet the rule: "
            "its level misleads",
            value=hits / CHECKED,
            remedy="use rejection",
        )
    warnings.warn(
        f"none of {simulated:,} stretches met the rule, nor any of {CHECKED:,} plain "
        f"trajectories: its probability is below {3.0 / CHECKED:.2g} (95 % confidence)",
        stacklevel=3,
    )
    return 3.0 / CHECKED


# --- running --------------------------------------------------------------------------------------


class _Team:
    """Threads that run ensembles; after Ctrl-C, those that were finished are what there is."""

    def __init__(
        self,
        workers: int,
        engine: Engine,
        progress: Callable[[int, int], None] | None,
        whole: int,
    ) -> None:
        self.workers, self.engine, self.progress, self.whole = workers, engine, progress, whole
        self.done, self.interrupted = 0, False

    def run(self, plan: Plan, count: int) -> list[Outcome]:
        """The outcomes of ensembles 0 .. count - 1, in order."""
        if self.interrupted:
            return []
        finished: dict[int, Outcome] = {}

        def one(number: int) -> None:
            if self.engine.stop[0]:
                return
            found = WeightedEnsemble(plan, number).run()
            if not self.engine.stop[0]:
                finished[number] = _thinned(found, plan, number)
                self.done += 1
                if self.progress is not None:
                    self.progress(self.done, self.whole)

        with ThreadPoolExecutor(min(self.workers, count)) as pool:
            jobs = [pool.submit(one, number) for number in range(count)]
            try:
                for job in jobs:
                    job.result()
            except KeyboardInterrupt:
                self.engine.stop[0], self.interrupted = True, True
            except BaseException:
                self.engine.stop[0] = True  # the kernels look at this flag and return
                raise
        return [finished[number] for number in sorted(finished)]


def _thinned(found: Outcome, plan: Plan, number: int) -> Outcome:
    """An outcome with no more trajectories than are kept of one replicate."""
    most = MAX_TRAJECTORIES // REPLICATES
    if len(found.weights) <= most:
        return found
    u = float(uniforms(plan.seed, Word.SPLITTING, number, 1)[0])
    chosen, each = systematic(found.weights, most, u)
    return replace(
        found,
        weights=np.full(most, each),
        out=found.out[chosen],
        parameters={name: value[chosen] for name, value in found.parameters.items()},
        ancestors=found.ancestors[chosen],
    )


def _weighted(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[xr.Dataset, float]:
    """All trajectories that met the rule, with log-weights that add up to 1, and their ESS."""
    engine = plan.engine
    out = np.concatenate([each.out for each in outcomes])
    weights = np.concatenate([each.weights for each in outcomes])
    names = [name for each in outcomes for name in each.parameters]
    drawn = {n: np.concatenate([each.parameters[n] for each in outcomes if len(each.weights)])
             for n in dict.fromkeys(names)}  # fmt: skip
    made = dataset.recorded(engine, out, drawn)
    data = dataset.frame(engine, made, len(out), 0)
    share = weights / weights.sum()
    data["log_weight"] = ("sample", np.log(share), {"long_name": "log-weight", "units": "1"})
    data.attrs["title"] = f"{engine.network.title or engine.network.name}: by splitting"
    return data, float(1.0 / (share**2).sum())
