"""Importance sampling: plain draws that meet the formula, weighted by the likelihood.

An observation is neither met nor missed, so rejection cannot use it. Plain draws x_i that meet the
formula have the weights w_i = p(observations | x_i); resampled by these, they are draws of the
posterior, and the mean weight of all draws is the evidence. It pays where the effective share of
the draws, (Σw)² / n Σw², is not small.
"""

from __future__ import annotations

import math

import torch

from constraints.errors import Setting
from surrogate.errors import SamplingError
from surrogate.guidance import smc
from surrogate.guidance.methods.rejection import RejectionSettings
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.plain_draws import reject
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.selection import selected
from surrogate.random import Sampling

DRAWS_PER_SAMPLE = 2  # effective ones
MIN_DRAWS, MAX_DRAWS = 4_000, 100_000
MIN_PILOT_ESS = 20.0  # of a pilot's draws, below which their effective share is too uncertain


def effective_share(scenario: Scenario, x: torch.Tensor, drawn: int) -> float:
    """The effective share of `drawn` plain draws, of which x (n, D) meet the formula; 0 where they
    are too few to tell."""
    found = float(smc.ess(scenario.log_likelihood(x))) if len(x) else 0.0
    return found / drawn if found >= MIN_PILOT_ESS else 0.0


def draws_for(samples: int, share: float) -> int:
    """Plain draws for so many samples, of which this share are effective."""
    needed = math.ceil(DRAWS_PER_SAMPLE * samples / max(share, 1e-9))
    return min(max(needed, MIN_DRAWS), MAX_DRAWS)


def answer(question: Question[RejectionSettings]) -> Outcome:
    """Samples by importance sampling."""
    scenario, steps, share = question.scenario, question.settings.steps, 0.0
    if question.plain is not None:
        met = scenario.log_value(question.plain.x).isfinite()
        share = effective_share(scenario, question.plain.x[met], len(met))
    draws = draws_for(question.samples, share)
    accepted = reject(
        scenario, draws + 1, draws, question.seed, Sampling.REJECTION, steps=steps,
        progress=question.counted(draws),
    )  # fmt: skip
    log_weights = scenario.log_likelihood(accepted.x)
    if not bool(log_weights.isfinite().any()):
        raise SamplingError(
            f"none of {accepted.drawn:,} samples meets the scenario with a positive likelihood",
            value=accepted.drawn,
            remedy=["use ", Setting("method", "twisted")],
        )
    ess = float(smc.ess(log_weights))
    ancestors = torch.arange(len(log_weights))
    x, chosen_weights, chosen = selected(question, accepted.x, log_weights, ancestors)
    found = Outcome(
        x=x,
        log_weights=chosen_weights,
        ancestors=chosen,
        particles=accepted.drawn,
        steps=steps,
        evaluations=steps * accepted.drawn,
        met=accepted.met / accepted.drawn,
        ess=ess,
        min_ess=ess / accepted.drawn,
        log_probability=float(log_weights.logsumexp(0)) - math.log(accepted.lawful),
        log_probability_error=math.sqrt(max(1 / ess - 1 / accepted.lawful, 0.0)),
    )
    if ess < question.samples / 10:
        found.warnings = [
            f"few plain draws carry the likelihood: the effective sample size of "
            f"{accepted.drawn:,} is {ess:.0f}; use sequential or twisted"
        ]
    return found
