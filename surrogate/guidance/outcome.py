"""What is asked of a method, and what it returns: one interface for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from surrogate.guidance.scenario import Scenario
from surrogate.guidance.settings import Settings

Say = Callable[[str], None]
Progress = Callable[[float], None]  # the share of the work that is done


@dataclass
class Question:
    """A scenario, how many samples of it, and who to tell on the way."""

    scenario: Scenario
    samples: int
    seed: int
    settings: Settings
    say: Say = lambda text: None
    progress: Progress = lambda share: None

    def counted(self, total: int) -> Callable[[int], None]:
        """Progress for one who tells of single steps, `total` of them."""
        done = 0

        def tell(steps: int) -> None:
            nonlocal done
            done += steps
            self.progress(min(1.0, done / total))

        return tell


@dataclass
class Outcome:
    """Samples x (n, D) and all that a method knows of them; probabilities are logarithms."""

    x: Tensor
    log_weights: Tensor  # (n,), all 0 where samples count alike
    origin: Tensor  # the first particle that each comes from, (n,)
    drawn: int  # particles, or samples of which some were kept
    evaluations: int  # of the network, in samples
    steps: int  # noise levels on the way
    met: float  # share of `drawn` that satisfied the formula before any was chosen
    effective: float  # what the weighted ones of `drawn` are worth
    least_effective: float = 1.0  # share of the particles that carried the weight, at worst
    log_probability: float | None = None  # None where a method does not tell
    log_probability_error: float | None = None
    batches: list[float] = field(default_factory=list)  # log-probabilities by independent batches
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def even(cls, x: Tensor, **known: object) -> Outcome:
        """Samples that count alike and have nothing in common."""
        known = {"drawn": len(x), "effective": float(len(x)), "met": 1.0, **known}
        return cls(
            x=x,
            log_weights=torch.zeros(len(x), dtype=torch.float64),
            origin=torch.arange(len(x)),
            **known,  # type: ignore[arg-type]
        )

    @property
    def ancestors(self) -> int:
        """First particles that the samples come from."""
        return len(torch.unique(self.origin))

    @property
    def families(self) -> float:
        """What the families of samples with one origin are worth: (Σw)²/Σ(w of a family)²."""
        shares = torch.softmax(self.log_weights, 0)
        each = torch.zeros(int(self.origin.max()) + 1, dtype=shares.dtype)
        return float(1 / each.index_add(0, self.origin, shares).square().sum())

    @property
    def copies(self) -> int:
        """Samples that are the same as others."""
        return len(self.x) - len(torch.unique(self.x, dim=0))
