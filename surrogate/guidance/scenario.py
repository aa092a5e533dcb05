"""A scenario: a formula in data units, conditioning a prior that lives in normalised coordinates.

Points are flat, x (B, D), and y = g(x) (B, L) are their signals in the codec's latent coordinates,
in which the posterior of a signal is Gaussian and into which the formula is translated
(`constraints.gaussian.latent`). g is affine unless a series is learned as its logarithm; then it is
linearised about a point. Verdicts are given on finished values: counts rounded, categories chosen.
For a formula about several instances a point is that many samples, concatenated.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from constraints import (
    Classifier,
    Formula,
    LogProbabilistic,
    Program,
    compiled,
    instances_of,
)
from constraints.ast.formulas import FALSE, TRUE
from constraints.ast.lowered import Atom, HasClass
from constraints.ast.walk import descend
from constraints.compile.cases import cases
from constraints.compile.dependents import without_dependents
from constraints.compile.linearity import linear
from constraints.compile.sums import without_sums
from constraints.errors import ImpossibleError
from constraints.gaussian.equations import Equations, all_conditions, bounds, split
from constraints.gaussian.latent import to_latents
from surrogate.guidance import likelihood, linear_conditions
from surrogate.guidance.prior import Prior, handover
from surrogate.kinds.decoder import Draw, Filter, Pins

MAX_DENSE_JACOBIAN = 250_000  # numbers in G up to which it is a dense matrix
SEARCH_LIMIT = 50.0  # standard deviations from the mean within which an equation is solved
LATE_HANDOVER = 0.25  # noise level, in normalised units
HARD = LogProbabilistic(k=math.inf, half_unit=True)
SOFT_RULES = LogProbabilistic(k=1.0)  # for rules of the network, where they only guide


class Verdicts(NamedTuple):
    """Of B finished samples."""

    satisfied: Tensor
    """Whether they meet the formula, (B,)."""
    consistent: Tensor
    """Whether they meet all rules of the network, (B,)."""


class Scenario:
    """A formula that samples shall satisfy, and hard rules that every sample obeys besides.

    prior: p(x). instances: samples in a point. size: D. covariance: of points, (D, D).
    program: the compiled formula. rules: compiled rules of single samples, by name.
    hard: whether the formula is; semantics: its values. layout, sample_layout, latent_layout: the
    signals of a point, of a single sample, and of a point in latent coordinates.
    rest: the formula without its linear equations, with its observations; None if nothing is left.
    low, high: ranges of the latent signals, (L,); bounded: which of them have one, (L,).
    affine: whether g is.
    """

    def __init__(
        self,
        prior: Prior,
        formula: Formula,
        rules: Mapping[str, Formula] | None = None,
        *,
        end: str | None = None,
        hardness: float | None = None,
        max_dense: int = MAX_DENSE_JACOBIAN,
    ) -> None:
        """`hardness` None: the formula is hard; else a >= b counts as logsigmoid(hardness (a - b)).

        `max_dense`: numbers in the Jacobian G of the signals up to which it is a dense matrix.
        """
        self.prior, self.max_dense = prior, max_dense
        self.instances = instances_of(formula)
        self.sample_layout = prior.codec.layout()
        self.layout = replace(self.sample_layout, instances=self.instances)
        self.covariance = prior.covariance.repeated(self.instances)
        self.program = compiled(formula, self.layout, end)
        self.rules = {
            name: compiled(rule, self.sample_layout) for name, rule in (rules or {}).items()
        }
        self.hard = hardness is None
        self.semantics = HARD if hardness is None else LogProbabilistic(hardness)
        self.size = self.instances * math.prod(prior.shape)
        plain = without_sums(self.program, prior.codec.sums())
        plain = without_dependents(plain, prior.codec.followers(), soft=not self.hard)
        self._plain = plain  # in data units
        latent = to_latents(plain, prior.codec.warps(), soft=not self.hard)
        if latent.lowered == FALSE and self.hard:
            raise ImpossibleError(
                f"no value in the training data satisfies {formula}",
                value=str(formula),
                remedy="state an interval",
            )
        self.latent_layout = latent.layout
        self._equations = linear_conditions.no_equations(
            self.latent_layout.size
        )  # in latent signals
        self.rest: Program | None = latent
        if self.hard:
            self._equations, self.rest = split(latent)
        if self.rest is not None and self.rest.lowered == TRUE and not self.rest.observations:
            self.rest = None
        self.affine = prior.codec.affine
        self.low, self.high = self._limits()
        self.bounded = self.low.isfinite() | self.high.isfinite()
        zero = torch.zeros(self.size, dtype=torch.float64)
        # G and c with g(x) = G x + c
        self._affine_map = self._jacobian(zero) if self.affine else None

    @cached_property
    def rest_without_class_gradients(self) -> Program | None:
        """`rest` with classifiers whose gradient is 0: an image that is nearly finished is easier
        to mistake for another class than to change."""
        if self.rest is None or not self.rest.layout.classifiers:
            return self.rest
        constant = {
            name: replace(own, call=_without_gradient(own))
            for name, own in self.rest.layout.classifiers.items()
        }
        made = copy.copy(self.rest)
        made.layout = replace(self.rest.layout, classifiers=constant)
        return made

    # --- coordinates ------------------------------------------------------------------------------

    def shaped(self, x: Tensor) -> Tensor:
        """Flat points (B, D) as samples of the model: (B · instances, *shape)."""
        return x.reshape(-1, *self.prior.shape)

    def joined(self, x: Tensor) -> Tensor:
        """Samples of the model (B · instances, *shape) as flat points (B, D)."""
        return x.reshape(-1, self.size)

    def within(self, x: Tensor) -> Tensor:
        """Flat points (B, D) brought into the ranges of the data."""
        return self.joined(self.prior.codec.within(self.shaped(x)))

    def denoised(self, x: Tensor, sigma: Tensor) -> Tensor:
        """D(x, σ): the denoised estimates (B, D) of flat points at a noise level."""
        points = self.shaped(x).to(self.prior.device, torch.float32)
        return self.joined(self.prior.bounded(points, sigma.float()).double().cpu())

    def grouped(self, signals: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Signals of samples as signals of points: (B, instances, ...) if there are several."""
        if self.instances == 1:
            return dict(signals)
        return {k: y.reshape(-1, self.instances, *y.shape[1:]) for k, y in signals.items()}

    def signals(self, x: Tensor) -> Tensor:
        """g(x): points (B, D) to latent signals (B, L)."""
        if self._affine_map is not None and self._affine_map[0].numel() <= self.max_dense:
            matrix, offset = self._affine_map
            return x @ matrix.mT + offset
        return self._decoded(x)

    def _decoded(self, x: Tensor) -> Tensor:
        latent = self.grouped(self.prior.codec.latent(self.shaped(x)))
        found: Tensor = self.latent_layout.flatten(latent)
        return found

    @cached_property
    def cases(self) -> list[Program]:
        """Conjunctions in data units, of which some holds where the formula does."""
        return cases(self._plain) if self.hard else [self._plain]

    @cached_property
    def pins(self) -> Pins:
        """The linear equations and inequalities of a hard formula, for a decoder to meet, and the
        observations, for it to weigh points by."""
        return self.pins_of(self._plain)

    def pins_of(self, program: Program) -> Pins:
        """The same of one of its cases."""
        decoder = self.prior.decoder
        if decoder is None:
            return Pins.none(self.size)
        if not self.hard and not self.observes:
            return Pins.none(self.instances * decoder.coordinates)

        def signals(y: Tensor) -> Tensor:
            made = decoder.signals(y.reshape(-1, decoder.coordinates))
            found: Tensor = self.layout.flatten(self.grouped(made))
            return found

        zero = torch.zeros(self.instances * decoder.coordinates, dtype=torch.float64)
        affine = linear_conditions.linear_map(signals, zero, self.layout.size)
        factors = likelihood.factors(self._plain, affine)
        if not self.hard:
            return Pins.none(len(zero), factors)
        made = linear_conditions.moved(linear_conditions.linear_conditions(program), affine)
        return Pins(made.rows, made.low, made.high, factors, made.tolerance)

    @property
    def observes(self) -> bool:
        """Whether the scenario has observations."""
        return bool(self.program.observations)

    @cached_property
    def _linear_conditions(self) -> Equations:
        """The equations and the linear inequalities of the formula, in data units."""
        return linear_conditions.linear_conditions(self._plain)

    @property
    def handover(self) -> float | None:
        """The noise level at which the prior's decoder takes over: where it does in plain samples
        of the diffusion, and late where it is not told all of the formula, so that the diffusion
        has to meet the rest; None where it does not."""
        own = handover(self.prior)
        if own is None or self.compares_only:
            return own
        return min(own, LATE_HANDOVER)

    @property
    def compares_only(self) -> bool:
        """Whether the formula is hard, and a conjunction of linear comparisons."""
        return self.hard and all_conditions(self._plain)

    def linear_conditions_about(self, about: Tensor) -> Equations:
        """The conditions of `pins`, in normalised coordinates about a point: rows (k, D)."""
        own, warps = self._linear_conditions, self.prior.codec.warps()
        latents = self.jacobian(about)
        if not warps:
            return linear_conditions.moved(own, latents)

        def signals(x: Tensor) -> Tensor:
            made = self.grouped(self.prior.codec.decode(self.shaped(x)))
            found: Tensor = self.layout.flatten(made)
            return found

        values = linear_conditions.linear_map(signals, about, self.layout.size)
        places = linear_conditions.by_place(warps, self.sample_layout, self.instances)
        return linear_conditions.through_latents(own, values, latents, places)

    def decode(
        self,
        x_t: Tensor,
        sigma: float,
        generator: Generator,
        particles: Filter | None = None,
        pins: Pins | None = None,
    ) -> tuple[Tensor, Draw]:
        """Clean points (N, D) that the prior's decoder draws from points at a noise level, given
        the linear part of the formula, or of a case, and the draw with their weights and origins.
        """
        assert self.prior.decoder is not None
        pins = self.pins if pins is None else pins
        draw = self.prior.decoder.draw(self.shaped(x_t), sigma, generator, pins, particles)
        return self.joined(draw.x), draw

    def decoding_log_weight(self, x_0: Tensor, x_t: Tensor, sigma: float) -> Tensor:
        """The log-weights (B,) that `decode` gives to clean points (B, D) that meet the formula."""
        assert self.prior.decoder is not None
        clean, noisy = self.shaped(x_0), self.shaped(x_t)
        return self.prior.decoder.log_weight(clean, noisy, sigma, self.pins)

    def jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        """G (L, D) and c (L,) with g(x) ≈ G x + c about a point (D,)."""
        return self._affine_map or self._jacobian(about)

    def _jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        return linear_conditions.linear_map(self._decoded, about, self.latent_layout.size)

    def equations_about(self, about: Tensor) -> Equations:
        """The equations of the formula in normalised coordinates: rows (k, D)."""
        own = linear_conditions.moved(self._equations, self.jacobian(about))
        rows, low, high = own.rows, own.low, own.high
        for i, (coordinate, ends) in self._univariate.items():
            rows[i] = 0.0
            rows[i, coordinate], low[i], high[i] = 1.0, *ends
        free = rows.abs().sum(1) > 1e-12  # an equation about a conserved total holds anyway
        return Equations(rows[free], low[free], high[free], own.tolerance[free])

    @cached_property
    def equation_count(self) -> int:
        """How many equations the formula has."""
        return len(self.equations_about(torch.zeros(self.size, dtype=torch.float64)))

    @property
    def linear(self) -> bool:
        """Whether the formula compares only linear functions of the signals."""
        if self.rest is None:
            return True
        every = descend(self.rest.lowered)
        terms = [term for node in every if isinstance(node, Atom) for term in node.terms]
        terms += [t for each in self.rest.observations for t in each.distribution.parameters]
        classed = any(isinstance(node, HasClass) for node in every)
        return not classed and all(linear(term, self.latent_layout) for term in terms)

    def inequalities(self) -> Equations:
        """The linear inequalities of the formula in normalised coordinates, if these are affine."""
        if self._affine_map is None or self.rest is None or not self.hard:
            return linear_conditions.no_equations(self.size)
        return linear_conditions.moved(bounds(self.rest), self._affine_map)

    @cached_property
    def _univariate(self) -> dict[int, tuple[int, tuple[float, float]]]:
        """Equations for one signal that is an increasing function of one coordinate: the number of
        the equation -> (coordinate, its interval), which is exact where linearising is not.
        """
        if self.affine:
            return {}
        own, found = self._equations, {}
        matrix, _ = self.jacobian(torch.zeros(self.size, dtype=torch.float64))
        for i, row in enumerate(own.rows):
            signals = row.nonzero()[:, 0]
            coordinates = matrix[signals[0]].nonzero()[:, 0] if len(signals) == 1 else signals
            if len(signals) == 1 and len(coordinates) == 1:
                weight, j, d = float(row[signals[0]]), int(signals[0]), int(coordinates[0])
                ends = sorted((float(own.low[i]) / weight, float(own.high[i]) / weight))
                found[i] = d, (self._solved(j, d, ends[0]), self._solved(j, d, ends[1]))
        return found

    def _solved(self, signal: int, coordinate: int, value: float) -> float:
        """Where a signal, increasing in one coordinate, has a value; by bisection."""
        low, high = -SEARCH_LIMIT, SEARCH_LIMIT
        point = torch.zeros(1, self.size, dtype=torch.float64)
        for _ in range(60):
            middle = point[0, coordinate] = (low + high) / 2
            if float(self.signals(point)[0, signal]) < value:
                low = float(middle)
            else:
                high = float(middle)
        return (low + high) / 2

    def _limits(self) -> tuple[Tensor, Tensor]:
        """The ranges that signals are known to have, (L,) each; counts with their half unit."""
        sides = []
        for name, sign in (("low", -0.5), ("high", 0.5)):
            parts = [
                torch.full((signal.size,), getattr(signal, name) + sign * signal.integer)
                for signal in self.latent_layout.signals
            ]
            sides.append(torch.cat(parts).double().repeat(self.instances))
        return sides[0], sides[1]

    # --- verdicts ---------------------------------------------------------------------------------

    def met_cases(self, x: Tensor) -> Tensor:
        """Which cases the finished samples of points (B, D) meet: (cases, B) of bool."""
        values = self.grouped(self.prior.codec.signals_of(self.shaped(x)))
        return torch.stack([case.verdict(values) for case in self.cases])

    def satisfied(self, x: Tensor) -> Verdicts:
        """Verdicts on the finished samples of points (B, D)."""
        values = self.prior.codec.signals_of(self.shaped(x))
        met = self.program.verdict(self.grouped(values))
        consistent = torch.ones_like(met)
        for rule in self.rules.values():
            consistent = consistent & rule.verdict(values).reshape(-1, self.instances).all(1)
        return Verdicts(met, consistent)

    def log_value(self, x: Tensor, verdicts: Verdicts | None = None) -> Tensor:
        """c(x_0) of points (B, D), (B,), observations apart: 0 or -∞ of a hard formula, the value
        of a soft one, -∞ where a rule is violated. `verdicts`: of these points, if known."""
        met, allowed = verdicts or self.satisfied(x)
        value = torch.zeros(len(x), dtype=torch.float64)
        if self.hard:
            allowed = allowed & met
        elif any(signal.categories for signal in self.layout.signals):
            decoded = self.grouped(self.prior.codec.decode(self.shaped(x)))
            value = self._statement(decoded, self.semantics)
        else:  # of finished counts, not of the numbers that are rounded to them
            finished = self.grouped(self.prior.codec.signals_of(self.shaped(x)))
            value = self._statement(finished, self.semantics).double()
        return torch.where(allowed, value, -torch.inf)

    @cached_property
    def _statement(self) -> Program:
        """The program without its observations."""
        return self.program.restated(self.program.lowered, observations=())

    def log_likelihood(self, x: Tensor) -> Tensor:
        """log p(observations | x_0) of points (B, D), (B,): in a decoder's weights already."""
        if not self.observes:
            return torch.zeros(len(x), dtype=torch.float64)
        values = self.grouped(self.prior.codec.signals_of(self.shaped(x)))
        return self.program.log_density(values).sum(1)


def _without_gradient(own: Classifier) -> Callable[[Tensor], Tensor]:
    """The classifier's function, constant for autograd."""
    call = own.call
    return lambda x: call(x.detach())
