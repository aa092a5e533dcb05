"""Transforms of a channel: increasing maps f from an open interval (low, high) onto the reals.

identity  y                          (-inf, inf)
log       log(y - low)               (low, inf)
logit     log((y - low) / (high - y))  (low, high)

A count n becomes a real number by dequantisation, y = n + u with u uniform on (-1/2, 1/2), and
comes back by rounding (Theis et al., "A note on the evaluation of generative models", 2016). Counts
from `low` to `high` thus fill (low - 1/2, high + 1/2), and the inverses of log and logit stay in.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from surrogate.errors import ModelError

# |u| stays a little below 1/2, so that rounding survives single precision; the domain of counts
# ends between the largest |u| and 1/2
DEQUANTISATION_WIDTH = 0.5 - 2**-11
COUNT_MARGIN = 0.5 - 2**-12
TRANSFORMS = ("identity", "log", "logit")
SPELLINGS = ("identity", "log", "log(LOW)", "logit", "logit(LOW, HIGH)", "auto")  # in settings
_WRITTEN = re.compile(r"\s*(\w+)\s*(?:\(\s*([^(),]+?)\s*(?:,\s*([^(),]+?)\s*)?\))?\s*")


class Transform(ABC):
    """An increasing, differentiable map of (low, high) onto the reals."""

    kind: str
    low: float
    high: float

    @abstractmethod
    def forward(self, y: Tensor) -> Tensor:
        """Any shape, elementwise."""

    @abstractmethod
    def inverse(self, z: Tensor) -> Tensor:
        """Any shape, elementwise; always within [low, high]."""

    def to_config(self) -> dict[str, Any]:
        ends = {"low": self.low, "high": self.high}
        return {"kind": self.kind} | {k: v for k, v in ends.items() if math.isfinite(v)}


@dataclass(frozen=True)
class Identity(Transform):
    kind = "identity"
    low = -math.inf
    high = math.inf

    def forward(self, y: Tensor) -> Tensor:
        return y

    def inverse(self, z: Tensor) -> Tensor:
        return z


@dataclass(frozen=True)
class Log(Transform):
    low: float
    kind = "log"
    high = math.inf

    def forward(self, y: Tensor) -> Tensor:
        return torch.log(y - self.low)

    def inverse(self, z: Tensor) -> Tensor:
        return self.low + torch.exp(z)


@dataclass(frozen=True)
class Logit(Transform):
    low: float
    high: float
    kind = "logit"

    def forward(self, y: Tensor) -> Tensor:
        return torch.log(y - self.low) - torch.log(self.high - y)

    def inverse(self, z: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * torch.sigmoid(z)


def from_text(
    text: str, *, name: str, integer: bool, known: tuple[float, float] = (-math.inf, math.inf)
) -> Transform:
    """A transform from its spelling: "identity", "log", "log(5)", "logit", "logit(0, 100)".

    Without ends of its own log begins at 0 and logit has the bounds that are `known`.
    """
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    kind = match[1] if match else None
    if match is None or kind not in TRANSFORMS or (kind == "identity" and match[2]):
        raise ModelError(f"{name}: unknown transform {text!r}", value=text, allowed=SPELLINGS)
    try:
        ends = [float(end) for end in match.groups()[1:] if end is not None]
    except ValueError:
        raise ModelError(
            f"{name}: the ends in {text!r} are not numbers",
            value=text,
            remedy="write log(0) or logit(0, 100)",
        ) from None
    if kind == "identity":
        return Identity()
    if kind == "log":
        if len(ends) > 1:
            raise ModelError(
                f"{name}: {text!r} has two ends",
                value=text,
                remedy="write log(LOW) or logit(LOW, HIGH)",
            )
        made = _checked(name, Log((ends or [0.0])[0]))
    else:
        low, high = ends if len(ends) == 2 else known
        if len(ends) == 1 or not (math.isfinite(low) and math.isfinite(high)):
            raise ModelError(
                f"{name}: {text} lacks a bound, and logit needs both",
                value=text,
                remedy="write logit(LOW, HIGH), such as logit(0, 100)",
            )
        made = _checked(name, Logit(low, high))
    return for_counts(made) if integer else made


def for_counts(transform: Transform) -> Transform:
    """The transform of counts between the ends of this one, which they may reach."""
    match transform:
        case Log(low):
            return Log(low - COUNT_MARGIN)
        case Logit(low, high):
            return Logit(low - COUNT_MARGIN, high + COUNT_MARGIN)
    return transform


def from_config(config: Mapping[str, Any], *, name: str) -> Transform:
    """The transform that `to_config` wrote."""
    if not isinstance(config, Mapping):
        raise ModelError(
            f"{name}: its transform is a mapping with a kind, not {config!r}", value=config
        )
    kind = config.get("kind")
    low, high = config.get("low", -math.inf), config.get("high", math.inf)
    if not all(isinstance(end, (int, float)) for end in (low, high)):
        raise ModelError(
            f"{name}: the ends of its transform are numbers, not {low!r}, {high!r}",
            value=(low, high),
        )
    match kind:
        case "identity":
            return Identity()
        case "log":
            return _checked(name, Log(float(low)))
        case "logit":
            return _checked(name, Logit(float(low), float(high)))
    raise ModelError(f"{name}: unknown transform {kind!r}", value=kind, allowed=TRANSFORMS)


def _checked(name: str, made: Log | Logit) -> Transform:
    finite = math.isfinite(made.low) and (math.isfinite(made.high) or isinstance(made, Log))
    if not (finite and made.low < made.high):
        raise ModelError(
            f"{name}: {made.kind} from {made.low:g} to {made.high:g} is no interval",
            value=(made.low, made.high),
            remedy="give a low end below the high one",
        )
    return made


def dequantised(counts: Tensor, uniform: Tensor | float) -> Tensor:
    """Counts as real numbers; `uniform` on [0, 1) broadcasts to their shape."""
    return counts + DEQUANTISATION_WIDTH * (2 * uniform - 1)


def rounded(values: Tensor) -> Tensor:
    """The counts of dequantised values."""
    return torch.round(values)
