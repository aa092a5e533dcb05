"""What a formula is worth when only the first steps of its samples are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from constraints.compile.program import Program
from constraints.errors import FormulaError
from constraints.evaluate.frames import Frame
from constraints.evaluate.prefix import Levels, Margins, Prefix, ends

Data = Mapping[str, Any]


def prefix_margins(program: Program, data: Data, known: int) -> tuple[Tensor, Tensor]:
    """The least and the greatest margin, (B,) each, that continuations of samples have that are
    known up to step `known`, see `evaluate.prefix`. Values of later steps are not looked at."""
    batch, tensors = _prepared(program, data, known, {})
    value = Prefix(program.layout, tensors, Margins(), program.end).formula(
        program.lowered, Frame()
    )
    achieved, optimistic, _ = ends(value)
    return achieved.expand(batch), optimistic.expand(batch)


def levels(program: Program, data: Data, known: int, least: Data | None = None) -> Tensor:
    """The level (B,) of samples known up to step `known`, forecast beyond.

    data: series (B, T), whose values after `known` are a forecast, and columns (B,). least: lower
    bounds (B,) of series at the next step, where part of the way there is known already.
    """
    batch, tensors = _prepared(program, data, known, least or {})
    value = Prefix(program.layout, tensors, Levels(), program.end).formula(program.lowered, Frame())
    return value.expand(batch)


def check_monitored(program: Program) -> None:
    """Reject what has no verdict at the end."""
    program.check_not_trace()
    if program.observations:
        raise FormulaError(
            f"{program.formula} contains observations, which have no margin",
            remedy="state rules only",
        )


def _prepared(
    program: Program, data: Data, known: int, least: Data
) -> tuple[int, dict[str, Tensor]]:
    """Lower ends, upper ends and forecasts (3 B, ...) of the signals."""
    check_monitored(program)
    steps = program.layout.steps
    if not 0 <= known < steps:
        raise FormulaError(
            f"step {known} is not on the grid", value=known, remedy=f"give one of 0..{steps - 1}"
        )
    batch, tensors = program.read(data)
    made = {name: stacked(program, name, value, known) for name, value in tensors.items()}
    for name, bound in least.items():
        if name in made and known + 1 < steps:
            own = made[name][:batch, known + 1]
            torch.maximum(own, torch.as_tensor(bound, dtype=own.dtype), out=own)
    return batch, made


def stacked(program: Program, name: str, value: Tensor, known: int) -> Tensor:
    """Lower ends, upper ends and forecasts (3 B, ...) of a signal known up to a step."""
    value = value.double()
    signal = program.layout.find(name)
    made = value.repeat(3, *(1,) * (value.ndim - 1))
    if signal is not None and signal.kind == "series":
        made[: len(value), ..., known + 1 :] = signal.low
        made[len(value) : 2 * len(value), ..., known + 1 :] = signal.high
    return made
