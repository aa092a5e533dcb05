"""SBML Level 2 and Level 3 models as reaction networks.

A network counts: its species are SBML amounts. A formula, though, reads a species as a
concentration, amount/size of its compartment, unless it has `hasOnlySubstanceUnits`; and a formula
that sets such a species gives a concentration. Both conversions are written into the expressions.
A kinetic law has units of substance per time: it is the rate at which the reaction fires.

What the network cannot honour is refused by name. See the SBML specifications at sbml.org.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from simulators import rates
from simulators.errors import InputError, unknown
from simulators.network import Event, Reaction, ReactionNetwork
from simulators.rates import Expression, Name, Number, apply
from simulators.sbml_document import read_document
from simulators.sbml_math import TOTAL, Translator, in_order, real, size, too_large, truth

PARTS = 5_000  # most species, parameters, reactions, rules or events
LARGEST = 2**53  # up to here every count is exact
_RESERVED = rates.RESERVED | {"sample", "step"}


def read_sbml(path: str | PathLike[str]) -> ReactionNetwork:
    """The network of an SBML file (Level 2 or 3); an `InputError` says what cannot be read."""
    try:
        document = read_document(path)  # owns the model: it must outlive the reading
        return _Model(document).network(Path(path).stem)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None
    except RecursionError:
        raise InputError(f"{path}: formulas are nested too deeply") from None


class _Model:
    """One SBML model on its way to a network; identifiers are SBML's, names the network's."""

    def __init__(self, document: Any) -> None:
        self.level: int = document.getLevel()
        if self.level < 2:
            raise InputError("SBML Level 1 is not supported: convert the file to Level 2 or 3")
        self.sbml = document.getModel()
        self.compartments = self._declared("compartment", self.sbml.getListOfCompartments())
        self.species = self._declared("species", self.sbml.getListOfSpecies())
        self.parameters = self._declared("parameter", self.sbml.getListOfParameters())
        self.reactions = self._declared("reaction", self.sbml.getListOfReactions())
        self.functions = self._declared("function", self.sbml.getListOfFunctionDefinitions())
        self.events = _bounded("event", self.sbml.getListOfEvents())
        self.stoichiometries = {
            part.getId(): part for part in self._references() if part.isSetIdAttribute()
        }
        self._check_conversion()
        self.names = self._names()
        self.locals: dict[str, float] = {}  # parameters of single reactions, by their new names
        self.math = Translator(*self._symbols(), self.functions)
        self.rules = self._rules()
        self.rule_order = [
            name
            for name in in_order({k: rates.names(v) for k, v in self.rules.items()}, "rules")
            if name in self.rules
        ]
        self.varying = self._varying()
        self.fixed_stoichiometry: dict[str, Expression] = {}
        self.values = self._initial_values()

    def network(self, stem: str) -> ReactionNetwork:
        reactions = [self._reaction(reaction) for reaction in self.reactions.values()]
        events = [
            self._event(event, f"event{at}")
            for at, event in enumerate(self.events, start=1)
            if event.getNumEventAssignments()  # without any it does nothing
        ]
        formulas = [reaction.rate for reaction in reactions]
        formulas += [f for event in events for f in (event.trigger, *event.assignments.values())]
        self._check_total(formulas)
        species, parameters = self._quantities(formulas)
        return ReactionNetwork(
            name=self.sbml.getId() or stem,
            title=self.sbml.getName(),
            species=species,
            parameters=parameters,
            reactions=reactions,
            rules=self.rules,
            events=events,
            until=50.0,
            steps=51,
            time_unit=_time_unit(self.sbml, self.level),
        )

    # --- identifiers ------------------------------------------------------------------------------

    def _declared(self, kind: str, parts: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in _bounded(kind, parts):
            if part.getId() in found:
                raise InputError(f"{kind} {part.getId()!r} is declared twice")
            found[part.getId()] = part
        return found

    def _references(self) -> Iterable[Any]:
        for reaction in self.reactions.values():
            yield from reaction.getListOfReactants()
            yield from reaction.getListOfProducts()

    def _check_conversion(self) -> None:
        if self.sbml.isSetConversionFactor():
            raise InputError("the model has a conversion factor, which is not supported")
        for name, species in self.species.items():
            if species.isSetConversionFactor():
                raise InputError(f"species {name!r} has a conversion factor: not supported")
            if species.getCompartment() not in self.compartments:
                problem = unknown("compartment", species.getCompartment(), self.compartments)
                raise InputError(f"species {name!r}: {problem}")

    def _names(self) -> dict[str, str]:
        """Identifier -> name in the network, which reserves a few words."""
        groups = (self.compartments, self.species, self.parameters)
        identifiers = [identifier for group in groups for identifier in group]
        everything = [*identifiers, *self.reactions, *self.functions, *self.stoichiometries]
        if len(set(everything)) < len(everything):
            twice = next(name for name in everything if everything.count(name) > 1)
            raise InputError(f"the identifier {twice!r} is declared twice")
        return {name: _free(name, everything) for name in identifiers}

    def _symbols(self) -> tuple[dict[str, Expression], dict[str, str]]:
        """What identifiers mean in formulas, and why some cannot be used there."""
        symbols: dict[str, Expression] = {k: Name(v) for k, v in self.names.items()}
        refused = {k: f"the rate of reaction {k!r} in a formula" for k in self.reactions}
        refused |= {k: f"the stoichiometry {k!r} in a formula" for k in self.stoichiometries}
        refused = {k: f"{v} is not supported" for k, v in refused.items()}
        assigned = {part.getSymbol() for part in self.sbml.getListOfInitialAssignments()}
        for name, compartment in self.compartments.items():
            if not compartment.isSetSize() and name not in assigned:
                refused[name] = f"compartment {name!r} has no size, which is needed here"
                del symbols[name]
        for name in self.species:
            volume = self._volume(name)
            if volume is None:
                continue
            if volume in symbols:
                symbols[name] = apply("/", symbols[name], symbols[volume])
            else:
                del symbols[name]
                refused[name] = f"{name!r} is a concentration here, but {refused[volume]}"
        return symbols, refused

    def _volume(self, identifier: str) -> str | None:
        """The compartment by whose size formulas divide this species, if they do."""
        species = self.species.get(identifier)
        if species is None or species.getHasOnlySubstanceUnits():
            return None
        compartment = self.compartments[species.getCompartment()]
        if self.level == 2 and compartment.getSpatialDimensions() == 0:
            return None  # a point has no size
        return str(compartment.getId())

    def _amount(self, identifier: str, value: Expression) -> Expression:
        """What a formula sets a species to, as an amount."""
        volume = self._volume(identifier)
        if volume is None:
            return value
        if volume not in self.math.symbols:
            raise InputError(self.math.refused[volume])
        return apply("*", value, self.math.symbols[volume])

    def _target(self, identifier: str, where: str) -> str:
        """Name of a quantity that a rule or an event may change."""
        if identifier in self.compartments:
            raise InputError(f"{where}: the size of compartment {identifier!r} cannot change")
        if identifier in self.stoichiometries:
            raise InputError(f"{where}: the stoichiometry {identifier!r} cannot change")
        part = self.species.get(identifier) or self.parameters.get(identifier)
        if part is None:
            have = [*self.species, *self.parameters][:50]
            raise InputError(f"{where}: {unknown('species or parameter', identifier, have)}")
        if part.getConstant():
            raise InputError(f"{where}: {identifier!r} is declared constant")
        return self.names[identifier]

    # --- rules and initial values -----------------------------------------------------------------

    def _rules(self) -> dict[str, Expression]:
        rules: dict[str, Expression] = {}
        for rule in _bounded("rule", self.sbml.getListOfRules()):
            if not rule.isAssignment():
                kind = "rate" if rule.isRate() else "algebraic"
                of = f" for {rule.getVariable()!r}" if rule.isRate() else ""
                raise InputError(f"{kind} rule{of}: only assignment rules can be simulated")
            identifier = rule.getVariable()
            where = f"rule for {identifier!r}"
            name = self._target(identifier, where)
            if name in rules:
                raise InputError(f"{where}: there are two")
            formula = real(self.math.read(rule.getMath(), where))
            rules[name] = self._amount(identifier, formula)
        return rules

    def _varying(self) -> frozenset[str]:
        """Names of all that can change while time passes."""
        events = (part for event in self.events for part in event.getListOfEventAssignments())
        changed = {self.names.get(part.getVariable(), "") for part in events}
        for part in self._references():
            species = self.species.get(part.getSpecies())
            if species is None:
                raise unknown("species", part.getSpecies(), list(self.species)[:50])
            if not species.getBoundaryCondition():
                changed.add(self.names[part.getSpecies()])
        return frozenset({*changed, *self.rules, "time"})

    def _initial_values(self) -> dict[str, float]:
        """Values at time 0 of all that has one, by name; rules and assignments worked out."""
        formulas = {**self._attributes(), **self.rules}
        seen: set[str] = set()
        for part in _bounded("initial assignment", self.sbml.getListOfInitialAssignments()):
            identifier = part.getSymbol()
            where = f"initial assignment to {identifier!r}"
            if identifier in seen or self.names.get(identifier) in self.rules:
                raise InputError(f"{where}: its value is given twice")
            seen.add(identifier)
            formula = real(self.math.read(part.getMath(), where))
            if identifier in self.stoichiometries:
                self.fixed_stoichiometry[identifier] = formula
            elif identifier in self.names:
                formulas[self.names[identifier]] = self._amount(identifier, formula)
            else:
                raise InputError(f"{where}: {unknown('symbol', identifier, list(self.names)[:50])}")
        values: dict[str, float] = {"time": 0.0}
        needs = {name: rates.names(formula) for name, formula in formulas.items()}
        for name in in_order(needs, "initial values"):
            if name in formulas and needs[name] <= values.keys():
                values[name] = float(rates.evaluate(formulas[name], values))
        return values

    def _attributes(self) -> dict[str, Expression]:
        """Initial values as the declarations give them."""
        found: dict[str, Expression] = {}
        for identifier, part in (*self.compartments.items(), *self.parameters.items()):
            is_size = identifier in self.compartments
            if part.isSetSize() if is_size else part.isSetValue():
                value = part.getSize() if is_size else part.getValue()
                found[self.names[identifier]] = Number(value)
        for identifier, part in self.species.items():
            if part.isSetInitialAmount():
                found[self.names[identifier]] = Number(part.getInitialAmount())
            elif part.isSetInitialConcentration():
                volume = Name(self.names[part.getCompartment()])
                found[self.names[identifier]] = apply(
                    "*", Number(part.getInitialConcentration()), volume
                )
        return found

    def _value(self, kind: str, identifier: str) -> float:
        value = self.values.get(self.names[identifier])
        if value is None:
            raise InputError(f"{kind} {identifier!r} has no initial value")
        if not math.isfinite(value):
            raise InputError(f"the initial value of {kind} {identifier!r} is {value}")
        return value

    def _constant(self, node: Any, where: str) -> float:
        """Value of a formula that must not change with time."""
        formula = real(self.math.read(node, where))
        changing = sorted(rates.names(formula) & self.varying)
        if changing:
            raise InputError(f"{where} must be constant, but depends on {changing[0]!r}")
        return self._evaluate(formula, where)

    def _evaluate(self, formula: Expression, where: str) -> float:
        missing = sorted(rates.names(formula) - self.values.keys())
        if missing:
            raise InputError(f"{where} needs {missing[0]!r}, which has no value")
        return float(rates.evaluate(formula, self.values))

    def _quantities(
        self, formulas: Iterable[Expression]
    ) -> tuple[dict[str, int | Expression], dict[str, float]]:
        """Species with their counts, and parameters.

        A species that nothing changes may have any amount: a fractional one is a parameter.
        """
        used = {name for part in (*formulas, *self.rules.values()) for name in rates.names(part)}
        species: dict[str, int | Expression] = {}
        parameters: dict[str, float] = {}
        for identifier in self.compartments:
            if self.names[identifier] in used:
                value = parameters[self.names[identifier]] = self._value("compartment", identifier)
                if value <= 0:
                    raise InputError(f"compartment {identifier!r} has size {value:g}")
        for identifier in self.parameters:
            if self.names[identifier] not in self.rules:
                parameters[self.names[identifier]] = self._value("parameter", identifier)
        for identifier in self.species:
            name = self.names[identifier]
            if name in self.rules:
                continue
            value = self._value("species", identifier)
            count = _whole(value)
            if count is not None:
                species[name] = count
            elif name in self.varying:
                raise InputError(
                    f"species {identifier!r} starts with an amount of {value!r}; a species that "
                    "changes is a count and needs a whole number"
                )
            else:
                parameters[name] = value
        return species, parameters | self.locals

    # --- reactions and events ---------------------------------------------------------------------

    def _reaction(self, reaction: Any) -> Reaction:
        name = reaction.getId()
        where = f"reaction {name!r}"
        if reaction.isSetFast() and reaction.getFast():
            raise InputError(f"{where} is fast: equilibria cannot be simulated as events")
        kinetics = reaction.getKineticLaw()
        if kinetics is None:
            raise InputError(f"{where} has no kinetic law")
        law = real(self.math.read(kinetics.getMath(), where, self._locals(name, kinetics)))
        if reaction.getReversible() and self._net(law):
            raise InputError(
                f"{where} is reversible and its law {str(law)[:80]!r} is a net rate, which random "
                'events cannot follow: write two reactions, or reversible="false" if it never is '
                "negative"
            )
        sides = (reaction.getListOfReactants(), reaction.getListOfProducts())
        equation = " -> ".join(self._side(side, where) for side in sides)
        return Reaction(name, equation, law, mass_action=False)

    def _locals(self, reaction: str, kinetics: Any) -> dict[str, Expression]:
        """Local parameters, renamed `reaction_parameter`."""
        third = self.level > 2
        parts = kinetics.getListOfLocalParameters() if third else kinetics.getListOfParameters()
        scope: dict[str, Expression] = {}
        for part in parts:
            where = f"local parameter {part.getId()!r} of reaction {reaction!r}"
            if part.getId() in scope or not part.isSetValue():
                raise InputError(f"{where} {'is declared twice' if part.isSetValue() else 'has no value'}")
            name = _free(f"{reaction}_{part.getId()}", {*self.names.values(), *self.locals})
            self.locals[name] = part.getValue()
            scope[part.getId()] = Name(name)
        return scope

    def _net(self, law: Expression) -> bool:
        """Whether a term is subtracted: the law is a difference of two rates."""
        net: set[str] = set()
        for rule in self.rule_order:
            if _subtracts(self.rules[rule], net):
                net.add(rule)
        return _subtracts(law, net)
