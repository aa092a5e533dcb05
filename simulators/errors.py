"""Errors of the simulators: bad input (`InputError`) and runs that fail (`SimulationError`)."""

from __future__ import annotations

from collections.abc import Iterable

# the only import from another package: a base class that users can catch by one name
from constraints.errors import Action as Action
from constraints.errors import FormulaError, SurrogateError, misspelt
from constraints.errors import ImpossibleError as NothingSatisfiesError
from constraints.errors import Remedy as Remedy
from constraints.errors import Setting as Setting


class SimulatorError(SurrogateError):
    """Base of the errors of `simulators`."""


class InputError(SimulatorError, ValueError):
    """A name, number, rate law or file that cannot mean anything here."""

    exit_code = 2


class ExpressionError(InputError, FormulaError):
    """A rate law or condition that cannot be read; a caret points at the place."""

    exit_code = 2


class UnreachableError(InputError, NothingSatisfiesError):
    """Conditions that no trajectory can meet."""

    exit_code = 3


class SimulationError(SimulatorError, RuntimeError):
    """A run that had to stop: a negative rate, an explosion, a spent budget."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Error for a name that is not there, with the nearest one that is."""
    names = list(known)
    problem = misspelt(kind, name, names)
    return InputError(problem if names else f"{problem}; there are none", value=name, allowed=names)
