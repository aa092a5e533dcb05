"""Columns of tables as features of trees: numbers as they are, words as their rank by frequency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surrogate.evaluation.boosting import MAX_TREE_WORDS, Features
from surrogate.evaluation.weights import Array
from surrogate.kinds.tables.align import Column


def tree_features(columns: Sequence[Column]) -> Features:
    """The features of all columns, for each table that they belong to."""
    made = [_ordinal(each) for each in columns]
    sides = tuple(np.stack(parts, 1) for parts in zip(*made, strict=True))
    return Features(sides, tuple(each.kind == "word" for each in columns))


def _ordinal(column: Column) -> tuple[Array, ...]:
    """Values (n,) per table; words as their rank by frequency, the rarest sharing the last."""
    if column.kind != "word":
        return column.rescaled().sides
    order = np.argsort(np.argsort(-column.word_counts(), kind="stable"))
    place = np.minimum(order, MAX_TREE_WORDS).astype(np.float64)
    return tuple(
        np.where(np.isnan(side), np.nan, place[np.nan_to_num(side, nan=0.0).astype(np.int64)])
        for side in column.sides
    )
