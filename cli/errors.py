"""Errors of the command line itself: commands, options and values that are not valid."""

from __future__ import annotations

from collections.abc import Iterable

from constraints.errors import Remedy, SurrogateError, nearest


class UsageError(SurrogateError, ValueError):
    """Options or arguments that contradict each other, or that have no meaning here."""

    exit_code = 2


def unknown(kind: str, name: str, known: Iterable[str], remedy: Remedy = ()) -> UsageError:
    """Error for a name that does not exist, with the nearest one that does."""
    names = list(known)
    near = nearest(name, names)
    hint = "" if near is None else f"; did you mean {near!r}?"
    return UsageError(f"unknown {kind} {name!r}{hint}", value=name, allowed=names, remedy=remedy)
