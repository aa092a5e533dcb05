"""The method `sequential`; its algorithm is in `surrogate.guidance.sequential`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, particles_option, weighted_option

PARTICLES_PER_SAMPLE = 6
MIN_PARTICLES = 8_000  # by default
MAX_PARTICLES = 80_000  # the same, where few keep their ancestors
# effective ancestors that particles are added for: samples with fewer share their pasts, and trees
# tell 5,000 of 3,000 ancestors from exact draws in 56 %, of 8,000 in 50 % (eSIRS, I <= 20)
ENOUGH_ANCESTORS = 500
ANCESTORS_PER_SAMPLE = 1.5


@dataclass(frozen=True)
class SequentialSettings(Settings):
    """Settings of sequential particles."""

    particles: int | None = particles_option(
        f"{PARTICLES_PER_SAMPLE} for each sample, at least {MIN_PARTICLES:,}; up to "
        f"{MAX_PARTICLES:,} where few keep their ancestors"
    )
    weighted: bool = weighted_option()


class Sequential(Deferred[SequentialSettings]):
    """A particle filter over the values that the decoder draws, without the diffusion."""

    name = "sequential"
    summary = (
        "a particle filter over the values that the decoder draws, step by step, with a look-ahead "
        "learned from plain draws; for comparisons of linear terms, such as bridges and forecasts, "
        "for alternatives of these, and for observations"
    )
    settings = SequentialSettings
    needs_pilot = True
    algorithm = "surrogate.guidance.sequential"


def particles_for(samples: int, ancestor_share: float) -> int:
    """The default number of particles, of which this share are effective ancestors."""
    usual = max(PARTICLES_PER_SAMPLE * samples, MIN_PARTICLES)
    enough = max(ENOUGH_ANCESTORS, ANCESTORS_PER_SAMPLE * samples)
    needed = math.ceil(enough / max(ancestor_share, 1e-9))
    return max(usual, min(needed, MAX_PARTICLES))


register(Sequential())
