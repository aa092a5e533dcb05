"""Trajectories kept within the ranges of their variables.

Data that lie in a convex set have their conditional means in it too, so a denoised estimate that
leaves the set is wrong, and its projection is closer to the truth. The set here is a box, the
range of every variable (counts with their half unit, one-hot weights in [0, 1]), cut by the
ranges of species that follow from conservation laws: N - S - I >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from surrogate.kinds.trajectories.conservation import Relation
from surrogate.kinds.trajectories.transforms import DEQUANTISATION_WIDTH
from surrogate.kinds.trajectories.variables import NUMBER_KINDS, Variable

BOX_MARGIN = 1e-6  # by which the box is smaller, so that single precision stays in it
UNBOUNDED_DEVIATIONS = 1e6  # from the mean, where a range has no end


def ends(variable: Variable) -> tuple[float, float]:
    """The range of a variable's channels, in data units."""
    if variable.kind not in NUMBER_KINDS:
        return 0.0, 1.0
    half = DEQUANTISATION_WIDTH if variable.kind == "integer" else 0.0
    return variable.low - half, variable.high + half


@dataclass(frozen=True, eq=False)
class Member:
    """An independent species of a relation: dependent = total - Σ weight·y."""

    weight: float
    channel: int  # of x
    variable: Variable


@dataclass(frozen=True, eq=False)
class Ranges:
    """The box of x (B, C, T), with y = f⁻¹(mean + scale·x) in data units."""

    mean: Tensor  # (C, T)
    scale: Tensor
    low: Tensor  # of x
    high: Tensor

    @classmethod
    def of(cls, variables: Sequence[Variable], mean: Tensor, scale: Tensor) -> Ranges:
        """The box of one-channel rows: `variables`, `mean` and `scale` (C, T) row by row."""
        sides = []
        for side in range(2):
            far = mean.new_tensor((-UNBOUNDED_DEVIATIONS, UNBOUNDED_DEVIATIONS)[side])
            y = mean.new_tensor([ends(v)[side] for v in variables])
            z = torch.stack([v.transform.forward(at) for v, at in zip(variables, y, strict=True)])
            x = (z[:, None] - mean) / scale
            x = x + (BOX_MARGIN, -BOX_MARGIN)[side] * (1 + x.abs())
            sides.append(torch.where(x.isfinite(), x, far))
        return cls(mean, scale, *sides)

    def box(self, x: Tensor) -> Tensor:
        """Every coordinate within its own range."""
        return torch.clamp(x, self.low.to(x), self.high.to(x))

    def restored(
        self, x: Tensor, found: Tensor, dependent: Variable, members: Sequence[Member]
    ) -> Tensor:
        """x moved within the box until a dependent species, `found` (B, T), is in its range.

        Each member moves in proportion to the room it has, so that none leaves its own range.
        """
        excess = found - found.clamp(dependent.low, dependent.high)
        wrong = excess != 0
        if not members or not bool(wrong.any()):
            return x
        y = {m.channel: self._decoded(x, m) for m in members}
        room = torch.stack([self._room(y[m.channel], m, excess) for m in members])
        share = room / room.sum(0).clamp_min(torch.finfo(x.dtype).tiny)
        some = torch.minimum(excess.abs(), room.sum(0)) * excess.sign()
        moved = x.clone()
        for member, part in zip(members, share, strict=True):
            at = member.channel
            z = member.variable.transform.forward(y[at] + some * part / member.weight)
            there = (z - self.mean[at].to(x)) / self.scale[at].to(x)
            moved[:, at] = torch.where(wrong, there, x[:, at])
        return self.box(moved)

    def _decoded(self, x: Tensor, member: Member) -> Tensor:
        at = member.channel
        z = self.mean[at].to(x) + self.scale[at].to(x) * x[:, at]
        return member.variable.transform.inverse(z)

    def _room(self, y: Tensor, member: Member, excess: Tensor) -> Tensor:
        """How much of the excess (B, T) a member could take up."""
        low, high = ends(member.variable)
        most = UNBOUNDED_DEVIATIONS * float(self.scale[member.channel].max())
        up = (excess > 0) == (member.weight > 0)
        free = torch.where(up, high - y, y - low).clamp(0, most)
        return abs(member.weight) * free


def members(relation: Relation, channels: Sequence[Variable]) -> list[Member]:
    """The species of a relation that have a channel, and so can move."""
    names = [variable.name for variable in channels]
    return [
        Member(weight, names.index(name), channels[names.index(name)])
        for name, weight in relation.weights.items()
        if name in names
    ]


def reround(
    members: Sequence[tuple[Variable, float]],
    raw: Sequence[Tensor],
    whole: Sequence[Tensor],
    excess: Tensor,
) -> list[Tensor]:
    """Counts (B, T) of members, with their weights, rounded so that the dependent species is in
    range.

    Several that are rounded up may make the dependent species negative: then the one that was
    rounded up the most is rounded down. `excess` is how far the dependent species is above its
    range, or (negative) below; `raw` is NaN where a member does not vary.
    """
    made = list(whole)
    for _ in made:
        wrong, over = excess != 0, excess > 0
        if not bool(wrong.any()):
            break
        step = torch.where(over, 1.0, -1.0).to(excess)  # of the sum of the members
        gains = []
        for (variable, weight), exact, now in zip(members, raw, made, strict=True):
            then = now + math.copysign(1, weight) * step
            nearer = (now - exact).abs() - (then - exact).abs()
            able = (then >= variable.low) & (then <= variable.high) & ~exact.isnan()
            gains.append(torch.where(able, nearer, -torch.inf))
        best = torch.stack(gains)
        chosen = best.argmax(0)
        wrong = wrong & (best.amax(0) > -torch.inf)
        for i, (_, weight) in enumerate(members):
            change = math.copysign(1, weight) * step * (wrong & (chosen == i))
            made[i] = made[i] + change
            left = excess - weight * change
            excess = torch.where(left * excess > 0, left, 0 * left)
    return made
