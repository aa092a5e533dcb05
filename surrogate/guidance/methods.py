"""The ways to answer a question, by name. Each takes a `Question` and returns an `Outcome`."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from surrogate.errors import SamplingError
from surrogate.guidance.batches import by_particles
from surrogate.guidance.gradient import guided
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.rejection import reject
from surrogate.guidance.universal import universal
from surrogate.training import seeded

STEPS = 40  # of rejection
MOST_DRAWS = 2_000  # of rejection, for each sample that is asked for


def by_guidance(question: Question) -> Outcome:
    """The paper's algorithm."""
    own = question.settings
    steps = own.steps or 1000
    final = 2000 if own.langevin is None else own.langevin
    x = guided(
        question.scenario,
        question.samples,
        seeded(question.seed, 24),
        weight=own.schedule,
        strength=own.strength,
        steps=steps,
        correctors=own.correctors,
        final=final,
        progress=question.counted(steps + final),
    )
    return _led(question, x, steps, steps * (1 + own.correctors) + final)


def by_universal_guidance(question: Question) -> Outcome:
    """Forward, backward, self-recurrence."""
    own = question.settings
    steps, final = own.steps or 200, own.langevin or 0
    x = universal(
        question.scenario,
        question.samples,
        seeded(question.seed, 24),
        forward=own.forward,
        backward=own.backward,
        recurrence=own.recurrence,
        strength=own.strength,
        steps=steps,
        final=final,
        progress=question.counted(steps + final),
    )
    each = 2 if own.forward else 1  # the gradient at the clean point goes back through the network
    return _led(question, x, steps, each * steps * own.recurrence + final)


def _led(question: Question, x: Tensor, steps: int, evaluations: int) -> Outcome:
    """Samples that were led to the scenario, whether or not they met it."""
    met, kept = question.scenario.satisfied(x)
    share = float(met.double().mean())
    found = Outcome.even(x, steps=steps, evaluations=evaluations * len(x), met=share)
    share = float((met & kept).double().mean())
    if share < 1:
        found.warnings = [f"{1 - share:.1%} of the samples do not meet the scenario"]
    return found


def by_rejection(question: Question) -> Outcome:
    """Unconditional samples, of which those that meet the scenario are kept."""
    wanted, steps = question.samples, question.settings.steps or STEPS
    kept = reject(
        question.scenario,
        wanted,
        MOST_DRAWS * max(wanted, 500),
        question.seed,
        seeded(question.seed, 21),
        steps=steps,
        progress=question.counted(wanted),
    )
    if not len(kept.x):
        raise SamplingError(
            f"none of {kept.drawn:,} samples meets the scenario; use the method twisted"
        )
    found = Outcome.even(
        kept.x[:wanted],
        drawn=kept.drawn,
        steps=steps,
        evaluations=steps * kept.drawn,
        met=kept.met / kept.drawn,
        log_probability=math.log(kept.rate),
        log_probability_error=math.sqrt((1 - kept.rate) / len(kept.x)),
    )
    if len(kept.x) < wanted:
        found.warnings = [f"only {len(kept.x):,} of {wanted:,} samples were found"]
    return found


METHODS: dict[str, Callable[[Question], Outcome]] = {
    "twisted": by_particles,
    "guidance": by_guidance,
    "universal": by_universal_guidance,
    "rejection": by_rejection,
}
