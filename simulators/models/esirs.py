"""Ergodic SIRS: SIRS in an open population, with infections from outside."""

from simulators.network import ReactionNetwork
from simulators.reactions import Reaction


def esirs() -> ReactionNetwork:
    """Kermack & McKendrick (1927), with external infection so that it never dies out."""
    return ReactionNetwork(
        name="esirs",
        title="ergodic SIRS epidemic: immunity wanes, infection also comes from outside",
        reference="Kermack & McKendrick, Proc. R. Soc. A 115 (1927) 700",
        species={"S": "N - 5", "I": 5, "R": 0},
        parameters={
            "beta": 2.36012158,
            "gamma": 1.6711464,
            "omega": 0.90665231,
            "epsilon": 0.63583386,
            "N": 100,
        },
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
            Reaction("recovery", "I -> R", "gamma"),
            Reaction("waning", "R -> S", "omega"),
            Reaction("import", "S -> I", "epsilon"),
        ],
        population="N",
        start="uniform",
        until=3.2,
        points=30,
    )
