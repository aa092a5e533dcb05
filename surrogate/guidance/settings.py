"""How to sample a scenario, as a person chooses it; None is chosen for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from surrogate.errors import ModelError, whole_number
from surrogate.guidance.gradient import WEIGHTS

METHODS = ("auto", "twisted", "moments", "guidance", "universal", "rejection")
JACOBIANS = ("auto", "gaussian", "network")
COMMON = ("method", "hardness", "consistency", "end")  # settings of all methods
OWN = {  # and of each
    "twisted": ("particles", "steps", "weighted", "jacobian"),
    "moments": ("particles", "steps", "jacobian", "strength", "recurrence"),
    "rejection": ("steps",),
    "guidance": ("steps", "schedule", "correctors", "strength", "langevin"),
    "universal": ("steps", "forward", "backward", "recurrence", "strength", "langevin"),
}
OWN["auto"] = OWN["twisted"]
WHOLE = (  # settings that count something, with the least and the most
    ("particles", 8, 10**7),
    ("steps", 3, 10_000),
    ("correctors", 0, 1_000),
    ("backward", 0, 10_000),
    ("recurrence", 1, 1_000),
    ("langevin", 0, 10**6),
)


@dataclass(frozen=True)
class Settings:
    """`hardness`: of a >= b, which then counts as logsigmoid(hardness (a - b)); hard without it.

    OWN says which belong to which method; `strength` is λ, `langevin` the steps at the end, and
    `jacobian` whose covariance a clean point has: the network's, a Gaussian's, or "auto".
    """

    method: str = "auto"
    particles: int | None = None
    steps: int | None = None
    hardness: float | None = None
    consistency: bool = True
    weighted: bool = False
    end: str | None = None
    jacobian: str = "auto"
    schedule: str = "snr"
    correctors: int = 2
    forward: bool = True
    backward: int = 0
    recurrence: int = 1
    strength: float = 1.0
    langevin: int | None = None

    def __post_init__(self) -> None:
        _one_of(self.method, METHODS, "method")
        _one_of(self.jacobian, JACOBIANS, "jacobian")
        _one_of(self.schedule, WEIGHTS, "schedule")
        for name, least, most in WHOLE:
            value = getattr(self, name)
            least = 1 if (name, self.method) == ("particles", "moments") else least
            if value is not None:
                whole_number(value, name, least, most)
        for name, real in (("hardness", self.hardness), ("strength", self.strength)):
            if real is not None and not 0 < real < math.inf:
                raise ModelError(f"{name} must be a finite number > 0, not {real}")
        if self.method == "universal" and not (self.forward or self.backward):
            raise ModelError("universal guidance is forward, backward or both; this is neither")

    @property
    def guided(self) -> bool:
        """Whether samples are led to the scenario by a soft formula: not all may meet it."""
        return self.method in ("guidance", "universal")

    def for_images(self) -> Settings:
        """The same with what suits images, where it is left to be chosen."""
        return replace(self, method="moments") if self.method == "auto" else self


def owners(name: str) -> list[str]:
    """The methods that a setting belongs to."""
    return [method for method in METHODS if name in OWN[method]]


def _one_of(value: str, legal: tuple[str, ...], name: str) -> None:
    if value not in legal:
        raise ModelError(f"unknown {name} {value!r} (have: {', '.join(legal)})")
