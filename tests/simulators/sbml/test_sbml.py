"""SBML -> network: each feature on a small file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("libsbml", reason="python-libsbml is optional")

from simulators import InputError, ReactionNetwork, rates, simulate
from tests.simulators.sbml import texts as text
from tests.simulators.sbml.texts import document, event, parameter, reaction, reference, species

Read = Callable[[str], ReactionNetwork]


def laws(network: ReactionNetwork) -> list[str]:
    return [str(law) for law in network.propensities]


def test_plain_model(read: Read) -> None:
    network = read(document('id="m" name="A title" timeUnits="second"'))
    assert (network.name, network.title, network.time_unit) == ("m", "A title", "second")
    assert {name: str(count) for name, count in network.species.items()} == {"X": "10"}
    assert dict(network.parameters) == {}
    assert [(r.equation, r.mass_action) for r in network.reactions] == [("X -> 0", False)]
    assert laws(network) == ["X"]
    assert network.times.tolist() == list(range(51))


def test_name_falls_back_to_the_file(read: Read) -> None:
    assert read(document("")).name == "model"


# --- amounts and concentrations -------------------------------------------------------------------


def test_species_with_substance_units_is_an_amount(read: Read) -> None:
    assert laws(read(document())) == ["X"]


def test_species_without_is_a_concentration(read: Read) -> None:
    network = read(document(species=species("X", amount=False)))
    assert laws(network) == ["X/Cell"]
    assert dict(network.parameters) == {"Cell": 2.0}
    assert str(network.species["X"]) == "10"


def test_level_2_species_is_a_concentration_by_default(read: Read) -> None:
    network = read(
        document(
            level=2,
            version=4,
            compartments='<compartment id="Cell" size="4"/>',
            species='<species id="X" compartment="Cell" initialAmount="3"/>',
            reactions='<reaction id="R" reversible="false"><listOfReactants><speciesReference '
            f'species="X"/></listOfReactants><kineticLaw>{text.math("X")}</kineticLaw></reaction>',
        )
    )
    assert laws(network) == ["X/Cell"]
    assert network.reactions[0].equation == "X -> 0"


@pytest.mark.parametrize("amount", [True, False])
def test_initial_concentration_times_size(read: Read, amount: bool) -> None:
    network = read(document(species=species("X", 'initialConcentration="3"', amount=amount)))
    assert str(network.species["X"]) == "6"


def test_rounding_of_a_product_is_forgiven(read: Read) -> None:
    cell = '<compartment id="Cell" size="30" constant="true"/>'
    network = read(document(compartments=cell, species=species("X", 'initialConcentration="0.1"')))
    assert str(network.species["X"]) == "3"


@pytest.mark.parametrize(("amount", "count"), [(True, "7"), (False, "14")])
def test_initial_assignment(read: Read, amount: bool, count: str) -> None:
    network = read(
        document(
            species=species("X", "", amount=amount),
            parameters=parameter("a", 3) + parameter("b", None),
            initial=text.initial("X", "b") + text.initial("b", "2*a + 1"),
        )
    )
    assert str(network.species["X"]) == count
    assert network.parameters["b"] == 7.0


def test_initial_assignment_reads_rules_time_and_sizes(read: Read) -> None:
    network = read(
        document(
            compartments='<compartment id="Cell" constant="true"/>',
            species=species("X", 'initialConcentration="2"'),
            parameters=parameter("a", None) + parameter("r", None, False),
            initial=text.initial("a", "r + time + X") + text.initial("Cell", "5"),
            rules=text.rule("r", "X + Cell"),
        )
    )
    assert network.parameters["a"] == 25.0


@pytest.mark.parametrize(("amount", "rule"), [(True, "2*X"), (False, "2*X*Cell")])
def test_species_set_by_a_rule(read: Read, amount: bool, rule: str) -> None:
    network = read(
        document(
            species=species("X") + species("Y", "", amount=amount), rules=text.rule("Y", "2*X")
        )
    )
    assert list(network.species) == ["X"]
    assert str(network.rules["Y"]) == rule


def test_concentration_set_by_a_rule_is_read_back_as_one(read: Read) -> None:
    network = read(
        document(
            species=species("X") + species("Y", "", amount=False),
            rules=text.rule("Y", "3*X"),
            reactions=reaction("Y", reactants=reference("X")),
        )
    )
    values = {"X": 4.0, "Cell": 2.0}
    assert rates.evaluate(network.propensities[0], values) == 12.0


def test_rules_in_any_order(read: Read) -> None:
    network = read(
        document(
            parameters=parameter("a", None, False) + parameter("b", None, False),
            rules=text.rule("a", "b + 1") + text.rule("b", "2*X"),
        )
    )
    assert str(network.inlined_rules["a"]) == "2*X + 1"


# --- reactions ------------------------------------------------------------------------------------


def test_local_parameters_shadow_and_are_renamed(read: Read) -> None:
    local = '<localParameter id="{}" value="{}"/>'
    network = read(
        document(
            parameters=parameter("k", 2) + parameter("A_k", 9),
            reactions=reaction("k", name="A", products=reference("X"), local=local.format("k", 1))
            + reaction("k*X", name="B", products=reference("X"), local=local.format("X", 5))
            + reaction("k*X", name="C", reactants=reference("X")),
        )
    )
    assert laws(network) == ["A_k_", "k*B_X", "k*X"]
    assert dict(network.parameters) == {"k": 2.0, "A_k": 9.0, "A_k_": 1.0, "B_X": 5.0}


def test_boundary_species_are_left_alone(read: Read) -> None:
    boundary = 'initialAmount="{}" boundaryCondition="true"'
    network = read(
        document(
            species=species("X")
            + species("A", boundary.format(5))
            + species("B", boundary.format(0.5)),
            reactions=reaction(
                "A*B", reactants=reference("A") + reference("B"), products=reference("X")
            ),
        )
    )
    assert network.reactions[0].equation == "0 -> X"
    assert list(network.species) == ["X", "A"]  # recorded like any other
    assert dict(network.parameters) == {"B": 0.5}


def test_constant_species_with_a_fraction_is_a_parameter(read: Read) -> None:
    constant = species("C", 'initialConcentration="0.25" constant="true"', amount=False)
    network = read(
        document(species=species("X") + constant, reactions=reaction("C", products=reference("X")))
    )
    assert dict(network.parameters) == {"Cell": 2.0, "C": 0.5}
    assert laws(network) == ["C/Cell"]


def test_stoichiometry(read: Read) -> None:
    network = read(
        document(
            parameters=parameter("n", 3),
            initial=text.initial("s", "2*n"),
            reactions=reaction(
                "X",
                reactants=reference("X", 'stoichiometry="2"') + reference("X"),
                products=reference("X", 'id="s"'),
            ),
        )
    )
    assert network.reactions[0].equation == "3 X -> 6 X"


def level_2_reaction(stoichiometry: str) -> str:
    product = '<speciesReference species="X"><stoichiometryMath>{}</stoichiometryMath>'
    return document(
        level=2,
        version=4,
        compartments='<compartment id="Cell" size="1"/>',
        species='<species id="X" compartment="Cell" initialAmount="3"/>',
        parameters='<parameter id="n" value="3"/>',
        reactions='<reaction id="R"><listOfProducts>'
        f"{product.format(text.math(stoichiometry))}</speciesReference></listOfProducts>"
        f"<kineticLaw>{text.math('2')}</kineticLaw></reaction>",
    )


def test_constant_stoichiometry_math(read: Read) -> None:
    assert read(level_2_reaction("n + 1")).reactions[0].equation == "0 -> 4 X"


@pytest.mark.parametrize("law", ["X", "X*(X - 1)/2", "X^(-1)", "exp(-X)", "Cell*X"])
def test_reversible_flag_of_a_one_way_law_is_harmless(read: Read, law: str) -> None:
    network = read(document(reactions=reaction(law, attributes='reversible="true"')))
    assert len(network.reactions) == 1


@pytest.mark.parametrize(
    "law",
    ["X - Y", "Cell*(X - Y)", "-X", "X + (-2)*Y", "r", "f(X, Y)", "piecewise(X - Y, X > 2, 1)"],
)
def test_net_rates_of_reversible_reactions_are_refused(read: Read, law: str) -> None:
    parts: dict[str, Any] = {
        "species": species("X") + species("Y"),
        "parameters": parameter("r", None, False) + parameter("s", None, False),
        "rules": text.rule("r", "2*s") + text.rule("s", "X - Y"),
        "functions": text.function("f", "lambda(a, b, a - b)"),
    }
    with pytest.raises(
        InputError, match=r"reaction 'R' is reversible and its law .* two reactions"
    ):
        read(document(reactions=reaction(law, attributes='reversible="true"'), **parts))
    assert read(document(reactions=reaction(law), **parts))


def test_reserved_identifiers_are_renamed(read: Read) -> None:
    names = ["time", "pi", "sample", "step", "true", "not", "pi_"]
    ci = "".join(f"<ci>{name}</ci>" for name in names)
    clock = (
        '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol>'
    )
    network = read(
        document(
            species=species("X") + species("time"),
            parameters="".join(parameter(name) for name in names[1:]),
            reactions=reaction(f"<apply><plus/>{ci}{clock}</apply>", products=reference("time")),
        )
    )
    assert laws(network) == ["time_ + pi__ + sample_ + step_ + true_ + not_ + pi_ + time"]
    assert network.reactions[0].equation == "0 -> time_"
    assert ReactionNetwork.from_dict(network.to_dict()) == network


# --- events ---------------------------------------------------------------------------------------


def test_event(read: Read) -> None:
    network = read(
        document(
            species=species("X") + species("Y", amount=False),
            parameters=parameter("k", 1, False) + parameter("p", 2),
            events=event(
                "time >= 2.5 && X < 3",
                {"X": "X + 1", "Y": "2*Y", "k": "Y"},
                more=f"<priority>{text.math('3*p')}</priority><delay>{text.math('0')}</delay>",
                flags='initialValue="false" persistent="false"',
                attributes='id="E" useValuesFromTriggerTime="false"',
            ),
        )
    )
    (found,) = network.events
    assert str(found.trigger) == "time >= 2.5 and X < 3"
    assert {k: str(v) for k, v in found.assignments.items()} == {
        "X": "X + 1",
        "Y": "2*(Y/Cell)*Cell",
        "k": "Y/Cell",
    }
    flags = (found.name, found.initially, found.persistent, found.values_at_trigger)
    assert flags == ("E", False, False, False)
    assert found.priority == 6.0
    assert network.variables == ("X", "Y", "k")


def test_level_2_events_are_initially_true_and_persistent(read: Read) -> None:
    content = document(
        level=2,
        version=4,
        compartments='<compartment id="Cell" size="1"/>',
        species='<species id="X" compartment="Cell" initialAmount="3"/>',
        reactions="",
        events=event("X > 2", {"X": "1"}, flags="", attributes="")
        + event("X > 2", {"X": "1"}, flags="", attributes='useValuesFromTriggerTime="false"'),
    )
    first, second = read(content).events
    assert (first.name, first.initially, first.persistent) == ("event1", True, True)
    assert (first.values_at_trigger, second.values_at_trigger) == (True, False)


def test_event_that_does_nothing_is_left_out(read: Read) -> None:
    assert read(document(events=event("X > 2", {}))).events == ()


def test_events_on_concentrations_give_whole_counts(read: Read) -> None:
    cell = '<compartment id="Cell" size="0.3" constant="true"/>'
    network = read(
        document(
            compartments=cell,
            species=species("X", amount=False),
            reactions=reaction("0", reactants=reference("X")),
            events=event("time >= 1.5", {"X": "X + 1/Cell"}),
        )
    )
    data = simulate(network, samples=2, times=[0.0, 1.0, 2.0])
    assert data["X"].values.tolist() == [[10, 10, 11]] * 2


# --- what does not matter, and what is refused ----------------------------------------------------


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
def test_refusals(read: Read, reason: str) -> None:
    with pytest.raises(InputError, match=rf"model\.xml: .*{reason}"):
        read(REFUSED[reason])


def test_missing_library_names_the_remedy(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libsbml", None)
    with pytest.raises(InputError, match=r"pip install 'surrogate-toolkit\[sbml\]'"):
        read(document())
