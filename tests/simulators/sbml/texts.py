"""SBML files for tests, put together from their parts."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from simulators import ReactionNetwork

libsbml: Any = import_module("libsbml")  # it has no type annotations

SPACES = {
    (1, 2): "http://www.sbml.org/sbml/level1",
    (2, 4): "http://www.sbml.org/sbml/level2/version4",
    (3, 1): "http://www.sbml.org/sbml/level3/version1/core",
    (3, 2): "http://www.sbml.org/sbml/level3/version2/core",
}
LISTS = {
    "functions": "listOfFunctionDefinitions",
    "units": "listOfUnitDefinitions",
    "compartments": "listOfCompartments",
    "species": "listOfSpecies",
    "parameters": "listOfParameters",
    "initial": "listOfInitialAssignments",
    "rules": "listOfRules",
    "constraints": "listOfConstraints",
    "reactions": "listOfReactions",
    "events": "listOfEvents",
}
CELL = '<compartment id="Cell" size="2" constant="true"/>'


def math(formula: str) -> str:
    """<math> of a formula such as `k*X`; MathML stays as it is."""
    if formula.startswith("<"):
        return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{formula}</math>'
    tree = libsbml.parseL3Formula(formula)
    assert tree is not None, libsbml.getLastParseL3Error()
    return str(libsbml.writeMathMLToString(tree)).split("?>", 1)[1]


def species(name: str, attributes: str = 'initialAmount="10"', *, amount: bool = True) -> str:
    """One <species>; `amount` is hasOnlySubstanceUnits."""
    defaults = {"boundaryCondition": "false", "constant": "false"}
    given = "".join(f' {k}="{v}"' for k, v in defaults.items() if k not in attributes)
    units = str(amount).lower()
    return (
        f'<species id="{name}" compartment="Cell" {attributes}{given}'
        f' hasOnlySubstanceUnits="{units}"/>'
    )


def parameter(name: str, value: object = 1, constant: bool = True) -> str:
    shown = "" if value is None else f'value="{value}"'
    return f'<parameter id="{name}" {shown} constant="{str(constant).lower()}"/>'


def reference(name: str, attributes: str = 'stoichiometry="1"') -> str:
    return f'<speciesReference species="{name}" {attributes} constant="true"/>'


def reaction(
    law: str,
    *,
    name: str = "R",
    reactants: str = "",
    products: str = "",
    attributes: str = 'reversible="false"',
    local: str = "",
) -> str:
    """One <reaction>; sides are <speciesReference> elements."""
    sides = f"<listOfReactants>{reactants}</listOfReactants>" if reactants else ""
    sides += f"<listOfProducts>{products}</listOfProducts>" if products else ""
    local = f"<listOfLocalParameters>{local}</listOfLocalParameters>" if local else ""
    return (
        f'<reaction id="{name}" {attributes}>{sides}'
        f"<kineticLaw>{math(law)}{local}</kineticLaw></reaction>"
    )


def rule(variable: str, formula: str) -> str:
    return f'<assignmentRule variable="{variable}">{math(formula)}</assignmentRule>'


def initial(symbol: str, formula: str) -> str:
    return f'<initialAssignment symbol="{symbol}">{math(formula)}</initialAssignment>'


def function(name: str, formula: str) -> str:
    """`formula` is lambda(x, y, x + y)."""
    return f'<functionDefinition id="{name}">{math(formula)}</functionDefinition>'


def event(
    trigger: str,
    assignments: dict[str, str],
    *,
    more: str = "",
    flags: str = 'initialValue="true" persistent="true"',
    attributes: str = 'id="E" useValuesFromTriggerTime="true"',
) -> str:
    deeds = "".join(
        f'<eventAssignment variable="{k}">{math(v)}</eventAssignment>'
        for k, v in assignments.items()
    )
    deeds = f"<listOfEventAssignments>{deeds}</listOfEventAssignments>" if deeds else ""
    return f"<event {attributes}><trigger {flags}>{math(trigger)}</trigger>{more}{deeds}</event>"


DEATH = reaction("X", reactants=reference("X"))


def document(
    attributes: str = 'id="m"', *, level: int = 3, version: int = 2, root: str = "", **parts: str
) -> str:
    """A whole file: by default 10 X in Cell (size 2) that die at rate X."""
    parts = {"compartments": CELL, "species": species("X"), "reactions": DEATH} | parts
    inside = "".join(f"<{tag}>{parts[key]}</{tag}>" for key, tag in LISTS.items() if parts.get(key))
    inside = parts.get("notes", "") + inside
    space = SPACES[level, version]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<sbml xmlns="{space}" level="{level}" version="{version}" {root}>\n'
        f"<model {attributes}>{inside}</model>\n</sbml>\n"
    )


def level_2_reaction(stoichiometry: str) -> str:
    product = '<speciesReference species="X"><stoichiometryMath>{}</stoichiometryMath>'
    return document(
        level=2,
        version=4,
        compartments='<compartment id="Cell" size="1"/>',
        species='<species id="X" compartment="Cell" initialAmount="3"/>',
        parameters='<parameter id="n" value="3"/>',
        reactions='<reaction id="R"><listOfProducts>'
        f"{product.format(math(stoichiometry))}</speciesReference></listOfProducts>"
        f"<kineticLaw>{math('2')}</kineticLaw></reaction>",
    )


def laws(network: ReactionNetwork) -> list[str]:
    return [str(law) for law in network.propensities]
