"""What data tell about themselves: a scenario and who meets it, its probability, how it was found.

Attributes may come from a stranger: what is not of the kind that it should be counts as absent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import xarray as xr

from constraints import FormulaError
from constraints.physics.rules import from_network
from surrogate.data import evaluate
from surrogate.errors import ModelError
from surrogate.evaluation.result import Evaluation
from surrogate.evaluation.weights import effective_sample_size, normalised_weights
from surrogate.kinds.images.values import IMAGE, is_images, size_of, spelled
from surrogate.kinds.label_names import LABELS, RULE_PREFIX, label_columns
from surrogate.kinds.signals import Data, described, samples_of
from surrogate.kinds.tables.align import Column, Rows, is_table, shared
from surrogate.kinds.trajectories.plot import MOST as DRAWN
from surrogate.kinds.trajectories.plot import series, thinned, times
from surrogate.kinds.trajectories.requirements import Asked, Part, asked
from surrogate.reports.wording import several

PICTURES = 256  # images that a page may show


@dataclass(frozen=True)
class Rule:
    """A rule, the share of the samples that meet it, and by which margins (n,)."""

    name: str
    share: float
    margins: np.ndarray
    physics: bool


@dataclass(frozen=True)
class Table:
    """The columns of rows, beside those of a reference, and the weights (n,) of each side."""

    columns: tuple[Column, ...]
    weights: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Facts:
    """`data` and `against` hold no more samples than pictures need; `samples` counts all.

    `weight`: of all samples, (n,), None if equal. `satisfied`: the share that meets all rules.
    `found`: how samples were made (diagnostics).
    """

    data: xr.Dataset
    samples: int
    weight: np.ndarray | None
    asked: Asked | None
    rules: tuple[Rule, ...]
    satisfied: float | None
    found: Mapping[str, Any]
    against: xr.Dataset | None = None
    evaluation: Evaluation | None = None
    apart: tuple[str, ...] = ()  # variables that only one side has
    table: Table | None = None  # where samples are rows

    @property
    def pictured(self) -> bool:
        """Whether samples are images."""
        return is_images(self.data)

    @cached_property
    def names(self) -> list[str]:
        if self.pictured:
            return [IMAGE]
        return series(self.data) if self.table is None else [c.name for c in self.table.columns]

    @cached_property
    def grid(self) -> np.ndarray:
        return times(self.data) if "time" in self.data.dims else np.empty(0)

    @property
    def noun(self) -> str:
        if self.pictured:
            return "images"
        return "trajectories" if self.table is None else "rows"

    def extent(self, most: int) -> str:
        """What samples are of: so many names and others, or a size."""
        if self.pictured:
            return f"{spelled(size_of(self.data))} pixels"
        return several([*self.names[:most], *(["others"] if len(self.names) > most else [])])

    @cached_property
    def network(self) -> dict[str, Any]:
        return described(self.data)

    @property
    def effective(self) -> float | None:
        """The effective sample size."""
        return (
            self.number("effective") if self.weight is None else effective_sample_size(self.weight)
        )

    @property
    def same_scenario(self) -> bool:
        """Whether the reference answers the same question, as far as a person stated it."""
        other = None if self.against is None else asked(self.against)
        if self.asked is None or other is None:
            return False
        mine, theirs = ({part.text for part in each.parts} for each in (self.asked, other))
        return mine == theirs

    @property
    def sampled(self) -> bool:
        """Whether a surrogate made the data."""
        return "surrogate_model" in self.data.attrs

    def number(self, name: str) -> float | None:
        """A diagnostic that is a number."""
        return _number(self.data.attrs.get(f"surrogate_{name}", self.found.get(name)))

    def text(self, name: str) -> str | None:
        value = self.data.attrs.get(f"surrogate_{name}", self.found.get(name))
        return value if isinstance(value, str) and value.strip() else None

    @cached_property
    def warnings(self) -> list[str]:
        listed = self.found.get("warnings")
        return [str(each) for each in listed] if isinstance(listed, list) else []

    @property
    def probability(self) -> tuple[float, float | None] | None:
        """The natural logarithm and its error."""
        return _probability(self.data)

    @property
    def true_probability(self) -> tuple[float, float | None] | None:
        """That of the reference, if it is one of the same scenario."""
        return None if self.against is None else _probability(self.against)


def facts(
    data: Data,
    against: Data | None = None,
    *,
    target: str | None = None,
    train: Data | None = None,
) -> Facts:
    """Read data, and compare them with a reference; ModelError where that cannot be.

    `target` and `train` are for tables: see `evaluation.evaluate`.
    """
    if is_table(data):
        return _table_facts(data, against, target, train)
    if is_images(data) and target is None and train is None:
        return _image_facts(data, against)
    if target is not None or train is not None:
        what = "target" if train is None else "train"
        kind = "images" if is_images(data) else "trajectories"
        raise ModelError(f"{what} is for tables, and these are {kind}; leave it out")
    few = _trajectories(data, "the data")
    whole = cast(xr.Dataset, data)
    labels = _loaded(whole[[name for name in LABELS if name in whole.variables]], "the data")
    share = normalised_weights(labels)
    other, evaluation = None, None
    apart: tuple[str, ...] = ()
    if against is not None:
        other = _trajectories(against, "the reference")
        evaluation, apart = _compared(whole, cast(xr.Dataset, against))
    verdicts = _labels(labels, "satisfied", 1)
    return Facts(
        few,
        whole.sizes["sample"],
        share,
        asked(few),
        _rules(labels, share),
        None if verdicts is None else float(np.average(verdicts, weights=share)),
        mapping(data.attrs.get("surrogate_diagnostics")),
        other,
        evaluation,
        apart,
    )


def _table_facts(data: Data, against: Data | None, target: str | None, train: Data | None) -> Facts:
    """The same of rows. A table's verdicts are columns, with a column for each rule."""
    if against is None and (target is not None or train is not None):
        what = "target" if train is None else "train"
        raise ModelError(f"{what} needs real rows to compare with: name a reference as well")
    evaluation = (
        None if against is None else evaluate(data, against, **_given(target=target, train=train))
    )
    sides = [Rows(data, "the data", least=1)]
    sides += [] if against is None else [Rows(against, "the reference")]
    columns, _ = shared(*sides)
    some = [np.arange(0, len(s.weights), -(-len(s.weights) // DRAWN)) for s in sides]
    labels = _verdicts(data)
    share = normalised_weights(labels)
    verdicts = _labels(labels, "satisfied", 1)
    return Facts(
        labels,
        samples_of(data),
        share,
        asked(cast(xr.Dataset, data)) or _told_by(labels),
        _rules(labels, share),
        None if verdicts is None else float(np.average(verdicts, weights=share)),
        mapping(data.attrs.get("surrogate_diagnostics")),
        None if against is None else xr.Dataset(attrs=dict(against.attrs)),
        evaluation,
        () if evaluation is None else evaluation.lone,
        Table(
            tuple(each.some(some) for each in columns),
            tuple(side.weights[rows] for side, rows in zip(sides, some, strict=True)),
        ),
    )


def _image_facts(data: xr.Dataset, against: Data | None) -> Facts:
    """The same of images."""
    evaluation = None if against is None else evaluate(data, against)
    labels = _loaded(data[[name for name in LABELS if name in data.variables]], "the data")
    share = normalised_weights(labels)
    verdicts = _labels(labels, "satisfied", 1)
    other = None
    if isinstance(against, xr.Dataset):
        other = _loaded(against.isel(sample=slice(PICTURES)), "the reference")
    return Facts(
        _loaded(data.isel(sample=slice(PICTURES)), "the data"),
        data.sizes["sample"],
        share,
        asked(data),
        _rules(labels, share),
        None if verdicts is None else float(np.average(verdicts, weights=share)),
        mapping(data.attrs.get("surrogate_diagnostics")),
        other,
        evaluation,
    )


def _given(**options: Any) -> dict[str, Any]:
    return {name: each for name, each in options.items() if each is not None}


def _told_by(labels: xr.Dataset) -> Asked | None:
    """What was asked of a table that was labelled by several rules: their names."""
    if "rule" not in labels.coords:
        return None
    names = [str(name) for name in labels["rule"].values]
    return Asked(" and ".join(names), tuple(Part(name) for name in names))


def _verdicts(data: Data) -> xr.Dataset:
    """The labels of rows, as those of trajectories are: over (sample,) and (sample, rule)."""
    if isinstance(data, xr.Dataset):
        own = [n for n in LABELS if n in data.variables and "kind" not in data[n].attrs]
        return _loaded(data[own], "the data")
    known = label_columns(data)
    labels = ("satisfied", "robustness")[: 2 * bool(known)]
    plain = [name for name in (*labels, "log_weight") if name in data.columns]
    made: dict[str, Any] = {n: ("sample", data[n].to_numpy()) for n in plain}
    rules = [name for name in known if name.startswith(RULE_PREFIX)]
    coords = {}
    if rules:
        found = data[rules].to_numpy(np.float64)
        unknown = np.full_like(found, np.nan)  # a table tells no margins of single rules
        made |= {
            "rule_satisfied": (("sample", "rule"), found),
            "rule_robustness": (("sample", "rule"), unknown),
        }
        coords["rule"] = np.array([name.removeprefix(RULE_PREFIX) for name in rules], dtype=object)
    return xr.Dataset(made, coords, dict(data.attrs))


def _trajectories(data: Data, who: str) -> xr.Dataset:
    """The samples that pictures need, if the data are trajectories."""
    if not isinstance(data, xr.Dataset):
        raise ModelError(
            f"{who} must be an xarray.Dataset over (sample, time), or a table like the samples"
        )
    if 0 in data.sizes.values() or not series(data):
        raise ModelError(
            f"{who} have no variables over (sample, time) that are numbers; a table becomes "
            "trajectories with --time and --id"
        )
    return _loaded(thinned(data), who)


def _loaded(data: xr.Dataset, who: str) -> xr.Dataset:
    """Values from where they are stored; a damaged file opens, and fails when it is read."""
    try:
        return data.compute()
    except MemoryError:
        raise
    except Exception as problem:
        raise ModelError(f"cannot read {who}: {problem}") from None


def _compared(data: xr.Dataset, against: xr.Dataset) -> tuple[Evaluation, tuple[str, ...]]:
    """The distances of what both sides have, and the names of what only one has."""
    mine, theirs = (
        [str(k) for k, v in side.data_vars.items() if "sample" in v.dims and k not in LABELS]
        for side in (data, against)
    )
    if not set(series(data)) & set(series(against)):
        raise ModelError(
            f"nothing to compare: the data have {', '.join(series(data))}, the reference has "
            f"{', '.join(series(against))}; name a reference of the same model"
        )
    apart = [name for name in (*mine, *theirs) if (name in mine) != (name in theirs)]
    try:
        found = evaluate(
            data.drop_vars(apart, errors="ignore"), against.drop_vars(apart, errors="ignore")
        )
    except ModelError as problem:
        grid = " (--steps, --until)" if "times" in str(problem) else ""
        raise ModelError(
            f"{problem}; compare with another reference, from surrogate reference or surrogate "
            f"simulate{grid}, or leave out --against"
        ) from None
    return found, tuple(apart)


def _labels(data: xr.Dataset, name: str, rank: int) -> np.ndarray | None:
    """A label (n,) or (n, R) as numbers; None where there is none of that shape."""
    array = data.get(name)
    dims = ("sample", "rule")[:rank]
    if array is None or set(array.dims) != set(dims) or array.dtype.kind not in "biuf":
        return None
    return np.asarray(array.transpose(*dims).values, np.float64)


def _rules(data: xr.Dataset, share: np.ndarray | None) -> tuple[Rule, ...]:
    verdicts, margins = (_labels(data, f"rule_{each}", 2) for each in ("satisfied", "robustness"))
    if verdicts is None or margins is None or "rule" not in data.coords:
        return ()
    try:
        physics = from_network(described(data))
    except FormulaError:
        physics = {}
    known = {*physics, *map(str, physics.values())}
    shares = np.average(verdicts, axis=0, weights=share)
    names = [str(name) for name in data["rule"].values]
    return tuple(
        Rule(name, float(shares[r]), margins[:, r], name in known) for r, name in enumerate(names)
    )


def _probability(data: xr.Dataset) -> tuple[float, float | None] | None:
    attrs, found = data.attrs, mapping(data.attrs.get("surrogate_diagnostics"))
    for name in ("surrogate_log_probability", "log_probability"):
        log_p = _number(attrs.get(name, found.get("log_probability")))
        if log_p is not None:
            error = attrs.get(f"{name}_error", found.get("log_probability_error"))
            return min(log_p, 0.0), _number(error)
    return None


def mapping(text: Any) -> dict[str, Any]:
    """JSON of an object, if the text is that."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except (OverflowError, TypeError):
        return None
