"""Lotka-Volterra: prey and predators in noisy cycles."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def lotka_volterra() -> ReactionNetwork:
    """Gillespie (1977), with the rate constants and start of Wilkinson (2006)."""
    return ReactionNetwork(
        name="lotka_volterra",
        title="Lotka-Volterra: prey and predators cycle",
        reference="Gillespie, J. Phys. Chem. 81 (1977) 2340; Wilkinson, Stochastic Modelling "
        "for Systems Biology (2006)",
        species={"prey": 50, "predator": 100},
        parameters={"birth": 1.0, "predation": 0.005, "death": 0.6},
        reactions=[
            Reaction("prey_birth", "prey -> 2 prey", "birth"),
            Reaction("predation", "prey + predator -> 2 predator", "predation"),
            Reaction("predator_death", "predator -> 0", "death"),
        ],
        until=15,  # later on predators may die out and prey grow without bound
        points=100,
    )
