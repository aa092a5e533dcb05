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
    names = sorted(known)
    lower = {candidate.lower(): candidate for candidate in names}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = f"; did you mean {lower[near[0]]!r}?" if near else ""
    have = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "") if names else "none"
    return FormulaError(f"unknown {kind} {name!r}{hint} (have: {have}){remedy}")


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
