"""The method `rejection`; its algorithm is in `surrogate.guidance.rejection`."""

from __future__ import annotations

from dataclasses import dataclass

from surrogate.guidance.method import Deferred, register
from surrogate.guidance.settings import Settings, levels_option


@dataclass(frozen=True)
class RejectionSettings(Settings):
    """Settings of rejection."""

    steps: int = levels_option(40)


class Rejection(Deferred[RejectionSettings]):
    """Plain draws of which those that meet the scenario are kept."""

    name = "rejection"
    summary = (
        "plain draws of which those that meet the scenario are kept; exact, and cheap where it is "
        "probable"
    )
    settings = RejectionSettings
    needs_pilot = True
    algorithm = "surrogate.guidance.rejection"


register(Rejection())
