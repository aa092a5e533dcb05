"""SEIR: SIR with a latent period, exposed before infectious."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def seir() -> ReactionNetwork:
    """Anderson & May (1991): latent for 1/sigma, infectious for 1/gamma days, R0 = beta/gamma."""
    return ReactionNetwork(
        name="seir",
        title="SEIR epidemic in a closed population: a latent period before infectiousness",
        reference="Anderson & May, Infectious Diseases of Humans, Oxford (1991)",
        species={"S": "N - 10", "E": 0, "I": 10, "R": 0},
        parameters={"beta": 0.6, "sigma": 0.2, "gamma": 0.2, "N": 1000},
        reactions=[
            Reaction("exposure", "S + I -> E + I", "beta*S*I/N"),
            Reaction("onset", "E -> I", "sigma"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        population="N",
        until=100,
        points=51,
        time_unit="day",
    )
