"""Quantiles with few knots: smooth latents for sharp densities.

The quantiles of a column have up to 500 linear pieces, of two rows each if the table is small. The
slope dz/dy of such a piece is off by a factor of its own, and so is every density over y that is
smooth in z. Here neighbouring pieces are joined until knots are apart in z and enough rows lie
between them. Atoms stay as they are, so the same values can be drawn. A column without atoms or
heavy tails needs no knots: its latent is the value itself, moved and scaled, which keeps structures
of one width, such as the crescents of two moons, of one width.
"""

from __future__ import annotations

import numpy as np

from surrogate.kinds.tables.quantiles import Quantiles

MIN_GAP = 0.25  # between the latents of knots
MIN_ROWS = 20  # between knots
MAX_SKEWNESS, MAX_KURTOSIS = 1.0, 3.0  # of a column whose latent is the value itself


def coarse(quantiles: Quantiles) -> Quantiles:
    """The same values with latents of few knots."""
    q = quantiles
    if _light(q):
        ends = np.array(q.values)
        return Quantiles(np.array([0.0, 1.0]), ends[:1], ends[1:], q.digits, q.beyond, True)
    rows = 0.5 / q.beyond  # an estimate: `beyond` is half a row, within limits
    least = MIN_ROWS / rows
    kept = [0]
    for i in range(1, len(q.start)):
        first = kept[-1]
        linear = q.start[first] < q.stop[i - 1] and q.start[i] < q.stop[i]
        touching = linear and q.stop[i - 1] == q.start[i] and not _atom(q, i - 1)
        wide = q.bounds[i] - q.bounds[first] >= MIN_GAP and q.edges[i] - q.edges[first] >= least
        if touching and not wide:
            continue
        kept.append(i)
    kept = _without_small_last(q, kept, least)
    ends = np.array([*kept[1:], len(q.start)])
    return Quantiles(
        np.append(q.edges[kept], 1.0), q.start[kept], q.stop[ends - 1], q.digits, q.beyond
    )


def _light(q: Quantiles) -> bool:
    """Whether there are no atoms, and the third and fourth moments are about those of a normal."""
    if (q.start == q.stop).any():
        return False
    shares, middle = np.diff(q.edges), (q.start + q.stop) / 2
    off = middle - shares @ middle
    sd = (shares @ off**2) ** 0.5
    if not sd:
        return False
    skewness, kurtosis = shares @ off**3 / sd**3, shares @ off**4 / sd**4 - 3
    return bool(abs(skewness) <= MAX_SKEWNESS and kurtosis <= MAX_KURTOSIS)


def _atom(q: Quantiles, i: int) -> bool:
    return bool(q.start[i] == q.stop[i])


def _without_small_last(q: Quantiles, kept: list[int], least: float) -> list[int]:
    """The upper tail joined like the lower one: no short piece at the end of a run."""
    found: list[int] = []
    for n, i in enumerate(kept):
        end = kept[n + 1] if n + 1 < len(kept) else len(q.start)
        short = q.edges[end] - q.edges[i] < least or q.bounds[end] - q.bounds[i] < MIN_GAP
        joins = bool(found) and not _atom(q, i) and not _atom(q, i - 1)
        if short and joins and q.stop[i - 1] == q.start[i]:
            continue
        found.append(i)
    return found
