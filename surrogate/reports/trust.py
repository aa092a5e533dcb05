"""How far samples may be relied on: what their sampler reports, and what a reference shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from constraints.explanation import percent
from surrogate.evaluation.verdict import SUMMARIES, Reason, Verdict
from surrogate.reports.wording import give_or_take, odds

if TYPE_CHECKING:
    from surrogate.reports.facts import Facts

MIN_TRUSTED_ANCESTORS = 100  # distinct ancestors of the samples
MIN_EFFECTIVE_SHARE = 0.1  # of the samples that the effective ones should be
MAX_COPIES_SHARE = 0.05  # of the samples
MAX_LOG_P_ERROR = 0.3  # standard error of log P(scenario)


def verdict(facts: Facts) -> Verdict | None:
    """None where nothing was sampled and nothing compared."""
    if facts.evaluation is None and not facts.sampled:
        return None
    reasons = list(_sampler(facts)) if facts.sampled else []
    if facts.evaluation is None:
        return Verdict.of(
            reasons, "No sign of trouble. The samples were not compared with a reference."
        )
    ratio = facts.evaluation.overall.median.ratio
    return Verdict.of(
        [*reasons, *facts.evaluation.reasons(), *_probabilities(facts)],
        f"{SUMMARIES['good']} Their distance to the reference is {ratio:.2f} times what chance "
        "alone makes it.",
    )


def _sampler(facts: Facts) -> Iterator[Reason]:
    """What the sampler reports of its run."""
    if facts.degenerate:
        yield Reason("poor", f"The run was degenerate: {'; '.join(facts.degenerate)}.")
    for each in facts.warnings:
        yield Reason("care", f"The sampler warns: {each}.")
    met = facts.satisfied
    if met is not None and met < 1:
        missed = f"{percent(1 - met)} of the samples miss a requirement."
        yield Reason("poor" if met < 0.5 else "care", missed)
    elif met is not None:
        yield Reason("good", "Every sample meets every requirement.")
    effective, ancestors = facts.effective, facts.number("ancestors")
    if effective is not None and effective < MIN_EFFECTIVE_SHARE * facts.samples:
        yield Reason(
            "care",
            f"The effective sample size is only {effective:,.0f}: few samples carry the weight.",
        )
    if ancestors is not None and ancestors < min(MIN_TRUSTED_ANCESTORS, facts.samples):
        yield Reason("care", f"All samples descend from only {ancestors:,.0f} distinct ancestors.")
    copies = facts.number("copies")
    if copies is not None and copies > MAX_COPIES_SHARE * facts.samples:
        yield Reason("care", f"{copies:,.0f} of the samples are copies of others.")
    error = facts.probability[1] if facts.probability is not None else None
    if error is not None and error > MAX_LOG_P_ERROR:
        yield Reason("care", f"The probability is known only {give_or_take(error)}.")


def _probabilities(facts: Facts) -> Iterator[Reason]:
    """Whether the reference gives the same scenario the same probability."""
    mine, true = facts.probability, facts.true_probability
    if mine is None or true is None or not facts.same_scenario:
        return
    noise = math.hypot(mine[1] or 0.0, true[1] or 0.0)
    agree = abs(mine[0] - true[0]) <= max(MAX_LOG_P_ERROR, 3 * noise)
    yield Reason(
        "good" if agree else "care",
        f"The reference puts the probability at {odds(true[0])}, the samples at {odds(mine[0])}.",
    )
