"""Data of any kind: compare them with others. What depends on the kind is asked of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constraints.errors import nearest
from surrogate.errors import ModelError, whole_number
from surrogate.evaluation.result import Evaluation
from surrogate.kinds import Kind, kind_of, kinds


def evaluate(data: Any, against: Any, *, seed: int = 0, **options: Any) -> Evaluation:
    """Compare samples with reference data of the same kind, beside noise floors.

    `log_weight` of either side is honoured: histograms and moments are weighted, and the floor is
    that of their effective sample size. Options are the kind's: for tables, `target` names a column
    to predict on real rows by what learns from the samples, and `train` gives the rows that the
    model learned from, if they are not the reference: whether samples repeat them is measured.
    """
    seed = whole_number(seed, "seed")
    kind = common_kind(data, against)
    check_options(kind, options, kind.compare_options, "compare_options")
    return kind.compare(data, against, seed, **options)


def common_kind(data: Any, against: Any) -> Kind:
    """The kind of both; ModelError if they are of two."""
    kind, other = kind_of(data), kind_of(against)
    if kind is not other:
        raise ModelError(
            f"the samples are {kind.name}, the reference are {other.name}",
            value=other.name,
            remedy="give data of one kind",
        )
    return kind


def check_options(kind: Kind, given: Iterable[str], known: Iterable[str], facet: str) -> None:
    """Refuse options that the kind does not have, by name; `facet`: where kinds declare them."""
    names = list(known)
    for name in given:
        if name in names:
            continue
        owners = [each.name for each in kinds() if name in getattr(each, facet)]
        if owners:
            raise ModelError(
                f"{name} is for {' and '.join(owners)}, and these are {kind.name}",
                value=name,
                allowed=names,
                remedy="leave it out",
            )
        near = nearest(name, names)
        raise ModelError(
            f"unknown option {name!r}" + (f" (did you mean {near!r}?)" if near else ""),
            value=name,
            allowed=names,
        )
