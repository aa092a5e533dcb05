"""The method `sequential`; its algorithm is in `surrogate.guidance.sequential`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, particles_option, weighted_option

PARTICLES_PER_SAMPLE = 6
MIN_PARTICLES = 8_000  # by default
MAX_PARTICLES = 60_000  # the same, where few keep their ancestors
ENOUGH_ANCESTORS = 500  # effective ones, that particles are added for


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
        "learned from plain draws; for comparisons of linear terms, such as bridges and forecasts"
    )
    settings = SequentialSettings
    needs_pilot = True
    algorithm = "surrogate.guidance.sequential"


def particles_for(samples: int, ancestor_share: float) -> int:
    """The default number of particles, of which this share are effective ancestors."""
    usual = max(PARTICLES_PER_SAMPLE * samples, MIN_PARTICLES)
    needed = math.ceil(ENOUGH_ANCESTORS / max(ancestor_share, 1e-9))
    return max(usual, min(needed, MAX_PARTICLES))


register(Sequential())
