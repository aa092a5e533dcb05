"""Why particles fail: the parts of a scenario, each by itself, on plain samples and on particles.

The parts are the conjuncts of the formula and the laws of the network. A part that hardly any
particle meets, though all are guided towards it, is to blame; otherwise one that no plain sample
meets; otherwise the pair that fewest meet together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

from constraints import Formula, compiled
from constraints.ast.formulas import And
from constraints.errors import Setting
from surrogate.errors import DegenerateError, SamplingError
from surrogate.guidance.outcome import Plain
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.twisted import Particles

MAX_PARTS = 40  # conjuncts that are evaluated by themselves
MIN_MET_ALONE = 0.01  # of the particles: a part that fewer meet is to blame by itself


class Part(NamedTuple):
    """A part of a scenario and who meets it: particles (B,), plain samples (n,)."""

    name: str
    particles: Tensor
    plain: Tensor


def weakest_part(scenario: Scenario, batches: Sequence[Particles], plain: Plain | None) -> str:
    """The part of the scenario that is to blame, in words; empty if there is one part alone."""
    every = _parts(scenario, torch.cat([batch.x for batch in batches]), plain)
    if len(every) < 2:
        return ""
    parts = [part for part in every if not bool(part.particles.all() and part.plain.all())]
    if not parts:
        return ""
    failing = min(parts, key=lambda part: _share(part.particles))
    if _share(failing.particles) < MIN_MET_ALONE:
        return f"{failing.name} is met by {_shares(failing.particles, failing.plain)}"
    unseen = min(parts, key=lambda part: int(part.plain.sum()))
    if plain is not None and not bool(unseen.plain.any()):
        return f"{unseen.name} is met by {_shares(unseen.particles, unseen.plain)}"

    if len(parts) == 1:
        return f"{unseen.name} is met by {_shares(unseen.particles, unseen.plain)}"

    def together(pair: tuple[Part, Part]) -> tuple[float, float]:
        one, other = pair
        return _share(one.plain & other.plain), _share(one.particles & other.particles)

    one, other = min(combinations(parts, 2), key=together)
    shares = _shares(one.particles & other.particles, one.plain & other.plain)
    return f"{one.name} and {other.name} are met together by {shares}"


def no_sample(
    scenario: Scenario, batches: Sequence[Particles], plain: Plain | None
) -> SamplingError:
    """The error of a run in which no particle meets the scenario."""
    count = sum(len(batch.x) for batch in batches)
    tried = f"none of {count:,} particles"
    if plain is not None:
        tried += f" and {plain.accepted or 'none'} of {len(plain.x):,} plain samples"
    cause = weakest_part(scenario, batches, plain)
    return SamplingError(
        f"{tried} meet the scenario, which is improbable or contradicts the model"
        + (f": {cause}" if cause else ""),
        value=count,
        remedy=[
            "relax that part" if cause else "ask for less",
            ", or try more ",
            Setting("particles"),
            " and ",
            Setting("steps"),
        ],
    )


def degenerate(reasons: list[str], cause: str, particles: int, steps: int) -> DegenerateError:
    """The error of a run of so many particles and noise levels that carries no information."""
    return DegenerateError(
        f"the run is degenerate: {'; '.join([*reasons, *([cause] if cause else [])])}",
        value=reasons,
        remedy=[
            "relax the scenario, or use more ",
            Setting("particles", 4 * particles),
            " and ",
            Setting("steps", 2 * steps),
            "; ",
            Setting("keep_degenerate", True),
            " returns the samples all the same",
        ],
    )


def _parts(scenario: Scenario, x: Tensor, plain: Plain | None) -> list[Part]:
    formula = scenario.program.statement  # observations have no verdict
    conjuncts = formula.parts if isinstance(formula, And) and formula.parts else (formula,)
    seen, unguided = _signals(scenario, x), None
    if plain is not None:
        unguided = _signals(scenario, plain.x)
    none = torch.zeros(0, dtype=torch.bool)
    found = []
    for part in conjuncts[:MAX_PARTS]:
        program = compiled(part, scenario.layout, scenario.program.end)
        met = program.verdict(scenario.grouped(seen))
        other = none if unguided is None else program.verdict(scenario.grouped(unguided))
        found.append(Part(_quoted(part), met, other))
    for name, law in scenario.rules.items():
        met, other = (
            none if values is None else law.verdict(values).reshape(-1, scenario.instances).all(1)
            for values in (seen, unguided)
        )
        found.append(Part(f"the law {name!r}", met, other))
    return found


def _signals(scenario: Scenario, x: Tensor) -> dict[str, Tensor]:
    return dict(scenario.prior.codec.signals_of(scenario.shaped(x)))


def _quoted(part: Formula) -> str:
    text = str(part)
    return f"'{text if len(text) <= 120 else text[:117] + '...'}'"


def _share(met: Tensor) -> float:
    return float(met.double().mean()) if len(met) else 0.0


def _shares(particles: Tensor, plain: Tensor) -> str:
    text = f"{int(particles.sum()):,} of {len(particles):,} particles"
    if not len(plain):
        return text
    return f"{text} and {int(plain.sum()):,} of {len(plain):,} plain samples"
