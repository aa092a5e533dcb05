"""The choice between rejection and particles, by what each would take.

A pilot of plain draws estimates the acceptance rate and the time of a draw; one evaluation of the
twisting function at a middle noise level gives the time of a particle. Rejection takes
samples / rate draws, particles take particles × noise levels; rejection is chosen unless it is
slower by a factor, because it is exact, and particles that fail would have to be added to it. Times
vary from run to run, so that their ratio is rounded to a power of two: the same machine chooses the
same method for the same seed. With observations, plain draws are weighted by their likelihood
(`importance`) where enough of the pilot's count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from surrogate.guidance import evidence, importance
from surrogate.guidance.method import Method, method_named, names_of
from surrogate.guidance.methods.twisted import TwistedSettings, levels_for, particles_for
from surrogate.guidance.outcome import Plain
from surrogate.guidance.plain_draws import Accepted, reject
from surrogate.guidance.posterior import Posteriors
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.sequential import settles_first, suits
from surrogate.guidance.twisted import twist
from surrogate.random import Sampling
from surrogate.sampling.solvers import AUTOREGRESSIVE
from surrogate.sampling.steps import white

PILOT_STEPS = 20  # noise levels of the pilot: enough to estimate an acceptance rate
REJECTION_STEPS = 40  # of rejection itself
MIN_PILOT_ACCEPTED = 20  # accepted samples of the pilot below which it goes on, if draws are cheap
MIN_RATE_ACCEPTED = 5  # below which the acceptance rate is too uncertain to choose rejection
PARTICLES_RISK = 3.0  # by which rejection may be slower: it is exact, and particles may fail
MAX_PILOT_SHARE = 0.2  # of the time that particles would take, that a pilot may take
TIMED_POINTS = 256  # particles whose evaluation is timed
TIMED_SIGMA = 0.5  # at this noise level


@dataclass(frozen=True)
class Pilot:
    """Unconditional samples that estimate the probability of a scenario."""

    accepted: Accepted
    seconds: float
    """Wall time of a draw by rejection."""

    @property
    def plain(self) -> Plain:
        """The samples, those that do not meet the scenario included."""
        assert self.accepted.every is not None
        return Plain(self.accepted.every, len(self.accepted.x))

    def seconds_for(self, samples: int) -> float:
        """Estimate of the time that rejection takes; infinite where the rate is too uncertain."""
        if len(self.accepted.x) < MIN_RATE_ACCEPTED:
            return math.inf
        return self.seconds * samples / self.accepted.rate


@dataclass(frozen=True)
class Costs:
    """What rejection and particles take, in draws."""

    draws_per_level: float
    """The time of a particle at a noise level, over that of a draw."""
    particles: int
    levels: int

    @property
    def draws(self) -> float:
        """How many draws take as long as all particles."""
        return self.particles * self.levels * self.draws_per_level


def run_pilot(scenario: Scenario, seed: int, count: int) -> Pilot:
    """`count` plain draws."""
    began = time.monotonic()
    accepted = _drawn(scenario, seed, count, count)
    seconds = (time.monotonic() - began) / count
    if scenario.prior.default_solver != AUTOREGRESSIVE:  # as many evaluations as levels
        seconds *= REJECTION_STEPS / PILOT_STEPS
    return Pilot(accepted, seconds)


def needs_no_pilot(
    scenario: Scenario, given: Mapping[str, Any], chosen: Method[Any] | None
) -> bool:
    """Whether the method sequential, chosen or left to be chosen, is known to suit: the decoder
    draws what the equations settle first."""
    sequential = method_named("sequential")
    may = chosen is None and set(given) <= set(names_of(sequential))
    return (may or chosen is sequential) and settles_first(scenario)


def choose(
    scenario: Scenario, given: Mapping[str, Any], samples: int, seed: int, pilot: Pilot
) -> tuple[Method[Any], str, Pilot]:
    """Particles or rejection, why, and the pilot, which goes on where its rate is uncertain.

    Let particles take as long as n draws. If a pilot of n MIN_RATE_ACCEPTED / samples accepts fewer
    than MIN_RATE_ACCEPTED, rejection takes longer than n draws, and the pilot need not go on.
    """
    if given.get("weighted"):
        return particles_method(scenario, given, seed), "weighted samples are requested", pilot
    if scenario.observes:
        return _choose_observed(scenario, given, samples, seed, pilot)
    costs = _costs(scenario, given, samples, pilot)
    share = min(MAX_PILOT_SHARE, MIN_RATE_ACCEPTED / samples)
    missing = int(share * costs.draws) - pilot.accepted.drawn
    if len(pilot.accepted.x) < MIN_PILOT_ACCEPTED and missing > 0:
        more = _drawn(scenario, seed, MIN_PILOT_ACCEPTED, missing, 1)
        pilot = Pilot(pilot.accepted + more, pilot.seconds)
    rate, accepted = pilot.accepted.rate, len(pilot.accepted.x)
    why = f"{rate:.2%} of {pilot.accepted.drawn:,} unconditional samples meet the scenario"
    if accepted >= MIN_RATE_ACCEPTED:
        draws = math.ceil(samples / rate)
        why += f": about {draws:,} draws, or {costs.particles:,} particles that take as long as "
        why += f"{costs.draws:,.0f} draws"
        if draws <= PARTICLES_RISK * costs.draws:
            return method_named("rejection"), why, pilot
    return particles_method(scenario, given, seed), why, pilot


def particles_method(scenario: Scenario, given: Mapping[str, Any], seed: int) -> Method[Any]:
    """Sequential particles where plain samples are drawn value by value and a few particles that
    are drawn so lead to the scenario, else twisted ones."""
    sequential = method_named("sequential")
    if set(given) <= set(names_of(sequential)) and suits(scenario, seed):
        return sequential
    return method_named("twisted")


def _choose_observed(
    scenario: Scenario, given: Mapping[str, Any], samples: int, seed: int, pilot: Pilot
) -> tuple[Method[Any], str, Pilot]:
    """Plain draws weighted by the likelihood where enough of them count, else particles."""
    share = importance.effective_share(scenario, pilot.accepted.x, pilot.accepted.drawn)
    why = f"{share:.1%} of {pilot.accepted.drawn:,} unconditional samples carry the likelihood"
    draws = importance.draws_for(samples, share)
    if share * draws >= samples and set(given) <= set(names_of(method_named("rejection"))):
        return method_named("rejection"), f"{why}: {draws:,} draws are weighted by it", pilot
    return particles_method(scenario, given, seed), why, pilot


def _drawn(
    scenario: Scenario, seed: int, wanted: int, draws: int, first_batch: int = 0
) -> Accepted:
    return reject(
        scenario,
        wanted,
        draws,
        seed,
        Sampling.PILOT,
        steps=PILOT_STEPS,
        first_batch=first_batch,
        keep=True,
    )


def _costs(scenario: Scenario, given: Mapping[str, Any], samples: int, pilot: Pilot) -> Costs:
    steps = given.get("steps") or levels_for(scenario.prior)
    mean_levels = math.ceil(sum(evidence.level_counts(steps, 2)) / 2)
    particles = given.get("particles") or particles_for(samples)
    own = method_named("twisted").resolve(
        TwistedSettings(jacobian=given.get("jacobian", "auto")), scenario
    )
    ratio = level_seconds(scenario, own.jacobian) / max(pilot.seconds, 1e-9)
    return Costs(2.0 ** round(math.log2(max(ratio, 1e-9))), particles, mean_levels)


@torch.no_grad()
def level_seconds(scenario: Scenario, jacobian: str) -> float:
    """Wall time of a particle at a noise level, by evaluating some."""
    generator = torch.Generator().manual_seed(0)
    points = white(torch.zeros(TIMED_POINTS, scenario.size, dtype=torch.float64), generator)
    posteriors, sigma = Posteriors(scenario), torch.tensor(TIMED_SIGMA, dtype=torch.float64)
    taken = math.inf
    for _ in range(2):  # the first makes what later ones share
        began = time.monotonic()
        twist(posteriors, points, sigma, jacobian)
        taken = min(taken, time.monotonic() - began)
    return taken / TIMED_POINTS
