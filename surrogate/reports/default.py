"""The page of a kind that brings no sections of its own: its plot, and the table of distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import xarray as xr

from surrogate.evaluation.result import Evaluation
from surrogate.reports import figures
from surrogate.reports.comparison import distances
from surrogate.reports.conditions import condition
from surrogate.reports.facts import Facts, Subject
from surrogate.reports.markup import Html, figure, section
from surrogate.reports.provenance import cost, provenance
from surrogate.reports.requirements import Requirement, requirements_in
from surrogate.reports.scenario import rules, scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Named(Protocol):
    """What a page needs to know of a kind."""

    name: Any
    singular: Any
    dimensions: Any


def read(
    kind: Named, data: Any, against: Any, drawing: Figure, evaluation: Evaluation | None
) -> Facts:
    """What a page tells of samples of any kind, whose labels are variables of a dataset."""
    labels = data if isinstance(data, xr.Dataset) else xr.Dataset()
    attrs, other = (dict(getattr(each, "attrs", {})) for each in (data, against))
    samples = int(labels.sizes.get("sample", 0))
    subject = Subject(
        kind.name,
        kind.singular,
        kind.dimensions,
        kind.name,
        ((kind.name, f"{samples:,}", kind.dimensions),),
    )
    return Facts.of(
        subject,
        samples,
        labels,
        requirements_in(attrs, lambda part: Requirement(str(part), condition(str(part)))),
        drawing,
        attrs=attrs,
        against_attrs=None if against is None else other,
        evaluation=evaluation,
    )


def drawing(facts: Facts) -> list[Html]:
    """The plot of the kind."""
    source = figures.drawn(lambda: facts.content)
    return section("The samples", figure(source, f"{facts.samples:,} {facts.subject.plural}"))


SECTIONS = (scenario, drawing, rules, distances, cost, provenance)
