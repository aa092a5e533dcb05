"""SIRS: immunity wanes, so a first wave settles into an endemic disease or dies out."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def sirs() -> ReactionNetwork:
    """Kermack & McKendrick (1932): immune for 1/omega days, so damped waves follow the first."""
    return ReactionNetwork(
        name="sirs",
        title="SIRS epidemic in a closed population: immunity wanes, the disease turns endemic",
        reference="Kermack & McKendrick, Proc. R. Soc. A 138 (1932) 55",
        species={"S": "N - 10", "I": 10, "R": 0},
        parameters={"beta": 0.5, "gamma": 0.2, "omega": 0.02, "N": 1000},
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
            Reaction("recovery", "I -> R", "gamma"),
            Reaction("waning", "R -> S", "omega"),
        ],
        population="N",
        until=200,
        points=81,
        time_unit="day",
    )
