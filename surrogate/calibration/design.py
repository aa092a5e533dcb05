"""The design of a calibration: what is observed of each truth, and which terms of it are ranked.

A design holds the statements that observed data would make, with any numbers
(`kinds.measurements`); at a truth each becomes an observation of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from constraints import Formula, FormulaError, Layout, Program, compiled, conjunction, parse
from constraints.ast.formulas import Compare
from constraints.ast.terms import At, Name, Term
from constraints.ast.walk import descend
from constraints.compile.names import with_explicit_steps
from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds import Kind
from surrogate.kinds.measurements import Measurements, Signals, as_observation, values_program
from surrogate.kinds.observed import Expected

DEFAULT_STEPS = 4  # at which series are observed, evenly spread within the grid
RANKED_STEPS = 3  # at which each series is ranked, of those that are not observed exactly
MAX_DEFAULT_QUANTITIES = 24
LOG_LIKELIHOOD = "log likelihood"


@dataclass(frozen=True)
class Design:
    """What is measured of a sample, and the texts of terms that are ranked."""

    layout: Layout
    measurements: Measurements
    quantities: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def noisy(self) -> bool:
        """Whether some number is observed with noise, so that there is a likelihood."""
        return bool(self.measurements.noisy)

    @property
    def ranked(self) -> tuple[str, ...]:
        """Names of what is ranked: the quantities, and the likelihood where there is one."""
        return (*self.quantities, LOG_LIKELIHOOD) if self.noisy else self.quantities

    @cached_property
    def _terms(self) -> Program:
        terms = [term_in(text, self.layout) for text in self.quantities]
        return values_program([as_observation(each) for each in terms], self.layout)

    def values(self, signals: Signals, observed: Mapping[str, Formula]) -> np.ndarray:
        """What is ranked (N, Q) at samples, given what was observed."""
        columns = [each[:, 0] for each in self._terms.parameters(signals)]
        if self.noisy:
            columns.append(log_likelihood(observed, self.layout, signals))
        return torch.stack(columns, 1).numpy()


def log_likelihood(observed: Mapping[str, Formula], layout: Layout, signals: Signals) -> Tensor:
    """log p(y | x) (N,) of the observations with noise at samples."""
    noisy = Measurements(observed, layout).noisy
    return compiled(conjunction(*noisy), layout).log_density(signals).sum(1)


def design(
    kind: Kind,
    layout: Layout,
    options: ObservationOptions,
    *,
    like: Any = None,
    given: Sequence[str] = (),
    steps: Sequence[int] = (),
    quantities: Sequence[str] = (),
) -> Design:
    """What is observed, by options as data are read with, and what is ranked.

    like: data whose columns and times are observed. Without them the columns are `given`, by
    default those that the distributions name, else all series, or every other column; series are
    observed at `steps`, by default four of them, or as `upto` and `every` choose them.
    """
    numbers = [each for each in layout.signals if each.kind in ("series", "column")]
    if not numbers:
        raise ModelError(
            f"{kind.name} have no numbers to observe", remedy="there is no calibration"
        )
    if like is not None and (given or len(steps)):
        name = "given" if given else "steps_observed"
        raise ModelError(
            "the data to be like say already what is observed, and at which steps",
            value=given or steps,
            remedy=("leave out ", Setting(name)),
        )
    data = _expected(layout, options, given, steps) if like is None else like
    found = kind.observed(data, layout, options)
    measurements = Measurements(found.statements, layout)
    texts = tuple(quantities) or _unobserved(layout, measurements.exact)
    if not texts and not measurements.noisy:
        raise ModelError(
            "everything is observed exactly: nothing is left to rank",
            remedy=("observe less with ", Setting("given", "A,B"), ", or with noise"),
        )
    for text in texts:
        try:
            values_program([as_observation(term_in(text, layout))], layout)
        except FormulaError as problem:
            raise problem.at(f"quantity {text!r}") from None
    return Design(layout, measurements, tuple(dict.fromkeys(texts)), found.notes)


def term_in(text: str, layout: Layout) -> Term:
    """A term of the language, such as max(I)."""
    read = with_explicit_steps(parse(f"{text} = 0"), layout)
    if not isinstance(read, Compare) or len(read.terms) != 2:
        raise ModelError(
            f"{text!r} is no quantity", value=text, remedy="write a term: I(15), max(I), beta/gamma"
        )
    return read.terms[0]


def _expected(
    layout: Layout, options: ObservationOptions, given: Sequence[str], steps: Sequence[int]
) -> Expected:
    series = [each.name for each in layout.signals if each.kind == "series"]
    columns = [each.name for each in layout.signals if each.kind == "column"]
    known, mapped = [*series, *columns], [*(options.columns or {})]
    for name in given:
        if name not in [*known, *mapped]:
            raise ModelError(f"the model has no {name!r} to observe", value=name, allowed=known)
    if given:
        chosen = [*given, *mapped]
    elif mapped or options.noise:  # which say what they are about
        chosen = [*(series or columns), *mapped]
    else:
        chosen = series or columns[::2]
    if not series:
        return Expected(tuple(dict.fromkeys(chosen)))
    for step in steps:
        if not 0 <= step < layout.steps:
            raise ModelError(
                f"there is no step {step}",
                value=step,
                allowed=[f"0 to {layout.steps - 1}"],
                remedy=("choose others: ", Setting("steps_observed")),
            )
    if not len(steps) and options.upto is None and options.every == 1:
        even = np.linspace(0, layout.steps - 1, DEFAULT_STEPS + 2).round()[1:-1]
        steps = np.unique(even).astype(int).tolist()
    at = steps if len(steps) else range(layout.steps)
    return Expected(tuple(dict.fromkeys(chosen)), tuple(int(t) for t in at), tuple(columns))


def _unobserved(layout: Layout, exact: Sequence[Compare]) -> tuple[str, ...]:
    """Texts of what is ranked by default: numbers that are not observed exactly, series at a few
    steps, and their maxima."""
    nodes = [node for each in exact for node in descend(each)]
    pinned = {
        (node.series.name, node.step.offset)
        for node in nodes
        if isinstance(node, At) and isinstance(node.series, Name)
    }
    fixed = {node.name for node in nodes if isinstance(node, Name)}
    found = list[str]()
    for signal in layout.signals:
        name = str(Name(signal.name))
        if signal.kind == "column" and signal.name not in fixed and not signal.optional:
            found.append(name)
        if signal.kind == "series":
            free = [t for t in range(layout.steps) if (signal.name, t) not in pinned]
            places = np.linspace(0, len(free) - 1, RANKED_STEPS + 2).round()[1:-1]
            found += [f"{name}({free[int(k)]})" for k in np.unique(places)] if free else []
            found += [f"max({name})"] if free else []
    return tuple(found[:MAX_DEFAULT_QUANTITIES])
