"""Finite state projection: the states that carry all but a tolerated share of the probability.

What leaves the states kept is lost (Munsky & Khammash 2006), and the probability lost by the last
time bounds the total variation error of every answer. States are added where the probability flows
to, and in large spaces those that it hardly visits are removed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import pdtrc

from simulators.errors import Setting, SimulationError
from simulators.exact.chain import MIN_POISSON_WEIGHT, Chain, compiled, poisson
from simulators.exact.state_space import StateSpace

JUMPS_PER_STRETCH = 50.0  # mean jumps between checks of how much probability leaks
LAYERS_PER_EXPANSION = 4  # layers of states added where too much leaks
SMALL_SPACE = 20_000  # states up to which whole layers are added and none removed: they cost little

Report = Callable[[float, int], None]  # the share of the time covered, and the states known


def project(
    space: StateSpace,
    chances: np.ndarray,
    duration: float,
    tolerance: float,
    max_states: int,
    report: Report = lambda share, states: None,
) -> tuple[float, np.ndarray]:
    """Grow `space` along the flow of probability: a bound on what is lost by the end, and which
    states to keep, (n,) of bool.

    Growing later only lowers what was lost before.
    """
    space.expand(np.flatnonzero(space.open))  # where it starts is kept, however short the time
    now = _padded(chances, len(space))
    most = now.copy()  # the greatest probability of each state at the ends of stretches
    elapsed, lost = 0.0, 0.0
    while elapsed < duration:
        rate = _rate(space)
        stretch = min(duration - elapsed, JUMPS_PER_STRETCH / rate if rate else np.inf)
        share = 0.5 * tolerance * stretch / duration
        grow = _by_layers if len(space) <= SMALL_SPACE else _by_jumps
        after, leak = grow(space, now, stretch, share, max_states)
        if leak > share and len(space) > max_states:
            share_of_time = (elapsed + stretch, duration)
            raise _too_large(space, max_states, lost + leak, share_of_time, tolerance)
        report(elapsed / duration, len(space))
        now, most = _padded(now, len(space)), _padded(most, len(space))
        if leak <= share:
            np.maximum(most, after, out=most)
            now = np.where(space.open, 0.0, after)
            lost, elapsed = lost + leak, elapsed + stretch
    if len(space) <= SMALL_SPACE:
        return lost, np.ones(len(space), dtype=bool)
    return _pruned(space, chances, most, duration, tolerance, lost)


def _rate(space: StateSpace) -> float:
    return 1.01 * float(space.rates.sum(axis=1).max(initial=0.0))


def _by_layers(
    space: StateSpace, now: np.ndarray, stretch: float, share: float, max_states: int
) -> tuple[np.ndarray, float]:
    """The distribution after a stretch of time and what it loses.

    While that is more than its share, the open states that took it are followed, by more and more
    layers, and the stretch is done again, unless it is short enough for the rates found by then.
    """
    layers = LAYERS_PER_EXPANSION
    while True:
        chain = space.chain()
        least = max(1e-3 * share, MIN_POISSON_WEIGHT)
        after = chain.forward(_padded(now, len(space)), stretch, least)
        jumps = chain.rate * stretch
        # the series is cut sooner here, and what is cut off counts as lost
        leak = float(after[space.open].sum() + pdtrc(len(poisson(jumps, least)) - 1, jumps))
        if leak <= share or len(space) > min(SMALL_SPACE, max_states):
            return after, leak
        took = np.flatnonzero(space.open & (after > 0.1 * share / space.open.sum()))
        space.expand(took, layers)
        layers *= 2


def _by_jumps(
    space: StateSpace, now: np.ndarray, stretch: float, share: float, max_states: int
) -> tuple[np.ndarray, float]:
    """As `_by_layers`, but states are followed as soon as a jump brings them probability (Mateescu,
    Wolf, Didier & Henzinger 2010): in many dimensions whole layers are far too many states."""
    followed = 0.01 * share
    while True:
        rate = max(_rate(space), 1e-300)
        weights = poisson(rate * stretch, 1e-3 * share)
        after, leak, used = _jumped(space, now, rate, weights, followed, max_states)
        leak += float(pdtrc(len(weights) - 1, rate * stretch))
        if not used:  # a state was found that is left faster than `rate`
            continue
        if leak <= share or len(space) > max_states:
            return after, leak
        followed *= 0.2


def _jumped(
    space: StateSpace,
    now: np.ndarray,
    rate: float,
    weights: np.ndarray,
    followed: float,
    max_states: int,
) -> tuple[np.ndarray, float, bool]:
    """Σ_k weights[k] p P^k with states of more than `followed` no longer open, what it loses, and
    whether `rate` was enough."""
    now, total, lost = _padded(now, len(space)), np.zeros(len(space)), 0.0
    for k, weight in enumerate(weights):
        total = _padded(total, len(space))
        total += weight * now
        if k == len(weights) - 1 or len(space) > max_states:
            break
        now, dropped = compiled(_jump)(space.rates, space.targets, rate, now, 1e-3 * followed)
        lost += float(dropped)
        took = np.flatnonzero(space.open & (now > followed))
        if len(took):
            space.expand(took)
            if space.rates[took].sum(axis=1).max() > rate:
                return total, lost, False
            now = _padded(now, len(space))
    return total, lost + float(total[space.open].sum()), True


def _pruned(
    space: StateSpace,
    chances: np.ndarray,
    most: np.ndarray,
    duration: float,
    tolerance: float,
    lost: float,
) -> tuple[float, np.ndarray]:
    """The states of which the greatest probabilities are not among the least, as many as the
    tolerance allows: what is lost without the others is computed, not estimated."""
    order = np.argsort(most)
    below = np.cumsum(most[order])
    start = np.zeros(len(space), dtype=bool)
    start[: len(chances)] = chances > 0
    for allowed in (1e-2, 1e-4, 1e-6):
        kept = np.ones(len(space), dtype=bool)
        kept[order[below <= allowed * tolerance]] = False
        kept |= start
        loss = _loss(space, kept & ~space.open, chances, duration, 1e-3 * tolerance)
        if loss <= tolerance:
            return loss, kept
    return lost, np.ones(len(space), dtype=bool)


def _loss(
    space: StateSpace, inside: np.ndarray, chances: np.ndarray, duration: float, tolerance: float
) -> float:
    """What leaves the states `inside` by the end, at most."""
    which = np.flatnonzero(inside)
    place = np.full(len(space), len(which), dtype=np.int32)  # one more state for what is outside
    place[which] = np.arange(len(which))
    outside = np.zeros((1, space.rates.shape[1]))
    laws = np.concatenate([space.rates[which], outside])
    targets = np.concatenate([place[space.targets[which]], np.full_like(outside, 0, np.int32)])
    chain = Chain.of(laws, targets)
    parts, _ = chain.parts(duration)
    least = max(1e-6 * tolerance / parts, MIN_POISSON_WEIGHT)
    start = np.append(_padded(chances, len(space))[which], 0.0)
    return float(chain.forward(start, duration, least)[-1]) + chain.error(duration, least)


def _jump(laws: Any, targets: Any, rate: Any, now: Any, floor: Any) -> Any:
    """p P, without entries below `floor`, and what was dropped; open states keep what they have."""
    after, dropped = np.zeros_like(now), 0.0
    for row in range(now.size):
        value = now[row]
        if value <= floor:
            dropped += value
            continue
        stays = 1.0
        for reaction in range(laws.shape[1]):
            if laws[row, reaction] > 0.0:
                share = laws[row, reaction] / rate
                after[targets[row, reaction]] += share * value
                stays -= share
        after[row] += stays * value
    return after, dropped


def _padded(vector: np.ndarray, size: int) -> np.ndarray:
    return np.pad(vector, (0, size - len(vector)))


def _too_large(
    space: StateSpace,
    max_states: int,
    lost: float,
    share_of_time: tuple[float, float],
    tolerance: float,
) -> SimulationError:
    elapsed, duration = share_of_time
    return SimulationError(
        f"{space.network.name!r} needs more than max_states={max_states:,} states: those give a "
        f"truncation error of {lost:.2g} by {elapsed:.3g} of {duration:g} time units, too much for "
        f"a tolerance of {tolerance:.2g} at the end",
        value=max_states,
        remedy=(
            "raise ",
            Setting("max_states"),
            " or ",
            Setting("tolerance"),
            ", shorten the time grid (",
            Setting("until"),
            "), or use rejection",
        ),
    )
