"""Errors of models, runs and files, and the checks of arguments that raise them."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from constraints.errors import SurrogateError as SurrogateError
from constraints.errors import nearest

P = ParamSpec("P")
R = TypeVar("R")


class ModelError(SurrogateError, ValueError):
    """Data, settings or a model folder that cannot be used, with the reason and the remedy."""

    exit_code = 2


def as_model_error(problem: SurrogateError) -> ModelError:
    """The same problem as a ModelError, for formulas and data that a model cannot use."""
    return ModelError(
        problem.problem, value=problem.value, allowed=problem.allowed, remedy=problem.remedy
    )


class SamplingError(SurrogateError, RuntimeError):
    """A run that found no sample."""


class DegenerateError(SamplingError):
    """A run whose samples carry no information: few ancestors, or batches that disagree."""

    exit_code = 4


class WritingError(SurrogateError, RuntimeError):
    """A file that could not be written: a full disk, no permission."""


class TrainingError(SurrogateError, RuntimeError):
    """A training run that had to stop: a diverging loss, no room to write."""


def whole_number(value: Any, what: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """The value as an int; ModelError unless it is a whole number within bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        ends = f"{least} to 2^63 - 1" if most == 2**63 - 1 else f"{least} to {most:,}"
        raise ModelError(f"{what} must be a whole number from {ends}, not {value!r}", value=value)
    return number


def unknown_keyword(name: str, known: Iterable[str], of: str) -> ModelError:
    """The error for a keyword that does not exist, with the nearest one that does."""
    legal = list(known)
    near = nearest(name, legal)
    remedy = f"did you mean {near!r}?" if near else ""
    allowed = [] if near else legal
    return ModelError(f"{of} has no setting {name!r}", value=name, allowed=allowed, remedy=remedy)


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> ModelError:
    """Error for a name that does not exist, with those that do and the nearest of them.

    `where`: the context, such as " in 'faces.npz'".
    """
    legal = list(known)
    near = nearest(name, legal)
    remedy = () if near is None else f"did you mean {near!r}?"
    problem = f"unknown {kind} {name!r}{where}" + ("" if legal else " (have: none)")
    return ModelError(problem, value=name, allowed=legal, remedy=remedy)


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose unknown keywords are refused with the nearest known one."""
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise unknown_keyword(name, known, function.__name__)
        return function(*args, **kwargs)

    return checked
