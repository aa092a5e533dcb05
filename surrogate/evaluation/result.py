"""What a comparison finds: distances beside their noise floors, as text, as JSON and as reasons.

An `Evaluation` holds D of every variable and the findings of a kind's metrics, which it does not
know: each `Finding` brings its values, its rows of the table and its sentences of the verdict.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from html import escape
from typing import Any

import numpy as np

from surrogate.evaluation.verdict import Reason, Verdict, level_of, too_few
from surrogate.evaluation.weights import Array

HEADER = ("measure", "value", "floor", "ratio", "")
Row = tuple[str, str, str, str, str]  # of the table
CardRow = tuple[str, str, str, str]  # of a model's card
MAX_SHORT_ROWS = 24  # of the table in a repr


@dataclass(frozen=True)
class Distance:
    """A distance, and the mean and deviation of what it is between samples of one law."""

    value: float
    floor: float
    floor_sd: float

    @classmethod
    def of(cls, value: float, floors: Array) -> Distance:
        """From its value and its values among splits of the reference, (splits,)."""
        return cls(float(value), float(floors.mean()), float(floors.std()))

    @property
    def ratio(self) -> float:
        """value / floor; with a floor of 0, 1 for a distance of 0 and infinite otherwise."""
        if self.floor > 0:
            return self.value / self.floor
        return 1.0 if self.value == 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: such a ratio is None."""
        return asdict(self) | {"ratio": self.ratio if math.isfinite(self.ratio) else None}

    def cells(self) -> tuple[str, str, str]:
        return f"{self.value:.4f}", f"{self.floor:.4f} ± {self.floor_sd:.4f}", f"{self.ratio:.2f}"


@dataclass(frozen=True)
class Histograms:
    """D of a variable over its steps, (T,), with its floor at each; `worst` is the furthest step.

    The floors of the median, mean and maximum are those of these numbers, not of single steps.
    place: where D is greatest, in the table. furthest: the same with the variable, in a sentence.
    """

    name: str
    steps: tuple[float, ...]
    floors: tuple[float, ...]
    median: Distance
    mean: Distance
    max: Distance
    worst: int
    place: str = ""
    furthest: str = ""

    @classmethod
    def of(
        cls, name: str, found: Array, floors: Array, place: str = "", furthest: str = ""
    ) -> Histograms:
        """From D at each step, (T,), and among splits of the reference, (splits, T)."""

        def summary(statistic: Callable[..., Any]) -> Distance:
            return Distance.of(statistic(found), statistic(floors, axis=1))

        return cls(
            name,
            tuple(found.tolist()),
            tuple(floors.mean(0).tolist()),
            median=summary(np.median),
            mean=summary(np.mean),
            max=summary(np.max),
            worst=int(found.argmax()),
            place=place,
            furthest=furthest or name,
        )

    def to_dict(self) -> dict[str, Any]:
        return {k: _plain(v) for k, v in vars(self).items() if k not in ("place", "furthest")}


def pooled(name: str, parts: Iterable[tuple[Array, Array]], place: str = "") -> Histograms:
    """The histograms of all variables together, from D and floors of each."""
    found, floors = (np.concatenate(each, -1) for each in zip(*parts, strict=True))
    return Histograms.of(name, found, floors, place)


def distance_row(name: str, distance: Mapping[str, Any]) -> CardRow:
    """A row of a card, from the JSON of a distance."""
    ratio = distance["ratio"]
    floor = f"{distance['floor']:.4f} ± {distance['floor_sd']:.4f}"
    return name, f"{distance['value']:.4f}", floor, "" if ratio is None else f"{ratio:.2f}"


