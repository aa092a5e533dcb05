"""Whether samples of a scenario and their reference are comparable.

Samples given φ have the law p(x | φ). Reference data that do not all satisfy φ have another, so
distances between the two measure the scenario, not the model. The samples carry φ in their
attributes; the share of the reference that satisfies it is reported with the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from constraints import FormulaError, Layout, has_verdict, parse
from constraints.explanation import percent
from surrogate.evaluation.result import Evaluation, Finding, Row
from surrogate.evaluation.verdict import Reason
from surrogate.evaluation.weights import normalised_weights
from surrogate.kinds.kind import Data
from surrogate.kinds.labels import label
from surrogate.kinds.signals import layout_of
from surrogate.reports.requirements import Requirement, requirements_in

MIN_COMPARABLE_SHARE = 0.99  # of the reference, that satisfies the scenario


@dataclass(frozen=True)
class ScenarioShare(Finding):
    """The rules that samples satisfy, and the share of the reference that does; None: unknown."""

    rules: tuple[str, ...]
    share: float | None

    @property
    def sentence(self) -> str:
        """Why the two are not comparable."""
        rules = " and ".join(self.rules)
        if self.share is None:
            return f"The samples satisfy {rules}, which cannot be judged in the reference."
        return (
            f"The samples satisfy {rules}, and {percent(self.share)} of the reference: the two are "
            "not comparable."
        )

    def values(self) -> Mapping[str, Any]:
        return {"scenario": list(self.rules), "scenario_share": self.share}

    def rows(self) -> Iterable[Row]:
        shown = "unknown" if self.share is None else percent(self.share)
        return [("scenario in the reference", shown, "", "", "not comparable")]

    def reasons(self) -> Iterable[Reason]:
        return [Reason("care", self.sentence)]


def with_scenario_share(found: Evaluation, data: Data, against: Data) -> Evaluation:
    """The comparison, with a warning where the reference does not satisfy the samples' scenario."""
    share = scenario_share(data, against)
    return found if share is None else replace(found, findings=(*found.findings, share))


def scenario_share(data: Data, against: Data) -> ScenarioShare | None:
    """None where the samples have no scenario, or the reference satisfies it, too."""
    stated = requirements_in(data.attrs, lambda part: Requirement(str(part)))
    if stated is None or "instance" in getattr(data, "sizes", {}):
        return None
    # observations have no verdict, so no data show whether they are given what was observed
    rules = tuple(part.text for part in stated.parts if _has_verdict(part.text))
    if not rules:
        return None
    if "surrogate_diagnostics" not in data.attrs and not _satisfy(data, rules):
        return None  # judged by the rules, not sampled given them
    try:
        share = _share(data, against, rules)
    except FormulaError:  # it names what the reference does not have
        return ScenarioShare(rules, None)
    return None if share >= MIN_COMPARABLE_SHARE else ScenarioShare(rules, share)


def _has_verdict(rule: str) -> bool:
    try:
        return has_verdict(parse(rule))
    except FormulaError:  # of another version, or by a stranger
        return True


def _satisfy(data: Data, rules: tuple[str, ...]) -> bool:
    try:
        return _share(data, data, rules) >= MIN_COMPARABLE_SHARE
    except FormulaError:
        return False


def reference_layout(data: Data, against: Data) -> Layout:
    """The layout of the reference; steps without dates have those of the samples."""
    mine, theirs = layout_of(data), layout_of(against)
    if mine.dates and not theirs.dates and mine.steps == theirs.steps:
        return replace(theirs, dates=mine.dates)
    return theirs


def _share(data: Data, against: Data, rules: tuple[str, ...]) -> float:
    """The share of the reference that satisfies the rules."""
    layout, end = reference_layout(data, against), data.attrs.get("surrogate_end")
    judged: Any = label(against, [parse(rule) for rule in rules], end, layout=layout)
    weight = normalised_weights(against) if isinstance(against, xr.Dataset) else None
    return float(np.average(np.asarray(judged["satisfied"], np.float64), weights=weight))
