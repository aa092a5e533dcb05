"""Statistics of a dataset, a chunk of samples at a time.

`Moments` are the mean and variance of each coordinate by the pairwise update of Chan, Golub and
LeVeque (The American Statistician 37, 1983); dequantisation noise is integrated by Gauss-Legendre
quadrature, so that no random number enters. `Edges` are the ends of a variable's range, `Levels`
its values where they are few, `Totals` conserved sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.kinds.codec import Samples
from surrogate.kinds.trajectories.conservation import Relation
from surrogate.kinds.trajectories.variables import Variable, sample_number

QUADRATURE_NODES = {
    "identity": 2,
    "log": 8,
    "logit": 8,
}  # two are exact for linear functions of the noise
SUM_TOLERANCE = 1e-5  # by which a conserved sum of real numbers may differ, relative to its terms
MAX_LEVELS = 24  # values of a variable of real numbers that are drawn as choices
MIN_PER_LEVEL = 20  # values in the data for each of them
MIN_TIES = 20  # equal values that make the end of a range a hard one: no tail has so many


class Moments:
    """Mean and standard deviation of each coordinate (K, T) of a variable's channels."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        count = QUADRATURE_NODES[variable.transform.kind] if variable.kind == "integer" else 1
        nodes, weights = np.polynomial.legendre.leggauss(count)
        self.nodes = [float(node + 1) / 2 for node in nodes]
        self.weights = torch.from_numpy(weights / 2)
        self.count = 0
        self.mean = self.squares = self.low = self.high = torch.zeros(())

    def add(self, values: Tensor) -> None:
        """Values (n, T) of n more samples."""
        spread = self.variable.spread(values)
        parts = torch.stack([self.variable.forward(spread, node) for node in self.nodes])
        low, high = spread.amin(0), spread.amax(0)
        mean = torch.einsum("q,qnkt->kt", self.weights, parts) / len(values)
        squares = torch.einsum("q,qnkt->kt", self.weights, (parts - mean) ** 2)
        if self.count:
            before, count = self.count, self.count + len(values)
            shift = mean - self.mean
            squares = squares + self.squares + shift**2 * (before * len(values) / count)
            mean = self.mean + shift * (len(values) / count)
            low, high = torch.minimum(low, self.low), torch.maximum(high, self.high)
        self.count += len(values)
        self.mean, self.squares, self.low, self.high = mean, squares, low, high

    @property
    def scale(self) -> Tensor:
        """Standard deviation, noise of dequantisation included; 1 where there is none at all."""
        deviation = (self.squares / self.count).sqrt()
        without_noise = self.constant & (self.variable.kind != "integer")
        return torch.where(without_noise, torch.ones_like(deviation), deviation)

    @property
    def constant(self) -> Tensor:
        return self.low == self.high

    @property
    def fixed(self) -> Tensor:
        """The value that all samples have, in data units; NaN where they differ."""
        return self.low.masked_fill(~self.constant, torch.nan)


class Edges:
    """The lowest and the highest value, and how many values there are of each."""

    def __init__(self) -> None:
        self.low, self.high = math.inf, -math.inf
        self.lowest = self.highest = 0

    def add(self, values: Tensor) -> None:
        low, high = float(values.min()), float(values.max())
        if low < self.low:
            self.low, self.lowest = low, 0
        if high > self.high:
            self.high, self.highest = high, 0
        self.lowest += int((values == self.low).sum())
        self.highest += int((values == self.high).sum())

    @property
    def hard(self) -> tuple[float, float]:
        """The ends of the range that many values share; infinite where there is a tail."""
        return (
            self.low if self.lowest >= MIN_TIES else -math.inf,
            self.high if self.highest >= MIN_TIES else math.inf,
        )


class Levels:
    """The values of a variable of real numbers that takes few: 0.5 before an event, 0.1 after."""

    def __init__(self) -> None:
        self.values: np.ndarray | None = np.zeros(0)
        self.count = 0

    def add(self, values: Tensor) -> None:
        if self.values is None:
            return
        self.count += values.numel()
        found = np.unique(np.concatenate([self.values, np.unique(values.numpy())]))
        self.values = found if len(found) <= MAX_LEVELS else None

    @property
    def found(self) -> tuple[float, ...]:
        """The values, ascending; none where they are many, or too few of each."""
        if self.values is None or not 2 <= len(self.values) <= self.count / MIN_PER_LEVEL:
            return ()
        return tuple(self.values.tolist())


class Totals:
    """The conserved sum of a relation in each sample: the same number for all, or one for each."""

    def __init__(self, relation: Relation, whole: bool, statics: Sequence[str] = ()) -> None:
        self.relation, self.whole = relation, whole
        self.low, self.high, self.slack = math.inf, -math.inf, 0.0
        self.same = list(statics)  # static variables that have equalled it so far

    def of(self, values: Mapping[str, Tensor], samples: Samples) -> Tensor:
        """Totals (n,) of the values of these samples; ModelError where they change with time."""
        sums = self.relation.sum(values)
        gap = (sums - sums[:, :1]).abs()
        wrong = gap > self.slack_in(values)
        if bool(wrong.any()):
            sample, step = wrong.nonzero()[0].tolist()
            number = sample_number(samples, sample)
            raise ModelError(
                f"{self.relation} is said to be conserved, but in sample {number} it is "
                f"{sums[sample, 0]:g} at step 0 and {sums[sample, step]:g} at step {step}",
                value=float(sums[sample, step]),
                remedy=(
                    "repair the data, or drop their attribute surrogate_config",
                    Action(" (or give laws=[])", ""),
                    " to learn every species by itself",
                ),
            )
        return sums[:, 0] if self.whole else sums.mean(1)

    def add(self, values: Mapping[str, Tensor], samples: Samples) -> None:
        totals, slack = self.of(values, samples), self.slack_in(values)
        self.low = min(self.low, float(totals.min()))
        self.high = max(self.high, float(totals.max()))
        self.slack = max(self.slack, slack)
        self.same = [
            n for n in self.same if bool(((values[n][:, 0] - totals).abs() <= slack).all())
        ]

    def resolved(self) -> Relation:
        """The relation with its total: a number, a static variable or a name of its own."""
        if self.high - self.low <= self.slack:
            return replace(self.relation, total=self.low if abs(self.low) > self.slack else 0.0)
        name = self.same[0] if self.same else f"total of {self.relation}"
        return replace(self.relation, total=name)

    def slack_in(self, values: Mapping[str, Tensor]) -> float:
        """The tolerance by which a sum of these values may differ from the total."""
        if self.whole:
            return 0.0
        members = {self.relation.dependent: 1.0, **self.relation.weights}
        return SUM_TOLERANCE * max(
            abs(w) * float(values[n].abs().max()) for n, w in members.items()
        )
