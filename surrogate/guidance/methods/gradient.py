"""The method `guidance`, the paper's; its algorithm is in `surrogate.guidance.gradient`."""

from __future__ import annotations

from dataclasses import dataclass

from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, langevin_option, levels_option, strength_option
from surrogate.settings import option

WEIGHT_SCHEDULES = ("snr", "linear")


@dataclass(frozen=True)
class GradientSettings(Settings):
    """Settings of the paper's guidance."""

    steps: int = levels_option(1_000)
    schedule: str = option(
        "snr",
        choices=WEIGHT_SCHEDULES,
        help="How guidance grows as noise falls: by the signal-to-noise ratio, or linearly in "
        "time.",
    )
    correctors: int = option(2, low=0, high=1_000, help="Langevin steps at each noise level.")
    strength: float = strength_option()
    langevin: int = langevin_option(2_000)


class GradientGuidance(Deferred[GradientSettings]):
    """The score plus the gradient of the soft formula at the noisy point."""

    name = "guidance"
    summary = "the gradient of the softened formula added to the score, as in the paper; unweighted"
    settings = GradientSettings
    guided = True
    algorithm = "surrogate.guidance.gradient"


register(GradientGuidance())
