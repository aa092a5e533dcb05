"""SBML models, Level 2 and Level 3, as reaction networks.

A kinetic law has units of substance per time, and the network counts: the law is the rate at which
the reaction fires. How amounts and concentrations meet in formulas is in `quantities`. What a
network cannot honour (delays, rate rules, net rates, ...) is refused by name, never left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from os import PathLike
from pathlib import Path
from typing import Any

from simulators import rates
from simulators.errors import InputError
from simulators.network import ReactionNetwork
from simulators.rates import Expression, Name, Number
from simulators.reactions import Event, Reaction
from simulators.sbml.document import read_document
from simulators.sbml.formulas import MAX_MODEL_NODES, real, size, too_large, truth
from simulators.sbml.quantities import MAX_PARTS, Quantities, bounded, whole

MAX_STOICHIOMETRY = 1_000_000


def read_sbml(path: str | PathLike[str]) -> ReactionNetwork:
    """The network of an SBML file; an `InputError` says what in it cannot be read or honoured."""
    try:
        document = read_document(path)  # owns the model, so it must outlive the reading
        if document.getLevel() < 2:
            raise InputError(
                "SBML Level 1 is not supported", value=1, remedy="convert the file to Level 2 or 3"
            )
        return _network(document.getModel(), document.getLevel(), Path(path).stem)
    except InputError as problem:
        raise problem.at(str(path)) from None
    except RecursionError:
        raise InputError(
            f"{path}: formulas are nested too deeply",
            value=str(path),
            remedy="split them with parameters and assignment rules",
        ) from None


def _network(model: Any, level: int, stem: str) -> ReactionNetwork:
    quantities = Quantities(model, level)
    reactions = _Reactions(quantities)
    laws = {name: reactions.law(name) for name in quantities.reactions}
    events = list(_events(quantities))
    formulas = [*laws.values(), *(part for event in events for part in _formulas(event))]
    _check_sizes(quantities.rules, formulas)
    used = {name for part in (*formulas, *quantities.rules.values()) for name in rates.names(part)}
    counts, parameters = quantities.counts_and_parameters(used)
    parameters |= reactions.parameters
    if len(parameters) > 2 * MAX_PARTS:
        raise InputError(
            f"the model has {len(parameters):,} parameters, more than {2 * MAX_PARTS:,}",
            value=len(parameters),
            remedy="make the model smaller",
        )
    return ReactionNetwork(
        name=model.getId() or stem,
        title=model.getName(),
        species=counts,
        parameters=parameters,
        reactions=[
            Reaction(name, reactions.equation(name), law, mass_action=False)
            for name, law in laws.items()
        ],
        rules=quantities.rules,
        events=events,
        until=50.0,
        points=51,
        time_unit=_time_unit(model, level),
    )


# --- reactions ------------------------------------------------------------------------------------


class _Reactions:
    """Kinetic laws and equations; `parameters` gathers the local ones under their new names."""

    def __init__(self, quantities: Quantities) -> None:
        self.quantities = quantities
        self.parameters: dict[str, float] = {}
        self.net: set[str] = set()  # rules that subtract
        for name, rule in quantities.rules.items():
            if _subtracts(rule, self.net):
                self.net.add(name)

    def law(self, name: str) -> Expression:
        reaction = self.quantities.reactions[name]
        where = f"reaction {name!r}"
        if reaction.isSetFast() and reaction.getFast():
            raise InputError(
                f"{where} is fast: an equilibrium cannot be simulated as events",
                value=name,
                remedy='give it a kinetic law with a large rate, and fast="false"',
            )
        kinetics = reaction.getKineticLaw()
        if kinetics is None:
            raise InputError(f"{where} has no kinetic law", value=name, remedy="add a <kineticLaw>")
        scope = self._local(name, kinetics)
        law = real(self.quantities.math.read(kinetics.getMath(), where, scope))
        if reaction.getReversible() and _subtracts(law, self.net):
            raise InputError(
                f"{where} is reversible and its law {str(law)[:80]!r} subtracts: random events "
                "cannot follow a net rate",
                value=str(law),
                remedy="write it as two reactions, or with "
                'reversible="false" if the law is never negative',
            )
        return law

    def _local(self, name: str, kinetics: Any) -> dict[str, Expression]:
        third = self.quantities.level > 2
        parts = kinetics.getListOfLocalParameters() if third else kinetics.getListOfParameters()
        scope: dict[str, Expression] = {}
        for part in parts:
            where = f"local parameter {part.getId()!r} of reaction {name!r}"
            if part.getId() in scope:
                raise InputError(
                    f"{where} is declared twice", value=part.getId(), remedy="rename one of them"
                )
            if not part.isSetValue():
                raise InputError(
                    f"{where} has no value", value=part.getId(), remedy="set its attribute value"
                )
            unique = self.quantities.free(f"{name}_{part.getId()}", new=True)
            self.parameters[unique] = part.getValue()
            scope[part.getId()] = Name(unique)
        return scope

    def equation(self, name: str) -> str:
        reaction = self.quantities.reactions[name]
        sides = (reaction.getListOfReactants(), reaction.getListOfProducts())
        return " -> ".join(self._side(side, f"reaction {name!r}") for side in sides)

    def _side(self, references: Iterable[Any], where: str) -> str:
        counts: dict[str, int] = {}
        for reference in references:
            identifier = reference.getSpecies()
            count = self._stoichiometry(reference, f"{where}: the stoichiometry of {identifier!r}")
            species = self.quantities.species[identifier]
            name = self.quantities.names[identifier]
            if species.getBoundaryCondition():
                continue
            if species.getConstant() or name in self.quantities.rules:
                cause = "constant" if species.getConstant() else "set by a rule"
                raise InputError(
                    f"{where} changes species {identifier!r}, which is {cause}",
                    value=identifier,
                    remedy='set boundaryCondition="true" if reactions leave it alone',
                )
            counts[name] = counts.get(name, 0) + count
        terms = (f"{count} {name}".removeprefix("1 ") for name, count in counts.items() if count)
        return " + ".join(terms) or "0"

    def _stoichiometry(self, reference: Any, where: str) -> int:
        fixed = self.quantities.fixed_stoichiometry.get(reference.getIdAttribute())
        if fixed is not None:
            value = self.quantities.at_start(fixed, where)
        elif reference.isSetStoichiometryMath():
            value = self.quantities.constant(reference.getStoichiometryMath().getMath(), where)
        elif self.quantities.level > 2 and not reference.isSetStoichiometry():
            raise InputError(f"{where} is missing", remedy="set the attribute stoichiometry")
        else:
            value = reference.getStoichiometry()
        count = whole(value)
        if count is None or count > MAX_STOICHIOMETRY:
            raise InputError(
                f"{where} is {value!r}, not a whole number from 0 to {MAX_STOICHIOMETRY:,}",
                value=value,
                remedy="multiply all stoichiometries of the reaction by a common denominator",
            )
        return count


def _subtracts(law: Expression, net: AbstractSet[str]) -> bool:
    """Whether a term of the law is subtracted, so that it is a difference of two rates.

    Subtracting a plain number does not count: P*(P - 1) is about pairs. `net`: rules that subtract.
    """
    if isinstance(law, Number):
        return law.value < 0
    if isinstance(law, Name):
        return law.name in net
    if law.operator == "neg" or (law.operator == "-" and not isinstance(law.arguments[1], Number)):
        return True
    if law.operator == "-":
        return _subtracts(law.arguments[0], net)
    if law.operator not in ("+", "*", "/", "min", "max", "piecewise"):
        return False
    parts = law.arguments[::2] if law.operator == "piecewise" else law.arguments
    return any(_subtracts(part, net) for part in parts)


# --- events ---------------------------------------------------------------------------------------


def _events(quantities: Quantities) -> Iterable[Event]:
    taken: set[str] = set()
    for at, event in enumerate(bounded("event", quantities.model.getListOfEvents()), start=1):
        name = event.getIdAttribute() or f"event{at}"
        if name in taken:
            raise InputError(
                f"two events are called {name!r}", value=name, remedy="rename one of them"
            )
        taken.add(name)
        if event.getNumEventAssignments():  # without any, it does nothing
            yield _event(quantities, event, name)


def _event(quantities: Quantities, event: Any, name: str) -> Event:
    where = f"event {name!r}"
    trigger, delay, priority = event.getTrigger(), event.getDelay(), event.getPriority()
    if trigger is None:
        raise InputError(f"{where} has no trigger", value=name, remedy="add a <trigger>")
    if delay is not None and quantities.constant(delay.getMath(), f"the delay of {where}") != 0:
        raise InputError(
            f"{where} has a delay, which is not supported",
            value=name,
            remedy="remove the delay, or put the later time into the trigger",
        )
    rank = 0.0
    if priority is not None:
        rank = quantities.constant(priority.getMath(), f"the priority of {where}")
        if not math.isfinite(rank):
            raise InputError(
                f"the priority of {where} is {rank}", value=rank, remedy="make it a finite number"
            )
    third = quantities.level > 2  # Level 2 has neither attribute, and means true
    return Event(
        name=name,
        trigger=truth(quantities.math.read(trigger.getMath(), f"the trigger of {where}")),
        assignments=_assignments(quantities, event, where),
        initially=bool(trigger.getInitialValue()) if third else True,
        persistent=bool(trigger.getPersistent()) if third else True,
        priority=rank,
        values_at_trigger=bool(event.getUseValuesFromTriggerTime()),
    )


def _assignments(quantities: Quantities, event: Any, where: str) -> dict[str, Expression]:
    found: dict[str, Expression] = {}
    for part in event.getListOfEventAssignments():
        name = quantities.target(part.getVariable(), where)
        if name in found:
            raise InputError(
                f"{where} sets {part.getVariable()!r} twice",
                value=part.getVariable(),
                remedy="keep one of the assignments",
            )
        if name in quantities.rules:
            raise InputError(
                f"{where} sets {part.getVariable()!r}, which has a rule",
                value=part.getVariable(),
                remedy="remove the rule or the assignment",
            )
        found[name] = quantities.setting(part.getVariable(), part.getMath(), where)
    return found


def _formulas(event: Event) -> Iterable[Any]:
    return (event.trigger, *event.assignments.values())


# --- the whole ------------------------------------------------------------------------------------


def _check_sizes(rules: Mapping[str, Expression], formulas: Iterable[Expression]) -> None:
    """Rules that double each other grow without bound when they are written out."""
    sizes: dict[str, int] = {}
    levels: dict[str, int] = {}
    for name, rule in rules.items():
        sizes[name] = size(rule, sizes)
        levels[name] = 1 + max((levels.get(used, 0) for used in rates.names(rule)), default=0)
        if levels[name] > rates.MAX_EXPRESSION_DEPTH:
            raise InputError(
                f"rules build on each other over more than {rates.MAX_EXPRESSION_DEPTH} levels",
                value=name,
                remedy="write some of them out",
            )
    if sum(sizes.values()) + sum(size(formula, sizes) for formula in formulas) > MAX_MODEL_NODES:
        raise too_large()


def _time_unit(model: Any, level: int) -> str:
    """The word "second", or "1" for any other unit or none."""
    unit = model.getTimeUnits() if level > 2 else "time"
    definition = model.getUnitDefinition(unit)
    if definition is None:
        return "second" if unit == "second" or level == 2 else "1"
    parts = [
        (part.isSecond(), part.getExponentAsDouble(), part.getScale(), part.getMultiplier())
        for part in definition.getListOfUnits()
    ]
    return "second" if parts == [(True, 1.0, 0, 1.0)] else "1"
