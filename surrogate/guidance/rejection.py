"""Rejection: unconditional samples, of which those that meet the scenario are accepted. Exact.

The acceptance rate among draws that obey the laws of the network is the scenario's probability. A
soft formula c <= 0 keeps a sample with probability e^c. Observations weigh samples (`importance`).
"""

from __future__ import annotations

import math

from constraints.errors import Setting
from surrogate.errors import SamplingError
from surrogate.guidance import importance
from surrogate.guidance.methods.rejection import RejectionSettings
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.plain_draws import reject
from surrogate.random import Sampling

MAX_DRAWS_PER_SAMPLE = 2_000


def answer(question: Question[RejectionSettings]) -> Outcome:
    """Samples by rejection; of a scenario with observations, by importance sampling."""
    if question.scenario.observes:
        return importance.answer(question)
    wanted, steps = question.samples, question.settings.steps
    accepted = reject(
        question.scenario,
        wanted,
        MAX_DRAWS_PER_SAMPLE * max(wanted, 500),
        question.seed,
        Sampling.REJECTION,
        steps=steps,
        progress=question.counted(wanted),
    )
    if not len(accepted.x):
        raise SamplingError(
            f"none of {accepted.drawn:,} samples meets the scenario",
            value=accepted.drawn,
            remedy=["use ", Setting("method", "twisted")],
        )
    rate = len(accepted.x) / accepted.lawful  # given the laws
    found = Outcome.even(
        accepted.x[:wanted],
        particles=accepted.drawn,
        steps=steps,
        evaluations=steps * accepted.drawn,
        met=accepted.met / accepted.drawn,
        log_probability=math.log(rate),
        log_probability_error=math.sqrt((1 - rate) / len(accepted.x)),
    )
    if len(accepted.x) < wanted:
        found.warnings = [f"only {len(accepted.x):,} of {wanted:,} samples were found"]
    return found
