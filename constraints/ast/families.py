"""Families of distributions, and observations: `76 ~ poisson(0.9*I(3))`.

An observation states that a number was drawn from a distribution whose parameters are terms of the
sample x. It is a factor p(y | x) of the likelihood: log p(y | x) is added to the soft value of the
formula, and it has neither a verdict nor a margin. So it stands by itself or under `and`
(`Node.observes`).

A family is one entry of this table. The parser reads its name and parameters, the constructor and
the prover their domains, the evaluator its log-density, the Gaussian room its expectation where
that is closed. An entry is called to make a distribution in Python:

    gumbel = register(Family("gumbel", "...", (FamilyParameter("mode"), ...), log_density))
    observe(3.5, gumbel(x[3], 0.5))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from constraints.ast import densities, draws
from constraints.ast.formulas import TRUE, And, Formula, conjunction
from constraints.ast.nodes import Node, plain_number
from constraints.ast.terms import Const, Term, term
from constraints.ast.words import IDENTIFIER
from constraints.errors import FormulaError, unknown
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

MIN_POSITIVE = 1e-50  # smaller positive parameters count as this one
OBSERVATION_EXAMPLE = "76 ~ poisson(0.9*I(3))"


@dataclass(frozen=True)
class Domain:
    """The numbers low..high; `positive`: without 0, the low end; `whole`: whole numbers only."""

    low: float = -math.inf
    high: float = math.inf
    positive: bool = False
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        return self.meets(value, value) and (not self.whole or float(value).is_integer())

    def meets(self, low: float, high: float) -> bool:
        """Whether some number in low..high lies in the domain, whole or not."""
        return low <= self.high and (high > 0 if self.positive else high >= self.low)

    def clipped(self, values: Tensor) -> Tensor:
        """Values in the domain; positive ones not so small that squares of ratios overflow."""
        return values.clamp_min(MIN_POSITIVE) if self.positive else values

    def inside(self, values: Tensor) -> Tensor:
        """Which values lie in the domain, whole or not: bool, like them; inf and NaN do not."""
        above = values > 0 if self.positive else values >= self.low
        return above & (values <= self.high) & values.isfinite()

    @property
    def interior(self) -> float:
        """Some number in the domain, at which densities have no singularity."""
        return 0.5 if self.high == 1 else 1.0

    def __str__(self) -> str:
        kind = "whole numbers" if self.whole else "numbers"
        if math.isfinite(self.high):
            return f"{kind} in [{self.low:g}, {self.high:g}]"
        if self.positive:
            return f"{kind} > 0"
        return kind if math.isinf(self.low) else f"{kind} >= {self.low:g}"


REAL = Domain()
POSITIVE = Domain(0.0, positive=True)
NON_NEGATIVE = Domain(0.0)
SHARE = Domain(0.0, 1.0)
COUNT = Domain(0.0, whole=True)


@dataclass(frozen=True)
class FamilyParameter:
    """A parameter of a family, and the numbers that it may be."""

    name: str
    domain: Domain = REAL

    def check(self, family: str, value: Term) -> None:
        """FormulaError for a constant outside the domain."""
        if isinstance(value, Const) and value.value not in self.domain:
            raise FormulaError(
                f"the {self.name} of {family} is {value.value:g}",
                value=value.value,
                remedy=f"it must be one of the {self.domain}",
            )


@dataclass(frozen=True, eq=False)
class Family:
    """One family of distributions.

    log_density: (y, *parameters), tensors within their domains, to a tensor like them. support: the
    numbers that can be observed. location: the number of the parameter that moves the distribution.
    expected: (y, variance, *parameters), the log of the expected density where that parameter is
    Gaussian with a variance and the others are constant; None where it has no closed form. bounds:
    the numbers of the parameters that y lies between, where there are any. sampler: (generator,
    *parameters), tensors within their domains and of one shape, to numbers drawn from each
    distribution; None if the family cannot be simulated.
    """

    name: str
    meaning: str
    parameters: tuple[FamilyParameter, ...]
    density: Callable[..., Tensor]
    support: Domain = REAL
    location: int = 0
    expected: Callable[..., Tensor] | None = None
    bounds: tuple[int | None, int | None] = (None, None)
    sampler: Callable[..., Tensor] | None = None

    @property
    def signature(self) -> str:
        """How it is written: `normal(mean, sd)`."""
        return f"{self.name}({', '.join(each.name for each in self.parameters)})"

    def __call__(self, *parameters: Any) -> Distribution:
        """The distribution with these parameters, terms or numbers."""
        return Distribution(self, tuple(term(each) for each in parameters))

    def check_count(self, count: int) -> None:
        """FormulaError for a wrong number of parameters."""
        if count != len(self.parameters):
            wanted = f"{len(self.parameters)} parameter{'s' if len(self.parameters) > 1 else ''}"
            raise FormulaError(
                f"{self.name} has {wanted}, not {count}",
                value=count,
                remedy=f"write {self.signature}",
            )

    def log_density(self, value: float, *parameters: Tensor) -> Tensor:
        """log p(value | parameters), like the parameters, which broadcast; -inf, with a gradient of
        0, where one of them is outside its domain."""
        own = torch.broadcast_tensors(*parameters)  # type: ignore[no-untyped-call]
        pairs = list(zip(self.parameters, own, strict=True))
        inside = torch.ones_like(own[0], dtype=torch.bool)
        for parameter, each in pairs:
            inside = inside & parameter.domain.inside(each)
        safe = [
            torch.where(inside, known.domain.clipped(each), known.domain.interior)
            for known, each in pairs
        ]
        return torch.where(inside, self.density(value, *safe), -math.inf)

    def draw(self, generator: Generator, *parameters: Tensor) -> Tensor:
        """A number from each distribution, like the parameters, which broadcast; FormulaError where
        one of them is outside its domain."""
        if self.sampler is None:
            raise FormulaError(
                f"{self.name} cannot be simulated: the family has no sampler",
                value=self.name,
                allowed=[each.name for each in families().values() if each.sampler],
            )
        own = torch.broadcast_tensors(*(each.double() for each in parameters))  # type: ignore[no-untyped-call]
        for known, each in zip(self.parameters, own, strict=True):
            outside = each[~known.domain.inside(each)]
            if len(outside):
                raise FormulaError(
                    f"the {known.name} of {self.name} is {outside[0]:g} in {len(outside):,} of "
                    f"{each.numel():,} places",
                    value=float(outside[0]),
                    remedy=f"it must be one of the {known.domain}",
                )
        return self.sampler(generator, *own)


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Node):
    """A family with terms for its parameters."""

    family: Family
    parameters: tuple[Term, ...]

    def __post_init__(self) -> None:
        self.family.check_count(len(self.parameters))
        for parameter, value in zip(self.family.parameters, self.parameters, strict=True):
            parameter.check(self.family.name, value)
        self._check_ends()
        super().__post_init__()

    def _check_ends(self) -> None:
        """FormulaError where the numbers between which observations lie are in the wrong order."""
        places = self.family.bounds
        low, high = (None if place is None else self.parameters[place] for place in places)
        if isinstance(low, Const) and isinstance(high, Const) and low.value >= high.value:
            name = self.family.name
            raise FormulaError(
                f"{name}({low.value:g}, {high.value:g}) has no values: the lower end comes first",
                value=(low.value, high.value),
                remedy=f"write {name}({high.value:g}, {low.value:g})",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Observation(Formula):
    """`value ~ distribution`: a number that was observed, a factor of the likelihood."""

    observation: ClassVar[bool] = True

    value: float
    distribution: Distribution

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, Distribution):
            raise FormulaError(
                f"{self.distribution!s} is not a distribution",
                value=self.distribution,
                allowed=[each.signature for each in families().values()],
                remedy="write observe(76, poisson(0.9 * I[3]))",
            )
        object.__setattr__(self, "value", plain_number(self.value))
        family = self.distribution.family
        if self.value not in family.support:
            rounded = "; round it, or use another distribution" if family.support.whole else ""
            raise FormulaError(
                f"{self.value:g} cannot be observed under {family.name}",
                value=self.value,
                remedy=f"its values are {family.support}{rounded}",
            )
        super().__post_init__()

    def log_density(self, *parameters: Tensor) -> Tensor:
        """log p(value | parameters), like the parameters."""
        return self.distribution.family.log_density(self.value, *parameters)

    def moved(self, parameters: tuple[Term, ...]) -> Observation:
        """The observation of the same number with other terms for the parameters."""
        return Observation(self.value, Distribution(self.distribution.family, parameters))


def observe(value: float, distribution: Distribution) -> Observation:
    """The observation `value ~ distribution`: `observe(76, poisson(0.9 * I[3]))`."""
    return Observation(value, distribution)


def factored(formula: Formula) -> tuple[Formula, tuple[Observation, ...]]:
    """The formula without its observations, TRUE if nothing else is stated, and these."""
    if not formula.observes:
        return formula, ()
    parts = formula.parts if isinstance(formula, And) else (formula,)
    found = tuple(part for part in parts if isinstance(part, Observation))
    rest = [part for part in parts if not isinstance(part, Observation)]
    return (conjunction(*rest) if rest else TRUE), found


def has_verdict(formula: Formula) -> bool:
    """Whether it states anything besides observations."""
    stated, observed = factored(formula)
    return not observed or stated != TRUE


# --- the table ------------------------------------------------------------------------------------

_TABLE: dict[str, Family] = {}


def register(entry: Family) -> Family:
    """Add a family to the language."""
    if not IDENTIFIER.fullmatch(entry.name):
        raise FormulaError(
            f"{entry.name!r} cannot name a family", value=entry.name, remedy="use a word"
        )
    if entry.name in _TABLE:
        raise FormulaError(
            f"the language has a family {entry.name} already",
            value=entry.name,
            remedy="register it under another name",
        )
    _TABLE[entry.name] = entry
    return entry


def unregister(name: str) -> None:
    """Remove a family, for tests that add one."""
    del _TABLE[name]


def families() -> Mapping[str, Family]:
    """All families by name."""
    return MappingProxyType(_TABLE)


def family_named(name: str) -> Family:
    """The family of this name; FormulaError with the nearest name if there is none."""
    if name not in _TABLE:
        raise unknown("distribution", name, _TABLE)
    return _TABLE[name]


def _normal_expected(y: float, variance: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    return densities.normal(y, mean, (variance + sd.square()).sqrt())


def _lognormal_expected(y: float, variance: Tensor, mean_of_log: Tensor, sd: Tensor) -> Tensor:
    return densities.lognormal(y, mean_of_log, (variance + sd.square()).sqrt())


_SD = FamilyParameter("sd", POSITIVE)
_MEAN = FamilyParameter("mean", NON_NEGATIVE)

poisson = register(
    Family("poisson", "a count", (_MEAN,), densities.poisson, COUNT, sampler=draws.poisson)
)
normal = register(
    Family(
        "normal",
        "a real number with Gaussian error",
        (FamilyParameter("mean"), _SD),
        densities.normal,
        expected=_normal_expected,
        sampler=draws.normal,
    )
)
lognormal = register(
    Family(
        "lognormal",
        "a positive number whose logarithm is normal",
        (FamilyParameter("mean_of_log"), _SD),
        densities.lognormal,
        POSITIVE,
        expected=_lognormal_expected,
        sampler=draws.lognormal,
    )
)
binomial = register(
    Family(
        "binomial",
        "successes among n, each of probability p",
        (FamilyParameter("n", COUNT), FamilyParameter("p", SHARE)),
        densities.binomial,
        COUNT,
        bounds=(None, 0),
        sampler=draws.binomial,
    )
)
negative_binomial = register(
    Family(
        "negative_binomial",
        "an overdispersed count, of variance mean + mean² / dispersion",
        (_MEAN, FamilyParameter("dispersion", POSITIVE)),
        densities.negative_binomial,
        COUNT,
        sampler=draws.negative_binomial,
    )
)
student_t = register(
    Family(
        "student_t",
        "a real number with heavy-tailed error",
        (
            FamilyParameter("df", POSITIVE),
            FamilyParameter("location"),
            FamilyParameter("scale", POSITIVE),
        ),
        densities.student_t,
        location=1,
        sampler=draws.student_t,
    )
)
uniform = register(
    Family(
        "uniform",
        "a real number between two bounds",
        (FamilyParameter("low"), FamilyParameter("high")),
        densities.uniform,
        bounds=(0, 1),
        sampler=draws.uniform,
    )
)
