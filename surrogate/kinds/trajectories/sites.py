"""The values of a trajectory in the order in which a decoder draws them.

Statics come first, then the steps in order, and within a step the series in the order of the codec.
Variables that are constant in the data, and those that follow from conservation laws, are not
drawn. Each value has its channels in the encoded trajectory (C, T).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.cycles import Cycle
from surrogate.kinds.trajectories.transforms import COUNT_MARGIN, Identity
from surrogate.kinds.trajectories.variables import Variable

STATIC = -1  # in place of a step
FAR = 1e20  # in place of infinity
Site = tuple[int, int, int]  # instance, step or STATIC, number of the variable


class Sites:
    """What is drawn of the trajectories of a codec."""

    def __init__(self, codec: TimeSeriesCodec) -> None:
        self.codec = codec
        self.steps = codec.shape[1]
        self.rows, self.channels = codec.channels_of()
        drawn = [v for v in codec.variables if v.name in self.channels]
        self.statics = [v for v in drawn if v.static]
        self.statics.sort(key=lambda v: v.cycle is None)  # which a date may fix, come first
        self.series = [v for v in drawn if not v.static]
        self.words = [v for v in self.series if v.kind == "words"]
        # numbers over time, drawn, restored or constant
        every = [v for v in codec.variables if not v.static and not v.total]
        self.numbers = [v for v in every if v.kind != "words"]
        self.constants = [v for v in codec.variables if v.static and v.name not in self.channels]

    @cached_property
    def cycles(self) -> dict[str, Cycle]:
        """Cycles of the calendar by the static that holds the place in them."""
        return {v.name: v.cycle for v in self.statics if v.cycle is not None}

    @cached_property
    def elapsed(self) -> Tensor:
        """Times since the first step, (T,)."""
        times = torch.tensor(self.codec.times, dtype=torch.float64)
        return times - times[0]

    @cached_property
    def free(self) -> Tensor:
        """Where a series varies, (series, T)."""
        rows = [self.codec.fixed[self.rows[v.name]][:1].isnan() for v in self.series]
        return torch.cat(rows) if rows else torch.zeros(0, self.steps, dtype=torch.bool)

    @cached_property
    def size(self) -> int:
        """Numbers and words that are drawn of a trajectory."""
        return len(self.statics) + int(self.free.sum())

    @property
    def unbound(self) -> bool:
        """Whether all that is drawn are real numbers that no law binds: nothing that a diffusion
        could miss by rounding it, or by a small error at an edge."""
        drawn = (*self.statics, *self.series)
        real = all(v.kind == "real" and not v.levels for v in drawn)
        return real and not self.codec.linear_laws and not self.codec.relations

    def order(self, instances: int) -> list[Site]:
        """All sites in the order of drawing."""
        return [site for i in range(instances) for site in self._order(i)]

    def _order(self, instance: int) -> Iterator[Site]:
        for j in range(len(self.statics)):
            yield instance, STATIC, j
        for t in range(self.steps):
            for j in range(len(self.series)):
                if bool(self.free[j, t]):
                    yield instance, t, j

    def variable(self, site: Site) -> Variable:
        return (self.statics if site[1] == STATIC else self.series)[site[2]]

    def coordinates(self, site: Site) -> list[int]:
        """Of a site in points (instances · C · T,); a static stands at every step."""
        instance, step, _ = site
        first = instance * self.codec.shape[0]
        rows = [
            (first + channel) * self.steps for channel in self.channels[self.variable(site).name]
        ]
        steps = range(self.steps) if step == STATIC else (step,)
        return [row + t for row in rows for t in steps]

    # --- values -----------------------------------------------------------------------------------

    def values(self, clean: Tensor) -> dict[str, Tensor]:
        """Values of encoded samples in data units, float64: series (B, T), statics (B, 1); of words
        the numbers of their categories."""
        found = self.codec.values(clean.detach().to("cpu", torch.float64))
        return {name: y.argmax(1) if y.shape[1] > 1 else y[:, 0] for name, y in found.items()}

    def constant(self, v: Variable, t: int, count: int) -> Tensor:
        """The value that all data have at a step, (count,)."""
        known = self.codec.fixed[self.rows[v.name]][:, t]
        value = float(known.argmax()) if v.kind == "words" else float(known[0])
        return torch.full((count,), value, dtype=torch.float64)

    def restore(self, now: dict[str, Tensor]) -> dict[str, Tensor]:
        """All series of a step (B,): those that follow from conservation laws, too."""
        like = next(iter(now.values()))
        for relation in self.codec.relations:  # one without weights is a species that is constant
            total = relation.total
            sums = now[total] if isinstance(total, str) else torch.full_like(like, total)
            now[relation.dependent] = relation.restore(now, sums)
        return now

    @cached_property
    def linear(self) -> TimeSeriesCodec:
        """The codec of values that are neither transformed nor normalised."""
        plain = tuple(replace(v, transform=Identity()) for v in self.codec.variables)
        zero = torch.zeros_like(self.codec.mean)
        return replace(self.codec, variables=plain, mean=zero, scale=zero + 1)


def latent(v: Variable, y: Tensor) -> Tensor:
    """z of values y: what a mixture of logistics is about."""
    return v.transform.forward(y) if v.kind != "boolean" else y


def real(v: Variable) -> bool:
    """Whether a variable has a density: it is neither whole nor one of few values."""
    return v.kind == "real" and not v.levels


def value(v: Variable, z: Tensor) -> Tensor:
    """Values y of z, not rounded."""
    return v.transform.inverse(z) if v.kind != "boolean" else z


def edges(v: Variable, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """z of the ends of an interval of values; counts with their half unit."""
    if v.kind == "real":
        ends = v.transform.forward(low), v.transform.forward(high)
    elif v.kind == "boolean" or v.transform.kind == "identity":
        ends = low - 0.5, high + 0.5
    else:
        ends = v.transform.forward(low - COUNT_MARGIN), v.transform.forward(high + COUNT_MARGIN)
    # an open end, or one outside of a transform's domain, is a number whose gradient is 0
    return ends[0].nan_to_num(-FAR, FAR, -FAR), ends[1].nan_to_num(FAR, FAR, -FAR)


def ranges(v: Variable) -> tuple[float, float]:
    """The ends of a variable's range."""
    return (0.0, 1.0) if v.kind == "boolean" else (v.low, v.high)
