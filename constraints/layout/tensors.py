"""Validation of data: the signals of a layout as floating tensors of one batch, without NaN except
in optional columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from constraints.errors import DataError
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from constraints.layout.signals import Layout, Signal

_MAX_EXACT_INTEGER = 2**53  # whole numbers beyond it have no float64 of their own


def checked(
    layout: Layout, tensors: Mapping[str, Any], needed: set[str] | None = None
) -> dict[str, Tensor]:
    """The signals (those needed) ready for evaluation; DataError if they do not fit the layout."""
    if not isinstance(tensors, Mapping):
        raise DataError(
            f"data are not {type(tensors).__name__}",
            value=tensors,
            remedy=f"give a mapping of signals to arrays, or one flat tensor (B, {layout.size})",
        )
    ready: dict[str, Tensor] = {}
    lead = (layout.instances,) if layout.instances > 1 else ()
    batch: int | None = None
    for signal in layout.signals:
        if needed is not None and signal.name not in needed:
            continue
        if signal.name not in tensors:
            raise DataError(
                f"the data have no signal {signal.name!r}",
                value=signal.name,
                allowed=[str(name) for name in tensors],
            )
        value = _numbers(signal, tensors[signal.name], lead)
        if value.shape[1:] != lead + signal.shape or value.ndim == 0:
            expected = ", ".join(str(size) for size in ("B", *lead, *signal.shape))
            raise DataError(
                f"{signal.name} has shape {tuple(value.shape)} where ({expected}) is expected",
                value=tuple(value.shape),
            )
        if batch is not None and len(value) != batch:
            raise DataError(
                f"{signal.name} has {len(value)} samples, others have {batch}",
                value=len(value),
                remedy="give every signal of the same samples",
            )
        batch = len(value)
        if not math.isfinite(value.detach().sum().item()):  # cheap; a sum may overflow by itself
            _reject_nan(signal.name, value.detach(), signal.optional)
        ready[signal.name] = value
    return ready


def _numbers(signal: Signal, given: Any, lead: tuple[int, ...]) -> Tensor:
    try:
        value = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise DataError(
            f"{signal.name} cannot be read as numbers: {problem}", value=given
        ) from None
    if value.is_complex():
        raise DataError(f"{signal.name} is complex", value=value.dtype, remedy="give real numbers")
    if signal.kind == "category" and value.ndim == 1 + len(lead):
        return _one_hot(signal, value)
    if value.is_floating_point():
        return value
    if value.dtype == torch.int64 and value.numel() and int(value.abs().max()) > _MAX_EXACT_INTEGER:
        raise DataError(
            f"{signal.name} holds whole numbers beyond 2^53, which float64 would round",
            value=int(value.abs().max()),
            remedy="rescale the signal",
        )
    return value.to(torch.float64)


def _one_hot(signal: Signal, codes: Tensor) -> Tensor:
    if codes.is_floating_point() and bool(torch.isnan(codes).any()):
        _reject_nan(signal.name, codes)
    wrong = (codes < 0) | (codes >= signal.size)
    if codes.is_floating_point():
        wrong |= codes != codes.round()
    if bool(wrong.any()):
        first = wrong.nonzero()[0].tolist()
        code = codes[tuple(first)].item()
        raise DataError(
            f"{signal.name} holds the code {code:g} (sample {first[0]}; {int(wrong.sum())} of "
            f"{codes.numel()} values)",
            value=code,
            allowed=[f"{i} {label}" for i, label in enumerate(signal.categories)],
        )
    return torch.nn.functional.one_hot(codes.long(), signal.size).to(torch.get_default_dtype())


def _reject_nan(name: str, value: Tensor, optional: bool = False) -> None:
    bad = torch.isinf(value) if optional else ~torch.isfinite(value)
    if not bool(bad.any()):
        return
    kind = "NaN" if bool(torch.isnan(value[bad]).any()) else "infinite values"
    samples = bad.reshape(len(value), -1).any(1)
    first = bad.nonzero()[0].tolist()
    place = f"sample {first[0]}" + (f", step {first[1]}" if len(first) == 2 else "")
    raise DataError(
        f"{name} holds {kind} in {int(samples.sum())} of {len(value)} samples, first at {place}",
        value=int(samples.sum()),
        remedy="drop or repair these samples",
    )
