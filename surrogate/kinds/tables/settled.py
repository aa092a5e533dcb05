"""Which columns equations settle by themselves, and the order of drawing that puts these first.

If a row's columns are drawn in a fixed order, an equation on one that comes late is met by the
weights of whatever came before, and few particles count. Drawn first, it has no part in what
follows but to be conditioned on.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from surrogate.kinds.conditions import SLACK
from surrogate.kinds.decoder import Pins
from surrogate.kinds.tables.drawn_columns import DrawnColumns
from surrogate.kinds.tables.sites import Choice, Number

MAX_WIDTH = 0.01  # probability of an interval that counts as an equation
MAX_PROBABILITY = 0.01  # of all equations, if columns were independent, up to which they are rare


class Settled(NamedTuple):
    """`order`: numbers of the columns; `rare`: whether few rows meet the equations by chance."""

    order: list[int]
    rare: bool


def settled(drawn: DrawnColumns, pins: Pins) -> Settled:
    """What conditions on single columns of one row settle."""
    columns = list(range(len(drawn.sites)))
    instances = pins.rows.shape[1] // drawn.coordinates
    if instances != 1 or not pins.total:
        return Settled(columns, False)
    first, log_p = list[int](), 0.0
    read = {c for factor in pins.factors for c in factor.coordinates}
    for j, site in enumerate(drawn.sites):
        own = drawn.coordinates_of((0, j))
        alone = (pins.rows[:, own] != 0).any(1) & ~_others(pins.rows, own)
        if bool(alone.any()):
            share, single = _left(site, pins, alone, own)
            if single or share <= math.log(MAX_WIDTH):
                first.append(j)
                log_p += share
    concerned = [
        j
        for j in columns
        if j not in first
        and (
            bool((pins.rows[:, drawn.coordinates_of((0, j))] != 0).any())
            or read.intersection(drawn.coordinates_of((0, j)))
        )
    ]
    rest = [j for j in columns if j not in first and j not in concerned]
    return Settled([*first, *concerned, *rest], log_p <= math.log(MAX_PROBABILITY))


def _others(rows: Tensor, own: list[int]) -> Tensor:
    """Which conditions (k,) concern other columns."""
    others = rows.clone()
    others[:, own] = 0
    return (others != 0).any(1)


def _left(site: Choice | Number, pins: Pins, alone: Tensor, own: list[int]) -> tuple[float, bool]:
    """log of the share of the data that these conditions (k,) leave of a column, tolerances apart,
    and whether they leave one value."""
    rows, off = pins.rows[alone][:, own], pins.tolerances[alone]
    low, high = pins.low[alone] + off, pins.high[alone] - off
    if isinstance(site, Choice) and site.numbers is None:
        at = torch.eye(site.outputs, dtype=torch.float64) @ rows.mT
        met = ((at >= low - SLACK) & (at <= high + SLACK)).all(1)
        return float(site.log_shares[met].logsumexp(0)), int(met.sum()) == 1
    ends = low / rows[:, 0], high / rows[:, 0]
    a, b = torch.minimum(*ends).max()[None], torch.maximum(*ends).min()[None]
    if isinstance(site, Choice):
        met = site.allowed(a, b, False)[0]
        return float(site.log_shares[met].logsumexp(0)), int(met.sum()) == 1
    return site.log_marginal(a, b), bool(site.part(a, b).first == site.part(a, b).last)