class Finding(ABC):
    """What one metric found."""

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Attributes of the evaluation, which are also the keys of its JSON."""

    def rows(self) -> Iterable[Row]:
        """Cells of the table in the order of HEADER."""
        return ()

    def reasons(self) -> Iterable[Reason]:
        """Sentences of the verdict on the samples."""
        return ()


@dataclass(frozen=True)
class Scope:
    """What the overall distance is over, in words: (median over) steps, (of all) variables."""

    median_over: str = "steps"
    pooled: str = "of all variables"


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Samples of a kind of data against a reference.

    effective: the effective sample size of weighted samples; reference_effective: that of the
    reference, None if it has no weights. variables: D of each. findings: of the kind's metrics;
    their values are attributes: `evaluation.energy`, `evaluation.classifier`.
    """

    kind: str
    samples: int
    effective: float
    reference: int
    variables: tuple[Histograms, ...]
    overall: Histograms
    findings: tuple[Finding, ...] = ()
    scope: Scope = Scope()
    reference_effective: float | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The values of all findings by name."""
        found = vars(self).get("findings", ())
        return {name: value for each in found for name, value in each.values().items()}

    def __getattr__(self, name: str) -> Any:
        found = {} if name.startswith("__") else self.values
        if name in found:
            return found[name]
        raise AttributeError(f"an evaluation has no {name!r}; have {', '.join(found)}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.values})

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        known = {*vars(self), *self.values} - {"findings", "scope"}
        made = {k: _plain(v) for k, v in {**vars(self), **self.values}.items() if k in known}
        return made | {"verdict": self.verdict.to_dict()}

    def with_floors_of(self, data: Evaluation) -> Evaluation:
        """The same distances, with those of `data`, which compares data with data, as noise floors.

        For samples that depend on each other, whose splits are closer than independent data are.
        """
        found: Evaluation = _with_floors(self, data)
        return found

    # --- the table --------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Cells in the order of HEADER."""
        found = [row for each in self.variables for row in self._distances(each)]
        found += [] if len(self.variables) == 1 else self._distances(self.overall)
        found += [row for each in self.findings for row in each.rows()]
        if self.effective < self.samples * (1 - 1e-9):
            note = f"of {self.samples:,}, which have weights"
            found.append(("effective samples", f"{self.effective:,.0f}", "", "", note))
        return found

    def _distances(self, each: Histograms) -> Iterator[Row]:
        overall = each is self.overall
        what = "D" if overall else f"D({each.name})"
        if len(each.steps) == 1:
            yield what, *each.median.cells(), ""
            return
        yield f"{what}, median", *each.median.cells(), self.scope.pooled if overall else ""
        yield f"{what}, max", *each.max.cells(), each.place

    def table(self) -> str:
        """Plain text, one line a row."""
        return _aligned(self.rows())

    __str__ = table

    def _short_rows(self) -> list[Row]:
        """At most MAX_SHORT_ROWS rows: of many variables only all of them together."""
        rows = self.rows()
        if len(rows) <= MAX_SHORT_ROWS:
            return rows
        own = sum(len(list(self._distances(each))) for each in self.variables)
        return rows[own:][:MAX_SHORT_ROWS]

    @property
    def _caption(self) -> str:
        return f"{self.samples:,} {self.kind} against {self.reference:,}"

    def __repr__(self) -> str:
        return f"{self._caption}\n{_aligned(self._short_rows())}"

    def _repr_html_(self) -> str:
        def cells(row: Row, tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>"

        body = "".join(cells(row, "td") for row in self._short_rows())
        head = cells(HEADER, "th")
        caption = f"<caption>{escape(self._caption)}</caption>"
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"

    # --- the verdict ------------------------------------------------------------------------------

    @property
    def verdict(self) -> Verdict:
        """Good, usable with care or not usable, with the reasons."""
        return Verdict.of(self.reasons())

    @property
    def compared(self) -> float:
        """The effective number of samples on the side that has fewer."""
        other = self.reference_effective
        return min(self.effective, self.reference if other is None else other)

    def reasons(self) -> list[Reason]:
        """What speaks for and against the samples; where nothing does against them, whether too
        few are compared for that to mean much."""
        found = list(self._differences())
        few = too_few(self.compared, self.overall.median.floor)
        if few is not None and all(each.level == "good" for each in found):
            found.append(few)
        return found

    def _differences(self) -> Iterator[Reason]:
        median = self.overall.median
        level = level_of(median)
        noise = (
            f"{median.ratio:.2f} times the noise between two samples of the truth"
            if math.isfinite(median.ratio)
            else "where two samples of the truth would not differ at all"
        )
        agreement = {
            "good": "The distributions agree with the reference",
            "care": "The distributions differ a little from the reference",
            "poor": "The distributions differ from the reference",
        }
        over = self.scope.median_over
        yield Reason(level, f"{agreement[level]}: {noise} (median over {over}).")
        far = [each for each in self.variables if level_of(each.max) != "good"]
        if far and level != "poor":
            worst = max(far, key=lambda each: each.max.ratio)
            yield Reason(
                "care",
                f"The largest difference, D = {worst.max.value:.3f} in {worst.furthest}, is "
                f"{worst.max.ratio:.1f} times what noise would make it.",
            )
        for each in self.findings:
            yield from each.reasons()


def _with_floors(found: Any, data: Any) -> Any:
    if isinstance(found, Distance):
        return replace(found, floor=data.value)
    if hasattr(found, "accuracy") and hasattr(found, "floor"):
        return replace(found, floor=max(0.5, data.accuracy))
    if is_dataclass(found) and not isinstance(found, type):
        parts = {
            each.name: _with_floors(getattr(found, each.name), getattr(data, each.name))
            for each in fields(found)
            if hasattr(data, each.name)
        }
        return replace(found, **parts)
    if type(found) is tuple and len(found) == len(data):
        return tuple(_with_floors(a, b) for a, b in zip(found, data, strict=True))
    return found


def _aligned(rows: Iterable[Row]) -> str:
    lines = [HEADER, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    shown = []
    for name, *numbers, note in lines:
        middle = [cell.rjust(w) for cell, w in zip(numbers, widths[1:-1], strict=True)]
        shown.append("  ".join([name.ljust(widths[0]), *middle, note]).rstrip())
    return "\n".join(shown)


def _plain(value: Any) -> Any:
    """For JSON: a named tuple is an object, any other tuple a list."""
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
