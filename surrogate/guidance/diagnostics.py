"""Diagnostics of a run: returned beside the samples, and written into their attributes."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

ATTRIBUTES = (  # diagnostics with an attribute of their own; the JSON has all of them
    "method",
    "quantity",
    "log_probability",
    "log_probability_error",
    "log_evidence",
    "log_conditional",
    "log_conditional_error",
    "ess",
    "sample_ess",
    "min_ess",
    "ancestors",
    "ancestor_ess",
    "evaluations",
    "seconds",
)


PROBABILITY = "probability"  # P(scenario | laws of the network)
EVIDENCE = "evidence"  # the density of the observations
JOINT = "probability and evidence"  # of the scenario and the observations together


def quantity_of(stated: bool, observed: bool) -> str:
    """What the normalising constant of a scenario is, which has a formula, observations or both."""
    if not observed:
        return PROBABILITY
    return JOINT if stated else EVIDENCE


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of a run. Probabilities are natural logarithms."""

    method: str
    """The method that made the samples."""
    why: str
    """Why it was chosen."""
    quantity: str
    """What `log_probability` is the logarithm of: the probability of the scenario, the evidence of
    observations, or of both together."""
    log_probability: float | None
    """Estimate of log P(scenario | laws of the network), or of the log evidence of observations,
    or of both together; None where the method has none."""
    log_probability_error: float | None
    """Its standard error, with that of the discretised chain in it; None where it is unknown."""
    batches: list[float]
    """Estimates of log P(scenario) by independent batches."""
    ess: float
    """Effective sample size of the weighted particles at the end."""
    sample_ess: float
    """Independent samples that the samples are worth: at most as many as they are, and as they have
    distinct ancestors."""
    min_ess: float
    """Smallest effective sample size at any noise level, as a share of the particles."""
    ancestors: int
    """Distinct initial particles that the samples descend from."""
    ancestor_ess: float
    """Effective number of these ancestors, each counted by the weight of its descendants."""
    particles: int
    """Particles, or plain draws of which some were kept."""
    steps: int
    """Noise levels."""
    evaluations: int
    """Evaluations of the network, one for each point at each noise level, the pilot included."""
    met_before: float
    """Share of the particles that satisfied the formula before the final resampling."""
    acceptance: float | None
    """Acceptance rate of the pilot's plain samples; None without a pilot."""
    lawful: float | None
    """Share of the pilot's plain samples that obey the laws of the network; None without one."""
    copies: int
    """Samples that equal another one of the same ancestor."""
    seconds: float
    """Wall time."""
    samples: int
    """Samples requested."""
    rejection_seconds: float | None
    """Estimate of the time that rejection would take for as many samples; None without a pilot."""
    from_rejection: dict[str, list[float]]
    """Variable -> median D from the samples that the pilot accepted, and its noise floor."""
    warnings: list[str]
    """Problems of the run, as sentences."""
    degenerate: list[str]
    """Why the samples carry no information, as sentences; empty if they do."""
    log_evidence: float | None = None
    """Log evidence of the observations, where there is a scenario beside them."""
    log_conditional: float | None = None
    """Estimate of log P(scenario | observations); None without observations."""
    log_conditional_error: float | None = None
    """Its standard error; None where it is unknown."""
    unlike: float | None = None
    """p-value of the observed data among simulated ones; None where there are none."""

    def given_data(self, alone: Diagnostics) -> Diagnostics:
        """The same with P(scenario | data) = P(scenario and data) / P(data); `alone`: of a run
        with the observations only, independent of this one up to the pilot."""
        joint, evidence = self.log_probability, alone.log_probability
        if joint is None or evidence is None:
            return self
        errors = self.log_probability_error, alone.log_probability_error
        known = [error for error in errors if error is not None]
        return replace(
            self,
            log_evidence=evidence,
            log_conditional=min(0.0, joint - evidence),
            log_conditional_error=math.hypot(*known) if len(known) == len(errors) else None,
            evaluations=self.evaluations + alone.evaluations,
            seconds=self.seconds + alone.seconds,
        )

    def attributes(self) -> dict[str, Any]:
        """The attributes of a dataset that carry them."""
        own = {f"surrogate_{name}": getattr(self, name) for name in ATTRIBUTES}
        known = {name: value for name, value in own.items() if value is not None}
        return {"surrogate_diagnostics": json.dumps(asdict(self)), **known}
