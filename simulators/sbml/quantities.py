"""The quantities of an SBML model: compartments, species and parameters, their rules and values.

A network counts: its species are SBML amounts. A formula, though, reads a species as a
concentration, amount/size of its compartment, unless it has `hasOnlySubstanceUnits`; and a formula
that sets such a species gives a concentration. Both conversions are written into the expressions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from simulators import rates
from simulators.errors import InputError, unknown
from simulators.quantities import MAX_COUNT
from simulators.rates import Expression, Name, Number, apply
from simulators.sbml.formulas import Translator, in_order, real

MAX_PARTS = 5_000  # species, parameters, reactions, rules or events
RULES = ("assignment rules",)
WRITE_ASSIGNMENT = "write it as an assignment rule, or a rate of change as reactions"
_RESERVED = rates.RESERVED | {"sample", "step"}


class Quantities:
    """Identifiers are SBML's, names the network's.

    `names`: identifier -> name. `rules`: name -> expression, in an order that can be computed.
    `varying`: names of all that changes with time. `values`: name -> value at time 0.
    """

    def __init__(self, model: Any, level: int) -> None:
        self.model, self.level = model, level
        self.compartments = declared("compartment", model.getListOfCompartments())
        self.species = declared("species", model.getListOfSpecies())
        self.parameters = declared("parameter", model.getListOfParameters())
        self.reactions = declared("reaction", model.getListOfReactions())
        self.functions = declared("function", model.getListOfFunctionDefinitions())
        self.stoichiometries = {
            part.getIdAttribute() for part in self._references() if part.isSetIdAttribute()
        }
        self._check_species()
        self.taken = self._identifiers()
        self.names = {
            name: self.free(name)
            for group in (self.compartments, self.species, self.parameters)
            for name in group
        }
        self.math = Translator(*self._symbols(), self.functions)
        self.rules = self._rules()
        self.varying = self._varying()
        self.fixed_stoichiometry: dict[str, Expression] = {}
        self.values = self._initial_values()

    # --- identifiers ------------------------------------------------------------------------------

    def _references(self) -> Iterator[Any]:
        for reaction in self.reactions.values():
            yield from reaction.getListOfReactants()
            yield from reaction.getListOfProducts()

    def _check_species(self) -> None:
        if self.model.isSetConversionFactor():
            raise InputError(
                "the model has a conversion factor, which is not supported",
                remedy="convert the amounts in the file",
            )
        for name, species in self.species.items():
            if species.isSetConversionFactor():
                raise InputError(
                    f"species {name!r} has a conversion factor, which is not supported",
                    value=name,
                    remedy="convert the amounts in the file",
                )
            if species.getCompartment() not in self.compartments:
                problem = unknown("compartment", species.getCompartment(), self.compartments)
                raise problem.at(f"species {name!r}")

    def _identifiers(self) -> set[str]:
        groups = (self.compartments, self.species, self.parameters, self.reactions, self.functions)
        counts = Counter(name for group in (*groups, self.stoichiometries) for name in group)
        for name, count in counts.items():
            if count > 1:
                raise InputError(
                    f"the identifier {name!r} is declared twice",
                    value=name,
                    remedy="rename one of them",
                )
        return set(counts)

    def free(self, wanted: str, *, new: bool = False) -> str:
        """A name for an identifier (or for something `new`) that is not reserved or taken."""
        name = wanted
        while name in _RESERVED or ((new or name != wanted) and name in self.taken):
            name += "_"
        self.taken.add(name)
        return name

    def target(self, identifier: str, where: str) -> str:
        """Name of a quantity that a rule or an event wants to change."""
        if identifier in self.compartments:
            raise InputError(
                f"{where}: the size of compartment {identifier!r} cannot change",
                value=identifier,
                remedy="keep it constant",
            )
        if identifier in self.stoichiometries:
            raise InputError(
                f"{where}: the stoichiometry {identifier!r} cannot change",
                value=identifier,
                remedy="keep it constant",
            )
        part = self.species.get(identifier) or self.parameters.get(identifier)
        if part is None:
            have = [*self.species, *self.parameters]
            raise unknown("species or parameter", identifier, have).at(where)
        if part.getConstant():
            raise InputError(
                f"{where}: {identifier!r} is declared constant",
                value=identifier,
                remedy='declare it constant="false"',
            )
        return self.names[identifier]

    # --- amounts and concentrations ---------------------------------------------------------------

    def _symbols(self) -> tuple[dict[str, Expression], dict[str, str]]:
        """What identifiers mean in formulas, and why some cannot be used there."""
        symbols: dict[str, Expression] = {k: Name(v) for k, v in self.names.items()}
        refused = {k: f"the rate of reaction {k!r} is not supported" for k in self.reactions}
        refused |= {k: f"the stoichiometry {k!r} is not supported" for k in self.stoichiometries}
        assigned = {part.getSymbol() for part in self.model.getListOfInitialAssignments()}
        for name, compartment in self.compartments.items():
            if not compartment.isSetSize() and name not in assigned:
                refused[name] = f"compartment {name!r} has no size"
                del symbols[name]
        for name in self.species:
            volume = self._volume(name)
            if volume in symbols:
                symbols[name] = apply("/", symbols[name], symbols[volume])
            elif volume is not None:
                refused[name] = f"{refused[volume]}, so species {name!r} has no concentration"
                del symbols[name]
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

    def setting(self, identifier: str, node: Any, where: str) -> Expression:
        """The formula that sets a quantity, for a species as an amount."""
        formula = real(self.math.read(node, where))
        volume = self._volume(identifier)
        if volume is None:
            return formula
        if volume not in self.math.symbols:
            raise InputError(
                f"{where}: {self.math.refused[volume]}",
                value=volume,
                remedy="give the compartment a size",
            )
        return apply("*", formula, self.math.symbols[volume])

    # --- rules and values -------------------------------------------------------------------------

    def _rules(self) -> dict[str, Expression]:
        rules: dict[str, Expression] = {}
        for rule in bounded("rule", self.model.getListOfRules()):
            identifier = rule.getVariable()
            if rule.isAlgebraic():
                raise InputError(
                    "an algebraic rule is not supported", allowed=RULES, remedy=WRITE_ASSIGNMENT
                )
            where = f"rule for {identifier!r}"
            if rule.isRate():
                raise InputError(
                    f"the rate {where} is not supported",
                    value=identifier,
                    allowed=RULES,
                    remedy=WRITE_ASSIGNMENT,
                )
            name = self.target(identifier, where)
            if name in rules:
                raise InputError(f"{where}: there are two", value=identifier, remedy="keep one")
            rules[name] = self.setting(identifier, rule.getMath(), where)
        order = in_order({name: rates.names(rule) for name, rule in rules.items()}, "rules")
        return {name: rules[name] for name in order if name in rules}

    def _varying(self) -> AbstractSet[str]:
        changed = {*self.rules, "time"}
        for event in self.model.getListOfEvents():
            for part in event.getListOfEventAssignments():
                changed.add(self.names.get(part.getVariable(), ""))
        for part in self._references():
            species = self.species.get(part.getSpecies())
            if species is None:
                raise unknown("species in a reaction", part.getSpecies(), self.species)
            if not species.getBoundaryCondition():
                changed.add(self.names[part.getSpecies()])
        return changed

    def _initial_values(self) -> dict[str, float]:
        formulas = {**self._attributes(), **self.rules}
        seen: set[str] = set()
        for part in bounded("initial assignment", self.model.getListOfInitialAssignments()):
            identifier = part.getSymbol()
            where = f"initial assignment to {identifier!r}"
            if identifier in seen or self.names.get(identifier) in self.rules:
                raise InputError(
                    f"{where}: its value is given twice", value=identifier, remedy="give it once"
                )
            seen.add(identifier)
            formula = self.setting(identifier, part.getMath(), where)
            if identifier in self.stoichiometries:
                self.fixed_stoichiometry[identifier] = formula
            elif identifier in self.names:
                formulas[self.names[identifier]] = formula
            else:
                raise unknown("symbol", identifier, self.names).at(where)
        values: dict[str, float] = {"time": 0.0}
        needs = {name: rates.names(formula) for name, formula in formulas.items()}
        for name in in_order(needs, "initial values"):
            if name in formulas and needs[name] <= values.keys():
                values[name] = float(rates.evaluate(formulas[name], values))
        return values

    def _attributes(self) -> dict[str, Expression]:
        """Initial values as the declarations give them."""
        found: dict[str, Expression] = {}
        for identifier, part in self.compartments.items():
            if part.isSetSize():
                found[self.names[identifier]] = Number(part.getSize())
        for identifier, part in self.parameters.items():
            if part.isSetValue():
                found[self.names[identifier]] = Number(part.getValue())
        for identifier, part in self.species.items():
            if part.isSetInitialAmount():
                found[self.names[identifier]] = Number(part.getInitialAmount())
            elif part.isSetInitialConcentration():
                concentration = Number(part.getInitialConcentration())
                volume = Name(self.names[part.getCompartment()])
                found[self.names[identifier]] = apply("*", concentration, volume)
        return found

    def initial(self, kind: str, identifier: str) -> float:
        """Initial value of a quantity that must have one."""
        value = self.values.get(self.names[identifier])
        if value is None:
            raise InputError(
                f"{kind} {identifier!r} has no initial value, or it depends on one that is missing",
                value=identifier,
                remedy="give it an initial value in the file",
            )
        if not math.isfinite(value):
            raise InputError(
                f"the initial value of {kind} {identifier!r} is {value}",
                value=value,
                remedy="make it a finite number",
            )
        return value

    def constant(self, node: Any, where: str) -> float:
        """Value of a formula that must not change with time."""
        formula = real(self.math.read(node, where))
        changing = sorted(rates.names(formula) & self.varying)
        if changing:
            raise InputError(
                f"{where} must be constant, but depends on {changing[0]!r}",
                value=changing[0],
                remedy="write it with constants alone",
            )
        return self.at_start(formula, where)

    def at_start(self, formula: Expression, where: str) -> float:
        """Value of a formula at time 0."""
        missing = sorted(rates.names(formula) - self.values.keys())
        if missing:
            raise InputError(
                f"{where} needs {missing[0]!r}, which has no value",
                value=missing[0],
                remedy=f"give {missing[0]!r} a value",
            )
        return float(rates.evaluate(formula, self.values))

    def counts_and_parameters(
        self, used: AbstractSet[str]
    ) -> tuple[dict[str, int], dict[str, float]]:
        """Initial counts of the species, values of the parameters and of compartments in use.

        A species that nothing changes may have any amount: a fractional one is a parameter.
        """
        counts: dict[str, int] = {}
        parameters: dict[str, float] = {}
        for identifier in self.compartments:
            if (name := self.names[identifier]) in used:
                parameters[name] = self.initial("compartment", identifier)
                if parameters[name] <= 0:
                    raise InputError(
                        f"compartment {identifier!r} has size {parameters[name]:g}",
                        value=parameters[name],
                        remedy="make it > 0",
                    )
        for identifier in self.parameters:
            if (name := self.names[identifier]) not in self.rules:
                parameters[name] = self.initial("parameter", identifier)
        for identifier in self.species:
            if (name := self.names[identifier]) in self.rules:
                continue
            value = self.initial("species", identifier)
            count = whole(value)
            if count is not None:
                counts[name] = count
            elif name not in self.varying:
                parameters[name] = value
            else:
                raise InputError(
                    f"species {identifier!r} starts with an amount of {value!r}: a species that "
                    "changes is counted, and needs a whole number >= 0",
                    value=value,
                    remedy="state amounts as numbers of molecules",
                )
        return counts, parameters


def bounded(kind: str, parts: Any) -> list[Any]:
    """The members of a libsbml list, if they are not too many to check."""
    if len(parts) > MAX_PARTS:
        raise InputError(
            f"the model has {len(parts):,} of kind {kind}, more than {MAX_PARTS:,}",
            value=len(parts),
            remedy="make the model smaller",
        )
    return list(parts)


def declared(kind: str, parts: Any) -> dict[str, Any]:
    """The members of a libsbml list by identifier."""
    found: dict[str, Any] = {}
    for part in bounded(kind, parts):
        if part.getId() in found:
            raise InputError(
                f"{kind} {part.getId()!r} is declared twice",
                value=part.getId(),
                remedy="rename one of them",
            )
        found[part.getId()] = part
    return found


def whole(value: float) -> int | None:
    """The count that a value means, forgiving the rounding of a product."""
    if not 0 <= value <= MAX_COUNT:
        return None
    count = round(value)
    return count if abs(value - count) <= 1e-9 * max(1.0, value) else None
