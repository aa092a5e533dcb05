"""Comparing, plotting and reporting data of any kind: dispatch to the kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from constraints.errors import Setting, nearest
from surrogate import kinds as package  # formulas load torch: only where needed
from surrogate.errors import ModelError, whole_number
from surrogate.evaluation.result import Evaluation
from surrogate.evaluation.summary import summary as summarised
from surrogate.io.model_folder import write_bytes
from surrogate.kinds import Kind, kind_of, kinds
from surrogate.kinds.label_names import LABELS
from surrogate.reports.facts import Facts
from surrogate.reports.page import page


def evaluate(data: Any, against: Any, *, seed: int = 0, **options: Any) -> Evaluation:
    """Compare samples with reference data of the same kind, beside noise floors.

    `log_weight` of either side is honoured: histograms and moments are weighted, and the floor is
    that of their effective sample size. Options are the kind's: for tables, `target` names a column
    to predict on real rows by what learns from the samples, and `train` gives the rows that the
    model learned from, if they are not the reference: whether samples repeat them is measured.
    Where samples satisfy a scenario that the reference does not, `scenario_share` says how much of
    it does, and the verdict that the two are not comparable.
    """
    seed = whole_number(seed, "seed")
    kind = common_kind(data, against)
    check_options(kind, options, "compare_options")
    return _qualified(kind.compare(data, against, seed, **options), data, against)


def _qualified(found: Evaluation, data: Any, against: Any) -> Evaluation:
    """The comparison, with a warning where the samples' scenario does not hold in the reference."""
    return package.scenario_share.with_scenario_share(found, data, against)


def plot(
    data: Any, against: Any = None, observed: Any = None, ax: Any = None, **options: Any
) -> Any:
    """Plot samples: a fan chart of trajectories, histograms of columns, a contact sheet of images.

    against: a second dataset of the same kind. observed: points over a fan chart, a DataFrame or
    Dataset with a `time`. ax: Axes to plot on. Options are the kind's: `variables`, `trajectories`,
    `constraints` (trajectories), `columns` (rows), `captions` (images), and `title`.
    Returns matplotlib Axes, or an array of them if there are several panels.
    """
    kind = kind_of(data) if against is None else common_kind(data, against)
    check_options(kind, options, "plot_options")
    return kind.plot(data, against, observed, ax, **options)


def report(
    data: Any,
    path: str | Path,
    against: Any = None,
    *,
    title: str | None = None,
    force: bool = False,
    **options: Any,
) -> Path:
    """Write one self-contained HTML page about samples, compared with a reference if one is given.

    Options are those of `evaluate`; of trajectories also `observed`, data to draw and to check
    predictions against, and `observing`, how they are read (`columns`, `noise`, `time`) where the
    samples do not tell. An existing file is kept unless `force` is true.
    """
    target = Path(path)
    if target.exists() and not force:
        raise ModelError(f"{str(path)!r} exists", value=target, remedy=Setting("force", True))
    kind, facts = report_facts(data, against, **options)
    content = page(facts, kind.report_sections(), title)
    write_bytes(target, content.encode("utf-8", "replace"))
    return target


def summary(data: Any) -> pd.DataFrame:
    """Mean, deviation and quantiles (q2.5 to q97.5) of every number that samples hold: a row for
    each parameter or column, and for each series at each time. Weights of samples are honoured."""
    kind_of(data)  # which refuses what is no data
    return summarised(data, LABELS)


def report_facts(data: Any, against: Any = None, **options: Any) -> tuple[Kind, Facts]:
    """What a page tells of samples, and their kind."""
    kind = kind_of(data) if against is None else common_kind(data, against)
    check_options(kind, options, "compare_options", "report_options")
    facts = kind.report_facts(data, against, **options)
    if facts.evaluation is not None:
        facts = replace(facts, evaluation=_qualified(facts.evaluation, data, against))
    return kind, facts


def common_kind(data: Any, against: Any) -> Kind:
    """The kind of both; ModelError if they are of two."""
    kind, other = kind_of(data), kind_of(against)
    if kind is not other:
        raise ModelError(
            f"the samples are {kind.name}, the reference are {other.name}",
            value=other.name,
            remedy="give data of one kind",
        )
    return kind


def check_options(kind: Kind, given: Iterable[str], *facets: str) -> None:
    """Refuse options that the kind does not have, by name; `facets`: where kinds declare them."""
    names = [name for facet in facets for name in getattr(kind, facet)]
    for name in given:
        if name in names:
            continue
        owners = [
            each.name for each in kinds() if any(name in getattr(each, facet) for facet in facets)
        ]
        if owners:
            raise ModelError(
                f"{name} is for {' and '.join(owners)}, and these are {kind.name}",
                value=name,
                allowed=names,
                remedy="leave it out",
            )
        near = nearest(name, names)
        raise ModelError(
            f"unknown option {name!r}",
            value=name,
            allowed=names,
            remedy=f"did you mean {near!r}?" if near else (),
        )
