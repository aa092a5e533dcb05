"""The layout of a codec as JSON, without torch: rules are checked before a model is loaded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from constraints import FormulaError, Layout, Signal
from surrogate.errors import ModelError


def layout_to_config(layout: Layout) -> dict[str, Any]:
    """The layout as a JSON object."""
    signals = [
        {
            "name": s.name,
            "kind": s.kind,
            "shape": list(s.shape),
            "integer": s.integer,
            "low": s.low if math.isfinite(s.low) else None,
            "high": s.high if math.isfinite(s.high) else None,
            "categories": list(s.categories),
            "span": s.span,
        }
        for s in layout.signals
    ]
    return {
        "signals": signals,
        "times": list(layout.times),
        "parameters": dict(layout.parameters),
        **({"dates": list(layout.dates)} if layout.dates else {}),
    }


def layout_from_config(config: Mapping[str, Any]) -> Layout:
    """The layout that `layout_to_config` described; ModelError says what is wrong with it."""
    try:
        signals = tuple(
            Signal(
                name=each["name"],
                kind=each["kind"],
                shape=tuple(each["shape"]),
                integer=bool(each["integer"]),
                low=-math.inf if each["low"] is None else float(each["low"]),
                high=math.inf if each["high"] is None else float(each["high"]),
                categories=tuple(each["categories"]),
                span=None if each["span"] is None else float(each["span"]),
            )
            for each in list_in(config, "signals")
        )
        times = tuple(float(time) for time in list_in(config, "times"))
        dates = tuple(str(day) for day in (list_in(config, "dates") if "dates" in config else ()))
        return Layout(signals, times, dict(mapping_in(config, "parameters")), dates=dates)
    except (FormulaError, KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"in the codec, the layout cannot be read: {problem}") from None


# --- parts of a config ----------------------------------------------------------------------------


def list_in(config: Any, key: str) -> list[Any]:
    """The list under a key."""
    found: list[Any] = value_in(config, key, list, "a list")
    return found


def mapping_in(config: Any, key: str) -> Mapping[str, Any]:
    """The mapping under a key."""
    found: Mapping[str, Any] = value_in(config, key, Mapping, "a mapping")
    return found


def value_in(config: Any, key: str, kind: type | tuple[type, ...], what: str) -> Any:
    """The value under a key, of this type."""
    if not isinstance(config, Mapping) or key not in config:
        raise ModelError(f"the codec lacks {key!r}")
    if not isinstance(config[key], kind):
        shown = json.dumps(config[key], default=str)[:60]
        raise ModelError(f"in the codec, {key!r} is {what}, not {shown}", value=config[key])
    return config[key]
