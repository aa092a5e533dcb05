"""Numbers, probabilities and times in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

SIZES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
PERIODS = ((31_557_600, "years"), (86_400, "days"), (3_600, "hours"), (60, "minutes"))
MAX_TEXT = 2_000  # characters of a text from a file


def number(value: float) -> str:
    """1,250; 0.0325; 3.2e+07."""
    if not math.isfinite(value):
        return str(value).replace("-", "−").replace("inf", "∞")
    whole = abs(value) < 1e9 and value == round(value)
    return (f"{value:,.0f}" if whole else f"{value:.4g}").replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def rounded(value: float) -> str:
    """Two digits that count: 76,000; 1.2 million; 10^15 beyond names."""
    for size, name in SIZES:
        if size <= value < 1_000 * SIZES[0][0]:
            return f"{_two(value / size)} {name}"
    return power(value) if value >= 1e6 else _two(value)


def _two(value: float) -> str:
    if value < 10:
        return f"{value:.1f}".removesuffix(".0")
    step = 10 ** (math.floor(math.log10(value)) - 1)
    return f"{round(value / step) * step:,.0f}"


def power(value: float) -> str:
    """1.3 × 10⁻⁵"""
    return _scientific(math.log10(value))


def _scientific(exponent: float) -> str:
    whole = math.floor(exponent)
    lead = round(10 ** (exponent - whole), 1)
    if lead >= 10:
        lead, whole = 1.0, whole + 1
    high = str(whole).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{lead:g} × 10{high}"


def odds(log_p: float) -> str:
    """A probability by its natural logarithm: 43 %, or 1 in 76,000."""
    if log_p >= math.log(0.1):
        return f"{100 * math.exp(min(log_p, 0.0)):.0f} %" if log_p < math.log(0.995) else ">99 %"
    if log_p > -600:
        return f"1 in {rounded(math.exp(-log_p))}"
    return f"1 in {_scientific(-log_p / math.log(10))}"


def chance(log_p: float) -> str:
    """0.43, or 1.3 × 10⁻⁵."""
    return f"{math.exp(log_p):.2g}" if log_p > math.log(1e-3) else _scientific(log_p / math.log(10))


def give_or_take(error: float) -> str:
    """What an error of a logarithm means for the number."""
    if error < 0.25:
        return f"give or take {max(1, round(100 * error))} %"
    factor = f"{math.exp(error):.1f}" if error < 6 else _scientific(error / math.log(10))
    return f"within a factor of about {factor}"


def duration(seconds: float) -> str:
    for size, name in PERIODS:
        if seconds >= 2 * size:
            return f"{rounded(seconds / size)} {name}"
    return f"{seconds:.1f} seconds" if seconds < 10 else f"{seconds:.0f} seconds"


def several(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c"""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def shortened(text: object) -> str:
    """What can be printed of a text, which a stranger may have made long."""
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))
    return shown if len(shown) <= MAX_TEXT else shown[:MAX_TEXT] + " …"


# --- time -----------------------------------------------------------------------------------------


def stamp(grid: np.ndarray, step: int) -> str:
    """The time of a step, told from that of its neighbours: 2.76, or 2024-03-01."""
    if grid.dtype.kind == "M":
        near = len(grid) > 1 and np.diff(grid).min() < np.timedelta64(1, "D")
        return str(np.datetime_as_string(grid[step], unit="m" if near else "D")).replace("T", " ")
    gap = float(np.abs(np.diff(grid)).min(initial=1.0)) or 1.0
    digits = max(0, math.ceil(-math.log10(gap))) + 1
    return number(round(float(grid[step]), digits)) if digits < 9 else f"{float(grid[step]):.6g}"


def moment(grid: np.ndarray, step: int) -> str:
    """time 2.76 (step 25); step 25, where that is the time."""
    if grid.dtype.kind != "M" and (grid == np.arange(len(grid))).all():
        return f"step {step}"
    return f"time {stamp(grid, step)} (step {step})"
