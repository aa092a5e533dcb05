"""Settings that every method has; a method's own settings extend them.

Fields are made by `surrogate.settings.option`: they carry help, bounds and choices, and values are
checked by these when settings are made. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surrogate.settings import option, options_of


@dataclass(frozen=True)
class Settings:
    """Settings that every method has."""

    hardness: float | None = option(
        None,
        type=float,
        above=0,
        help="Take rules softly: a >= b counts as logsigmoid(HARDNESS (a - b)).",
        shown="hard; 10 for methods that follow gradients",
    )
    consistency: bool = option(
        True, help="Make every sample obey the laws of the simulated network."
    )
    end: str | None = option(
        None,
        choices=("clip", "weak", "strong"),
        help="Where a rule reads past the last step: use the steps that exist (clip), count the "
        "rest as met (weak) or as not met (strong).",
        shown="refuse such a rule",
    )

    def __post_init__(self) -> None:
        for name, about in options_of(type(self)).items():
            about.check(getattr(self, name))


def levels_option(default: int) -> Any:
    """The setting `steps` of a method."""
    return option(default, low=3, high=10_000, help="Noise levels.")


def particles_option(shown: str) -> Any:
    """The setting `particles` of a method that weights them; `shown`: its default in words."""
    return option(None, type=int, low=8, high=10**7, help="Particles in all.", shown=shown)


def weighted_option() -> Any:
    """The setting `weighted` of a method that resamples its particles."""
    return option(False, help="Return weighted particles (log_weight) instead of resampling them.")


def strength_option() -> Any:
    """The setting `strength` of a method."""
    return option(1.0, above=0, help="Weight λ of the guidance gradient.")


def recurrence_option() -> Any:
    """The setting `recurrence` of a method."""
    return option(
        1, low=1, high=1_000, help="How often each step is taken, with new noise in between."
    )


def langevin_option(default: int) -> Any:
    """The setting `langevin` of a method."""
    return option(default, low=0, high=10**6, help="Langevin steps at the end.")
