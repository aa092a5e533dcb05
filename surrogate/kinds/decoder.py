"""Decoders: data drawn from the last noise level, x_0 ~ p(x_0 | x_0 + σn), value by value.

The reverse diffusion ends at a noise level σ of its own (`handover`). From there a decoder draws
the values one after another, each given those before it and the noisy point. It draws counts and
words themselves, so nothing is rounded, and it truncates each to what laws allow. At σ = ∞ the
noisy point tells nothing, and the decoder is an autoregressive model of the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Generator, Tensor, nn

NO_SIGNAL = math.inf  # the noise level that hides everything
HANDOVER = 1.0  # normalised units: from there on the decoder draws what the diffusion only foresees


@dataclass(frozen=True)
class Factor:
    """A factor of the likelihood: a density that depends on some coordinates of a point."""

    coordinates: list[int]
    """Those it depends on, n of D."""
    log_density: Callable[[Tensor], Tensor]
    """From their values (N, n) to the log-density (N,)."""
    location: Callable[[Tensor], Tensor]
    """From the same to the parameter that moves the distribution, (N,)."""
    likelihood: Callable[[Tensor, Tensor], Tensor]
    """From values (M, n) of data, for the other parameters, and locations (K,) to log-densities."""


@dataclass(frozen=True)
class Pins:
    """Linear conditions low <= rows @ y <= high: rows (k, D), ends (k,); and m factors of the
    likelihood.

    y are the coordinates of a point (D,) in data units, before they are transformed and normalised:
    `Decoder.coordinates` of each instance. `tolerance` (k,): by which the ends of an equation are
    apart from its value because its verdict allows it; None: nowhere.
    """

    rows: Tensor
    low: Tensor
    high: Tensor
    factors: tuple[Factor, ...] = ()
    tolerance: Tensor | None = None

    @property
    def tolerances(self) -> Tensor:
        """`tolerance`, 0 where there is none, (k,)."""
        return torch.zeros_like(self.low) if self.tolerance is None else self.tolerance

    @classmethod
    def none(cls, size: int, factors: tuple[Factor, ...] = ()) -> Pins:
        """No conditions on points of `size` coordinates, only factors."""
        nothing = torch.zeros(0, size, dtype=torch.float64)
        return cls(nothing, nothing[:, 0], nothing[:, 0], factors)

    def __len__(self) -> int:
        """How many conditions there are, without the factors."""
        return len(self.rows)

    @property
    def total(self) -> int:
        """How many conditions and factors, k + m: a factor comes after all conditions."""
        return len(self.rows) + len(self.factors)


class Uniforms:
    """Uniform numbers for `count` points, the first of `total` that get their own."""

    def __init__(self, generator: Generator, count: int, total: int | None = None) -> None:
        self.generator, self.count, self.total = generator, count, max(count, total or 0)

    def __call__(self, each: int) -> Tensor:
        """(each, count), float64."""
        shape = each, self.total
        made = torch.rand(shape, generator=self.generator, dtype=torch.float64)
        return made[:, : self.count]


@dataclass(frozen=True)
class Draw:
    """Clean points, (N · instances, *shape), of weighted noisy ones."""

    x: Tensor
    """Clean points, float64."""
    log_weights: Tensor
    """Log-weights, (N,)."""
    rows: Tensor
    """The noisy point that each descends from, (N,)."""


class Lookahead(ABC):
    """A guess of the probability of the conditions to come, while values are drawn in steps."""

    last: int
    """The last step after which anything is to come; -1 if nothing is after any."""

    @abstractmethod
    def after(self, t: int, values: Mapping[str, Tensor], sums: Tensor) -> Tensor:
        """The log of the guess (N,) after step t, at the present values of the variables (N,) each
        and the sums (N, k) of the conditions so far; 0 where nothing is to come."""

    @abstractmethod
    def relearned(self, clean: Tensor, first: int) -> Lookahead:
        """The same, learned from step `first` on from other draws (M, *shape), which the conditions
        have not influenced after that step."""


class Proposal(ABC):
    """A distribution q of the numbers that are drawn first, in place of the decoder's own p: a
    draw has the weight p/q."""

    @abstractmethod
    def started(self, count: int) -> Proposing:
        """For `count` points."""


class Proposing(ABC):
    """A proposal while its numbers are drawn, one after another."""

    @abstractmethod
    def offered(self, name: str, own: Tensor, uniform: Uniforms) -> Tensor:
        """Latents z (N,) of a number, of which `own` (N,) are the decoder's draws."""

    @abstractmethod
    def log_ratio(self, name: str, z: Tensor, log_p: Tensor) -> Tensor:
        """log p/q (N,) of latents that were offered, of the decoder's log-density log p (N,), given
        those before."""

    @abstractmethod
    def given(self, name: str, z: Tensor) -> None:
        """Take note of a number that was drawn without a proposal."""


