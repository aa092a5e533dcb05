"""Toggle switch: two genes repress each other, and one of them wins."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def toggle_switch() -> ReactionNetwork:
    """Gardner et al. (2000) in molecule counts; K molecules are one unit of concentration."""
    return ReactionNetwork(
        name="toggle_switch",
        title="genetic toggle switch: two repressors, two stable states",
        reference="Gardner, Cantor & Collins, Nature 403 (2000) 339",
        species={"U": 10, "V": 10},
        parameters={"alpha1": 50, "alpha2": 50, "beta": 2, "gamma": 2, "K": 10, "mu": 1},
        reactions=[
            Reaction("make_U", "0 -> U", "alpha1/(1 + (V/K)^beta)"),
            Reaction("make_V", "0 -> V", "alpha2/(1 + (U/K)^gamma)"),
            Reaction("lose_U", "U -> 0", "mu"),
            Reaction("lose_V", "V -> 0", "mu"),
        ],
        until=30,
        points=61,
    )
