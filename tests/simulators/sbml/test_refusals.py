"""What SBML files may contain without effect, and what is refused by name."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

pytest.importorskip("libsbml", reason="python-libsbml is optional")

from simulators import InputError, ReactionNetwork
from tests.simulators.sbml import texts as text
from tests.simulators.sbml.texts import (
    document,
    event,
    laws,
    level_2_reaction,
    parameter,
    reaction,
    reference,
    species,
)

Read = Callable[[str], ReactionNetwork]


def test_what_changes_no_trajectory_is_accepted(read: Read) -> None:
    unit = '<unitDefinition id="{}"><listOfUnits><unit kind="second" exponent="1" scale="0" '
    unit += 'multiplier="{}"/></listOfUnits></unitDefinition>'
    network = read(
        document(
            'id="m" timeUnits="minute"',
            notes='<notes><p xmlns="http://www.w3.org/1999/xhtml">words</p></notes>',
            units=unit.format("minute", 60),
            compartments=text.CELL + '<compartment id="Other" constant="false"/>',
            constraints=f"<constraint>{text.math('X > 5')}</constraint>",
        )
    )
    assert network.time_unit == "1"
    second = document('id="m" timeUnits="tick"', units=unit.format("tick", 1))
    assert read(second).time_unit == "second"
    assert read(document()).time_unit == "1"


def test_extended_mathematics_is_understood(read: Read) -> None:
    space = "http://www.sbml.org/sbml/level3/version1/l3v2extendedmath/version1"
    law = reaction("max(X, 3)", attributes='reversible="false" fast="false"')
    root = f'xmlns:more="{space}" more:required="true"'
    assert laws(read(document(version=1, root=root, reactions=law))) == ["max(X, 3)"]


DELAY = (
    '<apply><csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/delay">d'
    "</csymbol><ci>X</ci><cn>1</cn></apply>"
)
RATE_OF = DELAY.replace("/delay", "/rateOf").replace("<cn>1</cn>", "")
NO_SIZE = '<compartment id="Cell" constant="true"/>'
GROWING = '<compartment id="Cell" size="2" constant="false"/>'
FIXED = species("X") + species("C", 'initialAmount="1" constant="true"')
FREE = parameter("p", 1, False)

REFUSED = {
    "Level 1": document(level=1, version=2, compartments="", species="", reactions=""),
    "rate rule for 'p'": document(
        parameters=FREE, rules=f'<rateRule variable="p">{text.math("1")}</rateRule>'
    ),
    "algebraic rule": document(rules=f"<algebraicRule>{text.math('X - 1')}</algebraicRule>"),
    "reaction 'R': 'delay' is not supported": document(reactions=reaction(DELAY)),
    "'rate of' is not supported": document(reactions=reaction(RATE_OF)),
    "event 'E' has a delay": document(
        events=event("X > 2", {"X": "1"}, more=f"<delay>{text.math('1')}</delay>")
    ),
    "the delay of event 'E' must be constant, but depends on 'X'": document(
        events=event("X > 2", {"X": "1"}, more=f"<delay>{text.math('X')}</delay>")
    ),
    "the priority of event 'E' must be constant": document(
        events=event("X > 2", {"X": "1"}, more=f"<priority>{text.math('X')}</priority>")
    ),
    "the priority of event 'E' is inf": document(
        events=event("X > 2", {"X": "1"}, more=f"<priority>{text.math('1/0')}</priority>")
    ),
    "size of compartment 'Cell' cannot change": document(
        compartments=GROWING, rules=text.rule("Cell", "X")
    ),
    "event 'E': the size of compartment 'Cell'": document(
        compartments=GROWING, events=event("X > 2", {"Cell": "3"})
    ),
    "compartment 'Cell' has size 0": document(
        compartments=text.CELL.replace('"2"', '"0"'), reactions=reaction("Cell")
    ),
    "compartment 'Cell' has no size": document(compartments=NO_SIZE, reactions=reaction("Cell*X")),
    "no size, so species 'X' has no concentration": document(
        compartments=NO_SIZE, species=species("X", amount=False)
    ),
    "rule for 'Y': compartment 'Cell' has no size": document(
        compartments=NO_SIZE,
        species=species("X") + species("Y", amount=False),
        rules=text.rule("Y", "2"),
    ),
    "reaction 'R' is fast": document(
        version=1, reactions=reaction("X", attributes='reversible="false" fast="true"')
    ),
    "stoichiometry of 'X' is 0.5": document(
        reactions=reaction("X", products=reference("X", 'stoichiometry="0.5"'))
    ),
    "stoichiometry of 'X' is -1": document(
        reactions=reaction("X", products=reference("X", 'stoichiometry="-1"'))
    ),
    "stoichiometry of 'X' is missing": document(
        reactions=reaction("X", products=reference("X", ""))
    ),
    "stoichiometry of 'X' must be constant": level_2_reaction("X"),
    "stoichiometry of 'X' is nan": level_2_reaction("0/0"),
    "the stoichiometry 's' cannot change": document(
        reactions=reaction("X", products=reference("X", 'id="s" stoichiometry="1"')),
        rules=text.rule("s", "X"),
    ),
    "the stoichiometry 's' is not supported": document(
        reactions=reaction("s", products=reference("X", 'id="s" stoichiometry="1"'))
    ),
    "the rate of reaction 'R' is not supported": document(
        parameters=FREE, rules=text.rule("p", "R")
    ),
    "model has a conversion factor": document(
        'id="m" conversionFactor="p"', parameters=parameter("p")
    ),
    "species 'X' has a conversion factor": document(
        species=species("X", 'initialAmount="1" conversionFactor="p"'), parameters=parameter("p")
    ),
    "'X' starts with an amount of 2.5": document(species=species("X", 'initialAmount="2.5"')),
    "'X' starts with an amount of -1.0": document(species=species("X", 'initialAmount="-1"')),
    "initial value of species 'X' is nan": document(species=species("X", 'initialAmount="NaN"')),
    "species 'X' has no initial value": document(species=species("X", "")),
    "parameter 'p' has no initial value": document(parameters=parameter("p", None)),
    "initial value of parameter 'p' is inf": document(parameters=parameter("p", "INF")),
    "local parameter 'k' of reaction 'R' has no value": document(
        reactions=reaction("k", local='<localParameter id="k"/>')
    ),
    "local parameter 'k' of reaction 'R' is declared twice": document(
        reactions=reaction("k", local='<localParameter id="k" value="1"/>' * 2)
    ),
    "reaction 'R' has no kinetic law": document(reactions='<reaction id="R" reversible="false"/>'),
    "reaction 'R' has no formula": document(
        reactions='<reaction id="R" reversible="false"><kineticLaw/></reaction>'
    ),
    "reaction 'R' changes species 'C', which is constant": document(
        species=FIXED, reactions=reaction("X", reactants=reference("C"))
    ),
    "reaction 'R' changes species 'C', which is set by a rule": document(
        species=species("X") + species("C"),
        rules=text.rule("C", "2"),
        reactions=reaction("X", reactants=reference("C")),
    ),
    "rule for 'C': 'C' is declared constant": document(species=FIXED, rules=text.rule("C", "2")),
    "event 'E': 'C' is declared constant": document(
        species=FIXED, events=event("X > 2", {"C": "2"})
    ),
    "event 'E' sets 'p', which has a rule": document(
        parameters=FREE, rules=text.rule("p", "2"), events=event("X > 2", {"p": "2"})
    ),
    "rule for 'p': there are two": document(parameters=FREE, rules=text.rule("p", "2") * 2),
    "initial assignment to 'p': its value is given twice": document(
        parameters=FREE, rules=text.rule("p", "2"), initial=text.initial("p", "3")
    ),
    "rules depend on each other in a circle: (a, b|b, a)": document(
        parameters=parameter("a", 1, False) + parameter("b", 1, False),
        rules=text.rule("a", "b") + text.rule("b", "a"),
    ),
    "initial values depend on each other": document(
        parameters=parameter("a") + parameter("b"),
        initial=text.initial("a", "b") + text.initial("b", "a"),
    ),
    "initial assignment to 'q': unknown symbol 'q'": document(initial=text.initial("q", "1")),
    "rule for 'q': unknown species or parameter 'q'": document(rules=text.rule("q", "1")),
    "two events are called 'E'": document(events=event("X > 2", {"X": "1"}) * 2),
    "event 'E' has no trigger": document(
        events=event("X > 2", {"X": "1"}).replace(
            f'<trigger initialValue="true" persistent="true">{text.math("X > 2")}</trigger>', ""
        )
    ),
    "unknown symbol 'Q'": document(reactions=reaction("Q*X")),
    "unknown species in a reaction 'Q'": document(reactions=reaction("X", products=reference("Q"))),
    "species 'X': unknown compartment 'Cell'": document(
        compartments=text.CELL.replace("Cell", "D")
    ),
    "unknown function 'f'": document(reactions=reaction("f(X)")),
    "function 'f' calls itself": document(
        functions=text.function("f", "lambda(x, g(x))") + text.function("g", "lambda(x, f(x))"),
        reactions=reaction("f(X)"),
    ),
    "f takes 1 argument": document(
        functions=text.function("f", "lambda(x, x)"), reactions=reaction("f(X, X)")
    ),
    "reaction 'R': unknown symbol 'X'; did you mean 'x'": document(
        functions=text.function("f", "lambda(x, x*X)"), reactions=reaction("f(1)")
    ),
    "piecewise without <otherwise>": document(reactions=reaction("piecewise(1, X > 2)")),
    "factorial is supported only": document(reactions=reaction("factorial(X)")),
    "the number inf": document(reactions=reaction("<infinity/>")),
    "species 'X' is declared twice": document(species=species("X") * 2),
    "the identifier 'X' is declared twice": document(parameters=parameter("X")),
    "has no species": document(species="", reactions=""),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_unsupported_elements_are_refused_by_name(read: Read, reason: str) -> None:
    with pytest.raises(InputError, match=rf"model\.xml: .*{reason}"):
        read(REFUSED[reason])


def test_missing_library_names_the_remedy(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libsbml", None)
    with pytest.raises(InputError, match=r"pip install 'surrogate-toolkit\[sbml\]'"):
        read(document())
