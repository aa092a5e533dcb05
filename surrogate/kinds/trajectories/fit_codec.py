"""Fitting a codec to a dataset: variables, relations between them, means and scales.

Two passes over the samples, a chunk at a time, so that memory is bounded by the chunk. The first
finds categories and conserved totals; the second the moments of every coordinate and
the ends of ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Layout
from surrogate.errors import ModelError
from surrogate.io.attributes import json_object
from surrogate.kinds.codec import Samples
from surrogate.kinds.signals import slices
from surrogate.kinds.trajectories import coordinates
from surrogate.kinds.trajectories.conservation import Law, Relation, checked_laws, solve
from surrogate.kinds.trajectories.cycles import completed
from surrogate.kinds.trajectories.rules import laws_in_rules
from surrogate.kinds.trajectories.statistics import Edges, Levels, Moments, Totals
from surrogate.kinds.trajectories.transforms import for_counts, from_text
from surrogate.kinds.trajectories.variables import (
    MAX_CATEGORIES,
    NUMBER_KINDS,
    Variable,
    read,
    sample_number,
    survey,
    words_of,
)

CHUNK_VALUES = 250_000  # numbers of one variable that are processed at a time
ALL = "*"  # in `transforms`: every variable of numbers that is not named
AUTO_TRANSFORM = "auto"  # chosen by a trial on held-out samples


@dataclass(frozen=True)
class Fit:
    """Parts of a codec; means, scales and constants (K, T) are float64, see there."""

    variables: tuple[Variable, ...]
    relations: tuple[Relation, ...]
    mean: Tensor
    scale: Tensor
    fixed: Tensor
    signals: Layout
    ignored: tuple[str, ...]
    gains: Mapping[str, float]


def fit(
    data: xr.Dataset,
    transforms: Mapping[str, str],
    laws: Sequence[Law] | None,
    chunk: int | None,
    learned: np.ndarray | None,
) -> Fit:
    """Two passes over the data, and the choice of coordinates (`coordinates`)."""
    signals, surveyed, ignored = survey(data)
    samples, steps = data.sizes["sample"], data.sizes["time"]
    if samples < 2:
        raise ModelError(
            f"{samples} trajectory is too little to learn from",
            value=samples,
            remedy="give at least 2",
        )
    if chunk is not None and chunk < 1:
        raise ModelError(
            f"chunk is a number of samples >= 1, not {chunk}",
            value=chunk,
            remedy="leave it out for a chunk that fits in memory",
        )
    rows = list(slices(samples, chunk or max(1, CHUNK_VALUES // steps)))
    variables = _with_transforms(surveyed, transforms, signals)
    variables = tuple(_with_words(data, v, rows) if v.kind == "words" else v for v in variables)
    found = laws_in_rules(data, variables, signals, rows) if laws is None else []
    relations = _relations(data, variables, transforms, laws, found)
    undecided = [
        v
        for v in variables
        if v.kind in NUMBER_KINDS
        and v.cycle is None
        and _requested_transform(v, transforms) == AUTO_TRANSFORM
    ]
    decided = coordinates.by_range(undecided, signals)
    trials = coordinates.choose(data, [v for v in undecided if v.name not in decided], learned)
    chosen = {**decided, **{name: trial.transform for name, trial in trials.items()}}
    variables = tuple(
        replace(v, transform=chosen[v.name]) if v.name in chosen else v for v in variables
    )
    gains = {name: trial.gain for name, trial in trials.items() if trial.gain > 0}
    variables, relations = _first_pass(data, variables, relations, rows)
    moments, edges, levels = _second_pass(data, variables, relations, rows)
    variables = tuple(_with_ends(v, edges[v.name], signals) for v in variables)
    variables = tuple(
        replace(v, levels=v.cycle.values if v.cycle is not None else levels[v.name].found)
        if v.name in levels
        else v
        for v in variables
    )
    mean = torch.cat([each.mean.expand(-1, steps) for each in moments])
    scale = torch.cat([each.scale.expand(-1, steps) for each in moments])
    fixed = torch.cat([each.fixed.expand(-1, steps) for each in moments])
    if not bool(fixed.isnan().any()):
        raise ModelError(
            "all trajectories are the same: there is nothing to learn from them",
            remedy="give trajectories that differ",
        )
    return Fit(variables, relations, mean, scale, fixed, signals, ignored, gains)


def values_of(
    data: xr.Dataset,
    variables: Sequence[Variable],
    relations: Sequence[Relation],
    samples: Samples,
) -> dict[str, Tensor]:
    """Every variable (n, T) or (n, 1), totals too; ModelError where a relation does not hold."""
    data = completed(data, [v.cycle for v in variables if v.cycle is not None])
    values = {v.name: read(data, v, samples) for v in variables if not v.total}
    kinds = {v.name: v.kind for v in variables}
    for relation in relations:
        totals = Totals(relation, kinds[relation.dependent] == "integer")
        found = totals.of(values, samples)
        if isinstance(relation.total, str):
            known = values.setdefault(relation.total, found[:, None])[:, 0]
        else:
            known = torch.full_like(found, relation.total)
        wrong = (found - known).abs() > totals.slack_in(values)
        if bool(wrong.any()):
            at = int(wrong.nonzero()[0, 0])
            raise ModelError(
                f"{relation} is {found[at]:g} in sample {sample_number(samples, at)}, and "
                f"{known[at]:g} in the training data",
                value=float(found[at]),
                remedy="leave such samples out, or train a model on data with this total",
            )
    return values


def _with_transforms(
    variables: Sequence[Variable], transforms: Mapping[str, str], signals: Layout
) -> tuple[Variable, ...]:
    """Variables with the requested transforms; "auto" is resolved by the first pass."""
    able = [v.name for v in variables if v.kind in NUMBER_KINDS]
    for name in transforms:
        if name not in (*able, ALL):
            raise ModelError(
                f"there is no variable {name!r} of numbers to transform",
                value=name,
                allowed=able,
            )
    made = []
    for variable in variables:
        name = variable.name
        text = _requested_transform(variable, transforms)
        if name in able and text != AUTO_TRANSFORM:
            signal = signals.find(name)
            known = (signal.low, signal.high) if signal else (-torch.inf, torch.inf)
            transform = from_text(text, name=name, integer=variable.kind == "integer", known=known)
            made.append(replace(variable, transform=transform))
        else:
            made.append(variable)
    return tuple(made)


def _requested_transform(variable: Variable, transforms: Mapping[str, str]) -> str:
    return transforms.get(variable.name, transforms.get(ALL, "identity"))


def _with_ends(variable: Variable, edges: Edges, signals: Layout) -> Variable:
    """A numeric variable with its range: that of its signal, else that of the data."""
    if variable.kind not in NUMBER_KINDS:
        return variable
    signal = signals.find(variable.name)
    low, high = edges.hard
    if signal is not None:
        low = signal.low if math.isfinite(signal.low) else low
        high = signal.high if math.isfinite(signal.high) else high
    # a variable that is never negative, or always a fraction, is taken to be so by definition
    low = 0.0 if low == -math.inf and edges.low >= 0 else low
    high = 1.0 if high == math.inf and edges.low >= 0 and edges.high <= 1 else high
    return replace(variable, low=min(low, edges.low), high=max(high, edges.high))


def _with_words(data: xr.Dataset, variable: Variable, rows: Sequence[slice]) -> Variable:
    found: set[str] = set()
    for chosen in rows:
        found |= words_of(data, variable, chosen)
        if len(found) > MAX_CATEGORIES:
            raise ModelError(
                f"{variable.name} has more than {MAX_CATEGORIES} different words, such as "
                f"{', '.join(sorted(found)[:3])}",
                remedy="drop it, or join them into fewer categories",
            )
    return replace(variable, categories=tuple(sorted(found)))


def _relations(
    data: xr.Dataset,
    variables: Sequence[Variable],
    transforms: Mapping[str, str],
    laws: Sequence[Law] | None,
    stated: Sequence[Law],
) -> tuple[Relation, ...]:
    series = [v for v in variables if v.kind in NUMBER_KINDS and not v.static]
    names = [v.name for v in series]
    if laws is None:
        known: Any = json_object(data.attrs.get("surrogate_config")).get("conservation_laws") or []
        known = [*checked_laws(known), *stated]
    else:
        known = laws
        for name in {name for law in checked_laws(laws) for name in law} - set(names):
            raise ModelError(f"a law names {name!r}, which is no series", value=name, allowed=names)
    counts = {v.name for v in series if v.kind == "integer"}
    return solve(checked_laws(known), names, counts, keep=transforms)


def _first_pass(
    data: xr.Dataset,
    variables: tuple[Variable, ...],
    relations: tuple[Relation, ...],
    rows: Sequence[slice],
) -> tuple[tuple[Variable, ...], tuple[Relation, ...]]:
    """The first pass: the conserved totals."""
    kinds = {v.name: v.kind for v in variables}
    statics = [v.name for v in variables if v.static and v.kind in NUMBER_KINDS]
    totals = [Totals(each, kinds[each.dependent] == "integer", statics) for each in relations]
    for chosen in rows if totals else []:
        values = {v.name: read(data, v, chosen) for v in variables}
        for total in totals:
            total.add(values, chosen)
    made = {v.name: v for v in variables}
    solved = []
    for total in totals:
        relation = total.resolved()
        solved.append(relation)
        if isinstance(relation.total, str) and total.whole and relation.total in made:
            # a parameter such as N is stored as a real number, but it counts something
            known = made[relation.total]
            transform = known.transform
            if known.kind == "real":
                transform = for_counts(transform)
            made[relation.total] = replace(known, kind="integer", transform=transform)
        elif isinstance(relation.total, str):
            kind = "integer" if total.whole else "real"
            made[relation.total] = Variable(relation.total, kind, static=True, total=True)
    return tuple(made.values()), tuple(solved)


def _second_pass(
    data: xr.Dataset,
    variables: Sequence[Variable],
    relations: Sequence[Relation],
    rows: Sequence[slice],
) -> tuple[list[Moments], dict[str, Edges], dict[str, Levels]]:
    """The second pass: moments of every coordinate, the ends of ranges, and few values."""
    dependent = {relation.dependent for relation in relations}
    moments = [Moments(v) for v in variables if v.name not in dependent]
    edges = {v.name: Edges() for v in variables}
    levels = {v.name: Levels() for v in variables if v.kind == "real" and not v.total}
    for chosen in rows:
        values = values_of(data, variables, relations, chosen)
        for each in moments:
            each.add(values[each.variable.name])
        for name, ends in edges.items():
            ends.add(values[name])
        for name, few in levels.items():
            few.add(values[name])
    return moments, edges, levels
