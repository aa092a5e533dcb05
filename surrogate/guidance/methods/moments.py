"""The method `moments`; its algorithm is in `surrogate.guidance.moments`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surrogate.guidance.jacobian import jacobian_of_formula, jacobian_option
from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, levels_option, recurrence_option, strength_option
from surrogate.settings import option

if TYPE_CHECKING:
    from surrogate.guidance.scenario import Scenario

PARTICLES_OF_EACH_SAMPLE = 4


@dataclass(frozen=True)
class MomentsSettings(Settings):
    """Settings of moment matching."""

    particles: int | None = option(
        None,
        type=int,
        low=1,
        high=10**7,
        help="Particles in all.",
        shown=f"{PARTICLES_OF_EACH_SAMPLE} for each sample",
    )
    steps: int = levels_option(40)
    jacobian: str = jacobian_option("gaussian for linear rules, else network")
    strength: float = strength_option()
    recurrence: int = recurrence_option()


class MomentMatching(Deferred[MomentsSettings]):
    """Guidance by the mean and covariance of each sample's own clean point."""

    name = "moments"
    summary = (
        "samples guided one by one by the mean and covariance of their clean point; the default "
        "for images"
    )
    settings = MomentsSettings
    algorithm = "surrogate.guidance.moments"

    def resolve(self, settings: MomentsSettings, scenario: Scenario) -> MomentsSettings:
        return replace(settings, jacobian=jacobian_of_formula(scenario, settings.jacobian))


register(MomentMatching())
