"""The facts of a report: a scenario, the share of samples that meets it, its probability, and how
the samples were made.

Common to all kinds of data; a kind adds its words (`Subject`) and what its own sections show
(`content`). Attributes may come from a stranger: see `surrogate.io.attributes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from constraints import FormulaError
from surrogate.errors import ModelError
from surrogate.evaluation.result import Evaluation
from surrogate.evaluation.verdict import Verdict
from surrogate.evaluation.weights import effective_sample_size, normalised_weights
from surrogate.io.attributes import json_object, number, simulation
from surrogate.io.rules import rules_in
from surrogate.reports.requirements import Requirements
from surrogate.reports.trust import verdict

Tile = tuple[str, str, str]  # label, figure, and what stands below it
# diagnostics by the names that files of the first release have
FORMER_NAMES = {"ess": "effective", "min_ess": "least_effective", "ancestor_ess": "families"}


@dataclass(frozen=True)
class Rule:
    """A rule, the share of the samples that meet it, and by which margins (n,)."""

    name: str
    share: float
    margins: np.ndarray
    physics: bool


@dataclass(frozen=True)
class Subject:
    """What samples are, in words: plural "rows", singular "row", extent "alcohol and sugar".

    title: of a page about samples without a scenario. tiles: figures at the top of the page.
    """

    plural: str
    singular: str
    extent: str
    title: str
    tiles: tuple[Tile, ...] = ()


@dataclass(frozen=True)
class Facts:
    """weight: of all samples, (n,), None if equal. satisfied: the share that meets all rules.

    attrs, against_attrs: attributes of the samples and of the reference. unshared: variables that
    only one of both has. content: what the sections of the kind show.
    """

    subject: Subject
    attrs: Mapping[Any, Any]
    samples: int
    weight: np.ndarray | None
    requirements: Requirements | None
    rules: tuple[Rule, ...]
    satisfied: float | None
    content: Any
    against_attrs: Mapping[Any, Any] | None = None
    evaluation: Evaluation | None = None
    unshared: tuple[str, ...] = ()
    same_scenario: bool = False

    @classmethod
    def of(
        cls,
        subject: Subject,
        samples: int,
        labels: xr.Dataset,
        requirements: Requirements | None,
        content: Any,
        *,
        attrs: Mapping[Any, Any],
        against_attrs: Mapping[Any, Any] | None = None,
        against_requirements: Requirements | None = None,
        evaluation: Evaluation | None = None,
        unshared: tuple[str, ...] = (),
    ) -> Facts:
        """From labels over (sample,) and (sample, rule)."""
        weight = normalised_weights(labels) if "sample" in labels.sizes else None
        met = _labels(labels, "satisfied", 1)
        return cls(
            subject,
            attrs,
            samples,
            weight,
            requirements,
            _rules(labels, weight),
            None if met is None else float(np.average(met, weights=weight)),
            content,
            against_attrs,
            evaluation,
            unshared,
            requirements is not None and requirements.same_as(against_requirements),
        )

    @cached_property
    def verdict(self) -> Verdict | None:
        """How far the samples may be relied on; None where there is nothing to judge by."""
        return verdict(self)

    @cached_property
    def diagnostics(self) -> dict[str, Any]:
        """How the samples were made."""
        return json_object(self.attrs.get("surrogate_diagnostics"))

    @cached_property
    def network(self) -> dict[str, Any]:
        return simulation(self.attrs)

    @property
    def effective(self) -> float | None:
        """How many independent samples these are worth: at most their number, and that of their
        distinct ancestors."""
        if self.weight is not None:
            own: float | None = effective_sample_size(self.weight)
        else:
            own = self.number("ess")
        known = (own, self.number("sample_ess"), self.number("ancestors"))
        found = [each for each in known if each is not None]
        return None if own is None else min(float(self.samples), *found)

    @property
    def sampled(self) -> bool:
        """Whether a surrogate made the data."""
        return "surrogate_model" in self.attrs

    def number(self, name: str) -> float | None:
        """A diagnostic that is a number; files may have it under its former name."""
        names = (name, FORMER_NAMES[name]) if name in FORMER_NAMES else (name,)
        known = (self.attrs.get(f"surrogate_{n}", self.diagnostics.get(n)) for n in names)
        return next((value for value in map(number, known) if value is not None), None)

    def text(self, name: str) -> str | None:
        value = self.attrs.get(f"surrogate_{name}", self.diagnostics.get(name))
        return value if isinstance(value, str) and value.strip() else None

    @cached_property
    def warnings(self) -> list[str]:
        listed = self.diagnostics.get("warnings")
        return [str(each) for each in listed] if isinstance(listed, list) else []

    @cached_property
    def degenerate(self) -> list[str]:
        """Why the samples carry no information, as sentences; empty if they do."""
        listed = self.diagnostics.get("degenerate")
        return [str(each) for each in listed] if isinstance(listed, list) else []

    @property
    def probability(self) -> tuple[float, float | None] | None:
        """The natural logarithm and its error."""
        return _probability(self.attrs)

    @property
    def evidence(self) -> tuple[float, float | None] | None:
        """The log evidence of observations, or that of these and the scenario, and its error."""
        found = json_object(self.attrs.get("surrogate_diagnostics"))
        log_evidence = number(found.get("log_probability"))
        if log_evidence is None or found.get("quantity", "probability") == "probability":
            return None
        return log_evidence, number(found.get("log_probability_error"))

    @property
    def true_probability(self) -> tuple[float, float | None] | None:
        """That of the reference."""
        return None if self.against_attrs is None else _probability(self.against_attrs)


def loaded(data: xr.Dataset, who: str) -> xr.Dataset:
    """Values from where they are stored; a damaged file opens, and fails when it is read."""
    try:
        return data.compute()
    except MemoryError:
        raise
    except Exception as problem:
        raise ModelError(f"cannot read {who}: {problem}") from None


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
        physics = rules_in(data.attrs)
    except FormulaError:
        physics = {}
    known = {*physics, *map(str, physics.values())}
    shares = np.average(verdicts, axis=0, weights=share)
    names = [str(name) for name in data["rule"].values]
    return tuple(
        Rule(name, float(shares[r]), margins[:, r], name in known) for r, name in enumerate(names)
    )


def _probability(attrs: Mapping[Any, Any]) -> tuple[float, float | None] | None:
    found = json_object(attrs.get("surrogate_diagnostics"))
    if found.get("quantity", "probability") != "probability":
        return None  # an evidence is no probability
    for name in ("surrogate_log_probability", "log_probability"):
        log_p = number(attrs.get(name, found.get("log_probability")))
        if log_p is not None:
            error = attrs.get(f"{name}_error", found.get("log_probability_error"))
            return min(log_p, 0.0), number(error)
    return None