@dataclass(frozen=True)
class Fork:
    """Where a filter ends before the data do: after step `step` points are selected, their first
    numbers perturbed, so that copies differ, and the rest drawn as if no condition came after."""

    step: int
    select: Callable[[Tensor], Tensor]
    """From log-weights (N,), which contain the look-ahead's guess, to the rows to go on with."""
    generator: Generator
    """Random numbers of the perturbation."""


@dataclass(frozen=True)
class Filter:
    """A particle filter over the values: particles are resampled while they are drawn.

    `log_weights` (N,) of the noisy points contain a guess `foreseen` (N, k + m) of the
    log-probability of each condition and the log-density of each factor; when one is settled its
    own takes the place of the guess. `resample`: log-weights (N,) to the rows to go on with, (N,),
    or None to keep all.
    `lookahead`: guesses again after every step, in place of `foreseen`. `proposal`: of the first
    numbers. `fork`: an early end.
    """

    log_weights: Tensor
    foreseen: Tensor
    resample: Callable[[Tensor], Tensor | None]
    lookahead: Lookahead | None = None
    proposal: Proposal | None = None
    fork: Fork | None = None


class Learner(Protocol):
    """A network with a loss of its own."""

    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        """The loss of each encoded sample, (B,)."""
        ...


class Decoder(nn.Module, ABC):
    """p(x_0 | x_σ) as a network; normalised points have the shape of the codec's."""

    handover: float = HANDOVER  # the noise level at which it takes over from the diffusion
    plain_handover: float | None = HANDOVER
    """The same for plain samples, which have nothing to meet; None where the diffusion goes down to
    clean points."""

    looks_ahead: bool = False  # whether `lookahead` has guesses
    dispensable: bool = False  # whether plain samples may do without it

    @property
    def early(self) -> bool:
        """Whether it takes over so early that it may draw plain samples alone: the diffusion then
        learns only what is above. Otherwise held-out data choose how plain samples are drawn."""
        return self.plain_handover is not None and self.plain_handover >= self.handover

    def knowing(self, codec: Any) -> Self:
        """The same for a codec that knows more (`Codec.conditions`)."""
        return self

    @abstractmethod
    def measure(self, clean: Tensor) -> None:
        """Set the constants that it standardises its inputs with, from encoded samples."""

    @abstractmethod
    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        """The negative log-likelihood of encoded samples (B, *shape), per number: (B,)."""

    @property
    def options(self) -> dict[str, bool]:
        """How it was made, for the description of a model."""
        return {}

    @property
    def learners(self) -> dict[str, Learner]:
        """The networks in it that are learned and stopped apart from each other, by the prefix of
        their weights; "" has those of no other prefix."""
        return {"": self}

    @abstractmethod
    def draw(
        self,
        noisy: Tensor,
        sigma: float,
        generator: Generator,
        pins: Pins | None = None,
        particles: Filter | None = None,
        *,
        total: int | None = None,
    ) -> Draw:
        """Clean points given noisy ones (N · instances, *shape) at the noise level σ.

        Each of the conditions `pins`, which may be about several instances, is met by the last
        value that it concerns: that one is drawn from what the condition leaves of it, and the
        probability of what it leaves is a factor of the weight. A factor of the likelihood is one
        of the weight, once the last value that it depends on is drawn. Random numbers are drawn for
        `total` points, so that the first ones do not depend on how many there are.
        """

    def lookahead(self, clean: Tensor, pins: Pins) -> Lookahead | None:
        """A guess of these conditions, learned from plain draws (M, *shape), if there is one."""
        return None

    def proposal(self, clean: Tensor) -> Proposal | None:
        """A proposal of the first numbers that covers those of samples (M, *shape), if there are
        any to propose."""
        return None

    def perturbed(self, clean: Tensor, generator: Generator) -> Tensor | None:
        """A step of a random walk of the first numbers of samples (M, *shape), symmetric, if there
        are any to move."""
        return None

    def settles_first(self, pins: Pins) -> bool:
        """Whether it can draw first what these conditions settle, so that all points have nearly
        the same weight: an amortised posterior."""
        return False

    @abstractmethod
    def log_weight(self, clean: Tensor, noisy: Tensor, sigma: float, pins: Pins) -> Tensor:
        """The log-weights (B,) that `draw` gives to these clean points where it draws them from
        these noisy ones, for points that meet the conditions."""

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """How many coordinates in data units a sample has."""

    @abstractmethod
    def signals(self, y: Tensor) -> dict[str, Tensor]:
        """The signals that formulas see of coordinates in data units (B, coordinates): an affine
        map."""

    @abstractmethod
    def log_prob(self, clean: Tensor) -> Tensor:
        """log p(x_0) of encoded samples (B, *shape) without any noisy point: (B,)."""
