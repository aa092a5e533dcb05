"""Memorisation: the distance to the closest record (DCR) of samples and of real rows.

The distance of two rows is √(mean over columns of d²), where d is the difference of standardised
numbers, and 0 or 1 for words and for values missing in one row only. The distance of samples to
their nearest training row is compared with that of real rows, which shows how near new rows of the
same distribution come: held-out rows, or each training row to the nearest of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from constraints.explanation import percent
from surrogate.evaluation.result import CardRow, Finding, Row
from surrogate.evaluation.verdict import DEVIATIONS_SIGNIFICANT, Reason
from surrogate.evaluation.weights import Array, effective_sample_size, weighted_quantiles
from surrogate.kinds.tables.align import Column

NEAR_SHARE = 0.05  # share of the real rows that are called near to a training row
COPIES_POOR = 0.05  # share of exact copies, beyond that of real rows, that rules samples out
MAX_TRAINING_ROWS = 10_000  # that rows are compared with
MAX_QUERIED_ROWS = 5_000  # whose nearest training row is sought
CHUNK_DISTANCES = 4_000_000  # computed at a time
SAME_SQUARED = 1e-12  # squared distance of rows that are the same, up to rounding
MAX_STANDARDISED = 1e6
DISTANCE_BINS = 30


@dataclass(frozen=True)
class Closeness:
    """Distances to the nearest training row: two quantiles, the share of exact copies, and a
    histogram over the bins of `Privacy.edges`, (bins,)."""

    median: float
    low: float
    copies: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Privacy(Finding):
    """Whether samples repeat training rows, compared with real rows.

    near: the share of samples as near to a training row as the nearest NEAR_SHARE of real rows;
    NEAR_SHARE is expected of new rows of the same distribution. error: its standard error.
    copies_error: the standard error of the difference in copies. held_out: whether the real rows
    are other ones than the training rows; if not, each was compared with the others.
    """

    trained: int
    held_out: bool
    samples: Closeness
    real: Closeness
    near: float
    error: float
    copies_error: float
    edges: tuple[float, ...]

    @property
    def memorised(self) -> bool:
        more = self.samples.copies - self.real.copies
        nearer = self.near - NEAR_SHARE
        return (
            nearer > DEVIATIONS_SIGNIFICANT * self.error
            or more > DEVIATIONS_SIGNIFICANT * self.copies_error
        )

    def values(self) -> Mapping[str, Any]:
        return {"privacy": self}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"memorised": self.memorised}

    def rows(self) -> Iterator[Row]:
        real = "held-out rows" if self.held_out else "real rows among themselves"
        for what, name in (("median", "median"), ("low", f"{NEAR_SHARE:.0%}")):
            value, floor = (getattr(side, what) for side in (self.samples, self.real))
            note = f"floor: {real}" if what == "median" else ""
            yield f"nearest training row, {name}", f"{value:.4f}", f"{floor:.4f}", "", note
        note = "MEMORISED rows" if self.memorised else ""
        floor_ = f"{NEAR_SHARE:.4f} ± {self.error:.4f}"
        yield f"as near as {NEAR_SHARE:.0%} of real rows", f"{self.near:.4f}", floor_, "", note
        mine, theirs = (f"{side.copies:.4f}" for side in (self.samples, self.real))
        yield "exact copies of training rows", mine, theirs, "", ""

    def reasons(self) -> Iterator[Reason]:
        if not self.memorised:
            yield Reason("good", "The rows come no nearer to training rows than real ones do.")
            return
        copies, real = percent(self.samples.copies), percent(self.real.copies)
        poor = self.samples.copies > self.real.copies + COPIES_POOR
        yield Reason(
            "poor" if poor else "care",
            f"Training rows seem to be repeated: {copies} are exact copies (of real "
            f"rows {real}), and {percent(self.near)} are as near as {percent(NEAR_SHARE)} of real "
            "rows are.",
        )


def privacy_card(found: Mapping[str, Any]) -> list[CardRow]:
    """Rows of a model's card, from the JSON of an evaluation."""
    each = found.get("privacy")
    if not each:
        return []
    mine, real = each["samples"], each["real"]
    near = f"{each['near']:.4f}", f"{NEAR_SHARE:.4f} ± {each['error']:.4f}"
    median, copies = ((f"{mine[k]:.4f}", f"{real[k]:.4f}") for k in ("median", "copies"))
    return [
        ("nearest training row, median", *median, ""),
        (f"as near to one as {NEAR_SHARE:.0%} of held-out rows", *near, ""),
        ("exact copies of training rows", *copies, "memorised" if each["memorised"] else ""),
    ]


