"""Commands that ask the same question of the simulator, for hints."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

EVEN = 1e-9  # of the span, by which times of an even grid may be off


def reference_command(
    about: Mapping[str, Any],
    times: np.ndarray,
    record: Mapping[str, Any],
    rules: Sequence[str],
    start: str | None = None,
) -> str:
    """`surrogate reference` with the parameters, start and grid of a simulation (`about`: its
    description), and what samples were conditioned on: `record` of observed data, and rules.
    `simulate` where there is neither."""
    network = about.get("network") or {}
    name = str(network.get("name") or "MODEL")
    asks = bool(rules) or bool(record)
    words = ["surrogate", "reference" if asks else "simulate", shlex.quote(name)]
    words += _assigned("--param", about.get("parameters"), network.get("parameters"))
    initial = about.get("initial")
    words += _assigned("--initial", initial, {})
    if not initial and about.get("start") not in (None, network.get("start")):
        words += ["--initial", str(about["start"])]
    words += _grid(times, network)
    words += _observed(record)
    if start is not None and record:
        words += ["--start", start]
    words += [f"--where {shlex.quote(rule)}" for rule in rules]
    return " ".join(words)


def _assigned(option: str, values: Any, known: Any) -> list[str]:
    """Numbers and ranges that differ from the network's own."""
    if not isinstance(values, Mapping):
        return []
    own = known if isinstance(known, Mapping) else {}
    found = []
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(value.get("range"), list):
            low, high = value["range"]
            found.append(f"{option} {shlex.quote(f'{name}={low:g}..{high:g}')}")
        elif isinstance(value, (int, float)) and value != own.get(name):
            found.append(f"{option} {shlex.quote(f'{name}={value:g}')}")
    return found


def _grid(times: np.ndarray, network: Mapping[str, Any]) -> list[str]:
    """--points and --until of an even grid from 0 that is not the network's own."""
    if times.dtype.kind not in "iuf" or len(times) < 2 or times[0] != 0:
        return []
    even = np.linspace(0, times[-1], len(times))
    if np.abs(times - even).max() > EVEN * times[-1]:
        return []
    points, until = network.get("points"), network.get("until")
    found = [] if points == len(times) else [f"--points {len(times)}"]
    return found + ([] if until == float(times[-1]) else [f"--until {times[-1]:g}"])


def _observed(record: Mapping[str, Any]) -> list[str]:
    """The options of observed data that samples were conditioned on."""
    if not record:
        return []
    words = [f"--observe {shlex.quote(str(record.get('file', 'FILE')))}"]
    if "time" in record:
        words.append(f"--time {shlex.quote(str(record['time']))}")
    for option, part, sign in (("--map", "columns", "="), ("--noise", "noise", " ~ ")):
        each = record.get(part)
        pairs = each.items() if isinstance(each, Mapping) else ()
        words += [f"{option} {shlex.quote(f'{a}{sign}{b}')}" for a, b in pairs if a != b]
    words += [f"--upto {shlex.quote(str(record['upto']))}"] if record.get("upto") else []
    words += [f"--every {record['every']}"] if record.get("every", 1) != 1 else []
    return words + (["--nearest"] if record.get("nearest") else [])
