"""Images on the page: a contact sheet of them, and of those of a reference."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import xarray as xr

from surrogate.evaluation.result import Evaluation
from surrogate.kinds.images.compare import compare
from surrogate.kinds.images.plot import contact_sheet
from surrogate.kinds.images.values import size_of, size_text, summary
from surrogate.kinds.label_names import LABELS
from surrogate.reports import figures
from surrogate.reports.comparison import HOW_TO_READ, distance_table
from surrogate.reports.conditions import condition
from surrogate.reports.facts import Facts, Subject, loaded
from surrogate.reports.markup import Html, element, figure, section
from surrogate.reports.provenance import cost, provenance
from surrogate.reports.requirements import Requirement, requirements_in
from surrogate.reports.scenario import rules, scenario

MAX_LOADED_IMAGES = 256  # images of each dataset
MAX_SHOWN_IMAGES = 64
DISTANCES_NOTE = (
    "D is the share of the images that would have to change to turn one set into the other, by "
    "their brightness, contrast, rows, columns and random projections; the noise floor is the D "
    "that chance alone makes between two sets of these sizes."
)


@dataclass(frozen=True)
class Pictures:
    """The first images of the samples, and of a reference."""

    data: xr.Dataset
    against: xr.Dataset | None = None


def read(data: xr.Dataset, against: xr.Dataset | None) -> Facts:
    """The facts of a report about images."""
    evaluation: Evaluation | None = None
    other = None
    if against is not None:
        evaluation = compare(data, against, 0)
        other = loaded(against.isel(sample=slice(MAX_LOADED_IMAGES)), "the reference")
    labels = loaded(data[[name for name in LABELS if name in data.variables]], "the data")
    extent, samples = f"{size_text(size_of(data))} pixels", data.sizes["sample"]
    subject = Subject(
        "images", "image", extent, f"images of {extent}", (("images", f"{samples:,}", extent),)
    )
    return Facts.of(
        subject,
        samples,
        labels,
        requirements_in(data.attrs, lambda part: Requirement(str(part), condition(str(part)))),
        Pictures(loaded(data.isel(sample=slice(MAX_LOADED_IMAGES)), "the data"), other),
        attrs=data.attrs,
        against_attrs=None if against is None else against.attrs,
        against_requirements=None
        if against is None
        else requirements_in(against.attrs, lambda part: Requirement(str(part))),
        evaluation=evaluation,
    )


def sheets(facts: Facts) -> list[Html]:
    """What the images look like."""
    few = min(MAX_SHOWN_IMAGES, facts.content.data.sizes["sample"])
    caption = f"The first {few} of {facts.samples:,}." if few < facts.samples else ""
    if facts.satisfied is not None and facts.satisfied < 1:
        caption += " In a red frame: what does not meet every requirement."
    made = [
        _sheet(
            facts.content.data,
            f"Contact sheet of {summary(facts.content.data)}",
            caption.strip() or None,
        )
    ]
    if facts.content.against is not None:
        made += [
            element("h3", "The reference"),
            _sheet(
                facts.content.against,
                f"Contact sheet of the reference, {summary(facts.content.against)}",
                None,
            ),
        ]
    return section("What they look like", *made)


def _sheet(data: xr.Dataset, alt: str, caption: str | None) -> Html:
    some = data.isel(sample=slice(MAX_SHOWN_IMAGES))
    content = BytesIO()
    contact_sheet(some).save(content, format="PNG", optimize=True)
    return figure(figures.embedded("png", content.getvalue()), alt, caption)


def distances(facts: Facts) -> list[Html]:
    if facts.evaluation is None:
        return []
    return section(
        "Against the reference",
        distance_table(facts.evaluation),
        element("p", f"{DISTANCES_NOTE} {HOW_TO_READ}", class_="note"),
    )


SECTIONS = (scenario, sheets, rules, distances, cost, provenance)
