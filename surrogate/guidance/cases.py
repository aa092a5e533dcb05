"""The cases of a scenario: conjunctions A_1, ..., A_m whose union it is, with particles for each.

A sample that meets N(x) of the cases counts 1/N(x) in each of them, so that

    P(A_1 or ... or A_m) = Σ_i E[1_{A_i}(x) / N(x)],

overlapping or not (Karp and Luby 1983, "Monte-Carlo algorithms for enumeration and reliability
problems"). A case of probability P_i of whose particles a share e_i is effective gets particles in
proportion to P_i / √e_i, which makes the ESS of all greatest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from constraints.errors import ImpossibleError
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.decoder import NO_SIGNAL, Lookahead, Pins, Proposal
from surrogate.random import Sampling, stream

LOOKAHEAD_DRAWS = 2_000  # plain samples that a look-ahead is learned from
EVEN_SHARE = 0.1  # of the particles, divided evenly: scouts may have missed a case


@dataclass(frozen=True)
class Case:
    """A conjunction: its number among the scenario's, its conditions, and a guess of them."""

    number: int
    pins: Pins
    lookahead: Lookahead | None = None
    proposal: Proposal | None = None


def cases_of(scenario: Scenario, seed: int) -> list[Case]:
    """The cases that a decoder can meet, with look-aheads learned from its plain draws."""
    decoder, found = scenario.prior.decoder, list[tuple[int, Pins]]()
    assert decoder is not None
    for i, program in enumerate(scenario.cases):
        try:
            found.append((i, scenario.pins_of(program)))
        except ImpossibleError:
            if not found and i + 1 == len(scenario.cases):
                raise
    if not decoder.looks_ahead or not any(pins.total for _, pins in found):
        return [Case(i, pins) for i, pins in found]
    nothing = torch.zeros(LOOKAHEAD_DRAWS, *scenario.prior.shape)
    plain = decoder.draw(nothing, NO_SIGNAL, stream(seed, Sampling.LOOKAHEAD)).x
    return [
        Case(i, pins, decoder.lookahead(plain, pins) if pins.total else None) for i, pins in found
    ]


def log_share(scenario: Scenario, case: Case, x: Tensor) -> Tensor:
    """log 1/N(x) of points (B, D) that meet the case, -inf of others: (B,)."""
    if len(scenario.cases) == 1:
        return torch.zeros(len(x), dtype=torch.float64)
    met = scenario.met_cases(x)
    return torch.where(met[case.number], -met.sum(0).double().log(), -torch.inf)


@dataclass(frozen=True)
class Allocation:
    """Which share of the particles each case gets, and how many of all these are effective."""

    shares: tuple[float, ...]
    effective: float

    @classmethod
    def of(cls, log_p: Sequence[float], effective: Sequence[float]) -> Allocation:
        """By estimates of each case: log P_i, and the share e_i of its particles."""
        count, even = len(log_p), 1 / len(log_p)
        if max(log_p) == -math.inf:
            return cls((even,) * count, 0.0)
        p = [math.exp(each - max(log_p)) for each in log_p]
        needed = [a / math.sqrt(e) if a else 0.0 for a, e in zip(p, effective, strict=True)]
        some = EVEN_SHARE if count > 1 else 0.0
        shares = [some * even + (1 - some) * each / sum(needed) for each in needed]
        spread = sum(a**2 / (s * e) for a, s, e in zip(p, shares, effective, strict=True) if a)
        return cls(tuple(shares), sum(p) ** 2 / spread)

    def counts(self, particles: int) -> list[int]:
        """Particles of each case, at least one."""
        return [max(1, math.ceil(share * particles - 1e-9)) for share in self.shares]
