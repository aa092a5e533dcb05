"""What `surrogate sample` prints about the samples of a scenario."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from surrogate.guidance.diagnostics import EVIDENCE, PROBABILITY

if TYPE_CHECKING:
    from surrogate.guidance.diagnostics import Diagnostics
    from surrogate.guidance.sampler import Answer

YEAR = 31_557_600  # seconds


def scenario_summary(answer: Answer, requested: int, say: Console) -> dict[str, Any]:
    """Print how the run went, and return the same for `--json`.

    The first `requested` rules are those of the scenario that have a verdict, the others those of
    the network.
    """
    found = answer.diagnostics
    data = answer.dataset
    satisfied = consistent = 1.0
    lawful = ""
    if "rule_satisfied" in data:  # observations have no verdicts
        each = data.rule_satisfied.values
        satisfied = float(each[:, :requested].all(1).mean())
        consistent = float(each[:, requested:].all(1).mean())
        lawful = f"{consistent:.1%} consistent with the network"
        lawful = lawful if each.shape[1] > requested else ""
    if requested:
        rules = f"; {lawful}" if lawful else ""
        say.print(f"scenario satisfied by {satisfied:.1%} of the samples{rules}")
    elif lawful:
        say.print(f"samples: {lawful}")
    if found.log_probability is not None:
        _probability(found, say)
    for reason in found.degenerate:
        say.print(f"[red]degenerate: {escape(reason)}[/red]")
    for warning in found.warnings:
        say.print(f"[yellow]warning: {escape(warning)}[/yellow]")
    return {"satisfied": satisfied, "consistent": consistent, "diagnostics": asdict(found)}


def _probability(found: Diagnostics, say: Console) -> None:
    """P of the scenario, and how far to trust it."""
    log_p, error = found.log_probability, found.log_probability_error
    assert log_p is not None
    interval = "" if error is None else f" ± {error:.3f}; the model's own error comes on top"
    if found.quantity == PROBABILITY:
        say.print(f"P = {math.exp(log_p):.3g} (log P = {log_p:.3f}{interval})")
    elif found.quantity == EVIDENCE:
        say.print(f"log evidence = {log_p:.3f}{interval}")
    else:
        say.print(f"log P(scenario and data) = {log_p:.3f}{interval}")
        _conditional(found, say)
    if found.method == "rejection" and found.quantity != PROBABILITY:
        say.print(f"{found.particles:,} weighted draws: ESS {found.ess:,.0f}")
    elif found.method == "rejection":
        accepted = round(math.exp(log_p) * found.particles)
        say.print(f"accepted {accepted:,} of {found.particles:,} draws")
    else:
        say.print(
            f"{found.particles:,} particles: ESS {found.ess:,.0f}, minimum ESS on the "
            f"way {found.min_ess:.0%}; {found.ancestors:,} distinct ancestors "
            f"(ESS {found.ancestor_ess:,.0f})"
        )
        say.print(f"the samples are worth about {found.sample_ess:,.0f} independent ones")
        if found.rejection_seconds is not None:  # without a pilot it is not known
            say.print(f"rejection would have taken {duration(found.rejection_seconds)}")
    for name, (distance, floor) in found.from_rejection.items():
        say.print(f"D({escape(name)}) from rejection {distance:.3f}, floor {floor:.3f}")


def _conditional(found: Diagnostics, say: Console) -> None:
    """P(scenario | data), and the evidence that it is relative to."""
    if found.log_evidence is None or found.log_conditional is None:
        return
    share, error = math.exp(found.log_conditional), found.log_conditional_error
    within = "" if error is None else f" ± {share * error:.2g}"
    say.print(f"P(scenario | data) = {share:.3g}{within}; log evidence = {found.log_evidence:.3f}")


def duration(seconds: float) -> str:
    """Seconds in a readable unit: 3 hours."""
    if seconds >= 1e6 * YEAR:
        return f"{seconds / YEAR:.0e} years"
    for size, name in ((YEAR, "years"), (86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:,.1f} seconds"
