"""The method `sequential`; its algorithm is in `surrogate.guidance.sequential`."""

from __future__ import annotations

from dataclasses import dataclass

from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, particles_option, weighted_option

PARTICLES_PER_SAMPLE = 6
MIN_PARTICLES = 8_000  # by default


@dataclass(frozen=True)
class SequentialSettings(Settings):
    """Settings of sequential particles."""

    particles: int | None = particles_option(
        f"{PARTICLES_PER_SAMPLE} for each sample, at least {MIN_PARTICLES:,}"
    )
    weighted: bool = weighted_option()


class Sequential(Deferred[SequentialSettings]):
    """A particle filter over the values that the decoder draws, without the diffusion."""

    name = "sequential"
    summary = (
        "a particle filter over the values that the decoder draws, step by step; without "
        "look-ahead, so for scenarios about early steps, such as forecasts"
    )
    settings = SequentialSettings
    needs_pilot = True
    algorithm = "surrogate.guidance.sequential"


def particles_for(samples: int) -> int:
    """The default number of particles."""
    return max(PARTICLES_PER_SAMPLE * samples, MIN_PARTICLES)


register(Sequential())
