"""Whether samples repeat rows that a model learned from: the distance to the closest record.

The distance of two rows is √(mean over columns of d²), d being the difference of standardised
numbers, and 0 or 1 for words and for what is missing in one of them only. Of samples it is taken to
the nearest training row, and so it is of real rows, which tells how near new rows of the same law
come: rows that were held out, or each training row to the nearest of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from surrogate.evaluation.distances import Array, effective
from surrogate.evaluation.result import NEAREST, Closeness, Privacy
from surrogate.kinds.tables.align import Column
from surrogate.kinds.trajectories.plot import quantiles

TRAINED = 10_000  # training rows that are looked at
ASKED = 5_000  # rows whose nearest one is sought
CHUNK = 4_000_000  # distances at a time
SAME = 1e-12  # squared distance of rows that are the same, by rounding
FARTHEST = 1e6  # deviations
BARS = 30


def privacy(columns: Sequence[Column], weights: Array, *, held_out: bool, seed: int = 0) -> Privacy:
    """Of samples with `weights` (n,). The last side of the columns are the training rows; with
    `held_out`, the second are real rows that are not among them."""
    random = np.random.default_rng([seed, 6])
    sizes = [len(side) for side in columns[0].sides]
    last = len(sizes) - 1
    trained = random.permutation(sizes[last])[:TRAINED]
    asked = random.permutation(sizes[0])[:ASKED]
    real = random.permutation(sizes[1])[:ASKED] if held_out else trained[:ASKED]
    records = Records.of(columns, last)
    mine = records.nearest(0, asked, trained)
    theirs = records.nearest(1 if held_out else last, real, trained, others=not held_out)
    share = weights[asked] / weights[asked].sum()
    copies, common = _copies(columns, weights, held_out)
    worth = effective(weights[asked])
    error = math.sqrt(NEAREST * (1 - NEAREST) * (1 / worth + 1 / len(real)))
    edges = _edges(mine, theirs)
    pooled = min(max((copies + common) / 2, 1 / sizes[last]), 1 - 1 / sizes[last])
    spread = pooled * (1 - pooled) * (1 / effective(weights) + 1 / sizes[1 if held_out else last])
    return Privacy(
        trained=sizes[last],
        held_out=held_out,
        samples=_closeness(mine, share, copies, edges),
        real=_closeness(theirs, np.full(len(real), 1 / len(real)), common, edges),
        near=_near(mine, share, theirs),
        error=error,
        copies_error=math.sqrt(spread),
        edges=tuple(edges.tolist()),
    )


@dataclass(frozen=True)
class Records:
    """Rows of each side: standardised numbers (n, a), and codes that are the same or not (n, b)."""

    numbers: tuple[Array, ...]
    codes: tuple[np.ndarray, ...]
    columns: int

    @classmethod
    def of(cls, columns: Sequence[Column], by: int) -> Records:
        """Numbers are standardised by the side `by`; where it is constant, they are codes."""
        numbers, codes = [], []
        for column in columns:
            tame = column.tame()
            known = tame.sides[by][~np.isnan(tame.sides[by])]
            mean, deviation = (known.mean(), known.std()) if known.size else (0.0, 0.0)
            if column.kind == "word" or deviation <= 1e-12 * abs(mean):
                codes.append(tame.sides)
                continue
            scaled = [np.clip((s - mean) / deviation, -FARTHEST, FARTHEST) for s in tame.sides]
            numbers.append([np.nan_to_num(each, nan=0.0) for each in scaled])
            if column.gaps:
                codes.append(tuple(1.0 * np.isnan(side) for side in tame.sides))
        sides = range(len(columns[0].sides))
        empty = [np.empty((len(side), 0)) for side in columns[0].sides]
        return cls(
            tuple(np.stack([n[k] for n in numbers], 1) if numbers else empty[k] for k in sides),
            tuple(
                np.stack([_filled(c[k]) for c in codes], 1) if codes else empty[k] for k in sides
            ),
            len(columns),
        )

    def nearest(
        self, side: int, rows: np.ndarray, trained: np.ndarray, *, others: bool = False
    ) -> Array:
        """Distances of rows of a side to the nearest of the `trained` rows of the last: (n,).

        `others`: the rows are the first of the trained ones, and are not near to themselves.
        """
        z, y = self.numbers[side][rows], self.numbers[-1][trained]
        words, theirs = self.codes[side][rows].T, self.codes[-1][trained].T
        squares, found = (y * y).sum(1), np.empty(len(rows))
        size = max(1, CHUNK // len(trained))
        for start in range(0, len(rows), size):
            part = slice(start, min(start + size, len(rows)))
            apart = (z[part] ** 2).sum(1)[:, None] + squares - 2 * (z[part] @ y.T)
            for mine, other in zip(words, theirs, strict=True):
                apart += mine[part, None] != other
            if others:
                place = np.arange(part.start, part.stop)
                apart[place - part.start, place] = np.inf
            found[part] = apart.min(1)
        return np.sqrt(np.where(found < SAME, 0.0, found) / self.columns)


def _filled(codes: Array) -> np.ndarray:
    """NaN is a code of its own: -1 is no word, and no number that a constant column has."""
    return np.nan_to_num(codes, nan=-1.2345e-300).astype(np.float64)


def _copies(columns: Sequence[Column], weights: Array, held_out: bool) -> tuple[float, float]:
    """The share of samples, and of real rows, that are the same as a (or another) training row."""
    hashed = []
    for k in range(len(columns[0].sides)):
        frame = pd.DataFrame({str(i): c.sides[k] + 0.0 for i, c in enumerate(columns)})
        hashed.append(pd.util.hash_pandas_object(frame, index=False).to_numpy())
    mine = np.isin(hashed[0], hashed[-1])
    if held_out:
        common = float(np.isin(hashed[1], hashed[-1]).mean())
    else:
        common = float(pd.Series(hashed[-1]).duplicated(keep=False).mean())
    return float(np.average(mine, weights=weights)), common


def _closeness(found: Array, share: Array, copies: float, edges: Array) -> Closeness:
    low, median = quantiles(found[:, None], [NEAREST, 0.5], share)[:, 0].tolist()
    shares = np.histogram(np.minimum(found, edges[-1]), edges, weights=share)[0]
    return Closeness(median, low, copies, tuple(shares.tolist()))


def _near(mine: Array, share: Array, theirs: Array) -> float:
    """The share of distances below the quantile NEAREST of `theirs`, ties in proportion."""
    limit = float(np.quantile(theirs, NEAREST, method="inverted_cdf"))
    below, at = float((theirs < limit).mean()), float((theirs == limit).mean())
    part = (NEAREST - below) / at
    return float(share[mine < limit].sum() + part * share[mine == limit].sum())


def _edges(mine: Array, theirs: Array) -> Array:
    """Bins for a picture; the last takes the farthest hundredth as well."""
    high = float(np.quantile(np.concatenate([mine, theirs]), 0.99)) or 1.0
    return np.linspace(0.0, high, BARS + 1)
