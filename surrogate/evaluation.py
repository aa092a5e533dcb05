"""How far samples are from reference data, beside how far such data are from themselves.

For each variable and step, D = ½ Σ|p - q| between histograms; for whole samples the errors of
correlations and autocorrelations, the energy distance and a classifier's accuracy. Each comes with
its noise floor (see `distances`): a ratio of 1 is as close as these numbers of samples can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import FormulaError, Program, compile
from constraints.explain import chunk_size, percent
from constraints.rules import from_network
from surrogate import distances
from surrogate.contents import LABELS, Data, described, samples_of
from surrogate.distances import Array
from surrogate.errors import whole_number
from surrogate.paired import Side, alike, columns, values

HEADER = ("measure", "value", "floor", "ratio", "")
CORRELATED = 256  # columns whose correlations are compared; of more, as many evenly spaced ones
CLASSIFIED = 128  # columns that the classifier sees
MOST = 50_000  # samples of each side that are compared as a whole; histograms see all
EVERY = "all variables"
Summary = Callable[..., Any]


@dataclass(frozen=True)
class Measured:
    """A distance, and the mean and deviation of what it is between samples of one law."""

    value: float
    floor: float
    floor_sd: float

    @property
    def ratio(self) -> float:
        """1 at the floor; where that is 0, only 0 is."""
        if self.floor > 0:
            return self.value / self.floor
        return 1.0 if self.value == 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which knows no infinity: such a ratio is None."""
        return asdict(self) | {"ratio": self.ratio if math.isfinite(self.ratio) else None}

    def cells(self) -> tuple[str, str, str]:
        return f"{self.value:.4f}", f"{self.floor:.4f} ± {self.floor_sd:.4f}", f"{self.ratio:.2f}"


@dataclass(frozen=True)
class Histograms:
    """D of a variable over its steps, (T,), with its floor at each; `worst` is the furthest step.

    The floors of the median, mean and maximum are those of these numbers, not of single steps.
    """

    name: str
    steps: tuple[float, ...]
    floors: tuple[float, ...]
    median: Measured
    mean: Measured
    max: Measured
    worst: int

    def to_dict(self) -> dict[str, Any]:
        return {k: _plain(v) for k, v in vars(self).items()}


@dataclass(frozen=True)
class Evaluation:
    """Samples against a reference; None for what the data do not have.

    `effective`: what weighted samples are worth. `classifier`: accuracy and its standard error.
    `consistent`: the share of samples that obey the `rules` of the network that the data describe.
    """

    samples: int
    effective: float
    reference: int
    times: tuple[float, ...]
    variables: tuple[Histograms, ...]
    overall: Histograms
    correlation: Measured | None
    autocorrelation: Measured | None
    energy: Measured
    classifier: tuple[float, float]
    consistent: float | None
    rules: int
    satisfied: float | None
    unjudged: tuple[str, ...] = ()  # variables that no measure is made for: words over time

    def to_dict(self) -> dict[str, Any]:
        made = {k: _plain(v) for k, v in vars(self).items()}
        accuracy, error = self.classifier
        return made | {"classifier": {"accuracy": accuracy, "error": error}}

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Cells in the order of HEADER."""
        single = len(self.variables) == 1
        found = [row for each in self.variables for row in self._histogram(each)]
        found += [] if single else self._histogram(self.overall)
        for name in ("correlation", "autocorrelation", "energy"):
            measured = getattr(self, name)
            if measured is not None:
                what = "distance" if name == "energy" else "error"
                found.append((f"{name} {what}", *measured.cells(), ""))
        accuracy, error = self.classifier
        found.append(("classifier accuracy", f"{accuracy:.4f}", f"0.5000 ± {error:.4f}", "", ""))
        if self.consistent is not None:
            note = f"{self.rules} rule{'s' * (self.rules > 1)} of the network"
            found.append(("consistent", percent(self.consistent), "", "", note))
        if self.satisfied is not None:
            found.append(("satisfied", percent(self.satisfied), "", "", ""))
        if self.unjudged:
            found.append(("not judged", ", ".join(self.unjudged), "", "", ""))
        if self.effective < self.samples * (1 - 1e-9):
            note = f"of {self.samples:,}, which have weights"
            found.append(("effective samples", f"{self.effective:,.0f}", "", "", note))
        return found

    def _histogram(self, each: Histograms) -> Iterable[tuple[str, str, str, str, str]]:
        overall = each is self.overall
        what = "D" if overall else f"D({each.name})"
        if len(each.steps) == 1:
            yield what, *each.median.cells(), ""
            return
        note = "" if overall else f"step {each.worst} (time {self.times[each.worst]:.4g})"
        yield f"{what}, median", *each.median.cells(), "of all variables" if overall else ""
        yield f"{what}, max", *each.max.cells(), note

    def table(self) -> str:
        """Plain text, one line a row."""
        lines = [HEADER, *self.rows()]
        wide = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
        shown = []
        for name, *numbers, note in lines:
            middle = [cell.rjust(w) for cell, w in zip(numbers, wide[1:-1], strict=True)]
            shown.append("  ".join([name.ljust(wide[0]), *middle, note]).rstrip())
        return "\n".join(shown)

    __str__ = table


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def evaluate(data: Data, against: Data, seed: int = 0) -> Evaluation:
    """Compare samples with reference data: trajectories with trajectories, a table with a table.

    `log_weight` of either side is honoured: histograms and moments are weighted, and the floor is
    that of as many samples as they are effectively worth.
    """
    seed = whole_number(seed, "seed")
    x, y = Side(data, "the samples"), Side(against, "the reference")
    alike(x, y)
    names = y.order()
    parts = []
    for name in names:
        left, right, whole = values(x, y, name)
        measure = distances.Histogram.of(left, right, whole=whole)
        parts.append(_compared(measure, left, right, x, y, seed))
    found, floors = (np.concatenate(each, -1) for each in zip(*parts, strict=True))
    v, w = x.some(MOST, seed), y.some(MOST, seed)
    left, right = distances.standardise(*columns(v, w))
    some, few = _spaced(left.shape[1], CORRELATED), _spaced(left.shape[1], CLASSIFIED)
    energy, null = distances.energy_distance(left, right, v.weights, w.weights, seed=seed)
    consistent, rules = _consistent(x, described(data) or described(against))
    return Evaluation(
        samples=samples_of(data),
        effective=distances.effective(x.weights),
        reference=samples_of(against),
        times=y.layout.times,
        variables=tuple(_histograms(k, *part) for k, part in zip(names, parts, strict=True)),
        overall=_histograms(EVERY, found, floors),
        correlation=_correlation(left[:, some], right[:, some], v, w, seed),
        autocorrelation=_autocorrelation(v, w, seed),
        energy=_measured(energy, null),
        classifier=distances.classifier_test(
            left[:, few], right[:, few], v.weights, w.weights, seed=seed
        ),
        consistent=consistent,
        rules=rules,
        satisfied=x.share(x.satisfied()),
        unjudged=_unjudged(against, names),
    )


def _unjudged(data: Data, names: Iterable[str]) -> tuple[str, ...]:
    """Variables over (sample, time) that are none of the signals."""
    if not isinstance(data, xr.Dataset):
        return ()
    known = {*names, *LABELS}
    return tuple(
        str(name)
        for name, array in data.data_vars.items()
        if name not in known and set(array.dims) == {"sample", "time"}
    )


# --- measures -------------------------------------------------------------------------------------


def _spaced(count: int, most: int) -> np.ndarray:
    """Some of `count` columns, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _measured(value: float, floors: Array) -> Measured:
    return Measured(float(value), float(floors.mean()), float(floors.std()))


