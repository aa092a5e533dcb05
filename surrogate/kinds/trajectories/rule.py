"""Formulas as rules for simulators: levels of prefixes and verdicts on numpy arrays.

    data = simulate(network, 100)
    split(network, rule("reaches(X >= 80, 0, 100)", like=data))

A simulator knows neither formulas nor torch; a rule is what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import xarray as xr

from constraints import Formula, FormulaError, Program, compiled, conjunction, latches
from constraints import parse as parsed
from constraints.compile.latches import with_latches
from constraints.compile.prefixes import levels
from constraints.compile.progress import Progress
from surrogate.kinds.signals import layout_of

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class TrajectoryRule:
    """A compiled formula about trajectories, for `simulators.split`."""

    program: Program
    latches: tuple[str, ...]
    progress: Progress | None

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that the formula reads."""
        return frozenset(self.program.needed)

    @property
    def remembers(self) -> int | None:
        """Flags that stand for the past of a trajectory; None if all of it is needed."""
        return None if self.progress is None else len(self.progress.parts)

    def remember(self, flags: np.ndarray, values: Values, step: int) -> np.ndarray:
        """The flags (n, m) after the states (n,) of a step; all are false before the first."""
        assert self.progress is not None
        found = self.progress.remember(torch.from_numpy(flags), _tensors(values), step)
        return np.asarray(found.numpy())

    def level(self, values: Values, known: int, least: Values, flags: np.ndarray) -> np.ndarray:
        """The level (n,) of trajectories known up to a step and forecast beyond, see
        `constraints.evaluate.prefix`."""
        if self.progress is None:
            found = levels(self.program, _tensors(values), known, _tensors(least))
        else:
            state = torch.from_numpy(flags)
            found = self.progress.levels(state, _tensors(values), known, _tensors(least))
        return np.asarray(found.numpy())

    def verdict(self, values: Values) -> np.ndarray:
        """Whether each trajectory satisfies the formula, (n,)."""
        return np.asarray(self.program.verdict(_tensors(values)).numpy())

    def __str__(self) -> str:
        return str(self.program.formula)


def rule(
    where: str | Formula | Sequence[str | Formula], like: xr.Dataset, end: str | None = None
) -> TrajectoryRule:
    """The rule that formulas state, all of them, of trajectories such as those in `like`.

    What happens between the times of the grid (`reaches`) is recorded while simulating: `like` need
    not have it. `end`: the rule for what is read beyond the grid.
    """
    given = [where] if isinstance(where, str | Formula) else list(where)
    goal = conjunction(*(parsed(each) if isinstance(each, str) else each for each in given))
    layout = layout_of(like)
    program = compiled(goal, with_latches(goal, layout), end)
    if program.observations:
        raise FormulaError(
            f"{goal} contains observations, which no trajectory meets or misses",
            value=str(goal),
            remedy="state rules only",
        )
    return TrajectoryRule(program, latches(goal, layout), Progress.of(program))


def _tensors(values: Values) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.asarray(value)) for name, value in values.items()}
