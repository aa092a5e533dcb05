"""Rules that data show: orders A <= B, variables that only rise or fall, linear identities.

A rule that no value breaks may still be chance, so it needs evidence that it could have failed.

Order (and rise: x(t-1) <= x(t)). The gap d = B - A >= 0 must touch 0: with k values below the k-th
smallest gap h, and m between h and 2h, a density that goes on geometrically below 0 would have put
k²/m values into [-h, 0), where there are none. If that is large, 0 is an edge of the data and not
the end of a tail. An order must also say more than the two ranges do: values of A and B from
different samples break it.

Identity Σ w_i x_i = c with small whole weights, exact up to rounding, between variables that vary.
The covariance of the variables shows whether there is one at all; then those of 2, 3 and 4
variables are tried.

Evidence comes from samples that share no values; every value of the data must obey. Where these are
too few for a rule to be found, the rules that pass all other tests are reported, not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from constraints import parse
from surrogate.kinds.found_identities import Identity, rule_of, verified
from surrogate.kinds.found_identities import identities as identities_in
from surrogate.kinds.found_rule import FoundRule as FoundRule
from surrogate.kinds.found_rule import Quantity as Quantity
from surrogate.kinds.found_rule import Values, shown, spoken

MIN_VALUES = 1_000  # of a variable, in samples that share none, for an order
MIN_EXACT_VALUES = 200  # the same for an identity, which each of them must meet exactly
MIN_UNPROVED_VALUES = 300  # of a variable, for an order that is reported: fewer pass any test
MIN_UNPROVED_EXACT_VALUES = 100  # the same for an identity
MIN_SAMPLES = 40  # that share no values
NEAREST = 50  # gaps that tell whether 0 is an edge
MIN_EXPECTED = 15.0  # values that a smooth density would have put on the other side of 0
MIN_NEAR_SAMPLES = 15  # in which the nearest gaps lie
MIN_SHUFFLED = 0.02  # share of values from different samples that break an order
MAX_EVIDENCE = 400_000  # values of a variable that evidence is computed from
MAX_VARIABLES = 40


@dataclass(frozen=True)
class Unproved:
    """Rules that hold in all data, whose number of values is too small to find them."""

    values: int
    rules: Sequence[FoundRule]


NONE_UNPROVED = Unproved(0, ())


@dataclass(frozen=True)
class Search:
    """What rules are searched for in: the arguments of `find` and `find_unproved`."""

    quantities: Sequence[Quantity]
    evidence: Values
    batches: Callable[[], Iterable[Values]]
    series: bool

    def find(self) -> list[FoundRule]:
        return find(self.quantities, self.evidence, self.batches, series=self.series)

    def find_unproved(self) -> Unproved:
        return find_unproved(self.quantities, self.evidence, self.batches, series=self.series)


def find(
    quantities: Sequence[Quantity],
    evidence: Values,
    batches: Callable[[], Iterable[Values]],
    *,
    series: bool,
) -> list[FoundRule]:
    """The rules that all values (`batches`) obey and that `evidence` makes more than chance.

    `evidence`: values of samples that share none. `series`: values are over time.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _find(quantities, evidence, batches, series)


def find_unproved(
    quantities: Sequence[Quantity],
    evidence: Values,
    batches: Callable[[], Iterable[Values]],
    *,
    series: bool,
) -> Unproved:
    """The rules that `find` would find but for the number of values."""
    rows, steps = next(iter(evidence.values())).shape if evidence else (0, 0)
    if rows * steps >= MIN_VALUES:
        return Unproved(rows * steps, ())
    with np.errstate(over="ignore", invalid="ignore"):
        found = _find(quantities, evidence, batches, series)
        fewer = _Needed(MIN_UNPROVED_VALUES, MIN_UNPROVED_VALUES, MIN_UNPROVED_EXACT_VALUES)
        likely = _find(quantities, evidence, batches, series, fewer)
    known = {each.name for each in found}
    return Unproved(rows * steps, [each for each in likely if each.name not in known])


@dataclass(frozen=True)
class _Needed:
    """How many values of a variable rules need: orders, their gaps, and identities."""

    values: int = MIN_VALUES
    gaps: int = MIN_VALUES // 2
    exact: int = MIN_EXACT_VALUES


NEEDED = _Needed()


def _find(
    quantities: Sequence[Quantity],
    evidence: Values,
    batches: Callable[[], Iterable[Values]],
    series: bool,
    needed: _Needed = NEEDED,
) -> list[FoundRule]:
    rows, steps = next(iter(evidence.values())).shape if evidence else (0, 0)
    if rows < MIN_SAMPLES or rows * steps < needed.exact or len(quantities) > MAX_VARIABLES:
        return []
    varying = [each for each in quantities if _varies(evidence[each.name])]
    identities = verified(identities_in(varying, evidence, needed.exact), batches)
    found = [rule_of(each, series) for each in identities]
    if rows * steps < needed.values:
        return found
    copies = {name for each in identities if len(each.weights) == 2 for name in each.dependent}
    others = [each for each in varying if each.name not in copies]
    candidates = _orders(others, evidence, identities, series, needed)
    candidates += _courses(others, evidence, needed) if series else []
    return found + list(_kept(candidates, batches))


