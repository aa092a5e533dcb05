"""The part of a column of numbers that lies in an interval: its values, and the latents of these.

The latents z of a column have pieces (`quantiles`): an atom is all of its piece, a value between
atoms one point, or, where values are rounded, the latents that round to it. An end of the range
that is an atom has all latents beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surrogate.kinds.tables.quantiles import Quantiles

FAR = 1e20  # in place of infinity
SLACK = 1e-12  # relative, by which a value may miss an end: that of a sum is rounded


@dataclass(frozen=True)
class Part:
    """Values first..last (B,), empty where first > last, and their latents low..high (B,)."""

    first: np.ndarray
    last: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def empty(self) -> np.ndarray:
        found: np.ndarray = self.first > self.last
        return found


def outer_bounds(quantiles: Quantiles) -> tuple[np.ndarray, np.ndarray]:
    """The latents at the ends of each piece, (m,) each; beyond atoms at the ends of the range."""
    low, high = quantiles.bounds[:-1].copy(), quantiles.bounds[1:].copy()
    atom = quantiles.start == quantiles.stop
    low[0] = -FAR if atom[0] else low[0]
    high[-1] = FAR if atom[-1] else high[-1]
    return low, high


def part(quantiles: Quantiles, low: np.ndarray, high: np.ndarray) -> Part:
    """The values in intervals [low, high] (B,)."""
    first, least = _least(quantiles, low)
    last, most = _most(quantiles, high)
    return Part(first, last, least, most)


def _least(q: Quantiles, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least value that is at least `value` (inf: there is none), and its least latent."""
    value = value - SLACK * (1 + np.abs(np.nan_to_num(value, posinf=0.0, neginf=0.0)))
    piece = np.searchsorted(q.stop, value, "left")
    none, piece = piece == len(q.stop), np.minimum(piece, len(q.stop) - 1)
    start, stop = q.start[piece], q.stop[piece]
    begins = (start >= value) | (start == stop)
    finite = np.where(np.isfinite(value), value, start)
    inner = np.minimum(_rounded(q, finite, np.ceil), stop)
    z = np.where(begins, outer_bounds(q)[0][piece], _inside(q, piece, inner - _half_unit(q)))
    return np.where(none, np.inf, np.where(begins, start, inner)), np.where(none, FAR, z)


def _most(q: Quantiles, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The greatest value that is at most `value` (-inf: there is none), and its greatest latent."""
    value = value + SLACK * (1 + np.abs(np.nan_to_num(value, posinf=0.0, neginf=0.0)))
    piece = np.searchsorted(q.start, value, "right") - 1
    none, piece = piece < 0, np.maximum(piece, 0)
    start, stop = q.start[piece], q.stop[piece]
    ends = (stop <= value) | (start == stop)
    finite = np.where(np.isfinite(value), value, stop)
    inner = np.maximum(_rounded(q, finite, np.floor), start)
    z = np.where(ends, outer_bounds(q)[1][piece], _inside(q, piece, inner + _half_unit(q)))
    return np.where(none, -np.inf, np.where(ends, stop, inner)), np.where(none, -FAR, z)


def _half_unit(q: Quantiles) -> float:
    return 0.0 if q.digits is None else 0.5 * 10.0**-q.digits


def _rounded(q: Quantiles, value: np.ndarray, way: np.ufunc) -> np.ndarray:
    """Values between atoms, rounded up (np.ceil) or down (np.floor) as data are."""
    if q.digits is None:
        return value
    unit = 10.0**-q.digits
    found: np.ndarray = np.round(way(np.round(value / unit, 6)) * unit, q.digits)
    return found


def _inside(q: Quantiles, piece: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The latents of values on pieces."""
    start, stop = q.start[piece], q.stop[piece]
    share = np.clip((value - start) / np.where(stop > start, stop - start, 1.0), 0.0, 1.0)
    return q.latents(q.edges[piece] + share * (q.edges[piece + 1] - q.edges[piece]))
