"""Observations as factors that a decoder multiplies its weights by, value by value.

The signals of a formula are affine in the coordinates y that a decoder draws. An observation reads
some numbers of the signals (`constraints.compile.readings`), hence some coordinates: it is known
once the last of these has been drawn.
"""

from __future__ import annotations

from copy import copy

from torch import Tensor

from constraints import Program
from constraints.ast.formulas import TRUE
from constraints.compile.readings import places
from surrogate.guidance.linear_conditions import Affine
from surrogate.kinds.decoder import Factor

MIN_COEFFICIENT = 1e-12  # below which a signal does not depend on a coordinate


def factors(program: Program, signals: Affine) -> tuple[Factor, ...]:
    """A factor for each observation; `signals`: of flat samples, affine in the coordinates."""
    return tuple(_factor(program, j, signals) for j in range(len(program.observations)))


def _factor(program: Program, j: int, signals: Affine) -> Factor:
    own = copy(program)
    own.observations, own.lowered = program.observations[j : j + 1], TRUE
    own.needed = own.used(TRUE)
    read = places(own.observations[0], program.layout)
    matrix, offset = signals[0][read], signals[1][read]
    used: list[int] = (matrix.abs() > MIN_COEFFICIENT).any(0).nonzero()[:, 0].tolist()
    part = matrix[:, used].mT

    family = own.observations[0].distribution.family

    def flat(y: Tensor) -> Tensor:
        found = y.new_zeros(len(y), program.layout.size)
        found[:, read] = y @ part + offset
        return found

    def log_density(y: Tensor) -> Tensor:
        return own.log_density(flat(y))[:, 0]

    def location(y: Tensor) -> Tensor:
        return own.parameters(flat(y))[0][:, family.location]

    def likelihood(y: Tensor, locations: Tensor) -> Tensor:
        others = own.parameters(flat(y))[0].mean(0).expand(len(locations), -1).clone()
        others[:, family.location] = locations
        return own.observations[0].log_density(*others.unbind(1))

    return Factor(used, log_density, location, likelihood)
