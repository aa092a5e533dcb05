"""Every built-in model is well formed, and its rates are safe in every state."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from simulators import ReactionNetwork, models, rates
from simulators.errors import InputError
from simulators.kernels.codegen.program import lower
from simulators.kernels.codegen.proofs import proved

LAWS = {
    "esirs": ["S + I + R"],
    "sir": ["S + I + R"],
    "seir": ["S + E + I + R"],
    "sirs": ["S + I + R"],
    "lotka_volterra": [],
    "birth_death": [],
    "dimerisation": ["P + 2*P2"],
    "toggle_switch": [],
    "schloegl": [],
}


@pytest.fixture(params=list(models.MODELS))
def network(request: pytest.FixtureRequest) -> ReactionNetwork:
    return models.get(request.param)


def test_every_model_has_its_laws(network: ReactionNetwork) -> None:
    assert [str(law) for law in network.conservation_laws] == LAWS[network.name]


def test_table_and_function_agree(network: ReactionNetwork) -> None:
    assert getattr(models, network.name)() == network


def test_every_model_has_a_title_a_reference_and_a_sensible_grid(network: ReactionNetwork) -> None:
    assert network.title
    assert network.reference
    assert 30 <= network.points <= 100
    assert str(network).startswith(f"{network.name}: {network.title}")
    assert all(reaction.name in str(network) for reaction in network.reactions)
    assert ReactionNetwork.from_dict(network.to_dict()) == network


def test_starts_from_whole_counts_that_add_up(network: ReactionNetwork) -> None:
    counts = network.initial_counts(network.parameters)
    assert all(count >= 0 and count == int(count) for count in counts.values())
    if network.population:
        assert sum(counts.values()) == network.parameters[network.population]
        double = {**network.parameters, network.population: 2 * sum(counts.values())}
        assert sum(network.initial_counts(double).values()) == 2 * sum(counts.values())


def test_no_reaction_fires_without_its_reactants(network: ReactionNetwork) -> None:
    levels = (0, 1, 2, 3, 50, 1000)
    for state in itertools.product(levels, repeat=len(network.species)):
        counts = dict(zip(network.species, state, strict=True))
        values = counts | dict(network.parameters)
        for reaction, law in zip(network.reactions, network.propensities, strict=True):
            rate = float(rates.evaluate(law, values))
            short = any(counts[name] < need for name, need in reaction.sides[0].items())
            assert np.isfinite(rate)
            assert rate == 0 if short else rate > 0, (reaction, counts)


def test_rates_are_proved_safe(network: ReactionNetwork) -> None:
    """The kernels may then leave out their checks."""
    program = lower(network, network.propensities, network.parameters)
    constants = program.constant_values(network.parameters, 1)
    assert proved(program, constants)
    assert program.vectorises


def test_unknown_model_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown model 'esir'; did you mean 'esirs'"):
        models.get("esir")


def test_listing_models_loads_no_compiler() -> None:
    code = (
        "import sys, simulators.models; sys.exit('numba' in sys.modules or 'xarray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
