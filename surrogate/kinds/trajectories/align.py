"""Two datasets of trajectories aligned: the same signals of both, as arrays, with weights."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
import xarray as xr

from constraints import FormulaError, Layout, Signal
from surrogate.errors import ModelError, as_model_error
from surrogate.evaluation.weights import Array, relative_weights
from surrogate.kinds.signals import described, layout_of, tensors_of
from surrogate.kinds.trajectories.cycles import without_cycles

MAX_VALUE = 1e150  # absolute values whose squares do not overflow
MAX_ONE_HOT = 32  # categories of a variable that become one-hot columns: the most frequent


class GridError(ModelError):
    """Two datasets with different times."""


class Side:
    """The signals (n, ...) of a dataset and their weights (n,); samples of weight 0 are dropped."""

    def __init__(self, data: xr.Dataset, who: str) -> None:
        self.who = who
        self.data = data = without_cycles(data)
        try:
            self.layout: Layout = layout_of(data)
            tensors = tensors_of(data, self.layout)
        except FormulaError as problem:
            raise as_model_error(problem.at(who)) from None
        weights = relative_weights(data, who)
        self.kept = weights > 0
        if self.kept.sum() < 2:
            count = int(self.kept.sum())
            raise ModelError(f"{who}: at least 2 are needed, not {count}", value=count)
        self.weights: Array = weights[self.kept]
        every = bool(self.kept.all())
        rows = torch.from_numpy(self.kept)
        self.tensors = tensors if every else {k: v[rows] for k, v in tensors.items()}
        for name, values in self.tensors.items():
            if values.is_floating_point() and float(values.abs().max()) > MAX_VALUE:
                raise ModelError(
                    f"{who}: {name} has values up to {float(values.abs().max()):g}, which are too "
                    "large to compare",
                    remedy="give them in another unit",
                )

    def subsample(self, most: int, seed: int) -> Side:
        """This dataset with at most `most` of its samples, drawn at random."""
        if len(self.weights) <= most:
            return self
        rows = np.sort(np.random.default_rng([seed, 3]).permutation(len(self.weights))[:most])
        other = copy(self)
        other.weights = self.weights[rows]
        other.tensors = {k: v[torch.from_numpy(rows)] for k, v in self.tensors.items()}
        return other

    def order(self) -> list[str]:
        """Names, species as in their network: Zarr forgets the order of variables."""
        names = self.layout.names
        species = list((described(self.data).get("network") or {}).get("species") or [])
        first = [name for name in species if name in names]
        return first + [name for name in names if name not in first]

    def signal(self, name: str) -> Signal:
        return next(each for each in self.layout.signals if each.name == name)

    def values(self, name: str) -> Array:
        """(n, T); a column has one step."""
        found = self.tensors[name].numpy()
        return np.asarray(found.reshape(len(found), -1), np.float64)

    def satisfied(self) -> Array | None:
        """Verdicts that the data carry: (n,)."""
        if "satisfied" in self.layout.names or "satisfied" not in self.data:
            return None
        verdicts = np.asarray(self.data["satisfied"].to_numpy())
        return verdicts[self.kept].astype(np.float64) if verdicts.shape == self.kept.shape else None

    def share(self, verdicts: Array | None) -> float | None:
        return None if verdicts is None else float(np.average(verdicts, weights=self.weights))


def align(x: Side, y: Side) -> None:
    """Check that both have the same variables and times; ModelError, or GridError, if not."""
    differences = []
    for one, other in ((x, y), (y, x)):
        lone = [name for name in one.layout.names if name not in other.layout.names]
        if lone:
            differences.append(f"only in {one.who}: {', '.join(lone)}")
    if differences:
        raise ModelError(f"the variables differ; {'; '.join(differences)}")
    for name in y.order():
        kinds = [side.signal(name).kind for side in (x, y)]
        if kinds[0] != kinds[1]:
            raise ModelError(f"{name} is a {kinds[0]} in {x.who}, a {kinds[1]} in {y.who}")
    mine, theirs = np.asarray(x.layout.times), np.asarray(y.layout.times)
    if len(mine) != len(theirs):
        raise GridError(f"{x.who} have {len(mine)} times, {y.who} has {len(theirs)}")
    gap = float(np.diff(theirs).min()) if len(theirs) > 1 else 1.0
    off = np.flatnonzero(np.abs(mine - theirs) > 1e-3 * abs(gap))
    if off.size:
        k = int(off[0])
        raise GridError(
            f"the times differ: step {k} is at {mine[k]:.6g} in {x.who}, at {theirs[k]:.6g} in "
            f"{y.who}"
        )


def values(x: Side, y: Side, name: str) -> tuple[Array, Array, bool]:
    """A variable of both datasets, (n, T) and (m, T), and whether it is an integer; categories are
    codes."""
    if y.signal(name).categories:
        words = sorted({*x.signal(name).categories, *y.signal(name).categories})
        codes = [_recoded(side, name, words) for side in (x, y)]
        return codes[0], codes[1], True
    left, right = x.values(name), y.values(name)
    return left, right, y.signal(name).integer


def _recoded(side: Side, name: str, words: Sequence[str]) -> Array:
    """The codes of a category among the categories of both datasets: (n, 1)."""
    place = {word: float(code) for code, word in enumerate(words)}
    codes = np.array([place[word] for word in side.signal(name).categories])
    return np.asarray(codes[side.tensors[name].numpy()])[:, None]


def columns(x: Side, y: Side) -> tuple[Array, Array]:
    """All variables and steps as columns, (n, d) and (m, d); categories are one-hot."""
    pairs = []
    for name in y.order():
        left, right, _ = values(x, y, name)
        if y.signal(name).categories:
            often = np.bincount(right[:, 0].astype(np.int64))
            words = np.argsort(-often, kind="stable")[:MAX_ONE_HOT].astype(np.float64)
            left, right = 1.0 * (left == words), 1.0 * (right == words)
        pairs.append((left, right))
    return np.concatenate([p[0] for p in pairs], 1), np.concatenate([p[1] for p in pairs], 1)
