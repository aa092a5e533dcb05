"""Requirements on trajectories as English phrases."""

from __future__ import annotations

import math

import numpy as np

from surrogate.kinds.trajectories.requirements import Mark, MarkedRequirement
from surrogate.reports.wording import moment, number, several


def _at(grid: np.ndarray, step: int) -> str:
    if step == 0:
        return "at the start"
    return "at the end" if step == len(grid) - 1 else f"at {moment(grid, step)}"


def _during(grid: np.ndarray, mark: Mark) -> str:
    if mark.first == mark.last:
        return _at(grid, mark.first)
    if mark.first == 0 and mark.last == len(grid) - 1:
        return "at all times"
    if mark.first == 0:
        return f"up to {moment(grid, mark.last)}"
    if mark.last == len(grid) - 1:
        return f"from {moment(grid, mark.first)} on"
    return f"from {moment(grid, mark.first)} to {moment(grid, mark.last)}"


# --- requirements ---------------------------------------------------------------------------------


def requirement(part: MarkedRequirement, grid: np.ndarray) -> str | None:
    """A part of a scenario as a phrase; None where it has no marks."""
    if not part.marks:
        return None
    if part.marks[0].kind == "either":
        return several([_phrase(mark, grid) for mark in part.marks], "or")
    return several([_phrase(mark, grid) for mark in part.marks])


def _phrase(mark: Mark, grid: np.ndarray) -> str:
    low, high = number(mark.low), number(mark.high)
    if mark.low == mark.high:
        range_ = low
    elif mark.high == math.inf:
        range_ = f"at least {low}"
    elif mark.low == -math.inf:
        range_ = f"at most {high}"
    else:
        range_ = f"between {low} and {high}"
    if mark.kind == "some":
        when = _during(grid, mark).replace("at all times", "at some time")
        some = "" if when == "at some time" else "at some time, "
        return f"{mark.name} is {range_} {some}{when}"
    return f"{mark.name} is {range_} {_during(grid, mark)}"
