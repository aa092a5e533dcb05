"""SBML -> network: each feature on a small file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("libsbml", reason="python-libsbml is optional")

from simulators import InputError, ReactionNetwork, rates, simulate
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


def test_a_plain_model_becomes_a_network(read: Read) -> None:
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


def test_stoichiometry_becomes_the_equation(read: Read) -> None:
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


def test_an_event_keeps_its_trigger_and_assignments(read: Read) -> None:
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
