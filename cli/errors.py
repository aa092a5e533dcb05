"""Errors of the command line itself: words that cannot be understood. Exit code 2."""

from __future__ import annotations

from collections.abc import Iterable

from constraints.errors import SurrogateError, nearest


class UsageError(SurrogateError, ValueError):
    """Options or arguments that contradict each other, or that mean nothing here."""

    exit_code = 2


def unknown(kind: str, name: str, known: Iterable[str], remedy: str = "") -> UsageError:
    """Error for a name that does not exist, with the nearest one that does."""
    names = list(known)
    near = nearest(name, names)
    hint = "" if near is None else f"; did you mean {near!r}?"
    return UsageError(f"unknown {kind} {name!r}{hint}", value=name, allowed=names, remedy=remedy)
