"""The linear part of a formula, which a decoder meets value by value: low <= rows·y <= high.

A decoder meets it in data units. The diffusion before it sees normalised coordinates: there a
condition on one column that is learned by its quantiles is an interval of its latent, exactly, and
one on several is linearised through their smoothed maps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from constraints import Layout, Program
from constraints.gaussian.equations import Equations, conditions, split
from constraints.gaussian.latent import LatentMap

Affine = tuple[Tensor, Tensor]  # G (L, D) and c (L,) with signals G x + c


def linear_map(signals: Callable[[Tensor], Tensor], about: Tensor, size: int) -> Affine:
    """G (L, D) and c (L,) with signals(x) ≈ G x + c about a point (D,), for L = `size` signals."""
    with torch.enable_grad():  # row i is the gradient of signal i at a copy of its own
        copies = about.expand(size, -1).clone().requires_grad_()
        found: Tensor = signals(copies).diagonal()
        (matrix,) = torch.autograd.grad(found.sum(), copies)
    return matrix, found.detach() - matrix @ about


def no_equations(size: int) -> Equations:
    """None, about points of so many coordinates."""
    none = torch.zeros(0, size, dtype=torch.float64)
    return Equations(none, none[:, 0], none[:, 0], none[:, 0])


def linear_conditions(program: Program) -> Equations:
    """The equations and the linear inequalities of a formula, in its signals."""
    equations, rest = split(program)
    parts = [equations, *([conditions(rest)] if rest is not None else [])]
    return Equations(
        torch.cat([part.rows for part in parts]),
        torch.cat([part.low for part in parts]),
        torch.cat([part.high for part in parts]),
        torch.cat([part.tolerance for part in parts]),
    )


def moved(own: Equations, signals: Affine) -> Equations:
    """Conditions on signals as conditions on the coordinates that these are affine in."""
    matrix, offset = signals
    known = own.rows @ offset
    return Equations(own.rows @ matrix, own.low - known, own.high - known, own.tolerance)


def through_latents(
    own: Equations, values: Affine, latents: Affine, warps: Mapping[int, LatentMap]
) -> Equations:
    """Conditions on data as conditions on normalised coordinates; `values`: the data linearised,
    `latents`: of the columns in `warps`, by their places among the signals."""
    made = moved(own, values)
    rows, low, high = made.rows, made.low, made.high
    for i, row in enumerate(own.rows):
        (used,) = row.nonzero(as_tuple=True)
        j = int(used[0])
        if len(used) == 1 and j in warps:
            weight = float(row[j])
            ends = sorted((float(own.low[i]) / weight, float(own.high[i]) / weight))
            first, last = warps[j].interval(ends[0], ends[1], False, False)
            matrix, offset = latents[0][j], latents[1][j]
            rows[i], low[i], high[i] = matrix, first - offset, last - offset
    return made


def by_place(
    warps: Mapping[str, LatentMap], layout: Layout, instances: int
) -> dict[int, LatentMap]:
    """The maps of columns by their places among the signals of all instances; `layout` of one."""
    found, place = dict[int, LatentMap](), 0
    for signal in layout.signals:
        if signal.name in warps:
            for i in range(instances):
                found[i * layout.size + place] = warps[signal.name]
        place += signal.size
    return found
