"""Birth and death: the simplest network, and its answer is known exactly."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def birth_death() -> ReactionNetwork:
    """From X(0) = 0 the count is Poisson with mean birth/death·(1 - exp(-death·t))."""
    return ReactionNetwork(
        name="birth_death",
        title="birth and death: Poisson at all times",
        reference="Gardiner, Handbook of Stochastic Methods, Springer (1985), section 7.1",
        species={"X": 0},
        parameters={"birth": 10.0, "death": 0.1},
        reactions=[
            Reaction("birth", "0 -> X", "birth"),
            Reaction("death", "X -> 0", "death"),
        ],
        until=50,
        points=51,
    )
