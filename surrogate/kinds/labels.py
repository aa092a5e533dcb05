"""Verdicts as labels of a dataset.

`label` adds to samples, for rules φ_1..φ_R, whether sample i satisfies them, x_i ⊨ φ_r, and by
which margin ρ(φ_r, x_i); for the rules together these are `all` and `min` over r. Observations have
neither; their log-densities add up to a log-likelihood of the sample. Data are read and judged a
bounded number of samples at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import (
    Formula,
    FormulaError,
    Layout,
    Program,
    compiled,
    conjunction,
)
from constraints.explanation import Explainer, Explanation, chunk_size
from surrogate.kinds.kind import Data, kind_of
from surrogate.kinds.signals import (
    layout_of,
    samples_of,
    slices,
    tensors_of,
)

Rules = Mapping[str, Formula] | Sequence[Formula]
Progress = Callable[[int], None]
D = TypeVar("D", xr.Dataset, pd.DataFrame, xr.Dataset | pd.DataFrame)


def _batches(
    data: Data, programs: Sequence[Program], chunk: int | None, progress: Progress | None
) -> Iterator[tuple[slice, dict[str, Tensor]]]:
    """The samples, a bounded number at a time, with the signals that the programs need."""
    layout = programs[0].layout
    if chunk is not None and chunk < 1:
        raise FormulaError(f"chunk must be a number of samples >= 1, not {chunk}", value=chunk)
    needed = set[str]().union(*(program.needed for program in programs))
    used = needed or {layout.signals[0].name}  # a formula about nothing still has a batch
    for rows in slices(samples_of(data), chunk or chunk_size(programs)):
        yield rows, tensors_of(data, layout, rows, used)
        if progress is not None:
            progress(rows.stop - rows.start)


def named(formulas: Rules) -> dict[str, Formula]:
    """Rules by name; the name of a rule without one is its text."""
    rules = dict(formulas) if isinstance(formulas, Mapping) else {str(f): f for f in formulas}
    if not rules:
        raise FormulaError("there is no rule to check", remedy="give at least one rule")
    return rules


def explanation_of(
    data: Data,
    formulas: Rules,
    end: str | None = None,
    chunk: int | None = None,
    *,
    layout: Layout | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Why the samples satisfy or violate the rules; `layout` as in `label`."""
    layout = layout or layout_of(data)
    found = Explainer(list(named(formulas).values()), layout, end)
    for _, tensors in _batches(data, found.programs, chunk, progress):
        found.add(tensors)
    return found.explanation()


def label(
    data: D,
    formulas: Rules,
    end: str | None = None,
    chunk: int | None = None,
    *,
    layout: Layout | None = None,
    programs: Mapping[str, Program] | None = None,
    progress: Progress | None = None,
) -> D:
    """A copy with `satisfied` and `robustness` for all rules together and for each of them, and
    `log_likelihood` if there are observations; rules that are only observations have no verdict.

    `layout`: of the signals, where it is not to be read off the data: the tolerance of equal real
    numbers is a share of the span that it tells. `programs`: rules that are compiled already.

    In a dataset the rules have a dimension of their own, `rule`; in a table, if there are
    several, each has a column "satisfied: <rule>".
    """
    rules = named(formulas)
    layout = layout or layout_of(data)
    ready = programs or {}
    compiled_rules = [
        ready[name] if name in ready else compiled(formula, layout, end)
        for name, formula in rules.items()
    ]
    judged = {n: own for n, own in zip(rules, compiled_rules, strict=True) if own.has_verdict}
    shape = (samples_of(data), len(judged))
    verdicts, margins = np.empty(shape, bool), np.empty(shape, np.float32)
    log_likelihood = np.zeros(shape[0])
    with torch.no_grad():
        for rows, tensors in _batches(data, compiled_rules, chunk, progress):
            for r, program in enumerate(judged.values()):
                verdicts[rows, r] = program.verdict(tensors).numpy()
                margins[rows, r] = program.robustness(tensors).numpy()
            for program in compiled_rules:
                if program.observations:
                    log_likelihood[rows] += program.log_density(tensors).sum(1).numpy()
    observes = any(program.observations for program in compiled_rules)
    own = log_likelihood if observes else None
    made = kind_of(data).labelled(data, list(judged), verdicts, margins, own)
    if isinstance(made, xr.Dataset):
        made.attrs["surrogate_constraint"] = str(conjunction(*rules.values()))
        made.attrs |= {} if end is None else {"surrogate_end": end}
    return made
