"""Trajectories <-> normalised tensors (B, C, T).

A channel holds a number (or the one-hot weight of a category) for each step: y is dequantised where
it is a count, transformed to z = f(y), and normalised coordinate by coordinate,

    x[c, t] = (z[c, t] - mean[c, t]) / scale[c, t].

Static variables are repeated over time and decoded from their average. Species that follow from a
conservation law have no channel. A coordinate that is the same in all data (a fixed start) has the
scale of its dequantisation noise, or 1, and decodes to its constant; a channel of such coordinates
is left out of the tensor. Decoding is differentiable, for constraints are in data units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, Layout
from constraints.ast.terms import Name
from constraints.physics.linear_laws import LinearLaw, linear_laws
from surrogate.errors import ModelError
from surrogate.io.rules import all_rules, attribute, stated_in
from surrogate.kinds.codec import NONE, Codec, Samples
from surrogate.kinds.trajectories import config as stored
from surrogate.kinds.trajectories import process
from surrogate.kinds.trajectories.conservation import Law, Relation
from surrogate.kinds.trajectories.coordinates import notes as coordinate_notes
from surrogate.kinds.trajectories.fit_codec import CHUNK_VALUES, fit, values_of
from surrogate.kinds.trajectories.match import check_match
from surrogate.kinds.trajectories.ranges import Ranges, members, reround
from surrogate.kinds.trajectories.start_date import starting
from surrogate.kinds.trajectories.variables import Variable, pieces, sample_number


@dataclass(frozen=True, eq=False)
class TimeSeriesCodec(Codec):
    """How the trajectories of one dataset become tensors and back. Made by `fit`."""

    variables: tuple[Variable, ...]  # in the order of the data; totals come last
    relations: tuple[Relation, ...]
    mean: Tensor  # of all channels, (K, T), float64
    scale: Tensor  # standard deviations, (K, T)
    fixed: Tensor  # (K, T): values in data units where all data agree, NaN elsewhere
    signals: Layout  # as formulas see the decoded trajectories
    coords: Mapping[str, Mapping[str, Any]]  # as `stored.pack` writes them
    about: str = ""  # the dataset's own surrogate_config
    ignored: tuple[str, ...] = ()  # variables of the data that are not learned
    # rules that were declared or found: name -> text
    stated: Mapping[str, str] = field(default_factory=dict)
    # nats a value by which the logarithm of a variable, or a cycle of the calendar, won its trial
    gains: Mapping[str, float] = field(default_factory=dict)
    known: Mapping[str, float] = field(default_factory=dict)  # statics that a date fixes

    kind = "time series"
    noun = "trajectories"

    # --- fitting ----------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        data: xr.Dataset,
        *,
        transforms: Mapping[str, str] = NONE,
        laws: Sequence[Law] | None = None,
        chunk: int | None = None,
        learned: np.ndarray | None = None,
    ) -> TimeSeriesCodec:
        """Codec of a dataset over (sample, time), which may be lazy: `chunk` samples at a time.

        `transforms`: variable -> "identity" (unless named), "log", "log(LOW)", "logit",
        "logit(LOW, HIGH)" or "auto" (by a trial, see `coordinates`); "*" stands for all others.
        `laws`: conserved sums as name -> weight, instead of those the dataset knows of.
        `learned`: samples that trials fit to; they score the others.
        """
        made = fit(data, transforms, laws, chunk, learned)
        about = data.attrs.get("surrogate_config")
        about = about if isinstance(about, str) else ""
        coords, stated = stored.coordinates(data), stated_in(data.attrs)
        return cls(**vars(made), coords=coords, about=about, stated=stated)

    # --- properties -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(C, T) of one trajectory."""
        return len(self._free), self.mean.shape[1]

    @property
    def affine(self) -> bool:
        return all(variable.transform.kind == "identity" for variable in self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the channels, in their order; that of a category is "weather: rain"."""
        every = [name for variable in self._encoded for name in variable.channels]
        return tuple(every[i] for i in self._free.tolist())

    @property
    def learned(self) -> str:
        """A summary of the variables: "S, I, R (R from conservation)"."""
        names = ", ".join(v.name for v in self.variables if not v.total)
        notes = [f"{', '.join(self.restored)} from conservation"] if self.restored else []
        notes += [f"{', '.join(self.constant)} constant"] if self.constant else []
        notes += coordinate_notes(self.variables, self.gains)
        return f"{names} ({'; '.join(notes)})" if notes else names

    @property
    def times(self) -> tuple[float, ...]:
        return self.signals.times

    @property
    def constant(self) -> tuple[str, ...]:
        """Variables that are the same in all trajectories; they have no channel."""
        return tuple(v.name for v, rows in self._rows if not self.fixed[rows].isnan().any())

    @property
    def restored(self) -> tuple[str, ...]:
        """Species that follow from conservation laws; they have no channel."""
        return tuple(relation.dependent for relation in self.relations)

    @cached_property
    def rules(self) -> Mapping[str, Formula]:
        """Those of the network, then those that were found or declared."""
        return all_rules(self.about, self.stated)

    def layout(self) -> Layout:
        """The signals that `decode` gives, as formulas see them."""
        return self.signals

    def conditions(self) -> Mapping[str, Formula]:
        return {name: Name(name).equals(y) for name, y in self.known.items()}

    def knowing(
        self, *, start: Any = None, unit: str | None = None, observed: Any = None, **named: Any
    ) -> Self:
        """The same with dates on the time axis of its samples, the first of them `start`, or the
        first of the dates of `observed` data."""
        if named:
            return super().knowing(**named)
        if start is None and observed is None:
            return self
        config = self.to_config()
        made = starting(config, start, unit, observed)
        return self if made == config else self.from_config(made)

    @cached_property
    def _encoded(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.name not in self.restored)

    @cached_property
    def _rows(self) -> tuple[tuple[Variable, slice], ...]:
        """Each variable with its rows of `mean`."""
        ends = np.cumsum([len(v.channels) for v in self._encoded]).tolist()
        rows = (slice(a, b) for a, b in zip([0, *ends], ends, strict=False))
        return tuple(zip(self._encoded, rows, strict=True))

    @cached_property
    def _free(self) -> Tensor:
        """Channels that vary, and so are in the tensor."""
        return self.fixed.isnan().any(1).nonzero()[:, 0]

    # --- encoding ---------------------------------------------------------------------------------

    def encode(
        self,
        data: xr.Dataset,
        samples: Samples,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Some samples as a normalised tensor (B, C, T), integers dequantised.

        Each sample takes the same count of random numbers, so batches do not change its noise.
        """
        size = max(1, CHUNK_VALUES // self.mean.numel())
        parts = [
            self._encode(data, piece, generator).to(dtype)
            for piece in pieces(samples, data.sizes["sample"], size)
        ]
        return torch.cat(parts) if parts else torch.zeros((0, *self.shape), dtype=dtype)

    def _encode(self, data: xr.Dataset, samples: Samples, generator: torch.Generator) -> Tensor:
        values = values_of(data, self.variables, self.relations, samples)
        batch = len(values[self._encoded[0].name])
        steps = self.mean.shape[1]
        counts = [v.name for v in self._encoded if v.kind == "integer"]
        uniform = torch.rand((batch, len(counts), steps), generator=generator, dtype=torch.float64)
        parts = []
        for variable, rows in self._rows:
            spread = variable.spread(values[variable.name])
            self._check_fixed(variable, spread, self.fixed[rows], samples)
            noise: Tensor | float = 0.5
            if variable.kind == "integer":
                at = counts.index(variable.name)
                noise = uniform[:, at : at + 1, : spread.shape[2]]
            parts.append(variable.forward(spread, noise).expand(-1, -1, steps))
        x = (torch.cat(parts, 1) - self.mean) / self.scale
        return x[:, self._free]

    def _check_fixed(
        self, variable: Variable, spread: Tensor, fixed: Tensor, samples: Samples
    ) -> None:
        """ModelError unless coordinates without a channel have the value of the training data."""
        fixed = fixed[:, : spread.shape[2]]
        wrong = (spread != fixed) & ~fixed.isnan()
        if bool(wrong.any()):
            sample, k, step = wrong.nonzero()[0].tolist()
            when = "" if variable.static else f" at step {step}"
            raise ModelError(
                f"{variable.channels[k]} is {fixed[k, step]:g}{when} in all trajectories that the "
                f"model was made from, and {spread[sample, k, step]:g} in sample "
                f"{sample_number(samples, sample)} of these",
                value=float(spread[sample, k, step]),
                remedy="leave such samples out, or train a model on data in which it varies",
            )

    # --- decoding ---------------------------------------------------------------------------------

    def decode(self, x: Tensor) -> dict[str, Tensor]:
        """Signals in data units, differentiable, not rounded: series (B, T), static (B,).

        Categorical variables are weights: (B, T, categories) or (B, categories).
        """
        values = self._signals(x, whole=False)
        made = {}
        for variable in self.variables:
            if variable.total:
                continue
            y = values[variable.name]  # (B, K, T)
            y = y.movedim(1, -1) if variable.kind == "words" else y[:, 0]
            made[variable.name] = y[:, 0] if variable.static else y
        return made

    def channels_of(self) -> tuple[dict[str, slice], dict[str, list[int]]]:
        """Rows of `mean` by variable, and its channels of an encoded trajectory where it varies."""
        place = {row: channel for channel, row in enumerate(self._free.tolist())}
        rows = {v.name: own for v, own in self._rows}
        channels = {
            name: [place[row] for row in range(own.start, own.stop)]
            for name, own in rows.items()
            if own.start in place
        }
        return rows, channels

    def values(self, x: Tensor) -> dict[str, Tensor]:
        """Every variable and total of finished samples in data units, (B, K, T) or (B, K, 1)."""
        return self._signals(x, whole=True)

    @cached_property
    def linear_laws(self) -> tuple[LinearLaw, ...]:
        """The rules of every trajectory that are linear in the values at t and t-1."""
        rows = [linear_laws(rule, self.signals) for rule in self.rules.values()]
        return tuple(law for found in rows for law in found or ())

    @property
    def markov(self) -> bool:
        """Whether the future depends on the present alone."""
        return process.markov(self.about, list(self._named))

    @property
    def homogeneous(self) -> bool:
        """Whether the law of a step is the same for all."""
        return process.homogeneous(self.about, list(self._named), self.times)

    def _signals(self, x: Tensor, whole: bool) -> dict[str, Tensor]:
        """Every variable and total in data units, (B, K, T) or (B, K, 1)."""
        if x.ndim != 3 or tuple(x.shape[1:]) != self.shape:
            wanted = f"(B, {self.shape[0]}, {self.shape[1]})"
            raise ModelError(
                f"encoded trajectories have shape {wanted}, not {tuple(x.shape)}",
                value=tuple(x.shape),
            )
        mean, scale, fixed = (each.to(x) for each in (self.mean, self.scale, self.fixed))
        every = x.new_zeros(len(x), *self.mean.shape).index_copy(1, self._free.to(x.device), x)
        z = mean + scale * every
        values, exact = {}, {}
        for variable, rows in self._rows:
            part, known = z[:, rows], fixed[rows]
            if variable.static:
                part, known = part.mean(2, keepdim=True), known[:, :1]
            y = variable.transform.inverse(part)
            exact[variable.name] = torch.where(known.isnan(), y, torch.nan)
            y = variable.finished(y) if whole else y
            values[variable.name] = torch.where(known.isnan(), y, known)
        for relation in self.relations:
            total = relation.total
            sums = values[total] if isinstance(total, str) else total + 0 * every[:, :1]
            sums = sums.expand(-1, -1, x.shape[2])
            found = relation.restore(values, sums)
            if whole and self._named[relation.dependent].kind == "integer":
                self._reround(relation, values, exact, found)
                found = relation.restore(values, sums)
            values[relation.dependent] = found
        return values

    def _reround(
        self,
        relation: Relation,
        values: dict[str, Tensor],
        exact: Mapping[str, Tensor],
        found: Tensor,
    ) -> None:
        """Round some counts the other way where the dependent species `found` is out of range."""
        dependent = self._named[relation.dependent]
        moving = list(relation.weights)
        excess = found - found.clamp(dependent.low, dependent.high)
        if not bool((excess != 0).any()):
            return
        made = reround(
            [(self._named[name], weight) for name, weight in relation.weights.items()],
            [exact[name] for name in moving],
            [values[name] for name in moving],
            excess,
        )
        values.update(zip(moving, made, strict=True))

    @cached_property
    def _named(self) -> dict[str, Variable]:
        return {variable.name: variable for variable in self.variables}

    @torch.no_grad()
    def finish(self, x: Tensor) -> dict[str, np.ndarray]:
        """Trajectories in the form of the data: integers rounded, categories chosen, no clipping.

        Counts that outgrow the type of the data get a wider one.
        """
        values = self._signals(x.detach().to("cpu", torch.float64), whole=True)
        made = {}
        for variable in self.variables:
            if variable.total:
                continue
            y = values[variable.name]
            y = y.argmax(1) if variable.kind == "words" else y[:, 0]
            made[variable.name] = stored.typed(
                variable, (y[:, 0] if variable.static else y).numpy()
            )
        return made

    def to_dataset(self, x: Tensor, attrs: Mapping[str, Any] = NONE) -> xr.Dataset:
        """Trajectories as a dataset with the dimensions, types and coordinates of the data."""
        made = {}
        for name, values in self.finish(x).items():
            variable = next(v for v in self.variables if v.name == name)
            turned = values.T if variable.dims == ("time", "sample") else values
            made[name] = (variable.dims, turned, dict(variable.attrs))
        own = {"surrogate_config": self.about} if self.about else {}
        own |= attribute(self.stated)
        coords = stored.unpacked(self.coords, len(x))
        return xr.Dataset(made, coords, {**own, **attrs})

    def within(self, x: Tensor) -> Tensor:
        """x (B, C, T) brought into the ranges of the variables; differentiable almost everywhere.

        Points within the ranges stay as they are. Encoded data are within, up to the half units of
        counts that a dependent species follows from.
        """
        x = self._ranges.box(x)
        for relation in self.relations:
            found = self._signals(x, whole=False)[relation.dependent][:, 0]
            moving = members(relation, self._channels)
            x = self._ranges.restored(x, found, self._named[relation.dependent], moving)
        return x

    @cached_property
    def _channels(self) -> tuple[Variable, ...]:
        """The variable of each channel of the tensor."""
        every = [variable for variable in self._encoded for _ in variable.channels]
        return tuple(every[i] for i in self._free.tolist())

    @cached_property
    def _ranges(self) -> Ranges:
        return Ranges.of(self._channels, self.mean[self._free], self.scale[self._free])

    # --- matching and storing ---------------------------------------------------------------------

    def matches(self, data: xr.Dataset) -> None:
        """ModelError unless the dataset has the variables and the grid of this codec."""
        check_match(self.variables, self.relations, self.times, data)

    def to_config(self) -> dict[str, Any]:
        """The codec as a JSON object."""
        return stored.to_config(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The codec that `to_config` described; ModelError says what is wrong with a config."""
        return cls(**stored.from_config(config))
