"""The result of a calibration: ranks, a row for each quantity, and the verdict in words.

| evidence | good | usable with care | not usable |
|---|---|---|---|
| ranks of a quantity | no test rejects uniform ones (p >= 0.01, for all quantities together), or coverage and median are within 3 points | beyond | and a coverage 15 points off, or a median that 15 % of the truths are on the wrong side of |
| replicates without samples | none | some | more than 10 % |
| replicates | at least 50 | fewer | |

Coverage: the share of truths in a central interval of the samples, beside its probability. Contraction:
1 - (posterior variance) / (variance of the truths). Bias: the mean of (posterior mean - truth) /
(posterior deviation); see Schad, Betancourt and Vasishth 2021, "Toward a principled Bayesian workflow
in cognitive science".
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from surrogate.calibration.figures import figure
from surrogate.evaluation.ranks import LEVELS, Uniformity, coverage, coverage_error
from surrogate.evaluation.verdict import Level, Reason, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPLICATE_COLUMNS = (
    "replicate",
    "quantity",
    "truth",
    "rank",
    "mean",
    "sd",
    "effective",
    "problem",
)
SIGNIFICANCE = 0.01  # of the tests of all quantities together
NEGLIGIBLE, RUINOUS = 0.03, 0.15  # of a coverage, and of a share of truths above the median
MAX_FAILED = 0.1  # share of replicates without samples
MIN_REPLICATES = 50
MIN_EFFECTIVE = 0.5  # share of the samples, below which a note says what they are worth
MIN_CONTRACTION = 0.02
HEADER = ("quantity", "mean rank", "spread", "χ² p", "50 %", "80 %", "95 %", "contraction", "bias")
OWN_SOURCE = "own"


@dataclass(frozen=True)
class Quantity:
    """How one quantity is calibrated."""

    name: str
    uniform: Uniformity
    coverage: dict[float, float]
    above: float
    """The share of truths above their posterior's median."""
    contraction: float
    bias: float

    @classmethod
    def of(cls, name: str, rows: pd.DataFrame) -> Quantity:
        u, truth = rows["rank"].to_numpy(np.float64), rows["truth"].to_numpy(np.float64)
        mean, sd = rows["mean"].to_numpy(np.float64), rows["sd"].to_numpy(np.float64)
        prior = float(np.var(truth)) if len(truth) > 1 else 0.0
        some = sd > 0
        return cls(
            name,
            Uniformity.of(u),
            {level: coverage(u, level) for level in LEVELS},
            float(np.mean(u > 0.5)) if len(u) else math.nan,
            1 - float(np.mean(sd**2)) / prior if prior > 0 else math.nan,
            float(np.mean((mean - truth)[some] / sd[some])) if some.any() else math.nan,
        )

    @property
    def worst(self) -> float:
        """The largest of its errors of coverage and of the median."""
        errors = [abs(found - level) for level, found in self.coverage.items()]
        return max([*errors, abs(self.above - 0.5)])

    def level(self, quantities: int) -> Level:
        """How grave it is, where so many quantities were tested."""
        if self.uniform.p_value * quantities >= SIGNIFICANCE or self.worst < NEGLIGIBLE:
            return "good"
        return "poor" if self.worst >= RUINOUS else "care"

    def sentence(self) -> str:
        """What is wrong with it."""
        shift = abs(self.uniform.mean - 0.5) * math.sqrt(12)
        width = abs(self.uniform.spread - 1) * math.sqrt(180) / 12
        if shift >= width:
            side, where = ("low", "above") if self.above > 0.5 else ("high", "below")
            share = max(self.above, 1 - self.above)
            how = f"the truth is {where} their median in {share:.0%}"
            return f"{self.name}: samples are too {side}: {how}"
        how = "narrow" if self.uniform.spread > 1 else "wide"
        level, found = max(self.coverage.items(), key=lambda each: abs(each[0] - each[1]))
        error = coverage_error(level, self.uniform.count)
        held = f"{level:.0%} intervals hold the truth in {found:.0%} ± {error:.0%}"
        return f"{self.name}: samples are too {how}: {held}"

    def cells(self) -> tuple[str, ...]:
        """In the order of HEADER."""
        own = self.uniform
        shares = (f"{100 * found:.0f}" for found in self.coverage.values())
        numbers = (own.mean, own.spread, own.chi_square)
        return (
            self.name,
            *(f"{each:.2f}" for each in numbers),
            *shares,
            f"{self.contraction:.2f}",
            f"{self.bias:+.2f}",
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no NaN."""
        own = self.uniform
        found: dict[str, Any] = {
            "quantity": self.name,
            "mean_rank": own.mean,
            "spread": own.spread,
            "chi_square_p": own.chi_square,
            "p_value": own.p_value,
            "distance": own.distance,
            "above_median": self.above,
            "contraction": self.contraction,
            "bias": self.bias,
        }
        clean = {k: v if isinstance(v, str) or math.isfinite(v) else None for k, v in found.items()}
        return {**clean, "coverage": {f"{level:g}": v for level, v in self.coverage.items()}}


@dataclass(frozen=True, repr=False)
class Calibration:
    """Ranks of truths among samples given data, with what was observed.

    ranks: a row for each replicate and quantity. source: where truths come from, "own" of samples
    of the model itself. samples: of each replicate. requested: replicates, which `interrupted` ones
    have fewer of.
    """

    ranks: pd.DataFrame
    quantities: tuple[str, ...]
    observed: tuple[str, ...]
    source: str
    samples: int
    requested: int
    seed: int
    seconds: float
    interrupted: bool = False

    @property
    def replicates(self) -> int:
        """Those that were run, the ones without samples included."""
        return int(self.ranks["replicate"].nunique())

    @cached_property
    def found(self) -> tuple[Quantity, ...]:
        """Of each quantity that is not the same for all truths."""
        made = []
        for name in self.quantities:
            rows = self._ranked(name)
            if not (len(rows) > 1 and np.ptp(rows["truth"]) == 0 and (rows["sd"] == 0).all()):
                made.append(Quantity.of(name, rows))
        return tuple(made)

    def ranks_of(self, name: str) -> np.ndarray:
        """u (N,) of a quantity."""
        return self._ranked(name)["rank"].to_numpy(np.float64)

    def _ranked(self, name: str) -> pd.DataFrame:
        own = self.ranks[self.ranks["quantity"] == name]
        return own[own["rank"].notna()]

    @property
    def failed(self) -> dict[int, str]:
        """Replicates without samples, and why."""
        own = self.ranks[self.ranks["problem"] != ""].drop_duplicates("replicate")
        return dict(zip(own["replicate"].astype(int), own["problem"], strict=True))

    @property
    def effective(self) -> float:
        """Independent samples that those of a replicate are worth, the median."""
        return float(self.ranks["effective"].median())

    @cached_property
    def coverage(self) -> dict[float, tuple[float, float]]:
        """Probability of a central interval -> the share of truths in it, over all quantities, and
        its standard error by replicates."""
        u = self.ranks[self.ranks["rank"].notna()]
        found = {}
        for level in LEVELS:
            inside = ((u["rank"] - 0.5).abs() <= level / 2).groupby(u["replicate"]).mean()
            error = float(inside.std()) / math.sqrt(len(inside)) if len(inside) > 1 else math.nan
            found[level] = float(inside.mean()), error
        return found

    @cached_property
    def verdict(self) -> Verdict:
        """Good, usable with care or not usable, and why."""
        when_good = "Good: samples given data are calibrated."
        if self.source == OWN_SOURCE:
            when_good = (
                "Good: the sampler is calibrated; the model was not tested, as the truths are "
                "samples of its own."
            )
        return Verdict.of(self._reasons(), when_good)

    def _reasons(self) -> Iterator[Reason]:
        count = len(self.found)
        levels = {each.name: each.level(count) for each in self.found}
        for each in sorted(self.found, key=lambda each: -each.worst):
            if levels[each.name] != "good":
                yield Reason(levels[each.name], each.sentence())
        if failed := self.failed:
            share = len(failed) / self.replicates
            why = next(iter(failed.values()))
            yield Reason(
                "poor" if share > MAX_FAILED else "care",
                f"{len(failed)} of {self.replicates} replicates have no samples: {why}",
            )
        if self.replicates < MIN_REPLICATES:
            unseen = 3 * coverage_error(0.8, self.replicates)
            yield Reason(
                "care",
                f"Only {self.replicates} replicates: errors of coverage below {unseen:.0%} cannot "
                "be seen.",
            )
        if count and set(levels.values()) == {"good"}:
            least = min(min(1.0, each.uniform.p_value * count) for each in self.found)
            yield Reason(
                "good", f"Ranks are uniform (p = {least:.2g} for all quantities together)."
            )
            held = ", ".join(f"{p:.0%} in {100 * c:.1f}" for p, (c, _) in self.coverage.items())
            yield Reason("good", f"Intervals hold the truth as often as they say: {held} %.")

    @property
    def notes(self) -> list[str]:
        """What qualifies the result, in sentences."""
        found = []
        if self.source == OWN_SOURCE:
            found.append(
                "truths are samples of the model itself: this tests the sampler alone, not what "
                "the model has learned"
            )
        if self.interrupted:
            found.append(f"interrupted after {self.replicates} of {self.requested} replicates")
        if self.effective < MIN_EFFECTIVE * self.samples:
            found.append(
                f"the {self.samples} samples of a replicate are worth {self.effective:.0f} "
                "independent ones (median): with more particles ranks are sharper"
            )
        constant = [q for q in self.quantities if q not in {each.name for each in self.found}]
        if constant:
            found.append(f"the same for all truths, and not ranked: {', '.join(constant)}")
        flat = [each.name for each in self.found if each.contraction < MIN_CONTRACTION]
        if flat and self.replicates >= MIN_REPLICATES:
            found.append(f"the observations say nothing about {', '.join(flat)}")
        return found

    def plot(self) -> Figure:
        """Coverage, and the ECDF of the ranks of each quantity with its simultaneous band."""
        return figure(self)

    def table(self) -> str:
        """A plain-text table, a line for each quantity."""
        rows = [HEADER, *(each.cells() for each in self.found)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
        return "\n".join(
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
                ]
            )
            for row in rows
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        overall = {
            f"{level:g}": {"share": share, "error": error if math.isfinite(error) else None}
            for level, (share, error) in self.coverage.items()
        }
        return {
            "replicates": self.replicates,
            "requested": self.requested,
            "samples": self.samples,
            "seed": self.seed,
            "truths": self.source,
            "observed": list(self.observed),
            "quantities": [each.to_dict() for each in self.found],
            "coverage": overall,
            "effective": self.effective if math.isfinite(self.effective) else None,
            "failed": {str(i): why for i, why in self.failed.items()},
            "notes": self.notes,
            "verdict": self.verdict.to_dict(),
            "interrupted": self.interrupted,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        against = [f"  {each}" for each in self.verdict.against]
        return "\n".join([self.table(), f"verdict: {self.verdict.words}", *against])

    def __repr__(self) -> str:
        about = f"{self.replicates} replicates of {len(self.found)} quantities"
        return f"<Calibration: {about}; {self.verdict.words}>"
