"""Requirements on rows as English phrases."""

from __future__ import annotations

from constraints import Formula, FormulaError, parse
from constraints.ast import formulas as f
from constraints.ast.terms import Const, Name, Term
from surrogate.reports.wording import number, several

SAYS = {
    ">=": "is at least",
    ">": "is more than",
    "<=": "is at most",
    "<": "is less than",
    "=": "is",
    "!=": "is not",
}


def condition(text: str) -> str | None:
    """A requirement of rows as a person would say it; None where words would not do."""
    try:
        return _said(parse(text))
    except FormulaError:  # of another version, or by a stranger
        return None


def _said(part: Formula) -> str | None:
    match part:
        case f.Annotated(body):
            return _said(body)
        case f.Compare((Name() as left, right), (relation,), None):
            return f"{_term(left)} {SAYS[relation]} {_term(right)}"
        case f.Compare((Name() as left, Const() as right), ("=",), float(off)):
            return f"{_term(left)} is {_term(right)}, give or take {number(off)}"
        case f.Compare((Const() as low, Name() as middle, Const() as high), ("<=", "<="), None):
            return f"{_term(middle)} is between {_term(low)} and {_term(high)}"
        case f.And(parts) | f.Or(parts):
            said = [_said(each) for each in parts]
            known = [each for each in said if each is not None]
            word = "and" if isinstance(part, f.And) else "or"
            return several(known, word) if known and len(known) == len(said) else None
        case f.Implies(left, right):
            first, then = _said(left), _said(right)
            return f"if {first}, then {then}" if first and then else None
    return None


def _term(term: Term) -> str:
    match term:
        case Const(value):
            return number(value)
        case Name(name, None):
            return name
        case Name(name, instance):
            return f"{name} of row {instance}"
    return str(term)
