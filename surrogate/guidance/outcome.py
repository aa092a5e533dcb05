"""The interface of guidance methods: a `Question` in, an `Outcome` out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor

from surrogate.guidance import smc
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.settings import Settings

Say = Callable[[str], None]
Progress = Callable[[float], None]  # receives the share of the work that is done
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Plain:
    """Unconditional samples, those that do not meet the scenario included."""

    x: Tensor
    """(n, D)."""
    accepted: int
    """How many meet the scenario and obey the laws."""


@dataclass(frozen=True)
class Question(Generic[S]):
    """A scenario to sample, with the method's settings."""

    scenario: Scenario
    samples: int
    """How many samples are requested."""
    seed: int
    settings: S
    say: Say = lambda text: None
    """Receives messages for people."""
    progress: Progress = lambda share: None
    plain: Plain | None = None
    """The plain samples of a pilot, if there was one."""
    draw_seconds: float | None = None
    """Wall time of a plain draw; None where rejection may not take the place of the method."""

    def rejection_is_faster(self, log_probability: float, seconds: float) -> bool:
        """Whether rejection may be used, and would take less than `seconds`."""
        if self.draw_seconds is None or not log_probability > -700:
            return False
        return self.draw_seconds * self.samples * math.exp(-log_probability) < seconds

    def counted(self, total: int) -> Callable[[int], None]:
        """Progress for a method that counts single steps, `total` of them."""
        done = 0

        def add(steps: int) -> None:
            nonlocal done
            done += steps
            self.progress(min(1.0, done / total))

        return add


@dataclass
class Outcome:
    """Samples and diagnostics of the run; probabilities are natural logarithms.

    For a method that draws independent samples these are the particles: `Outcome.even`.
    """

    x: Tensor
    """Samples in normalised coordinates, (n, D), float64."""
    log_weights: Tensor
    """Log-weights of the samples, (n,); all 0 where they have equal weights."""
    ancestors: Tensor
    """Index of the initial particle that each sample descends from, (n,)."""
    particles: int
    """Particles, or plain draws of which some were kept."""
    evaluations: int
    """Evaluations of the network, one for each point at each noise level."""
    steps: int
    """Noise levels."""
    met: float
    """Share of the particles that satisfied the formula before the final resampling."""
    ess: float
    """Effective sample size of the weighted particles at the end, (Σw)²/Σw²."""
    min_ess: float = 1.0
    """Smallest effective sample size at any noise level, as a share of the particles."""
    log_probability: float | None = None
    """Estimate of log P(scenario), the log normalising constant; None if there is none."""
    log_probability_error: float | None = None
    """Standard error of `log_probability`."""
    batches: list[float] = field(default_factory=list)
    """Estimates of log P(scenario) by independent batches."""
    warnings: list[str] = field(default_factory=list)
    """What is wrong with the run, in words."""
    degenerate: list[str] = field(default_factory=list)
    """Why the samples carry no information, in words; empty if they do."""
    cause: str = ""
    """The part of the scenario that makes a run degenerate, in words; empty if there is none."""

    @classmethod
    def even(cls, x: Tensor, **known: object) -> Outcome:
        """Independent samples of equal weight."""
        known = {"particles": len(x), "ess": float(len(x)), "met": 1.0, **known}
        return cls(
            x=x,
            log_weights=torch.zeros(len(x), dtype=torch.float64),
            ancestors=torch.arange(len(x)),
            **known,  # type: ignore[arg-type]
        )

    @classmethod
    def gradient_guided(cls, question: Question[S], x: Tensor, steps: int, cost: int) -> Outcome:
        """Samples (n, D) that followed gradients of the formula, those that miss it included; each
        took `cost` evaluations of the network."""
        met, consistent = question.scenario.satisfied(x)
        share = float(met.double().mean())
        found = cls.even(x, steps=steps, evaluations=cost * len(x), met=share)
        share = float((met & consistent).double().mean())
        if share < 1:
            found.warnings = [f"{1 - share:.1%} of the samples do not meet the scenario"]
        return found

    @property
    def distinct_ancestors(self) -> int:
        """Initial particles with descendants among the samples."""
        return smc.distinct(self.ancestors)

    @property
    def ancestor_ess(self) -> float:
        """Effective number of ancestors, (Σw)²/Σ(weight of an ancestor's descendants)²."""
        return smc.ancestor_ess(self.log_weights, self.ancestors)

    @property
    def sample_ess(self) -> float:
        """Independent samples that these are worth: at most as many as they are, by their weights,
        as the particles were worth, and as they have distinct ancestors."""
        own = float(smc.ess(self.log_weights))
        return min(own, self.ess, float(self.distinct_ancestors))

    @property
    def copies(self) -> int:
        """Samples that equal another one of the same ancestor: equal counts of independent samples
        are no copies."""
        named = torch.cat([self.ancestors[:, None].to(self.x), self.x], 1)
        return len(self.x) - len(torch.unique(named, dim=0))
