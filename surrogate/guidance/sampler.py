"""Samples of a model under a scenario, whichever method makes them, with what is known of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, conjunction, instances_of
from constraints.compile.dependents import implied_values
from constraints.compile.names import of_instances
from constraints.errors import FormulaError
from constraints.physics.rules import from_network
from constraints.prove.contradictions import refuse_impossible
from surrogate.errors import ModelError, whole_number
from surrogate.guidance.methods import METHODS
from surrogate.guidance.outcome import Outcome, Progress, Question, Say
from surrogate.guidance.rejection import Kept, reject
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.settings import COMMON, OWN, Settings
from surrogate.guidance.twisted_batches import particles_for
from surrogate.kinds import kind_of
from surrogate.kinds.images.codec import ImageCodec
from surrogate.kinds.labels import label
from surrogate.kinds.signals import described
from surrogate.model import Surrogate
from surrogate.random import Sampling, stream

__all__ = ["Diagnostics", "Settings", "sample"]
SOFT = 10.0  # hardness where a method needs one
PILOT = 2_000  # unconditional samples that tell how probable a scenario is
PILOT_STEPS = 20  # enough to count by
FEW = 20  # samples of the pilot without which it does not tell how many draws rejection needs
MOST = 100_000  # draws that are worth it where particles failed
UNSEEN = math.log(1e-9)  # of what is less probable a model knows little
ENOUGH = 100  # samples of the pilot that others can be compared with
LARGEST = 100_000_000  # numbers in the covariance of several instances
COSTLY = 200  # images that a pilot has
LED = ("moments", "guidance", "universal")  # methods that need no pilot


@dataclass
class Diagnostics:
    """How a run went. Probabilities are natural logarithms."""

    method: str
    why: str
    log_probability: float | None  # None where a method does not tell
    log_probability_error: float | None
    batches: list[float]  # log-probabilities by independent batches
    effective: float  # what the weighted particles are worth
    least_effective: float  # share of particles that carried the weight, at worst
    ancestors: int  # first particles that the samples come from
    families: float  # what these are worth, if each counted by the samples it has
    particles: int
    steps: int  # noise levels
    evaluations: int  # of the network, in samples
    met_before: float  # share that satisfied the formula before any was chosen
    acceptance: float | None  # of the pilot
    copies: int  # samples that are copies of others
    seconds: float
    samples: int
    rejection_seconds: float | None  # that rejection would take for as many samples
    from_rejection: dict[str, list[float]]  # variable -> median D from the pilot's, and its floor
    warnings: list[str]


@dataclass
class _Pilot:
    """Unconditional samples, and of them those that meet the scenario."""

    kept: Kept
    seconds: float  # for a sample


def sample(
    model: Surrogate,
    samples: int,
    where: Formula | Mapping[str, Formula],
    seed: int = 0,
    settings: Settings | None = None,
    say: Say = lambda text: None,
    progress: Progress = lambda share: None,
) -> xr.Dataset:
    """Labelled trajectories from p(x | where), with their diagnostics in `attrs`."""
    samples = whole_number(samples, "samples", least=1)
    seed = whole_number(seed, "seed")
    chosen = settings or Settings()
    if isinstance(model.codec, ImageCodec):
        chosen = chosen.for_images()
    rules = dict(where) if isinstance(where, Mapping) else {str(where): where}
    goal, single = conjunction(*rules.values()), model.codec.layout()
    layout = replace(single, instances=_instances(goal, model))
    known = from_network(described(model.codec.to_dataset(torch.zeros(1, *model.shape))))
    physics = known if chosen.consistency else {}
    always = [*known.values(), *implied_values(model.codec.followers(), single, goal)]
    given = [rule for each in always for rule in of_instances(each, layout)]
    refuse_impossible(goal, layout, given=given, end=chosen.end)
    hardness = (chosen.hardness or SOFT) if chosen.guided else chosen.hardness
    scenario = Scenario(
        model, goal, physics, end=chosen.end, hardness=hardness, jacobian_of=chosen.jacobian
    )
    began = time.monotonic()
    # a pilot tells how probable the scenario is, where that decides the method
    pilot = _pilot(scenario, seed) if chosen.method not in LED else None
    method, why = _choice(chosen, samples, pilot)
    if chosen.method == "auto":
        say(f"method: {method} ({why})")
    elif method == "rejection" and pilot is not None and not len(pilot.kept.x):
        say(
            f"none of {pilot.kept.drawn:,} unconditional samples meets the scenario: this may take "
            "long; "
            "the method twisted would not wait for them"
        )
    question = Question(scenario, samples, seed, chosen, say, progress)
    made = METHODS[method](question)
    if chosen.method == "auto" and made.warnings and _affordable(pilot, samples):
        method, why = "rejection", f"particles failed: {'; '.join(made.warnings)}"
        say(f"method: rejection ({why})")
        made = METHODS[method](question)
    data = dataset_of(scenario, made.x)
    compared = _from_rejection(scenario, data, pilot) if method == "twisted" else {}
    every = {name: conjunction(*of_instances(rule, layout)) for name, rule in physics.items()}
    data = label(data, rules | every, chosen.end, layout=layout)
    data["log_weight"] = ("sample", made.log_weights.numpy(), {"long_name": "log of the weight"})
    whence = {"long_name": "first particle that the sample comes from"}
    data["origin"] = ("sample", made.origin.to(torch.int32).numpy(), whence)
    seconds = time.monotonic() - began
    found = _diagnostics(made, method, why, samples, pilot, seconds, compared)
    return data.assign_attrs(
        surrogate_seed=seed,
        surrogate_model=model.digest,
        surrogate_settings=json.dumps({k: getattr(chosen, k) for k in (*COMMON, *OWN[method])}),
        surrogate_diagnostics=json.dumps(asdict(found)),
        **_attributes(found),
    )


def _instances(goal: Formula, model: Surrogate) -> int:
    """How many the rule speaks of, if their covariance fits in memory."""
    count = instances_of(goal)
    most = max(1, math.isqrt(LARGEST // model.covariance.vectors.numel()))
    if count > most:
        raise FormulaError(
            f"the rule speaks of {count:,} instances, and at most {most:,} of this model are "
            f"sampled together; number them [1] to [{most}], without gaps"
        )
    return count


def dataset_of(scenario: Scenario, x: Tensor) -> xr.Dataset:
    """Points (n, D) as a dataset; several instances have a dimension of their own."""
    data = scenario.model.codec.to_dataset(scenario.shaped(x))  # as precise as its verdict was
    if scenario.instances == 1:
        return data
    count = scenario.instances
    rows = data.transpose("sample", ...)
    apart = {
        name: (
            ("sample", "instance", *array.dims[1:]),
            array.values.reshape(-1, count, *array.shape[1:]),
            array.attrs,
        )
        for name, array in rows.data_vars.items()
        if "sample" in array.dims
    }
    single = rows.drop_vars([*apart, "sample"], errors="ignore")
    own = {"sample": np.arange(len(x)), "instance": np.arange(1, count + 1)}
    return single.assign(apart).assign_coords(own)


def _pilot(scenario: Scenario, seed: int) -> _Pilot:
    began = time.monotonic()
    count = COSTLY if isinstance(scenario.model.codec, ImageCodec) else PILOT
    kept = reject(
        scenario,
        count,
        count,
        seed + 10**6,
        stream(seed, Sampling.PILOT),
        steps=PILOT_STEPS,
    )
    return _Pilot(kept, (time.monotonic() - began) / count)


def _choice(settings: Settings, samples: int, pilot: _Pilot | None) -> tuple[str, str]:
    """The method, and why it is that one: each draw and each particle costs about the same."""
    if settings.method != "auto" or pilot is None:
        return settings.method, "as was asked for"
    rate, kept = pilot.kept.rate, len(pilot.kept.x)
    why = f"{rate:.2%} of {pilot.kept.drawn:,} unconditional samples meet the scenario"
    if kept < FEW or settings.weighted:
        return "twisted", why
    draws, particles = math.ceil(samples / rate), settings.particles or particles_for(samples)
    why += f": about {draws:,} draws, or {particles:,} particles"
    return ("rejection" if draws <= particles else "twisted"), why


def _affordable(pilot: _Pilot | None, samples: int) -> bool:
    """Whether rejection is a way out."""
    return pilot is not None and len(pilot.kept.x) >= FEW and samples / pilot.kept.rate <= MOST


def _from_rejection(
    scenario: Scenario, data: xr.Dataset, pilot: _Pilot | None
) -> dict[str, list[float]]:
    """How far samples are from those that the pilot kept, where there are enough of them."""
    if pilot is None or len(pilot.kept.x) < ENOUGH:
        return {}
    others = dataset_of(scenario, pilot.kept.x)
    try:
        found = kind_of(data).compare(data, others, seed=0)
    except ModelError:  # nothing that could be compared
        return {}
    return {each.name: [each.median.value, each.median.floor] for each in found.variables}


def _diagnostics(
    made: Outcome,
    method: str,
    why: str,
    samples: int,
    pilot: _Pilot | None,
    seconds: float,
    compared: dict[str, list[float]],
) -> Diagnostics:
    log_p = made.log_probability
    rejection = None
    if pilot is not None and log_p is not None:
        rejection = pilot.seconds * samples / math.exp(max(log_p, -700.0))
    return Diagnostics(
        method=method,
        why=why,
        log_probability=log_p,
        log_probability_error=made.log_probability_error,
        batches=made.batches,
        effective=made.effective,
        least_effective=made.least_effective,
        ancestors=made.ancestors,
        families=made.families,
        particles=made.drawn,
        steps=made.steps,
        evaluations=made.evaluations + (0 if pilot is None else pilot.kept.drawn * PILOT_STEPS),
        met_before=made.met,
        acceptance=None if pilot is None else pilot.kept.rate,
        copies=made.copies,
        seconds=seconds,
        samples=samples,
        rejection_seconds=rejection,
        from_rejection=compared,
        warnings=[*made.warnings, *_improbable(log_p)],
    )


def _improbable(log_p: float | None) -> list[str]:
    if log_p is None or log_p > UNSEEN:
        return []
    return [
        "so improbable a scenario is far from all that the model has learned from: take the "
        "samples and the probability as extrapolations"
    ]


def _attributes(found: Diagnostics) -> dict[str, Any]:
    """What a reader of the file looks for by itself; the rest is in the diagnostics."""
    names = (
        "method",
        "log_probability",
        "log_probability_error",
        "effective",
        "least_effective",
        "ancestors",
        "families",
        "evaluations",
        "seconds",
    )
    told = {f"surrogate_{name}": getattr(found, name) for name in names}
    return {name: value for name, value in told.items() if value is not None}
