"""Comparisons by the kind of their signals: numbers, categories (by label), dates (by day).

A comparison with a category becomes a statement about its weight, `weight >= 0.5`; one with a date
becomes a comparison of days since 1970 (`dates`).
"""

from __future__ import annotations

from constraints.ast import formulas as f
from constraints.ast.dates import is_day
from constraints.ast.lowered import CategoryWeight
from constraints.ast.terms import Const, Name, Term
from constraints.ast.walk import descend
from constraints.compile import dates
from constraints.errors import FormulaError, nearest, quoted, unknown
from constraints.language.bridge import readings
from constraints.layout.signals import Layout, Signal

MISSPELLING_SIMILARITY = 0.7  # from which a quoted text is taken for a misspelt name


def typed_comparison(
    left: Term, relation: str, right: Term, tolerance: float | None, layout: Layout
) -> f.Formula:
    """The comparison as comparisons of numbers and of weights of categories."""
    for subject, other in ((left, right), (right, left)):
        signal = layout.find(subject.name) if isinstance(subject, Name) else None
        if signal is None or not isinstance(subject, Name):
            continue
        if signal.kind == "category":
            if tolerance is not None:
                raise FormulaError(
                    f"{subject} {relation} {other}: categories have no tolerance",
                    value=tolerance,
                    remedy=f"leave out +- {tolerance:g}",
                )
            return _category_comparison(subject, signal, relation, other, layout)
        if signal.kind == "column" and not signal.dates:
            _reject_text(subject, other, layout)
    known = {*layout.names, *layout.parameters}
    for node in (*descend(left), *descend(right)):
        signal = layout.find(node.name) if isinstance(node, Name) else None
        if signal is not None and signal.dates:
            return dates.date_comparison(left, relation, right, tolerance, known)
    return f.Compare((left, right), (relation,), tolerance)


def _category_comparison(
    subject: Name, signal: Signal, relation: str, other: Term, layout: Layout
) -> f.Formula:
    words = signal.categories
    if relation not in ("=", "!="):
        raise FormulaError(
            f"{subject} {relation} {other}: {subject} is a category, and categories have no order",
            value=relation,
            allowed=("=", "!=", "in"),
            remedy=f'write {subject} = "{words[0]}", or {subject} in {{"{words[0]}", ...}}',
        )
    word = other.name if isinstance(other, Name) else str(other)
    if word not in words and isinstance(other, Name) and layout.find(word) is not None:
        raise FormulaError(
            f"{subject} {relation} {other}: a category is compared with its labels, not with "
            "another signal",
            value=word,
            allowed=[quoted(each) for each in words],
            remedy=f'write {subject} = "{words[0]}"',
        )
    if set(words) <= {"True", "False"}:
        word = {"1": "True", "0": "False"}.get(word, word.capitalize())
    if word not in words:
        remedy = f'write {subject} = "{words[0]}"' if isinstance(other, Const) else ()
        raise unknown(f"category of {signal.name}:", word, words, remedy)
    weight = CategoryWeight(with_instance(subject, layout), words.index(word), words)
    return f.Compare((weight, Const(0.5)), (">=" if relation == "=" else "<",))


def _reject_text(subject: Name, other: Term, layout: Layout) -> None:
    """Reject a text that is not a name, where a column of numbers is compared."""
    if not isinstance(other, Name) or other.name in {*layout.names, *layout.parameters}:
        return
    series = [signal.name for signal in layout.signals if signal.kind == "series"]
    truth = other.quoted and other.name in ("true", "false")
    if truth or other.name == "time" or readings(other.name, series):
        return
    known = [*layout.names, *layout.parameters]
    if nearest(other.name, known, MISSPELLING_SIMILARITY) or not other.quoted:
        raise unknown("signal, parameter or category", other.name, known)
    kind = "dates" if is_day(other.name[:10]) else "text"
    raise FormulaError(
        f"{subject} holds numbers, not {kind} such as {other}",
        value=other.name,
        allowed=[quoted(each) for each in sorted(known)],
        remedy="compare it with a number, or with another signal",
    )


def with_instance(node: Name, layout: Layout) -> Name:
    """The name of a signal with its instance, both of which must exist."""
    if layout.find(node.name) is None and node.name != "time":
        raise unknown("signal", node.name, [*layout.names, *layout.parameters])
    count = layout.instances
    if node.instance is None:
        if count > 1:
            raise FormulaError(
                f"{node} does not say of which instance, and there are {count}",
                value=node.name,
                remedy=f"write {node}[1] {'or' if count == 2 else 'to'} {node}[{count}]",
            )
        return Name(node.name)
    if node.instance > count:
        remedy = f"write {node.name}[1] to {node.name}[{count}]"
        if count == 1:
            remedy = f"write {node.name}"
            if layout.times:
                remedy += f", or {node.name}({node.instance}) for its value at step {node.instance}"
        raise FormulaError(f"{node}: there is no such instance", value=node.instance, remedy=remedy)
    return Name(node.name, node.instance if count > 1 else None)
