"""Attributes of datasets: their names, and reading back what may come from a stranger.

An attribute that does not have the type that it should have counts as absent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

CALENDAR = "surrogate_calendar"  # cycles of the calendar to learn, if not chosen by a trial
OVERLAP = "surrogate_overlap"  # windows on either side that share steps with one


def json_object(text: Any) -> dict[str, Any]:
    """An object from its JSON; empty if the text is not that."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number(value: Any) -> float | None:
    """A finite number, None if it is anything else."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except (OverflowError, TypeError):
        return None


def simulation(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """The description (`surrogate_config`) of the simulation that made data; empty if none."""
    return simulation_in(attrs.get("surrogate_config"))


def simulation_in(text: Any) -> dict[str, Any]:
    """The description of a simulation from its JSON; empty if the text is not that."""
    about = json_object(text)
    return about if isinstance(about.get("network"), dict) else {}
