"""SIR: an epidemic that passes once through a closed population."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def sir() -> ReactionNetwork:
    """Kermack & McKendrick (1927); numbers as for influenza in an English boarding school."""
    return ReactionNetwork(
        name="sir",
        title="SIR epidemic in a closed population: influenza in a boarding school",
        reference="Kermack & McKendrick, Proc. R. Soc. A 115 (1927) 700; data BMJ 1 (1978) 587",
        species={"S": "N - 3", "I": 3, "R": 0},
        parameters={"beta": 1.66, "gamma": 0.44, "N": 763},
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        population="N",
        until=14,
        points=57,
        time_unit="day",
    )
