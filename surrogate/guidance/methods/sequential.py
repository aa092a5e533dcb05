"""The method `sequential`; its algorithm is in `surrogate.guidance.sequential`."""

from __future__ import annotations

from dataclasses import dataclass

from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings
from surrogate.settings import option

PARTICLES_PER_SAMPLE = 6
MIN_PARTICLES = 8_000  # by default


@dataclass(frozen=True)
class SequentialSettings(Settings):
    """Settings of sequential particles."""

    particles: int | None = option(
        None,
        type=int,
        low=8,
        high=10**7,
        help="Particles in all.",
        shown=f"{PARTICLES_PER_SAMPLE} for each sample, at least {MIN_PARTICLES:,}",
    )
    weighted: bool = option(
        False, help="Return weighted particles (log_weight) instead of resampling them."
    )


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
