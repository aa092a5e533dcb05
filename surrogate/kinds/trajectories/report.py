"""Report on trajectories: fan charts, marginals at single times, correlations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import xarray as xr

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.evaluation.result import Evaluation
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.trajectories import figures as own
from surrogate.kinds.trajectories.align import GridError
from surrogate.kinds.trajectories.compare import compare
from surrogate.kinds.trajectories.observed_points import ObservedPoints
from surrogate.kinds.trajectories.parameters import parameters
from surrogate.kinds.trajectories.plot import series, thinned, times
from surrogate.kinds.trajectories.predictive import Check, checks, predictive
from surrogate.kinds.trajectories.requirements import (
    Mark,
    MarkedRequirement,
    marks_of,
    requirements,
)
from surrogate.kinds.trajectories.wording import requirement
from surrogate.reports import figures
from surrogate.reports.comparison import HOW_TO_READ, distance_table, unshared_note
from surrogate.reports.facts import Facts, Subject, loaded
from surrogate.reports.markup import Html, element, figure, section
from surrogate.reports.provenance import cost, provenance
from surrogate.reports.scenario import MAX_RULES, rules, scenario
from surrogate.reports.wording import moment, several, shortened, stamp

MAX_SHOWN_VARIABLES = 12
MARGINALS_CAPTION = "Each panel shows how the values are spread at one time."
MARGINALS_AGAINST_CAPTION = (
    "Filled: these samples; outline: the reference. D is the share of the samples that would have "
    "to move to turn one into the other; noise is the D that chance alone makes between two sets "
    "of the truth of these sizes."
)
HEATMAP_CAPTION = (
    "Pale green: as close as two sets of the truth are to each other. Yellow to red: further apart "
    "than chance explains. Blank: all values are the same in both."
)
CORRELATIONS_CAPTION = (
    "Each cell compares two variables at two times (each block runs from the first time to the "
    "last). Red: they rise and fall together; blue: one rises when the other falls."
)


def read(
    data: xr.Dataset,
    against: xr.Dataset | None,
    observed: Any = None,
    observing: Mapping[str, Any] = MappingProxyType({}),
) -> Facts:
    """The facts of a page about trajectories; ModelError where they cannot be compared. `observed`:
    data to check predictions against, read by the fields `observing` of ObservationOptions."""
    few = _subset(data, "the data")
    labels = loaded(data[[name for name in LABELS if name in data.variables]], "the data")
    other, evaluation = None, None
    unshared: tuple[str, ...] = ()
    if against is not None:
        other = _subset(against, "the reference")
        evaluation, unshared = _compared(data, against)
    found, names, grid = requirements(few), series(few), times(few)
    if found is not None:
        parts = (
            replace(part, words=requirement(part, grid))
            if isinstance(part, MarkedRequirement)
            else part
            for part in found.parts
        )
        found = replace(found, parts=tuple(parts))
    span = f"{len(grid)} steps, time {stamp(grid, 0)} to {stamp(grid, len(grid) - 1)}"
    points, found_checks = None, list[Check]()
    if observed is not None:
        found_checks = checks(data, observed, observing)
        points = ObservedPoints.of(
            data, observed, observing.get("columns") or {}, observing.get("time")
        )
    samples = data.sizes["sample"]
    others = ["others"] if len(names) > MAX_SHOWN_VARIABLES else []
    subject = Subject(
        "trajectories",
        "trajectory",
        several([*names[:MAX_SHOWN_VARIABLES], *others]),
        several(names[:6]),
        (("trajectories", f"{samples:,}", span),),
    )
    return Facts.of(
        subject,
        samples,
        labels,
        found,
        own.Series(few, names, grid, marks_of(found), other, evaluation, points, found_checks),
        attrs=data.attrs,
        against_attrs=None if against is None else against.attrs,
        against_requirements=None if other is None else requirements(other),
        evaluation=evaluation,
        unshared=unshared,
    )


def _subset(data: xr.Dataset, who: str) -> xr.Dataset:
    """The samples that figures need."""
    if 0 in data.sizes.values() or not series(data):
        raise ModelError(
            f"{who} have no variables over (sample, time) that are numbers",
            remedy=(
                "a table becomes trajectories with ",
                Action(python="surrogate.kinds.trajectories.from_table", command="--time and --id"),
            ),
        )
    return loaded(thinned(data), who)


def _compared(data: xr.Dataset, against: xr.Dataset) -> tuple[Evaluation, tuple[str, ...]]:
    """The distances of shared variables, and the names of those that only one dataset has."""
    mine, theirs = (
        [str(k) for k, v in side.data_vars.items() if "sample" in v.dims and k not in LABELS]
        for side in (data, against)
    )
    if not set(series(data)) & set(series(against)):
        raise ModelError(
            f"nothing to compare: the data have {', '.join(series(data))}, the reference has "
            f"{', '.join(series(against))}",
            remedy="name a reference of the same model",
        )
    unshared = [name for name in (*mine, *theirs) if (name in mine) != (name in theirs)]
    left, right = (side.drop_vars(unshared, errors="ignore") for side in (data, against))
    try:
        return compare(left, right, seed=0), tuple(unshared)
    except GridError as problem:
        raise GridError(
            problem.problem,
            remedy=(
                "make a reference with the same times: ",
                Action(
                    python="simulate(..., times=data.time)",
                    command="surrogate simulate --points N --until T",
                ),
            ),
        ) from None


FAN_CAPTION = "Line: median. Dark band: half of the trajectories. Light band: nine in ten."
MARK_CAPTIONS: tuple[tuple[str, Callable[[Mark], bool]], ...] = (
    (" Dots: required values.", lambda mark: mark.value and mark.kind != "either"),
    (" Open dots: one of them is required.", lambda mark: mark.kind == "either"),
    (" Shaded: forbidden.", lambda mark: mark.kind == "every" and not mark.value),
    (" Dotted line: to be reached at some time.", lambda mark: mark.kind == "some"),
)


def trajectories(facts: Facts) -> list[Html]:
    marks = facts.content.marks
    shown = facts.content.names[:MAX_SHOWN_VARIABLES]
    cards = []
    for name in shown:
        bound = list(_words(facts, name))
        alt = f"Fan chart of {name} over time: median and bands of {facts.samples:,} trajectories"
        alt += f"; required: {'; '.join(bound)}" if bound else ""
        cards.append(figure(figures.drawn(own.fan, facts.content, name), shortened(alt)))
    caption = FAN_CAPTION
    if facts.weight is not None:
        caption += " Trajectories count by their weight."
    if facts.content.against is not None:
        caption += " Dashed: median and nine in ten of the reference."
    if facts.content.observed is not None:
        caption += " Points: observed; hollow ones were not conditioned on."
    caption += "".join(text for text, holds in MARK_CAPTIONS if any(map(holds, marks)))
    if len(facts.content.names) > MAX_SHOWN_VARIABLES:
        caption += (
            f" The first {MAX_SHOWN_VARIABLES} of {len(facts.content.names)} variables are shown."
        )
    parts = facts.requirements.parts if facts.requirements else ()
    undrawn = [
        part.text for part in parts if not (isinstance(part, MarkedRequirement) and part.marks)
    ]
    rest = []
    if undrawn:
        rest = [
            element("p", "Required too, but not to be drawn over time:", class_="note"),
            element("pre", "\n".join(shortened(each) for each in undrawn[:MAX_RULES])),
        ]
    return section(
        "How it unfolds",
        element("div", cards, class_="fans"),
        element("p", caption, class_="note"),
        *rest,
    )


def _words(facts: Facts, name: str) -> Iterator[str]:
    for part in facts.requirements.parts if facts.requirements is not None else ():
        marks = part.marks if isinstance(part, MarkedRequirement) else ()
        if part.words and any(mark.name == name for mark in marks):
            yield part.words


def marginals(facts: Facts) -> list[Html]:
    """Histograms; with a reference, also the distances from it."""
    marks = facts.content.marks
    steps = own.shown_steps(len(facts.content.grid), marks)
    made: list[Html] = []
    for name in facts.content.names[:MAX_SHOWN_VARIABLES]:
        at = several([moment(facts.content.grid, step) for step in steps])
        alt = f"Histograms of {name} at {at}"
        alt += "" if facts.evaluation is None else ", with the reference as an outline"
        source = figures.drawn(own.marginals, facts.content, name, steps)
        made.append(figure(source, shortened(alt), class_="wide"))
    if facts.evaluation is None:
        return section(
            "Values at single times", *made, element("p", MARGINALS_CAPTION, class_="note")
        )
    made.append(element("p", MARGINALS_AGAINST_CAPTION, class_="note"))
    return section("Against the reference", *made, *_distances(facts, facts.evaluation))


def _distances(facts: Facts, found: Evaluation) -> list[Html]:
    made: list[Html] = []
    if own.over_time(facts.content):
        furthest = max(found.variables, key=lambda each: each.max.value).name
        alt = f"Heat map of the distance over its noise by variable and time; most in {furthest}"
        made += [
            element("h3", "Where and when they differ"),
            figure(
                figures.drawn(own.distance_heatmap, facts.content),
                shortened(alt),
                HEATMAP_CAPTION,
                "wide",
            ),
        ]
    made += [
        element("h3", "In figures"),
        distance_table(found),
        element("p", HOW_TO_READ, class_="note"),
    ]
    made += unshared_note(facts)
    return made


def correlations(facts: Facts) -> list[Html]:
    if len(facts.content.names) * len(facts.content.grid) < 2 or facts.samples < 2:
        return []
    caption, found = CORRELATIONS_CAPTION, facts.evaluation
    if found is not None and found.correlation is not None:
        value, floor, ratio = found.correlation.cells()
        caption += f" Mean difference {value}, noise {floor}: {ratio} times the noise."
    alt = f"Correlations between {several(facts.content.names[:MAX_SHOWN_VARIABLES])} over time"
    alt += "" if facts.content.against is None else ": samples, reference and their difference"
    source = figures.drawn(own.correlations, facts.content)
    class_ = None if facts.content.against is None else "wide"
    return section("What goes together", figure(source, shortened(alt), caption, class_))


SECTIONS = (
    scenario,
    trajectories,
    predictive,
    parameters,
    rules,
    marginals,
    correlations,
    cost,
    provenance,
)
