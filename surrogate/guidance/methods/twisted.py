"""The method `twisted`; its algorithm is in `surrogate.guidance.twisted_batches`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surrogate.guidance.jacobian import jacobian_of_data, jacobian_option
from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, particles_option, weighted_option
from surrogate.settings import option

if TYPE_CHECKING:
    from surrogate.guidance.prior import Prior
    from surrogate.guidance.scenario import Scenario

LEVELS = 40  # noise levels by default
DECODED_LEVELS = 20  # the same where a decoder takes over early, of plain samples too
PARTICLES_PER_SAMPLE = 3
MIN_PARTICLES = 4_000  # by default


@dataclass(frozen=True)
class TwistedSettings(Settings):
    """Settings of twisted particles."""

    particles: int | None = particles_option(
        f"{PARTICLES_PER_SAMPLE} for each sample, at least {MIN_PARTICLES:,}; more where "
        "these are too few"
    )
    steps: int | None = option(
        None,
        type=int,
        low=3,
        high=10_000,
        help="Noise levels.",
        shown=f"{DECODED_LEVELS} for trajectories with a decoder, which the last levels are left "
        f"to, else {LEVELS}",
    )
    weighted: bool = weighted_option()
    keep_degenerate: bool = option(
        False, help="Return the samples of a degenerate run, which is an error otherwise."
    )
    jacobian: str = jacobian_option("network for images, else gaussian")


class Twisted(Deferred[TwistedSettings]):
    """The Twisted Diffusion Sampler in independent batches."""

    name = "twisted"
    summary = (
        "particles along the reverse diffusion, guided and weighted by the probability of the "
        "scenario"
    )
    settings = TwistedSettings
    needs_pilot = True
    algorithm = "surrogate.guidance.twisted_batches"

    def resolve(self, settings: TwistedSettings, scenario: Scenario) -> TwistedSettings:
        return replace(
            settings,
            steps=settings.steps or levels_for(scenario.prior),
            jacobian=jacobian_of_data(scenario, settings.jacobian),
        )


def levels_for(prior: Prior) -> int:
    """The default number of noise levels."""
    early = prior.decoder is not None and prior.decoder.early
    return DECODED_LEVELS if early else LEVELS


def particles_for(samples: int) -> int:
    """The default number of particles."""
    return max(PARTICLES_PER_SAMPLE * samples, MIN_PARTICLES)


register(Twisted())
