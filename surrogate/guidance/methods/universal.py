"""The method `universal`; its algorithm is in `surrogate.guidance.universal`."""

from __future__ import annotations

from dataclasses import dataclass

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import (
    Settings,
    langevin_option,
    levels_option,
    recurrence_option,
    strength_option,
)
from surrogate.settings import option


@dataclass(frozen=True)
class UniversalSettings(Settings):
    """Settings of universal guidance."""

    steps: int = levels_option(200)
    forward: bool = option(
        True, help="Follow the gradient at the predicted clean point, through the network."
    )
    backward: int = option(
        0, low=0, high=10_000, help="Steps of gradient ascent of the predicted clean point."
    )
    recurrence: int = recurrence_option()
    strength: float = strength_option()
    langevin: int = langevin_option(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.forward or self.backward):
            raise ModelError(
                "universal guidance needs forward or backward guidance, and both are off",
                value=(self.forward, self.backward),
                remedy=["turn on ", Setting("forward", True), " or ", Setting("backward", 10)],
            )


class UniversalGuidance(Deferred[UniversalSettings]):
    """Forward guidance, backward guidance and self-recurrence."""

    name = "universal"
    summary = "universal guidance (forward, backward, self-recurrence); unweighted"
    settings = UniversalSettings
    guided = True
    algorithm = "surrogate.guidance.universal"


register(UniversalGuidance())
