"""The tasks of `benchmarks/rare.py`: networks, events, and their probabilities.

Probabilities of first passage are of the chain with an absorbing set, by uniformisation. The futile
cycle and the enzymatic networks are those of Kuwahara & Mura (2008) and Daigle et al. (2011); the
bias of rates for the weighted simulation is set by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import expm_multiply

from simulators import Reaction, ReactionNetwork, models


@dataclass(frozen=True)
class Task:
    """`rule` has probability `truth`; `biased`: reaction -> factor of its rate, `event` the
    condition that weighted simulation stops at; `within`: the relative error wanted."""

    name: str
    network: Callable[[], ReactionNetwork]
    rule: str
    truth: float
    event: tuple[str, str, float] | None = None
    biased: Mapping[str, float] | None = None
    within: float = 0.1


def birth_death() -> ReactionNetwork:
    return ReactionNetwork(
        name="birth-death",
        species={"X": 40},
        parameters={"k": 1.0, "d": 0.025},
        reactions=[Reaction("birth", "0 -> X", "k"), Reaction("death", "X -> 0", "d")],
        until=100,
        points=101,
    )


def isomerisation() -> ReactionNetwork:
    return ReactionNetwork(
        name="isomerisation",
        species={"A": 100, "B": 0},
        parameters={"k": 0.12, "d": 1.0},
        reactions=[Reaction("forth", "A -> B", "k"), Reaction("back", "B -> A", "d")],
        until=10,
        points=101,
    )


def futile_cycle() -> ReactionNetwork:
    return ReactionNetwork(
        name="futile cycle",
        species={"S1": 1, "S2": 50, "S3": 0, "S4": 1, "S5": 50, "S6": 0},
        parameters={"a": 1.0, "b": 0.1},
        reactions=[
            Reaction("R1", "S1 + S2 -> S3", "a"),
            Reaction("R2", "S3 -> S1 + S2", "a"),
            Reaction("R3", "S3 -> S1 + S5", "b"),
            Reaction("R4", "S4 + S5 -> S6", "a"),
            Reaction("R5", "S6 -> S4 + S5", "a"),
            Reaction("R6", "S6 -> S4 + S2", "b"),
        ],
        until=100,
        points=101,
    )


def motility() -> ReactionNetwork:
    ones = ("codY", "flache", "SigD_hag", "hag", "CodY_flache", "CodY_hag")
    return ReactionNetwork(
        name="motility",
        species={"CodY": 10, "SigD": 10, "Hag": 10, **dict.fromkeys(ones, 1)},
        parameters={"make": 0.1, "decay": 2e-4, "fast": 1.0, "on": 0.01, "off": 0.1, "on2": 0.02},
        reactions=[
            Reaction("R1", "codY -> codY + CodY", "make"),
            Reaction("R2", "CodY -> 0", "decay"),
            Reaction("R3", "flache -> flache + SigD", "fast"),
            Reaction("R4", "SigD -> 0", "decay"),
            Reaction("R5", "SigD_hag -> SigD + hag + Hag", "fast"),
            Reaction("R6", "Hag -> 0", "decay"),
            Reaction("R7", "SigD + hag -> SigD_hag", "on"),
            Reaction("R8", "SigD_hag -> SigD + hag", "off"),
            Reaction("R9", "CodY + flache -> CodY_flache", "on2"),
            Reaction("R10", "CodY_flache -> CodY + flache", "off"),
            Reaction("R11", "CodY + hag -> CodY_hag", "on"),
            Reaction("R12", "CodY_hag -> CodY + hag", "off"),
        ],
        until=10,
        points=101,
    )


TASKS = (
    Task("birth-death", birth_death, "reaches(X >= 80, 0, 100)", 2.98596e-7,
         ("X", ">=", 80), {"birth": 1.45, "death": 0.8}),
    Task("isomerisation", isomerisation, "reaches(B >= 30)", 1.19115e-5,
         ("B", ">=", 30), {"forth": 1.4, "back": 0.75}),
    Task("isomerisation, 40", isomerisation, "reaches(B >= 40)", 5.016e-12,
         ("B", ">=", 40), {"forth": 1.7, "back": 0.6}, within=0.2),
    Task("futile cycle", futile_cycle, "reaches(S5 <= 25)", 1.73815e-7,
         ("S5", "<=", 25), {"R3": 0.35, "R6": 2.0}),
    Task("motility", motility, "reaches(CodY >= 20)", 2.41458e-7,
         ("CodY", ">=", 20), {"R1": 6.0, "R10": 2.0, "R12": 2.0, "R9": 0.5, "R11": 0.5}),
    Task("epidemic, I(20) >= 50", models.esirs, "I(20) >= 50", 6.010895e-7),
    Task("epidemic, I <= 12", models.esirs, "forall t: I(t) <= 12", 2.497387e-10),
)  # fmt: skip


def conditional_futile_cycle(times: list[int]) -> np.ndarray:
    """The law of S5 at some times given S5 <= 25 at some moment before 100: (len(times), 101).

    States are (S3, S6, S5) with S2 = 100 - S3 - S6 - S5, twice: before and after the event.
    """
    states = [(a, b, s) for a in (0, 1) for b in (0, 1) for s in range(101) if a + b + s <= 100]
    place = {state: at for at, state in enumerate(states)}
    size = len(states)
    rates = lil_matrix((2 * size, 2 * size))

    def add(source: int, target: tuple[int, int, int], done: bool, rate: float) -> None:
        if rate > 0 and target in place:
            after = done or target[2] <= 25
            rates[source, place[target] + after * size] += rate
            rates[source, source] -= rate

    for done in (False, True):
        for (a, b, s), at in place.items():
            at, s2 = at + done * size, 100 - a - b - s
            add(at, (1, b, s), done, (1 - a) * s2 * 1.0)
            add(at, (0, b, s), done, a * 1.0)
            add(at, (0, b, s + 1), done, a * 0.1)
            add(at, (a, 1, s - 1), done, (1 - b) * s * 1.0)
            add(at, (a, 0, s + 1), done, b * 1.0)
            add(at, (a, 0, s), done, b * 0.1)
    generator = rates.tocsr()
    grid = [0, *times]
    forward = np.zeros(2 * size)
    forward[place[0, 0, 50]] = 1.0
    ahead = []
    for begin, end in pairwise(grid):
        forward = expm_multiply(generator.T * float(end - begin), forward)
        ahead.append(forward)
    backward = np.zeros(2 * size)
    backward[size:] = 1.0
    if times[-1] != 100:
        backward = expm_multiply(generator * float(100 - times[-1]), backward)
    laws = np.zeros((len(times), 101))
    for at in range(len(times) - 1, -1, -1):
        joint = ahead[at] * backward
        for state, where in place.items():
            laws[at, state[2]] += joint[where] + joint[where + size]
        if at:
            backward = expm_multiply(generator * float(times[at] - times[at - 1]), backward)
    return laws / laws.sum(1, keepdims=True)
