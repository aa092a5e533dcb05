"""Rules of training data: those declared are checked, those found may be refused.

A declared rule is a formula that all data obey; a comparison of series without a quantifier is
meant at every step. Before anything is learned, its names must be those of the data, the declared
rules must not contradict each other, and no sample may break one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, Layout, Program, compiled, conjunction, parse
from constraints.compile.names import with_explicit_steps
from constraints.errors import Action, FormulaError
from constraints.explanation import chunk_size
from constraints.physics.linear_laws import LinearLaw, every_step, linear_laws
from constraints.prove.contradictions import refuse_impossible
from surrogate.errors import ModelError
from surrogate.io.rules import parsed, rules_in, stated_in
from surrogate.kinds.found_rules import NONE_UNPROVED, FoundRule, Unproved
from surrogate.kinds.rule_options import Rule, RuleOptions, StatedRules, Where
from surrogate.kinds.signals import layout_of, samples_of, slices, tensors_of


def rules_from(where: Where, layout: Layout, option: str = "where") -> dict[str, Formula]:
    """Rules by name, from a formula, a text, or a list or dict of either; the name of a rule
    without one is its text."""
    if isinstance(where, Mapping):
        named = {str(name): _formula(rule, layout) for name, rule in where.items()}
    elif isinstance(where, (Formula, str)):
        only = _formula(where, layout)
        named = {str(only): only}
    elif isinstance(where, Sequence):
        named = {str(rule): rule for rule in (_formula(each, layout) for each in where)}
    else:
        raise ModelError(
            f"{option} cannot be of type {type(where).__name__}",
            value=where,
            allowed=["a formula", "a text", "a list of either", "a dict of either"],
        )
    if not named:
        remedy = "leave it out for plain samples" if option == "where" else "leave it out"
        raise ModelError(f"{option} holds no rule", value=where, remedy=remedy)
    return named


def _formula(rule: Rule, layout: Layout) -> Formula:
    if isinstance(rule, Formula):
        return rule
    if isinstance(rule, str):
        return with_explicit_steps(parse(rule), layout)
    raise ModelError(
        f"a rule cannot be of type {type(rule).__name__}",
        value=rule,
        allowed=["a formula", "a text"],
    )


def stated_rules(
    data: xr.Dataset,
    options: RuleOptions,
    found: Sequence[FoundRule],
    unproved: Unproved = NONE_UNPROVED,
) -> StatedRules:
    """The rules that samples shall obey besides those of a network.

    `found`: those that a search found; `unproved`: those that it would have found in more data,
    which are only reported. Rules that the data carry already are kept if the data obey
    them.
    """
    layout = layout_of(data)
    declared: dict[str, Formula] = {}
    if options.declared is not None:
        given = rules_from(options.declared, layout, "rules")
        _check_statements(given)
        declared = {name: every_step(rule, layout) for name, rule in given.items()}
        _check_possible(declared, data, layout)
        for name, rule in declared.items():
            _check_obeyed(name, rule, data, layout)
    carried = {
        name: rule
        for name, rule in parsed(stated_in(data.attrs)).items()
        if _holds(rule, data, layout)
    }
    known = carried | {each.name: each.formula for each in found}
    for name in options.refused:
        if name not in known:
            raise ModelError(
                f"there is no found rule {name!r} to refuse",
                value=name,
                allowed=known,
                remedy=() if known else "leave the option out",
            )
    same = set(declared.values())
    kept = {
        name: rule
        for name, rule in known.items()
        if name not in (*options.refused, *declared) and rule not in same
    }
    stated = [law for rule in (*declared.values(), *known.values()) for law in _laws(rule, layout)]
    likely = [
        _declarable(each, layout)
        for each in unproved.rules
        if not all(law in stated for law in _laws(each.formula, layout))
    ]
    return StatedRules(declared, kept, likely, unproved.values)


def _laws(rule: Formula, layout: Layout) -> Sequence[LinearLaw]:
    return linear_laws(rule, layout) or ()


def _declarable(rule: FoundRule, layout: Layout) -> str:
    """The text that declares a rule: its name, if that reads as the rule."""
    try:
        same = every_step(_formula(rule.name, layout), layout) == rule.formula
    except FormulaError:
        same = False
    return rule.name if same else str(rule.formula)


def _check_statements(rules: Mapping[str, Formula]) -> None:
    """FormulaError for an observation where a rule of all data is declared."""
    for name, rule in rules.items():
        if rule.observes:
            raise FormulaError(
                f"the rule {name} is an observation, which no data obey or break",
                value=name,
                remedy="state it when sampling, with where",
            )


def _check_possible(rules: Mapping[str, Formula], data: xr.Dataset, layout: Layout) -> None:
    """FormulaError for a rule that means nothing here, ImpossibleError for a contradiction."""
    for name, rule in rules.items():
        try:
            compiled(rule, layout)
        except FormulaError as problem:
            raise problem.at(f"the rule {name}") from None
    refuse_impossible(conjunction(*rules.values()), layout, given=rules_in(data.attrs).values())


def _check_obeyed(name: str, rule: Formula, data: xr.Dataset, layout: Layout) -> None:
    """ModelError that says how often data break a rule, and where first."""
    program = compiled(rule, layout)
    count, first = _first_broken(program, data)
    if not count:
        return
    total = samples_of(data)
    place = f"sample {first}"
    step = _first_step(program, tensors_of(data, layout, slice(first, first + 1), program.needed))
    place += "" if step is None else f", step {step}"
    raise ModelError(
        f"the data break the rule {name}: {count:,} of {total:,} samples do, first at {place}",
        value=name,
        remedy=("repair the data, or leave this rule out of ", Action("rules=...", "--rule")),
    )


def _holds(rule: Formula, data: xr.Dataset, layout: Layout) -> bool:
    """Whether all samples obey a rule that they carry; not where it is about other variables."""
    try:
        program = compiled(rule, layout)
    except FormulaError:
        return False
    return _first_broken(program, data)[0] == 0


@torch.no_grad()
def _first_broken(program: Program, data: xr.Dataset) -> tuple[int, int]:
    """How many samples break the rule, and the number of the first."""
    count, first = 0, -1
    for rows in slices(samples_of(data), chunk_size([program])):
        values = tensors_of(data, program.layout, rows, program.needed)
        wrong = ~program.verdict(values)
        if first < 0 and bool(wrong.any()):
            first = rows.start + int(wrong.nonzero()[0, 0])
        count += int(wrong.sum())
    return count, first


def _first_step(program: Program, values: Mapping[str, Tensor]) -> int | None:
    """The first step at which one sample breaks a rule, if the rule is about single steps."""
    laws = linear_laws(program.formula, program.layout)
    if not laws or not program.layout.steps:
        return None
    slack = max(program.tolerances().values(), default=0.0)
    one = {name: np.asarray(value[0], np.float64) for name, value in values.items()}
    wrong = np.zeros(program.layout.steps, bool)
    for law in laws:
        wrong |= _margins(law, one, program.layout.steps) < -slack - 1e-12
    return int(wrong.argmax()) if wrong.any() else None


def _margins(law: LinearLaw, values: Mapping[str, np.ndarray], steps: int) -> np.ndarray:
    """The left side of a law at each step of one sample, (T,); infinite where it does not bind."""
    found = np.full(steps, law.constant)
    for name, weight in law.now.items():
        found = found + weight * values[name]
    for name, weight in law.before.items():
        found[1:] += weight * values[name][:-1]
    if law.when_zero is not None:
        found[1:][values[law.when_zero][:-1] != 0] = np.inf
    if law.given is not None:
        found[_margins(law.given, values, steps) < 0] = np.inf
    if law.before or law.when_zero is not None:
        found[0] = np.inf
    return found
