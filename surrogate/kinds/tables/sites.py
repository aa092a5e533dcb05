"""The values of a row, one for each column that is drawn, and their distributions.

A category, or a number of few values, is a choice: each has a probability, as has the absence of a
value. Other numbers have a mixture of logistics in their latent z (`networks.logistic_mixture`): an
atom has the mass of its piece of z, a value between atoms the density.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor
from torch.nn.functional import logsigmoid, one_hot

from surrogate.kinds.decoder import Uniforms
from surrogate.kinds.tables import parts
from surrogate.kinds.tables.coarse import coarse
from surrogate.kinds.tables.columns import CategoricalColumn, NumericColumn
from surrogate.networks.logistic_mixture import LogisticMixture

MAX_CHOICES = 64  # values of a number that is drawn as a choice
MIN_CHOICE_ROWS = 50  # rows of the data per such value
MAX_FREE_CHOICES = 8  # values up to which the rows do not matter
MAX_LOG_SCALE = 2.0  # of a component, in units of the latent
MAX_SEEN = 5.0  # standard deviations, beyond which values look the same to later heads
NORMAL_REACH, NORMAL_SCALE = 2.4, 0.3  # components that make a standard normal
MIN_SPREAD = 1e-3  # of a distribution, in units of the latent, before the network scales it
INNER = 0.5  # the share of an atom's piece below its centre


@dataclass(frozen=True)
class Mixtures:
    """How numbers are distributed: components of a mixture, the least log-scale of one in units of
    the latent, and whether latents are those of `coarse` quantiles."""

    components: int
    min_log_scale: float
    coarse: bool


USUAL = Mixtures(8, -4.6, False)
SHARP = Mixtures(10, -7.0, True)  # of posteriors


class Site(ABC):
    """One value y (B,), float64: a number, NaN if it is missing, or the index of a category.

    `at`: its channels in an encoded row. `coordinates`: of y in data units, a number or the
    weights of categories. `outputs`: parameters of its distribution. `features`: what later heads
    see of it. A part of its values is a mask (B, choices), or an interval (`parts.Part`).
    """

    column: NumericColumn | CategoricalColumn
    at: slice
    coordinates: int
    outputs: int
    features: int

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def ties(self) -> int:
        """Uniform numbers that break ties of an encoded value."""
        return self.column.size if isinstance(self.column, NumericColumn) else 0

    @property
    def optional(self) -> bool:
        """Whether a number may be missing."""
        return isinstance(self.column, NumericColumn) and self.column.known is not None

    @abstractmethod
    def values(self, x: np.ndarray) -> np.ndarray:
        """y of encoded rows (B, D)."""

    @abstractmethod
    def encoded(self, y: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Channels (B, size) of values; `uniform` (B, ties)."""

    @abstractmethod
    def seen(self, y: Tensor) -> Tensor:
        """Features (B, features) of values."""

    @abstractmethod
    def data_units(self, y: Tensor) -> Tensor:
        """Coordinates (B, coordinates) of values, 0 where they are missing."""

    @abstractmethod
    def log_prob(self, head: Tensor, y: Tensor) -> Tensor:
        """log p(y), (B,), by a head's outputs (B, outputs)."""

    @abstractmethod
    def log_share(self, head: Tensor, low: Tensor, high: Tensor, missing: bool) -> Tensor:
        """log P(low <= y <= high), (B,), float64, -inf if no value is; or missing, if `missing`."""

    @abstractmethod
    def draw(
        self, head: Tensor, low: Tensor, high: Tensor, missing: bool, uniform: Uniforms
    ) -> Tensor:
        """y in these intervals; any y where no value is."""