def privacy(columns: Sequence[Column], weights: Array, *, held_out: bool, seed: int = 0) -> Privacy:
    """Of samples with `weights` (n,). The last side of the columns are the training rows; with
    `held_out`, the second are real rows that are not among them."""
    random = np.random.default_rng([seed, 6])
    sizes = [len(side) for side in columns[0].sides]
    last = len(sizes) - 1
    trained = random.permutation(sizes[last])[:MAX_TRAINING_ROWS]
    queried = random.permutation(sizes[0])[:MAX_QUERIED_ROWS]
    real = (
        random.permutation(sizes[1])[:MAX_QUERIED_ROWS] if held_out else trained[:MAX_QUERIED_ROWS]
    )
    records = Records.of(columns, last)
    mine = records.nearest(0, queried, trained)
    theirs = records.nearest(1 if held_out else last, real, trained, others=not held_out)
    share = weights[queried] / weights[queried].sum()
    copies, common = _copies(columns, weights, held_out)
    size = effective_sample_size(weights[queried])
    error = math.sqrt(NEAR_SHARE * (1 - NEAR_SHARE) * (1 / size + 1 / len(real)))
    edges = _edges(mine, theirs)
    pooled = min(max((copies + common) / 2, 1 / sizes[last]), 1 - 1 / sizes[last])
    spread = (
        pooled
        * (1 - pooled)
        * (1 / effective_sample_size(weights) + 1 / sizes[1 if held_out else last])
    )
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
            rescaled = column.rescaled()
            known = rescaled.sides[by][~np.isnan(rescaled.sides[by])]
            mean, deviation = (known.mean(), known.std()) if known.size else (0.0, 0.0)
            if column.kind == "word" or deviation <= 1e-12 * abs(mean):
                codes.append(rescaled.sides)
                continue
            scaled = [
                np.clip((s - mean) / deviation, -MAX_STANDARDISED, MAX_STANDARDISED)
                for s in rescaled.sides
            ]
            numbers.append([np.nan_to_num(each, nan=0.0) for each in scaled])
            if column.has_missing:
                codes.append(tuple(1.0 * np.isnan(side) for side in rescaled.sides))
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
        size = max(1, CHUNK_DISTANCES // len(trained))
        for start in range(0, len(rows), size):
            part = slice(start, min(start + size, len(rows)))
            apart = (z[part] ** 2).sum(1)[:, None] + squares - 2 * (z[part] @ y.T)
            for mine, other in zip(words, theirs, strict=True):
                apart += mine[part, None] != other
            if others:
                place = np.arange(part.start, part.stop)
                apart[place - part.start, place] = np.inf
            found[part] = apart.min(1)
        return np.sqrt(np.where(found < SAME_SQUARED, 0.0, found) / self.columns)


def _filled(codes: Array) -> np.ndarray:
    """NaN as a code of its own, a number that no word and no constant column has."""
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
    low, median = weighted_quantiles(found[:, None], [NEAR_SHARE, 0.5], share)[:, 0].tolist()
    shares = np.histogram(np.minimum(found, edges[-1]), edges, weights=share)[0]
    return Closeness(median, low, copies, tuple(shares.tolist()))


def _near(mine: Array, share: Array, theirs: Array) -> float:
    """The share of distances below the quantile NEAR_SHARE of `theirs`, ties in proportion."""
    limit = float(np.quantile(theirs, NEAR_SHARE, method="inverted_cdf"))
    below, at = float((theirs < limit).mean()), float((theirs == limit).mean())
    part = (NEAR_SHARE - below) / at
    return float(share[mine < limit].sum() + part * share[mine == limit].sum())


def _edges(mine: Array, theirs: Array) -> Array:
    """Edges of the histogram; its last bin includes the largest 1 %."""
    high = float(np.quantile(np.concatenate([mine, theirs]), 0.99)) or 1.0
    return np.linspace(0.0, high, DISTANCE_BINS + 1)
