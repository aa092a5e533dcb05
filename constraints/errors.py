"""What can be wrong with a formula: its text, its names, its times; or that nothing can meet it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class FormulaError(ValueError):
    """A formula that cannot be read, or that means nothing for these signals."""


class ImpossibleError(FormulaError):
    """A formula that no data within the known bounds can satisfy."""


class DataError(FormulaError):
    """Data that a formula cannot be judged on: missing signals, wrong shapes, NaN."""


def unknown(kind: str, name: str, known: Iterable[str], remedy: str = "") -> FormulaError:
    """Error for a name that is not there, with the nearest one that is."""
    names = list(known)
    near = nearest(name, names)
    spelled = repr(near) if near is not None and near.isidentifier() else f'"{near}"'
    hint = "" if near is None else f"; did you mean {spelled}?"
    return FormulaError(f"unknown {kind} {name!r}{hint} (have: {listed(names)}){remedy}")


def nearest(name: str, known: Iterable[str], alike: float = 0.5) -> str | None:
    """The name that has most in common with one that is not there; None if too little."""
    lower = {candidate.lower(): candidate for candidate in sorted(known)}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=alike)
    return lower[near[0]] if near else None


def listed(names: Iterable[str]) -> str:
    """Names as a formula spells them, in quotation marks where that is needed."""
    shown = [name if name.isidentifier() else f'"{name}"' for name in sorted(names)]
    return ", ".join(shown[:40]) + (", ..." if len(shown) > 40 else "") if shown else "none"


def caret(text: str, position: int, message: str) -> FormulaError:
    """`message` under the line of `text` that holds `position`, with a caret at the place."""
    position = min(max(position, 0), len(text))
    start = text.rfind("\n", 0, position) + 1
    stop = text.find("\n", position)
    line = text[start : stop if stop >= 0 else len(text)]
    column = position - start
    if len(line) > 100:  # show a window around the place
        left = max(0, column - 60)
        line, column = ("..." if left else "") + line[left : left + 94], column - left
        column += 3 if left else 0
    shown = "".join(c if c.isprintable() else " " for c in line)
    return FormulaError(f"{message}\n  {shown}\n  {' ' * column}^")
