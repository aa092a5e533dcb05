"""Images on the page: a contact sheet of them, and of those of a reference."""

from __future__ import annotations

from io import BytesIO

import xarray as xr

from surrogate.kinds.images.plot import contact_sheet
from surrogate.kinds.images.values import told
from surrogate.reports import figures as pictures
from surrogate.reports.comparison import FIGURES
from surrogate.reports.facts import Facts
from surrogate.reports.markup import Html, element, figure, section, table

SHOWN = 64
DISTANCES = (
    "D is the share of the images that would have to change to turn one set into the other, by "
    "their brightness, contrast, rows, columns and random projections; the noise floor is the D "
    "that chance alone makes between two sets of these sizes."
)


def sheets(facts: Facts) -> list[Html]:
    """What the images look like."""
    few = min(SHOWN, facts.data.sizes["sample"])
    caption = f"The first {few} of {facts.samples:,}." if few < facts.samples else ""
    if facts.satisfied is not None and facts.satisfied < 1:
        caption += " In a red frame: what does not meet every requirement."
    made = [_sheet(facts.data, f"Contact sheet of {told(facts.data)}", caption.strip() or None)]
    if facts.against is not None:
        made += [
            element("h3", "The reference"),
            _sheet(facts.against, f"Contact sheet of the reference, {told(facts.against)}", None),
        ]
    return section("What they look like", *made)


def _sheet(data: xr.Dataset, alt: str, caption: str | None) -> Html:
    some = data.isel(sample=slice(SHOWN))
    content = BytesIO()
    contact_sheet(some).save(content, format="PNG", optimize=True)
    return figure(pictures.embedded("png", content.getvalue()), alt, caption)


def distances(facts: Facts) -> list[Html]:
    if facts.evaluation is None:
        return []
    return section(
        "Against the reference",
        table(facts.evaluation.rows(), ("measure", "value", "noise floor", "ratio", "")),
        element("p", f"{DISTANCES} {FIGURES}", class_="note"),
    )
