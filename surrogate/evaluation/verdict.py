"""How far samples may be relied on: the worst of the reasons for and against them.

A difference counts only if it is beyond the noise (many deviations of its floor) and large enough
to matter: with many samples any difference is many times the noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from surrogate.evaluation.result import Distance

Level = Literal["good", "care", "poor"]
LEVELS: tuple[Level, ...] = get_args(Level)  # from the mildest to the gravest
SUMMARIES: dict[Level, str] = {
    "good": "No sign of trouble.",
    "care": "Use with care.",
    "poor": "Do not rely on these samples.",
}
RATIO_CLOSE, RATIO_FAR = 1.5, 3.0  # times the noise floor: up to here close, from here far
EXCESS_NEGLIGIBLE, EXCESS_LARGE, EXCESS_RUINOUS = 0.01, 0.1, 0.3  # of D beyond its floor
DEVIATIONS_BY_CHANCE = 3.0  # deviations of the noise that chance may well make
DEVIATIONS_SIGNIFICANT = 4.0  # deviations of the noise that chance does not make


class Reason(NamedTuple):
    """A sentence for (good) or against (care, poor) samples."""

    level: Level
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """The gravest level of all reasons; the reasons against the samples, gravest first, and for."""

    level: Level
    summary: str
    against: tuple[str, ...]
    good: tuple[str, ...]

    @classmethod
    def of(cls, reasons: Iterable[Reason], when_good: str) -> Verdict:
        """The verdict of reasons; `when_good`: what to say if none is against the samples."""
        ordered = sorted(reasons, key=lambda each: -LEVELS.index(each.level))
        level = ordered[0].level if ordered else "good"
        return cls(
            level,
            when_good if level == "good" else SUMMARIES[level],
            tuple(each.sentence for each in ordered if each.level != "good"),
            tuple(each.sentence for each in ordered if each.level == "good"),
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.against + self.good


def level_of(distance: Distance) -> Level:
    """How grave a distance D between histograms is."""
    excess = distance.value - distance.floor
    by_chance = excess <= DEVIATIONS_BY_CHANCE * distance.floor_sd
    if distance.ratio <= RATIO_CLOSE or excess <= EXCESS_NEGLIGIBLE or by_chance:
        return "good"
    ruinous = excess >= (EXCESS_LARGE if distance.ratio >= RATIO_FAR else EXCESS_RUINOUS)
    return "poor" if ruinous else "care"


def is_significant(distance: Distance) -> bool:
    """Whether a distance of any unit is beyond what chance makes."""
    beyond = distance.value > distance.floor + DEVIATIONS_SIGNIFICANT * distance.floor_sd
    return distance.ratio > RATIO_CLOSE and beyond
