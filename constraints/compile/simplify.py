"""Joining lowered formulas: connectives and quantifiers without repetition or constants.

A conjunction joins its halves of intervals, `x >= a` and `x <= b`. Statements about one category
are sets of words, and joined as such: `race = a or race = b` is one atom, that the weights of a
and b add up to more than one half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, CategoryWeight
from constraints.ast.nodes import Node
from constraints.ast.terms import Step


def quantified(
    kind: str,
    variable: str,
    first: Step | None,
    last: Step | None,
    body: f.Formula,
    region: str | Node | None,
) -> f.Formula:
    fixed = first is None or last is None or first.base is last.base is None
    if body == (f.TRUE if kind == "forall" else f.FALSE) or (fixed and body in (f.TRUE, f.FALSE)):
        return body  # a window that moves may be empty, and decide by that
    if kind == "forall" and isinstance(body, f.And):
        return all_of(
            f.Quantifier(kind, variable, first, last, part, region) for part in body.parts
        )
    return f.Quantifier(kind, variable, first, last, body, region)


def all_of(parts: Iterable[f.Formula]) -> f.Formula:
    """Conjunction without repetition, with its halves of intervals joined."""
    flat = list(dict.fromkeys(f.And(tuple(parts)).parts))
    if f.FALSE in flat:
        return f.FALSE
    kept = [part for part in flat if part != f.TRUE]
    return f.conjunction(*_intervals(_words(kept, both=True))) if kept else f.TRUE


def any_of(parts: Iterable[f.Formula]) -> f.Formula:
    """Disjunction without repetition."""
    flat = list(dict.fromkeys(f.Or(tuple(parts)).parts))
    kept = _words([part for part in flat if part != f.FALSE], both=False)
    if f.TRUE in kept:
        return f.TRUE
    return f.disjunction(*kept) if kept else f.FALSE


def _words(parts: list[f.Formula], both: bool) -> list[f.Formula]:
    """Join what is said of one category, in a conjunction (`both`) or a disjunction."""
    done: list[f.Formula] = []
    said: dict[object, int] = {}
    for part in parts:
        key = _subject(part)
        before = done[said[key]] if key in said else None
        joined = _joined(before, part, both) if isinstance(before, Atom) else before
        if joined is not None:
            done[said[key]] = joined
            continue
        if key is not None:
            said.setdefault(key, len(done))
        done.append(part)
    return done


def _subject(part: f.Formula) -> object:
    """The category that an atom is about, and how hard it is; None of other parts."""
    if not isinstance(part, Atom) or part.category is None:
        return None
    return part.category.key, part.k


def _joined(one: Atom, other: f.Formula, both: bool) -> f.Formula | None:
    """Two statements about a category as one; None where they contradict, which is to be seen."""
    assert isinstance(other, Atom)
    (left, words), (right, _) = _allowed(one), _allowed(other)
    allowed = left & right if both else left | right
    if not allowed:
        return None
    if len(allowed) == len(words):
        return f.TRUE
    chosen = (one.chooses or other.chooses) if both else (one.chooses and other.chooses)
    first = one.terms[0]
    assert isinstance(first, CategoryWeight)
    listed = sorted(allowed if chosen else set(range(len(words))) - allowed)
    terms = tuple(replace(first, index=i) for i in listed)
    low, high = (0.5, math.inf) if chosen else (-math.inf, 0.5)
    return Atom((1.0,) * len(terms), terms, low, high, open_high=not chosen, k=one.k)


def _allowed(atom: Atom) -> tuple[set[int], tuple[str, ...]]:
    """The numbers of the words that a category may be, and all of its words."""
    options = [term for term in atom.terms if isinstance(term, CategoryWeight)]
    named, words = {option.index for option in options}, options[0].words
    return (named if atom.chooses else set(range(len(words))) - named), words


def _intervals(parts: list[f.Formula]) -> list[f.Formula]:
    """Join `x >= a` and `x <= b`, under the same quantifiers, into `a <= x <= b`."""
    done: list[f.Formula] = []
    open_: dict[object, int] = {}
    for part in parts:
        atom = _innermost(part)
        if atom is None or atom.slack or math.isinf(atom.low) == math.isinf(atom.high):
            done.append(part)
            continue
        upper = math.isinf(atom.low)
        blank = replace(atom, low=0.0, high=0.0, open_low=False, open_high=False)
        context = _around(part, blank)
        other = open_.get((context, not upper))
        if other is not None:
            mate = _innermost(done[other])
            assert mate is not None
            low, high = (mate, atom) if upper else (atom, mate)
            if low.low < high.high:
                both = replace(low, high=high.high, open_high=high.open_high)
                done[other] = _around(part, both)
                del open_[context, not upper]
                continue
        open_.setdefault((context, upper), len(done))
        done.append(part)
    return done


def _innermost(part: f.Formula) -> Atom | None:
    while isinstance(part, f.Quantifier) and part.kind == "forall":
        part = part.body
    return part if isinstance(part, Atom) else None


def _around(part: f.Formula, atom: Atom) -> f.Formula:
    """`part` with its innermost atom replaced."""
    if isinstance(part, f.Quantifier):
        return replace(part, body=_around(part.body, atom))
    return atom
