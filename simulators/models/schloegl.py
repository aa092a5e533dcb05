"""Schlögl's model: one species, two stable levels, noise chooses between them."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def schloegl() -> ReactionNetwork:
    """Schlögl (1972) in the usual parameters (Cao & Petzold 2006); A and B stay constant."""
    return ReactionNetwork(
        name="schloegl",
        title="Schlögl's autocatalytic reactions: bistable, low near 85 and high near 565",
        reference="Schlögl, Z. Physik 253 (1972) 147; Cao & Petzold, J. Comput. Phys. 212 (2006) 6",
        species={"X": 250},
        parameters={"k1": 3e-7, "k2": 1e-4, "k3": 1e-3, "k4": 3.5, "A": 1e5, "B": 2e5},
        reactions=[
            Reaction("autocatalysis", "2 X -> 3 X", "k1*A"),
            Reaction("reverse", "3 X -> 2 X", "k2"),
            Reaction("inflow", "0 -> X", "k3*B"),
            Reaction("outflow", "X -> 0", "k4"),
        ],
        until=5,
        points=51,
    )
