"""Simplification of lowered formulas: no repeated parts, no constants, merged atoms.

A conjunction merges `x >= a` and `x <= b` into one interval. Atoms about one categorical signal are
sets of categories, and merged by intersection or union: `race = a or race = b` is the one atom that
the weights of a and b add up to at least one half.
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
        return body  # only if the window is fixed: a moving one may be empty
    if kind == "forall" and isinstance(body, f.And):
        return all_of(
            f.Quantifier(kind, variable, first, last, part, region) for part in body.parts
        )
    return f.Quantifier(kind, variable, first, last, body, region)


def all_of(parts: Iterable[f.Formula]) -> f.Formula:
    """Conjunction without repetition, with atoms about one sum or category merged."""
    flat = list(dict.fromkeys(f.And(tuple(parts)).parts))
    if f.FALSE in flat:
        return f.FALSE
    kept = [part for part in flat if part != f.TRUE]
    return f.conjunction(*_merge_intervals(_merge_categories(kept, both=True))) if kept else f.TRUE


def any_of(parts: Iterable[f.Formula]) -> f.Formula:
    """Disjunction without repetition, with atoms about one category merged."""
    flat = list(dict.fromkeys(f.Or(tuple(parts)).parts))
    kept = _merge_categories([part for part in flat if part != f.FALSE], both=False)
    if f.TRUE in kept:
        return f.TRUE
    return f.disjunction(*kept) if kept else f.FALSE


def _merge_categories(parts: list[f.Formula], both: bool) -> list[f.Formula]:
    """Merge atoms about one categorical signal, in a conjunction (`both`) or a disjunction."""
    done: list[f.Formula] = []
    positions: dict[object, int] = {}
    for part in parts:
        key = _category_key(part)
        before = done[positions[key]] if key in positions else None
        merged = _merged(before, part, both) if isinstance(before, Atom) else before
        if merged is not None:
            done[positions[key]] = merged
            continue
        if key is not None:
            positions.setdefault(key, len(done))
        done.append(part)
    return done


def _category_key(part: f.Formula) -> object:
    """The categorical signal that an atom is about, and its hardness; None for other parts."""
    if not isinstance(part, Atom) or part.category is None:
        return None
    return part.category.key, part.k


def _merged(one: Atom, other: f.Formula, both: bool) -> f.Formula | None:
    """Two atoms about a category as one; None if they contradict, so that both stay visible."""
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
    """The indices of the categories that an atom allows, and the labels of all categories."""
    options = [term for term in atom.terms if isinstance(term, CategoryWeight)]
    named, words = {option.index for option in options}, options[0].words
    return (named if atom.chooses else set(range(len(words))) - named), words


def _merge_intervals(parts: list[f.Formula]) -> list[f.Formula]:
    """Merge `x >= a` and `x <= b`, under the same quantifiers, into `a <= x <= b`."""
    done: list[f.Formula] = []
    one_sided: dict[object, int] = {}  # positions by sum, quantifiers and side
    for part in parts:
        atom = _innermost(part)
        if atom is None or atom.slack or math.isinf(atom.low) == math.isinf(atom.high):
            done.append(part)
            continue
        upper = math.isinf(atom.low)
        blank = replace(atom, low=0.0, high=0.0, open_low=False, open_high=False)
        context = _around(part, blank)
        other = one_sided.get((context, not upper))
        if other is not None:
            opposite = _innermost(done[other])
            assert opposite is not None
            low, high = (opposite, atom) if upper else (atom, opposite)
            if low.low < high.high:
                both = replace(low, high=high.high, open_high=high.open_high)
                done[other] = _around(part, both)
                del one_sided[context, not upper]
                continue
        one_sided.setdefault((context, upper), len(done))
        done.append(part)
    return done


def _innermost(part: f.Formula) -> Atom | None:
    """The atom under any number of `forall`; None if there is none."""
    while isinstance(part, f.Quantifier) and part.kind == "forall":
        part = part.body
    return part if isinstance(part, Atom) else None


def _around(part: f.Formula, atom: Atom) -> f.Formula:
    """`part` with its innermost atom replaced."""
    if isinstance(part, f.Quantifier):
        return replace(part, body=_around(part.body, atom))
    return atom