class Choice(Site):
    """A category, or a number of few values."""

    def __init__(self, column: NumericColumn | CategoricalColumn, at: slice) -> None:
        self.column, self.at = column, at
        if isinstance(column, CategoricalColumn):
            shares, self.numbers = np.array(column.shares), None
            self.codes = torch.from_numpy(column.codes).float()
            self.coordinates = len(shares)
        else:
            quantiles = column.quantiles
            shares, numbers = np.diff(quantiles.edges), quantiles.start
            z = quantiles.latents((quantiles.edges[:-1] + quantiles.edges[1:]) / 2)
            if column.known is not None:
                there = float(np.diff(column.known.edges)[-1])
                shares = np.append(there * shares, 1 - there)
                numbers, z = np.append(numbers, np.nan), np.append(z, 0.0)
            self.numbers = torch.from_numpy(numbers)
            both = np.concatenate([np.eye(len(shares)), z[:, None]], 1)  # of a network on "meta"
            self.codes = torch.from_numpy(both).float()
            self.coordinates = 1
        self.log_shares = torch.from_numpy(shares).float().clamp_min(1e-9).log()
        self.outputs, self.features = len(shares), self.codes.shape[1]

    def values(self, x: np.ndarray) -> np.ndarray:
        own = x[:, self.at]
        if isinstance(self.column, CategoricalColumn):
            return self.column.signals_of(own).astype(np.float64)
        return self.column.numbers(own)

    def encoded(self, y: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        if isinstance(self.column, CategoricalColumn):
            return self.column.encoded(y.astype(np.int64))
        return self.column.encoded(y, uniform)

    def index(self, y: Tensor) -> Tensor:
        """The number of the choice, (B,)."""
        if self.numbers is None:
            return y.long()
        there = self.numbers[~self.numbers.isnan()]
        found = torch.searchsorted(there, y.nan_to_num(0.0).contiguous()).clamp_max(len(there) - 1)
        return torch.where(y.isnan(), len(self.numbers) - 1, found)

    def seen(self, y: Tensor) -> Tensor:
        return self.codes[self.index(y)]

    def data_units(self, y: Tensor) -> Tensor:
        if self.numbers is None:
            return one_hot(y.long(), self.outputs).to(y)
        return y.nan_to_num(0.0)[:, None]

    def log_p(self, head: Tensor) -> Tensor:
        """log-probabilities of the choices, (B, choices)."""
        return torch.log_softmax(head + self.log_shares, -1)

    def log_prob(self, head: Tensor, y: Tensor) -> Tensor:
        return self.log_p(head).gather(-1, self.index(y)[:, None])[:, 0]

    def allowed(self, low: Tensor, high: Tensor, missing: bool) -> Tensor:
        """Which choices lie in intervals, (B, choices)."""
        assert self.numbers is not None
        slack = parts.SLACK * (1 + self.numbers.abs())
        inside = (self.numbers >= low[:, None] - slack) & (self.numbers <= high[:, None] + slack)
        return inside | self.numbers.isnan() if missing else inside

    def log_share(self, head: Tensor, low: Tensor, high: Tensor, missing: bool) -> Tensor:
        return self.log_share_of(head, self.allowed(low, high, missing))

    def log_share_of(self, head: Tensor, allowed: Tensor) -> Tensor:
        """log P of the allowed choices (B, choices)."""
        log_p = self.log_p(head).double().masked_fill(~allowed, -torch.inf)
        return torch.logsumexp(log_p, -1)

    def draw(
        self, head: Tensor, low: Tensor, high: Tensor, missing: bool, uniform: Uniforms
    ) -> Tensor:
        return self.draw_of(head, self.allowed(low, high, missing), uniform)

    def draw_of(self, head: Tensor, allowed: Tensor | None, uniform: Uniforms) -> Tensor:
        """y among the allowed choices (B, choices); None: all of them."""
        log_p = self.log_p(head).double()
        if allowed is not None:
            kept = log_p.masked_fill(~allowed, -torch.inf)
            log_p = torch.where(allowed.any(1, keepdim=True), kept, log_p)
        share = torch.softmax(log_p, -1).cumsum(-1)
        chosen = (share <= uniform(1)[0][:, None] * share[:, -1:]).sum(-1)
        chosen = chosen.clamp_max(self.outputs - 1)
        return chosen.double() if self.numbers is None else self.numbers[chosen]


class Number(Site):
    """A number of many values."""

    column: NumericColumn

    def __init__(self, column: NumericColumn, at: slice, mixtures: Mixtures = USUAL) -> None:
        self.column, self.at, self.coordinates, self.mixtures = column, at, 1, mixtures
        self.quantiles = coarse(column.quantiles) if mixtures.coarse else column.quantiles
        self.outputs = 3 * mixtures.components + 2 + (column.known is not None)
        self.features = 2 + mixtures.coarse + (column.known is not None)
        low, high = parts.outer_bounds(self.quantiles)
        self.low, self.high = torch.from_numpy(low), torch.from_numpy(high)

    @cached_property
    def present_logit(self) -> float:
        known = self.column.known
        assert known is not None
        share = float(np.diff(known.edges)[-1])
        return float(np.log(share / (1 - share)))

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the values."""
        quantiles = self.column.quantiles
        shares, middle = np.diff(quantiles.edges), (quantiles.start + quantiles.stop) / 2
        mean = float(shares @ middle)
        return mean, float(shares @ (middle - mean) ** 2) ** 0.5 or 1.0

    def values(self, x: np.ndarray) -> np.ndarray:
        return self.column.numbers(x[:, self.at])

    def encoded(self, y: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        return self.column.encoded(y, uniform)

    def latent(self, y: Tensor) -> Tensor:
        """z of values, the middle of atoms; 0 where they are missing."""
        own = y.nan_to_num(0.0).numpy()
        z = torch.from_numpy(self.quantiles.forward(own, np.full(len(own), INNER)))
        return torch.where(y.isnan(), 0.0, z)

    def seen(self, y: Tensor) -> Tensor:
        centre, sd = self._moments
        value = torch.where(y.isnan(), 0.0, (y - centre) / sd).clamp(-MAX_SEEN, MAX_SEEN)
        found = [self.latent(y), value]
        if self.mixtures.coarse:
            found.append(torch.asinh(y.nan_to_num(0.0) / self._size).clamp(-MAX_SEEN, MAX_SEEN))
        if self.optional:
            found.append(y.isfinite().to(y))
        return torch.stack(found, 1).float()

    @cached_property
    def _size(self) -> float:
        """The median of absolute values that are not 0."""
        quantiles = self.column.quantiles
        shares, size = np.diff(quantiles.edges), np.abs(quantiles.start + quantiles.stop) / 2
        order = size.argsort()
        order = order[size[order] > 0]
        total = shares[order].cumsum()
        return float(size[order][np.searchsorted(total, total[-1] / 2)]) if len(order) else 1.0

    def data_units(self, y: Tensor) -> Tensor:
        return y.nan_to_num(0.0)[:, None]

    def mixture(self, head: Tensor) -> LogisticMixture:
        """The distribution of z. Its components are placed about a common centre, in units of a
        common scale: a sharp relation to other columns moves them together."""
        count, least = self.mixtures.components, self.mixtures.min_log_scale
        log_weights, location, log_scale = head[:, : 3 * count].chunk(3, -1)
        centre, common = head[:, 3 * count : 3 * count + 2].chunk(2, -1)
        places = torch.linspace(-1.5, 1.5, count)
        scale = torch.exp(common.clamp(least, MAX_LOG_SCALE))
        log_scale = (log_scale + common - 1).clamp(least, MAX_LOG_SCALE)
        location = centre + scale * (location + places)
        return LogisticMixture(torch.log_softmax(log_weights, -1), location, log_scale)

    def about(self, head: Tensor, centre: Tensor, sd: Tensor) -> Tensor:
        """The head (B, outputs) of the same distribution moved to a centre (B,) and scaled."""
        first = 3 * self.mixtures.components
        moved = centre + sd * head[:, first]
        scaled = head[:, first + 1] + sd.clamp_min(MIN_SPREAD).log()
        parts = head[:, :first], moved[:, None], scaled[:, None], head[:, first + 2 :]
        return torch.cat(parts, 1)

    def normal_bias(self) -> Tensor:
        """A head (outputs,) about which `about` makes a normal distribution, nearly."""
        bias, count = torch.zeros(self.outputs), self.mixtures.components
        places = torch.linspace(-1.5, 1.5, count)
        at = NORMAL_REACH / 1.5 * places
        bias[:count] = -(at**2) / (2 * (1 - NORMAL_SCALE**2 * math.pi**2 / 3))
        bias[count : 2 * count] = at - places
        bias[2 * count : 3 * count] = math.log(NORMAL_SCALE) + 1
        return bias

    def _log_present(self, head: Tensor, sign: float) -> Tensor:
        return logsigmoid(sign * (head[:, -1] + self.present_logit))

    def log_prob(self, head: Tensor, y: Tensor) -> Tensor:
        mixture, z = self.mixture(head), self.latent(y)
        quantiles = self.quantiles
        piece = torch.from_numpy(np.searchsorted(quantiles.bounds[1:-1], z.numpy(), "right"))
        found = mixture.log_interval(self.low[piece].float(), self.high[piece].float())
        if not quantiles.stepped:
            atom = torch.from_numpy(quantiles.start == quantiles.stop)[piece]
            found = torch.where(atom, found, mixture.log_density(z.float()))
        found = found - self._log_range(mixture)
        if not self.optional:
            return found
        there = self._log_present(head, 1.0) + found
        return torch.where(y.isnan(), self._log_present(head, -1.0), there)

    def _log_range(self, mixture: LogisticMixture) -> Tensor | float:
        """log P of the whole range of z."""
        if float(self.low[0]) == -parts.FAR and float(self.high[-1]) == parts.FAR:
            return 0.0
        like = torch.zeros(len(mixture.location))
        return mixture.log_interval(like + float(self.low[0]), like + float(self.high[-1]))

    def log_share(self, head: Tensor, low: Tensor, high: Tensor, missing: bool) -> Tensor:
        mixture, part = self.mixture(head), self.part(low, high)
        ends = (torch.from_numpy(each).float() for each in (part.low, part.high))
        found = (mixture.log_interval(*ends) - self._log_range(mixture)).double()
        found = found.masked_fill(torch.from_numpy(part.empty), -torch.inf)
        if not self.optional:
            return found
        found = found + self._log_present(head, 1.0)
        return torch.logaddexp(found, self._log_present(head, -1.0).double()) if missing else found

    def log_marginal(self, low: Tensor, high: Tensor) -> float:
        """log of the share of the data in an interval (1,)."""
        part = self.part(low, high)
        share = float((ndtr(part.high) - ndtr(part.low))[0])
        return math.log(max(share, 1e-300)) if not part.empty[0] else -math.inf

    def part(self, low: Tensor, high: Tensor) -> parts.Part:
        """The values in intervals [low, high] (B,)."""
        return parts.part(self.quantiles, low.numpy(), high.numpy())

    def draw(
        self, head: Tensor, low: Tensor, high: Tensor, missing: bool, uniform: Uniforms
    ) -> Tensor:
        mixture, part = self.mixture(head), self.part(low, high)
        open_ends = torch.full_like(low, -np.inf), torch.full_like(high, np.inf)
        whole, empty = self.part(*open_ends), part.empty
        first, last, a, b = (
            np.where(empty, getattr(whole, side), getattr(part, side))
            for side in ("first", "last", "low", "high")
        )
        ends = torch.from_numpy(a).float(), torch.from_numpy(b).float()
        z = mixture.sample(*ends, uniform(2)).numpy()
        y = torch.from_numpy(np.clip(self.quantiles.finish(z), first, last))
        if self.optional:
            gone = uniform(1)[0].log() < self._log_present(head, -1.0).double()
            if missing:
                y = torch.where(gone, torch.nan, y)
        return y


def site_of(
    column: NumericColumn | CategoricalColumn, at: slice, mixtures: Mixtures = USUAL
) -> Choice | Number:
    """The site of a column with channels `at`."""
    if isinstance(column, CategoricalColumn) or not column.varies:
        return Choice(column, at)
    quantiles = column.quantiles
    few = min(MAX_CHOICES, max(MAX_FREE_CHOICES, 0.5 / quantiles.beyond / MIN_CHOICE_ROWS))
    choice = quantiles.stepped and len(quantiles.start) <= few
    return Choice(column, at) if choice else Number(column, at, mixtures)