def _kept(candidates: list[FoundRule], batches: Callable[[], Iterable[Values]]) -> list[FoundRule]:
    """The candidates that no value breaks."""
    left = list(candidates)
    for values in batches() if left else ():
        left = [each for each in left if not each.broken(values).any()]
    return left


def _varies(values: np.ndarray) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and bool(known.min() < known.max())


# --- orders and courses ---------------------------------------------------------------------------


def _orders(
    quantities: Sequence[Quantity],
    evidence: Values,
    identities: Sequence[Identity],
    series: bool,
    needed: _Needed,
) -> list[FoundRule]:
    """A <= B, without those that follow from two others or from a sum of terms >= 0."""
    known = {pair for each in identities for pair in each.orders(evidence)}
    pairs = {
        (a.name, b.name)
        for a in quantities
        for b in quantities
        if a is not b and (a.name, b.name) not in known
        if _ordered(evidence[a.name], evidence[b.name], a.integer and b.integer, needed)
    }
    every = pairs | known
    middles = [each.name for each in quantities]
    return [
        _order(a.name, b.name, series)
        for a in quantities
        for b in quantities
        if (a.name, b.name) in pairs
        if not any((a.name, m) in every and (m, b.name) in every for m in middles)
    ]


def _ordered(a: np.ndarray, b: np.ndarray, whole: bool, needed: _Needed) -> bool:
    gap = b - a
    if (gap < 0).any():
        return False
    if not touches_zero(gap, whole, (a == _mode(a)) & (b == _mode(b)), needed.gaps):
        return False
    known = np.isfinite(gap)
    rows = np.nonzero(known.any(1))[0]
    other = np.roll(rows, len(rows) // 2)  # the same steps of another sample
    with np.errstate(invalid="ignore"):
        shuffled = a[rows] > b[other]
    return bool(shuffled.sum() >= MIN_SHUFFLED * known[rows].sum())


def touches_zero(
    gap: np.ndarray,
    whole: bool,
    trivial: np.ndarray | None = None,
    min_gaps: int = NEEDED.gaps,
) -> bool:
    """Whether gaps (n, T) >= 0 have an edge at 0; `trivial` ones, by two frequent values, aside."""
    known = np.isfinite(gap)
    if trivial is not None:
        known &= ~trivial
    near = np.sort(gap[known])
    if len(near) < min_gaps:
        return False
    if whole:
        h = max(near[NEAREST - 1], 1.0)
        below = known & (gap < h)
        further = known & (gap >= h) & (gap < 2 * h)
    else:
        h = near[NEAREST - 1]
        if h == 0:  # many are equal: how many are nearly so
            positive = near[near > 0]
            if len(positive) < NEAREST:
                return False
            h = positive[NEAREST - 1]
        below = known & (gap <= h)
        further = known & (gap > h) & (gap <= 2 * h)
    expected = int(below.sum()) ** 2 / max(int(further.sum()), 1)
    return expected >= MIN_EXPECTED and int(below.any(1).sum()) >= MIN_NEAR_SAMPLES


def _mode(values: np.ndarray) -> float:
    """The most frequent value, if it is a frequent one, else NaN."""
    known = values[np.isfinite(values)]
    found, counts = np.unique(known, return_counts=True)
    frequent = counts.max() >= 0.05 * known.size and len(found) > 2
    return float(found[counts.argmax()]) if frequent else float("nan")


def _order(a: str, b: str, series: bool) -> FoundRule:
    left, right = (shown(name) for name in (a, b))
    named = f"{spoken(a)} <= {spoken(b)}"
    text = f"forall t: {left}(t) <= {right}(t)" if series else f"{left} <= {right}"
    return FoundRule(named, parse(text), lambda values: values[a] > values[b])


def _courses(quantities: Sequence[Quantity], evidence: Values, needed: _Needed) -> list[FoundRule]:
    """Series that never fall, or never rise."""
    found = []
    for each in quantities:
        change = np.diff(evidence[each.name], axis=1)
        for sign, words, relation in ((1, "never falls", ">="), (-1, "never rises", "<=")):
            gap = sign * change
            moves = gap.size and not (gap < 0).any() and (gap > 0).sum() >= NEAREST
            if moves and touches_zero(gap, each.integer, min_gaps=needed.gaps):
                found.append(_course(each.name, sign, words, relation))
    return found


def _course(name: str, sign: int, words: str, relation: str) -> FoundRule:
    own = shown(name)
    formula = parse(f"forall t in [1, end]: {own}(t) {relation} {own}(t - 1)")
    return FoundRule(
        f"{spoken(name)} {words}", formula, lambda values: sign * np.diff(values[name], axis=1) < 0
    )


def thinned(samples: int, steps: int, overlap: int) -> np.ndarray:
    """Numbers of samples that share no values, of at most so many values together."""
    rows = np.arange(0, samples, overlap + 1)
    most = max(1, MAX_EVIDENCE // max(1, steps))
    return rows[:: max(1, -(-len(rows) // most))]
