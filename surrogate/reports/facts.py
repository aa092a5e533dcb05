"""What data tell about themselves: a scenario and who meets it, its probability, how it was found.

Attributes may come from a stranger: what is not of the kind that it should be counts as absent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from constraints import FormulaError
from constraints.rules import from_network
from surrogate.contents import LABELS, described
from surrogate.distances import effective
from surrogate.drawn import Asked, asked
from surrogate.errors import ModelError
from surrogate.evaluation import Evaluation, evaluate
from surrogate.plots import series, thinned, times, weights


@dataclass(frozen=True)
class Rule:
    """A rule, the share of the samples that meet it, and by which margins (n,)."""

    name: str
    share: float
    margins: np.ndarray
    physics: bool


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

    @cached_property
    def names(self) -> list[str]:
        return series(self.data)

    @cached_property
    def grid(self) -> np.ndarray:
        return times(self.data)

    @cached_property
    def network(self) -> dict[str, Any]:
        return described(self.data)

    @property
    def worth(self) -> float | None:
        """How many independent samples these are worth."""
        return self.number("effective") if self.weight is None else effective(self.weight)

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


def facts(data: xr.Dataset, against: xr.Dataset | None = None) -> Facts:
    """Read data, and compare them with a reference; ModelError where that cannot be."""
    few = _trajectories(data, "the data")
    labels = _loaded(data[[name for name in LABELS if name in data.variables]], "the data")
    share = weights(labels)
    other, evaluation = None, None
    apart: tuple[str, ...] = ()
    if against is not None:
        other = _trajectories(against, "the reference")
        evaluation, apart = _compared(data, against)
    verdicts = _labels(labels, "satisfied", 1)
    return Facts(
        few,
        data.sizes["sample"],
        share,
        asked(few),
        _rules(labels, share),
        None if verdicts is None else float(np.average(verdicts, weights=share)),
        mapping(data.attrs.get("surrogate_diagnostics")),
        other,
        evaluation,
        apart,
    )


def _trajectories(data: xr.Dataset, who: str) -> xr.Dataset:
    """The samples that pictures need, if the data are trajectories."""
    if not isinstance(data, xr.Dataset):
        raise ModelError(f"{who} must be an xarray.Dataset over (sample, time)")
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
