"""How far samples may be relied on, in words: good, usable with care, or not usable.

The verdict is the worst of the reasons for and against the samples. A difference counts only if it
is beyond the noise (many deviations of its floor) and large enough to matter: with many samples any
difference is many times the noise. All bounds are here:

| evidence | good | usable with care | not usable |
|---|---|---|---|
| D, median over steps | up to 1.5 x floor, or 0.01 or 3 deviations above it | beyond | 3 x floor and 0.1 above it, or 0.3 above it |
| D, max over steps | the same | beyond | |
| correlations | up to 1.5 x floor, or 0.01 or 4 deviations above it | beyond | 0.15 above it |
| other distances | up to 1.5 x floor, or 4 deviations above it | beyond | |
| accuracy of a classifier | up to 0.05 or 4 standard errors above that of data from data | beyond | 0.3 above it |
| laws | obeyed by at least 99.9 % of the samples | by at least 90 % | by fewer |
| effective samples compared, the fewer of the two sides | at least 200 | fewer | |

Fewer samples show too little. The floor of D is about 0.15 with 200 samples on each side and 0.22 with
100 (it falls like √(1/n + 1/m)), and differences up to half the floor pass as noise. From 200 samples
on that half is below 0.1, the difference that counts as large.
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from surrogate.evaluation.result import Distance

Level = Literal["good", "care", "poor"]
LEVELS: tuple[Level, ...] = get_args(Level)  # from the mildest to the gravest
VERDICTS: dict[Level, str] = {"good": "good", "care": "usable with care", "poor": "not usable"}
SUMMARIES: dict[Level, str] = {
    "good": "Good: the samples can be trusted.",
    "care": "Usable with care.",
    "poor": "Not usable: do not rely on these samples.",
}
RATIO_CLOSE, RATIO_FAR = 1.5, 3.0  # times the noise floor: up to here close, from here far
EXCESS_NEGLIGIBLE, EXCESS_LARGE, EXCESS_RUINOUS = 0.01, 0.1, 0.3  # of D beyond its floor
CORRELATION_BOUNDS = {"negligible": 0.01, "ruinous": 0.15}  # of an error of correlations, likewise
ACCURACY_NEGLIGIBLE, ACCURACY_RUINOUS = 0.05, 0.3  # of a classifier's accuracy, likewise
MIN_COMPARED = 200  # effective samples on either side; with fewer, EXCESS_LARGE passes as noise
LAWFUL, LAWLESS = 0.999, 0.9  # shares of samples that obey all laws: from here good, below it poor
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
    def of(cls, reasons: Iterable[Reason], when_good: str = SUMMARIES["good"]) -> Verdict:
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
    def words(self) -> str:
        return VERDICTS[self.level]

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.against + self.good

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "level": self.level,
            "words": self.words,
            "summary": self.summary,
            "against": list(self.against),
            "good": list(self.good),
        }


def level_of(distance: Distance) -> Level:
    """How grave a distance D between histograms is."""
    excess = distance.value - distance.floor
    by_chance = excess <= DEVIATIONS_BY_CHANCE * distance.floor_sd
    if distance.ratio <= RATIO_CLOSE or excess <= EXCESS_NEGLIGIBLE or by_chance:
        return "good"
    ruinous = excess >= (EXCESS_LARGE if distance.ratio >= RATIO_FAR else EXCESS_RUINOUS)
    return "poor" if ruinous else "care"


def level_of_excess(
    distance: Distance, negligible: float = 0.0, ruinous: float = math.inf
) -> Level:
    """How grave a distance of any unit is; `negligible`, `ruinous`: how far beyond its floor."""
    excess = distance.value - distance.floor
    beyond = excess > max(negligible, DEVIATIONS_SIGNIFICANT * distance.floor_sd)
    if not beyond or distance.ratio <= RATIO_CLOSE:
        return "good"
    return "poor" if excess >= ruinous else "care"


def level_of_accuracy(accuracy: float, error: float, floor: float = 0.5) -> Level:
    """How grave it is that a classifier tells samples from the reference; `floor`: its accuracy
    between data and data."""
    excess = accuracy - floor
    if excess < max(ACCURACY_NEGLIGIBLE, DEVIATIONS_SIGNIFICANT * error):
        return "good"
    return "poor" if excess >= ACCURACY_RUINOUS else "care"


def level_of_laws(share: float) -> Level:
    """How grave it is that only this share of the samples obeys all laws."""
    return "good" if share >= LAWFUL else "poor" if share < LAWLESS else "care"


def too_few(compared: float, floor: float) -> Reason | None:
    """A reason for care if few samples are compared, on the side of fewer; `floor`: of D."""
    if compared >= MIN_COMPARED * (1 - 1e-9):
        return None
    return Reason(
        "care",
        f"Only {compared:,.0f} samples are compared: differences below D = {floor:.2f} cannot be "
        "seen.",
    )
