"""What can go wrong: what a person wrote (`InputError`), what a run met (`SimulationError`)."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# the one thing that all packages share: an error that a user can catch by one name
from constraints.errors import Action as Action
from constraints.errors import ImpossibleError as NothingSatisfiesError
from constraints.errors import Setting as Setting
from constraints.errors import SurrogateError


class SimulatorError(SurrogateError):
    """Base of the errors of `simulators`."""


class InputError(SimulatorError, ValueError):
    """A name, number, rate law or file that cannot mean anything here."""

    exit_code = 2


class UnreachableError(InputError, NothingSatisfiesError):
    """Conditions that no trajectory can meet."""

    exit_code = 3


class SimulationError(SimulatorError, RuntimeError):
    """A run that had to stop: a negative rate, an explosion, a spent budget."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Error for a name that is not there, with the nearest one that is."""
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5) or [
        candidate for candidate in names if candidate.lower() == name.lower()
    ]
    hint = f"; did you mean {near[0]!r}?" if near else ""
    have = ", ".join(names) if names else "none"
    return InputError(f"unknown {kind} {name!r}{hint} (have: {have})")