def _compared(
    measure: distances.Measure, left: Array, right: Array, x: Side, y: Side, seed: int
) -> tuple[Array, Array]:
    """The distances (...) and those among splits of the reference, (splits, ...)."""
    found = measure(left, right, x.weights, y.weights)
    n = distances.effective(x.weights)
    return found, distances.floor(measure, right, y.weights, n, seed=seed)


def _histograms(name: str, found: Array, floors: Array) -> Histograms:
    """From D at each step, (T,), and among splits of the reference, (splits, T)."""

    def summary(how: Summary) -> Measured:
        return _measured(how(found), how(floors, axis=1))

    return Histograms(
        name,
        tuple(found.tolist()),
        tuple(floors.mean(0).tolist()),
        median=summary(np.median),
        mean=summary(np.mean),
        max=summary(np.max),
        worst=int(found.argmax()),
    )


def _correlation(left: Array, right: Array, x: Side, y: Side, seed: int) -> Measured | None:
    if left.shape[1] < 2:
        return None
    found, floors = _compared(distances.Correlation(), left, right, x, y, seed)
    return _measured(float(found), floors)


def _autocorrelation(x: Side, y: Side, seed: int) -> Measured | None:
    """The mean over the variables."""
    names = [name for name in y.order() if y.signal(name).kind == "series"]
    if not names or len(y.layout.times) < 3:
        return None
    measure = distances.Autocorrelation.of(len(y.layout.times))
    left, right = (
        np.concatenate([measure.products(side.values(name)[:, None]) for name in names], 1)
        for side in (x, y)
    )
    found, floors = _compared(measure, left, right, x, y, seed)
    return _measured(found.mean(), floors.mean(1))


def _consistent(x: Side, about: dict[str, Any]) -> tuple[float | None, int]:
    """The share of samples that obey what their network implies, and how many rules that is."""
    programs: list[Program] = []
    for rule in from_network(about).values() if about else ():
        try:
            programs.append(compile(rule, x.layout))
        except FormulaError:  # about a species that the data leave out
            continue
    if not programs:
        return None, 0
    verdicts: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(x.weights), size := chunk_size(programs)):
            batch = {name: value[start : start + size] for name, value in x.tensors.items()}
            verdicts.append(torch.stack([each.verdict(batch) for each in programs]).all(0))
    return x.share(torch.cat(verdicts).double().numpy()), len(programs)
