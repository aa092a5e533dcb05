"""Dimerisation: two proteins bind and come apart; P + 2 P2 is conserved."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def dimerisation() -> ReactionNetwork:
    """Wilkinson (2006), dimerisation kinetics of a protein in a bacterial volume."""
    return ReactionNetwork(
        name="dimerisation",
        title="dimerisation of a protein, 2 P to P2 and back",
        reference="Wilkinson, Stochastic Modelling for Systems Biology (2006), section 7.2",
        species={"P": 301, "P2": 0},
        parameters={"bind": 0.00166, "unbind": 0.2},
        reactions=[
            Reaction("binding", "2 P -> P2", "bind"),
            Reaction("unbinding", "P2 -> 2 P", "unbind"),
        ],
        until=10,
        points=51,
        time_unit="second",
    )
