"""The randomised probability integral transform of a column: z = Φ⁻¹(F(y)), ties spread uniformly.

The distribution function F is piecewise: piece i covers the probabilities [p_i, p_{i+1}]. An atom
(a value of many rows: zero, a grade, each value of a short scale) is one value on its piece; on the
other pieces values grow linearly from `start` to `stop`. A row at an atom is encoded as a uniform
point of its piece, and every point of that piece decodes to the atom. So integers, scales, excess
zeros, bounds and skewed tails need no special cases, and the latents are standard normal. An
inequality about y is equivalent to one about z.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from surrogate.errors import ModelError

MAX_ATOMS = 2_000  # distinct values of a column all of whose values are atoms
MIN_MEAN_TIES = 3.0  # rows per distinct value in such a column
MIN_ATOM_SHARE = 0.005  # of the rows with one value, in other columns, that make it an atom
MIN_ATOM_ROWS = 10  # with one value, in other columns, that make it an atom
MIN_COUNTS = 64  # whole numbers in a column, for it to be a count of which others may occur
MAX_UNSEEN = 20  # whole numbers in its range for each one that occurs
MIN_DENSITY = 0.35  # of the whole numbers in the range of the middle half, that occur
UNSEEN_ROWS = 0.1  # that a value counts for which no row has
MAX_PIECES = 500  # linear ones
MAX_DIGITS = 12  # after the decimal point, to which values are rounded
MIN_BEYOND, MAX_BEYOND = 1e-7, 0.1  # probability that is cut off at each end
MIN_KNOT_GAP = 0.2  # between the latents of knots of the smoothed inverse
UNIFORM_RANGE = 12**0.5  # of a uniform variable of variance 1
PIECE_END_GAP = 1e-9  # share of a linear piece that keeps its last value off the next piece


@dataclass(frozen=True, eq=False)
class Quantiles:
    """A piecewise distribution function and its quantiles.

    edges: (m + 1,) probabilities p_i at the ends of pieces. start, stop: (m,) values at the ends of
    each piece, increasing. digits: decimals that values between atoms are rounded to; None for no
    rounding. beyond: the probability of the normal distribution that is cut off at each end, so
    that latents are bounded. uniform: latents are uniform, of variance 1, in place of normal.
    """

    edges: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    digits: int | None = None
    beyond: float = 1e-4
    uniform: bool = False

    # --- fitting ----------------------------------------------------------------------------------

    @classmethod
    def fit(cls, values: np.ndarray) -> Quantiles:
        """The quantiles of finite values (n,), n >= 1."""
        known, counts = np.unique(values, return_counts=True)
        total = len(values)
        if len(known) <= MAX_ATOMS and total / len(known) >= MIN_MEAN_TIES:
            known, counts = _with_unseen_counts(known, counts)
            atoms = np.ones(len(known), bool)
        else:
            atoms = counts >= max(MIN_ATOM_ROWS, MIN_ATOM_SHARE * total)
        edges, start, stop = [0.0], list[float](), list[float]()
        for first, last, single in _runs(atoms):
            if single:
                pieces = [(counts[first], known[first], known[first])]
            else:
                pieces = _linear(known[first:last], counts[first:last], len(values))
            for count, low, high in pieces:
                edges.append(edges[-1] + count)
                start.append(float(low))
                stop.append(float(high))
        shares = np.array(edges) / edges[-1]
        beyond = min(max(0.5 / len(values), MIN_BEYOND), MAX_BEYOND)
        return cls(shares, np.array(start), np.array(stop), _digits(known), beyond)

    # --- latents ----------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> np.ndarray:
        """The edges as latents (m + 1,)."""
        return self.latents(self.edges)

    @property
    def low(self) -> float:
        return float(self.bounds[0])

    @property
    def high(self) -> float:
        return float(self.bounds[-1])

    @property
    def span(self) -> float:
        """The width of the range of latents."""
        return self.high - self.low

    @property
    def values(self) -> tuple[float, float]:
        """The minimum and the maximum."""
        return float(self.start[0]), float(self.stop[-1])

    @property
    def stepped(self) -> bool:
        """Whether all values are atoms."""
        return bool((self.start == self.stop).all())

    def forward(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Latents (n,) of values (n,); `uniform` (n,) on [0, 1) breaks ties.

        Values between atoms or beyond the ends are moved to the nearest piece.
        """
        first = np.searchsorted(self.stop, values, "left").clip(max=len(self.stop) - 1)
        near = self._nearer(first, values)
        low, high = self.start[near], self.stop[near]
        wide = high > low
        inside = (np.clip(values, low, high) - low) / np.where(wide, high - low, 1.0)
        share = np.where(wide, np.minimum(inside, 1 - PIECE_END_GAP), uniform)
        p = self.edges[near] + share * (self.edges[near + 1] - self.edges[near])
        return self.latents(p)

    def latents(self, p: np.ndarray) -> np.ndarray:
        """The latents (n,) of probabilities (n,)."""
        q = self.beyond + (1 - 2 * self.beyond) * p
        found: np.ndarray = (q - 0.5) * UNIFORM_RANGE if self.uniform else ndtri(q)
        return found

    def _nearer(self, piece: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Of `piece`, which ends at or above a value, and the piece before it, the nearer one."""
        before = np.maximum(piece - 1, 0)
        above, below = self.start[piece] - values, values - self.stop[before]
        return np.where((above > 0) & (below >= 0) & (below < above), before, piece)

    def finish(self, z: np.ndarray) -> np.ndarray:
        """Values (n,) of latents (n,), exactly as in the data: rounded, and atoms as atoms."""
        piece = np.searchsorted(self.bounds[1:-1], z, "right")
        q = z / UNIFORM_RANGE + 0.5 if self.uniform else ndtr(z)
        p = (q - self.beyond) / (1 - 2 * self.beyond)
        p = np.clip(p, self.edges[piece], self.edges[piece + 1])
        share = (p - self.edges[piece]) / (self.edges[piece + 1] - self.edges[piece])
        low, high = self.start[piece], self.stop[piece]
        found: np.ndarray = np.clip(low + share * (high - low), low, high)
        if self.digits is None:
            return found
        return np.where(high > low, np.round(found, self.digits), low)

    def inverse(self, z: Tensor) -> Tensor:
        """Values of latents, in the shape of z: `finish` with smoothed steps, for gradients."""
        knots, values = (each.to(z) for each in self._smooth)
        at = torch.searchsorted(knots, z.detach().contiguous()).clamp(1, len(knots) - 1)
        x0, x1, y0, y1 = knots[at - 1], knots[at], values[at - 1], values[at]
        share = ((z - x0) / (x1 - x0)).clamp(0, 1)
        return y0 + share * (y1 - y0)

    @cached_property
    def _smooth(self) -> tuple[Tensor, Tensor]:
        """Knots and values (k,) of the smoothed inverse: centres of atoms, ends of linear pieces.

        Knots closer than MIN_KNOT_GAP are left out: the slope between them would be noise, and the
        Gaussian approximation of a sum of columns uses slopes.
        """
        atom = self.start == self.stop
        middle = self.latents((self.edges[:-1] + self.edges[1:]) / 2)
        z = np.stack([np.where(atom, middle, self.bounds[:-1]), self.bounds[1:]], 1)
        y = np.stack([self.start, self.stop], 1)
        kept = np.stack([np.ones_like(atom), ~atom], 1)
        z, y = z[kept], y[kept]
        if len(z) == 1:
            z, y = np.array([self.low, self.high]), np.array([y[0], y[0]])
        chosen = _spaced(z)
        return torch.from_numpy(z[chosen]), torch.from_numpy(y[chosen])

    def interval(
        self, low: float, high: float, open_low: bool = False, open_high: bool = False
    ) -> tuple[float, float]:
        """The interval of latents with values in [low, high]; first > second if it is empty."""
        return self._least(low, open_low), self._most(high, open_high)

    def _least(self, value: float, strict: bool) -> float:
        """The least latent whose value is at least (strict: above) `value`."""
        if value == -math.inf:
            return -math.inf
        met = self.stop > value if strict else self.stop >= value
        if not met.any():
            return math.inf
        piece = int(met.argmax())
        start, stop = float(self.start[piece]), float(self.stop[piece])
        begins = start > value if strict else start >= value
        if begins or start == stop:
            return -math.inf if piece == 0 else float(self.bounds[piece])
        return self._within(piece, self._rounds_up(value, strict))

    def _most(self, value: float, strict: bool) -> float:
        """The greatest latent whose value is at most (strict: below) `value`."""
        if value == math.inf:
            return math.inf
        met = self.start < value if strict else self.start <= value
        if not met.any():
            return -math.inf
        piece = len(met) - 1 - int(met[::-1].argmax())
        start, stop = float(self.start[piece]), float(self.stop[piece])
        ends = stop < value if strict else stop <= value
        if ends or start == stop:
            return math.inf if piece == len(met) - 1 else float(self.bounds[piece + 1])
        return self._within(piece, -self._rounds_up(-value, strict))

    def _rounds_up(self, value: float, strict: bool) -> float:
        """The least number that rounds to at least (strict: above) `value`."""
        if self.digits is None:
            return value
        unit = 10.0**-self.digits
        whole = round(value / unit, 6)
        least = math.floor(whole) + 1 if strict else math.ceil(whole)
        return (least - 0.5) * unit

    def _within(self, piece: int, value: float) -> float:
        """The latent of a value on a linear piece."""
        start, stop = float(self.start[piece]), float(self.stop[piece])
        share = min(max((value - start) / (stop - start), 0.0), 1.0)
        p = self.edges[piece] + share * (self.edges[piece + 1] - self.edges[piece])
        return float(self.latents(p))

    # --- storage ----------------------------------------------------------------------------------

    def to_config(self) -> dict[str, Any]:
        made: dict[str, Any] = {"edges": self.edges.tolist(), "start": self.start.tolist()}
        made |= {"digits": self.digits, "beyond": self.beyond}
        return made | ({} if self.stepped else {"stop": self.stop.tolist()})

    @classmethod
    def from_config(cls, config: Mapping[str, Any], name: str) -> Quantiles:
        """The quantiles that `to_config` described; ModelError for anything else."""
        try:
            edges = np.array(config["edges"], np.float64)
            start = np.array(config["start"], np.float64)
            stop = np.array(config.get("stop", config["start"]), np.float64)
            digits, beyond = config["digits"], float(config["beyond"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise ModelError(f"in the codec, {name!r} has no quantiles: {problem}") from None
        sizes = start.ndim == 1 and start.shape == stop.shape and edges.shape == (len(start) + 1,)
        if not sizes or not len(start) or not all(np.isfinite(x).all() for x in (start, stop)):
            raise ModelError(f"in the codec, the quantiles of {name!r} do not fit together")
        rising = (np.diff(edges) > 0).all() and edges[0] == 0 and edges[-1] == 1
        if not rising or (start > stop).any() or (stop[:-1] > start[1:]).any():
            raise ModelError(f"in the codec, the quantiles of {name!r} are not in order")
        if digits is not None and (type(digits) is not int or not 0 <= digits <= MAX_DIGITS):
            raise ModelError(f"in the codec, {name!r} has {digits!r} digits")
        if not MIN_BEYOND <= beyond < 0.5:
            raise ModelError(f"in the codec, {name!r} cuts off {beyond}, which is no probability")
        return cls(edges, start, stop, digits, beyond)


def _with_unseen_counts(known: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of a count and their rows, with the whole numbers between them that no row has.

    Numbers are taken for a count if there are many, and many of the whole numbers in the range of
    the middle half of them, unlike prices, codes or rounded amounts.
    """
    least, most = known[0], known[-1]
    whole = len(known) > MIN_COUNTS and bool((known == np.round(known)).all())
    if not whole or most - least >= min(MAX_ATOMS, MAX_UNSEEN * len(known)):
        return known, counts
    middle = known[len(known) // 4 : -(len(known) // 4)]
    if len(middle) < MIN_DENSITY * (np.ptp(middle) + 1):
        return known, counts
    every = np.arange(least, most + 1)
    rows = np.full(len(every), UNSEEN_ROWS)
    rows[(known - least).astype(np.int64)] = counts
    return every, rows


def _runs(atoms: np.ndarray) -> list[tuple[int, int, bool]]:
    """(first, last + 1, whether an atom) of each atom, and of each run of values between atoms."""
    found: list[tuple[int, int, bool]] = []
    for i, single in enumerate(atoms.tolist()):
        if not single and found and not found[-1][2]:
            found[-1] = found[-1][0], i + 1, False
        else:
            found.append((i, i + 1, single))
    return found


def _linear(known: np.ndarray, counts: np.ndarray, total: int) -> list[tuple[int, float, float]]:
    """Linear pieces (rows, start, stop) of a run of values, in order."""
    rows = int(counts.sum())
    most = max(1, min(len(known) - 1, rows // 2, math.ceil(MAX_PIECES * rows / total)))
    if len(known) == 1:
        return [(rows, float(known[0]), float(known[0]))]
    every = np.repeat(known, counts)
    at = np.unique(np.linspace(0, rows - 1, most + 1).round().astype(np.int64))
    # the rows between two knots are a piece; equal knots (ties) fall to the piece before
    fresh = np.concatenate([[True], np.diff(every[at]) > 0])
    at = at[fresh]
    if len(at) == 1:
        return [(rows, float(every[0]), float(every[-1]))]
    at[-1] = rows - 1
    values = every[at]
    values[-1] = every[-1]
    count = np.diff(np.concatenate([[0], at[1:-1], [rows]]))
    return [
        (int(n), float(a), float(b))
        for n, a, b in zip(count, values[:-1], values[1:], strict=True)
        if n
    ]


def _spaced(z: np.ndarray) -> list[int]:
    """Indices of increasing knots (n,) at least MIN_KNOT_GAP apart, first and last included."""
    found = [0]
    for i, here in enumerate(z[1:-1].tolist(), 1):
        if here - z[found[-1]] >= MIN_KNOT_GAP and z[-1] - here >= MIN_KNOT_GAP:
            found.append(i)
    return [*found, len(z) - 1]


def _digits(known: np.ndarray) -> int | None:
    """Decimals that suffice to write all values; None if MAX_DIGITS do not."""
    some = known[:: max(1, len(known) // 20_000)]
    size = float(np.abs(some).max(initial=0.0))
    for digits in range(MAX_DIGITS + 1):
        if digits and size * 10.0**digits > 1e15:  # beyond the precision of float64
            return None
        if (np.round(some, digits) == some).all():
            return digits
    return None
