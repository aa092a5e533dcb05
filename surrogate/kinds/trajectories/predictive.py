"""Predictive checks: observed numbers against the distribution that samples predict for them.

Of a sample x the number at a step would have been y ~ p(y | x), through the noise; over posterior
samples that is the predictive distribution p(y | data) (Rubin 1984; Gelman, Meng & Stern 1996). Its
90 % and 50 % bands should hold nine and five in ten of the numbers that were not conditioned on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from surrogate.evaluation.weights import normalised_weights, weighted_quantiles
from surrogate.io.attributes import json_object
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.measurements import Measurements
from surrogate.kinds.observed import RECORD
from surrogate.kinds.signals import layout_of, tensors_of
from surrogate.kinds.trajectories.figures import Series
from surrogate.kinds.trajectories.observations import as_frame, readings
from surrogate.kinds.trajectories.observed_points import STYLE
from surrogate.kinds.trajectories.plot import thinned, times
from surrogate.random import Sampling, stream
from surrogate.reports import figures
from surrogate.reports.facts import Facts
from surrogate.reports.markup import Html, element, figure, section
from surrogate.reports.style import COLOURS, OBSERVED, short
from surrogate.reports.wording import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PREDICTED = 4_000  # samples that a band is made of
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BANDS = {90: (0, 4), 50: (1, 3)}  # per cent: the places of their ends among the quantiles
CAPTION = (
    "What would be observed, through the noise: median, 50 % and 90 % bands over the samples. "
    "Filled: observed and conditioned on; hollow: observed, and not conditioned on."
)


@dataclass(frozen=True)
class Check:
    """The observed numbers (k,) of one column at steps (k,), which of them were conditioned on, and
    predictive quantiles (5, k)."""

    source: str
    steps: np.ndarray
    values: np.ndarray
    given: np.ndarray
    quantiles: np.ndarray

    def covered(self, share: int, given: bool) -> tuple[int, int]:
        """How many numbers lie within a band, and of how many."""
        low, high = (self.quantiles[place] for place in BANDS[share])
        within = (self.values >= low) & (self.values <= high)
        return int(within[self.given == given].sum()), int((self.given == given).sum())

    @property
    def coverage(self) -> dict[str, int]:
        """For programs: numbers, later ones, and how many of these lie within each band."""
        later = {f"within_{share}": self.covered(share, False)[0] for share in BANDS}
        return {"given": int(self.given.sum()), "later": int((~self.given).sum()), **later}

    def words(self) -> Iterator[str]:
        """The coverage in sentences."""
        for given, what in ((False, "later values"), (True, "values that were conditioned on")):
            count = self.covered(90, given)[1]
            if count:
                parts = [f"{self.covered(s, given)[0]} within the {s} % band" for s in BANDS]
                yield f"{self.source}: of {count} {what}, {' and '.join(parts)}"


def reading_options(
    data: xr.Dataset, observed: Any, given: Mapping[str, Any]
) -> ObservationOptions:
    """How to read observed data: as the samples were conditioned on them, unless given."""
    record = json_object(data.attrs.get(RECORD))
    when = record.get("time")
    known: dict[str, Any] = {
        "time": when if isinstance(when, str) and when in as_frame(observed) else None,
        "nearest": record.get("nearest") is True,
    }
    columns, noise = record.get("columns"), record.get("noise")
    if isinstance(columns, Mapping):
        known["columns"] = {str(name): str(term) for name, term in columns.items()}
    if isinstance(noise, Mapping) and "columns" not in given:
        known["noise"] = tuple(f"{name} ~ {each}" for name, each in noise.items())
    names = {each.name for each in fields(ObservationOptions)}
    return ObservationOptions(**{k: v for k, v in {**known, **given}.items() if k in names})


def checks(data: xr.Dataset, observed: Any, given: Mapping[str, Any]) -> list[Check]:
    """The checks of each observed column; what was observed after the last step is left out.
    `given`: fields of ObservationOptions."""
    few = thinned(data, MAX_PREDICTED)
    layout = layout_of(few)
    options = reading_options(data, observed, given)
    found = readings(observed, layout, options, within=True)
    measured = Measurements({str(k): each.statement for k, each in enumerate(found)}, layout)
    drawn = measured.drawn(tensors_of(few, layout), stream(0, Sampling.PREDICTIVE)).numpy()
    quantiles = weighted_quantiles(drawn, list(QUANTILES), normalised_weights(few))
    last = json_object(data.attrs.get(RECORD)).get("last_step")
    last = last if isinstance(last, int) else -1
    made = []
    for source in dict.fromkeys(each.source for each in found):
        own = np.array([k for k, each in enumerate(found) if each.source == source])
        steps = np.array([found[k].step for k in own])
        values = np.array([found[k].value for k in own])
        made.append(Check(source, steps, values, steps <= last, quantiles[:, own]))
    return made


def predictive(facts: Facts) -> list[Html]:
    """The section; empty without observed data."""
    found: Sequence[Check] = facts.content.checks
    if not found:
        return []
    cards = []
    for k, check in enumerate(found):
        alt = f"Observed values and predictive bands: {check.source}"
        source = figures.drawn(_fan, facts.content, check, COLOURS[k % len(COLOURS)])
        cards.append(figure(source, shortened(alt)))
    sentences = [words for check in found for words in check.words()]
    return section(
        "Predictive checks",
        element("div", cards, class_="fans"),
        *(element("p", f"{words}.") for words in sentences),
        element("p", CAPTION, class_="note"),
    )


def _fan(content: Series, check: Check, colour: str) -> Figure:
    made = figures.blank(4.6, 3.4)
    axis = made.subplots()
    order = np.argsort(check.steps, kind="stable")
    at = times(content.data)[check.steps]
    q = check.quantiles[:, order]
    for (low, high), alpha in zip(BANDS.values(), (0.18, 0.30), strict=True):
        axis.fill_between(at[order], q[low], q[high], color=colour, alpha=alpha, linewidth=0)
    axis.plot(at[order], q[2], color=colour, linewidth=2.0)
    for some, edge, face in (
        (check.given, "white", OBSERVED),
        (~check.given, OBSERVED, "none"),
    ):
        axis.plot(at[some], check.values[some], markeredgecolor=edge, markerfacecolor=face, **STYLE)
    axis.set_title(short(check.source, 40), loc="left", fontweight="bold", parse_math=False)
    axis.spines[["top", "right"]].set_visible(False)
    if at.dtype.kind == "M":
        made.autofmt_xdate()
    return made
