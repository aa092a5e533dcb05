"""What can go wrong with a model: what a person asked of it, and what a run met."""

from __future__ import annotations

import operator
from typing import Any

from constraints.errors import SurrogateError as SurrogateError


class ModelError(SurrogateError, ValueError):
    """Data, settings or a model folder that cannot be used, with the reason and the remedy."""

    exit_code = 2


class SamplingError(SurrogateError, RuntimeError):
    """A run that found no sample."""


class TrainingError(SurrogateError, RuntimeError):
    """A training run that had to stop: a diverging loss, no room to write."""


def whole_number(value: Any, what: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """A number that was asked for, if it is a whole one within bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        ends = f"{least} to 2^63 - 1" if most == 2**63 - 1 else f"{least} to {most:,}"
        raise ModelError(f"{what} must be a whole number from {ends}, not {value!r}")
    return number
