"""The ways to answer a question, by name. Each takes a `Question` and returns an `Outcome`."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from surrogate.diffusion.schedule import karras
from surrogate.errors import SamplingError
from surrogate.guidance.gradient import guided
from surrogate.guidance.moments import ITERATIONS, Moments, Walked, log_mean, walked
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.rejection import reject
from surrogate.guidance.twisted_batches import by_particles
from surrogate.guidance.universal import universal
from surrogate.model import MOST
from surrogate.random import Sampling, stream

STEPS = 40  # of rejection
MOST_DRAWS = 2_000  # of rejection, for each sample that is asked for
LEAST = 0.02  # noise before the clean point, with moments
LED = 40  # levels, with moments
EACH = 4  # particles of a sample, with moments
FEW = 2_000  # equations, up to which they are solved at once
UNKNOWN = 0.5  # an error of a probability, relative to it, at which it is not told
ROUNDS = 5  # tries for a sample that does not meet the scenario


def by_guidance(question: Question) -> Outcome:
    """The paper's algorithm."""
    own = question.settings
    steps = own.steps or 1000
    final = 2000 if own.langevin is None else own.langevin
    x = guided(
        question.scenario,
        question.samples,
        stream(question.seed, Sampling.GUIDANCE),
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
        stream(question.seed, Sampling.GUIDANCE),
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


def by_moments(question: Question) -> Outcome:
    """Independent samples, each led by the moments of its clean point; those that do not meet the
    scenario are made anew, some times."""
    own, scenario, samples = question.settings, question.scenario, question.samples
    steps = own.steps or LED
    each = max(1, own.particles // samples) if own.particles else EACH
    moments = Moments(scenario, _jacobian(question), own.strength)
    sigmas = karras(steps, LEAST, MOST)
    passes = 2 + ITERATIONS if len(moments.rows) else 2
    if moments.jacobian != "network":
        passes = 1
    tell = question.counted(steps)
    found: list[Walked] = []
    x = torch.zeros(samples, scenario.size, dtype=torch.float64)
    missing, spent = torch.arange(samples), 0
    for turn in range(ROUNDS):
        generator = stream(question.seed, Sampling.MOMENTS, turn)
        made = walked(moments, len(missing), sigmas, generator, each, own.recurrence, tell)
        found.append(made)
        spent += len(missing) * each * steps * passes * own.recurrence
        x[missing] = made.x.double()
        met, kept = scenario.satisfied(x[missing])
        missing = missing[~(met & kept)]
        if not len(missing) or not scenario.hard:
            break
    first = found[0]
    outcome = Outcome.even(x, drawn=samples * each, steps=steps, evaluations=spent, met=first.met)
    outcome.least_effective = first.least
    if not len(moments.rows) and samples > 1:
        # each sample's particles are an independent estimate; one that rests on few is none
        total = float(log_mean(first.log_z.double()))
        error = float(torch.exp(first.log_z.double() - total).std()) / math.sqrt(samples)
        if error < UNKNOWN:
            outcome.log_probability, outcome.log_probability_error = total, error
    if len(missing) and scenario.hard:
        outcome.warnings = [f"{len(missing) / samples:.1%} of the samples do not meet the scenario"]
    return outcome


def _jacobian(question: Question) -> str:
    """Whose covariance a clean point has: what is linear is led to at once with a Gaussian's, and
    as well as with the network's; to classes and the like it hardly leads."""
    scenario, chosen = question.scenario, question.settings.jacobian
    if chosen != "auto":
        return chosen
    about = torch.zeros(scenario.size, dtype=torch.float64)
    few = len(scenario.equations_about(about)) <= FEW
    return "gaussian" if few and scenario.linear else "network"


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
        stream(question.seed, Sampling.REJECTION),
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
    "moments": by_moments,
    "guidance": by_guidance,
    "universal": by_universal_guidance,
    "rejection": by_rejection,
}
