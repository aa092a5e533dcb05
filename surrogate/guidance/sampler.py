"""Samples of a model under a scenario: the choice of a method, its run, labels and diagnostics."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, Program, conjunction, instances_of
from constraints.ast.families import factored
from constraints.compile.dependents import implied_values
from constraints.compile.names import of_instances
from constraints.errors import FormulaError
from constraints.prove.contradictions import refuse_impossible
from surrogate.errors import ModelError, SamplingError, whole_number
from surrogate.guidance import failure, unlike
from surrogate.guidance.choice import PILOT_STEPS, Pilot, choose, needs_no_pilot, run_pilot
from surrogate.guidance.diagnostics import JOINT, Diagnostics, quantity_of
from surrogate.guidance.method import AUTO, Method, method_named, method_settings, names_of
from surrogate.guidance.outcome import Outcome, Progress, Question, Say
from surrogate.guidance.prior import Prior
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.settings import Settings
from surrogate.kinds import kind_of
from surrogate.kinds.labels import label
from surrogate.kinds.rule_options import Where as Where
from surrogate.kinds.rules import rules_from as rules_from

GUIDED_HARDNESS = 10.0  # of methods that follow gradients, unless given
MAX_FALLBACK_SECONDS = 300.0  # of rejection, after particles failed in less
MAX_UNLAWFUL_SHARE = 0.001  # of plain samples that break a law of the network, unmentioned
MIN_PILOT_COMPARED = 100  # accepted samples of the pilot below which nothing is compared with it
MAX_COVARIANCE_SIZE = 100_000_000  # numbers in the covariance of several instances
MIN_LEARNED_LOG_P = math.log(1e-9)  # log P, beyond what equations explain, below which samples
# extrapolate


@dataclass(frozen=True)
class Answer:
    """Labelled samples and diagnostics of the run; the dataset's attributes carry the same."""

    dataset: xr.Dataset
    diagnostics: Diagnostics


def sample(
    prior: Prior,
    samples: int,
    where: Where,
    *,
    seed: int = 0,
    method: str = AUTO,
    pilot_samples: int | None = None,
    observations: Collection[str] = (),
    say: Say = lambda text: None,
    progress: Progress = lambda share: None,
    **settings: Any,
) -> Answer:
    """Labelled samples from p(x | where).

    `where` as in `rules_from`; `settings` are those of the method (`method_settings`).
    `pilot_samples`: unconditional draws that estimate the acceptance rate, by default as many as
    suit the kind of data. `observations`: names of the rules that state observed data, which are
    compared with those of plain draws.
    """
    samples = whole_number(samples, "samples", least=1)
    seed = whole_number(seed, "seed")
    requested = prior.kind.preferred_method if method == AUTO else method
    own = method_settings(requested, **settings)
    chosen: Method[Any] | None = None if requested == AUTO else method_named(requested)
    rules = rules_from(where, prior.codec.layout())
    scenario = _scenario(prior, rules, own, guided=chosen is not None and chosen.guided)
    began = time.monotonic()
    pilot, why = None, "as requested"
    if needs_no_pilot(scenario, settings, chosen):
        if chosen is None:
            chosen, why = method_named("sequential"), "the values that are given are drawn first"
            say(f"method: {chosen.name} ({why})")
    elif chosen is None or chosen.needs_pilot:
        pilot = run_pilot(scenario, seed, pilot_samples or prior.kind.pilot_samples)
    if chosen is None and pilot is not None:
        chosen, why, pilot = choose(scenario, settings, samples, seed, pilot)
        say(f"method: {chosen.name} ({why})")
    elif chosen is not None and chosen.name == "rejection" and pilot and not len(pilot.accepted.x):
        say(
            f"none of {pilot.accepted.drawn:,} unconditional samples meets the scenario: this may "
            "take long; the method twisted would not wait for them"
        )
    assert chosen is not None

    def ask(method: Method[Any]) -> tuple[Outcome, Settings]:
        own = _settings_of(method, settings, scenario)
        asked = Question(scenario, samples, seed, own, say, progress)
        if pilot is not None:
            may_reject = requested == AUTO and not scenario.observes
            seconds = pilot.seconds if may_reject else None
            asked = replace(asked, plain=pilot.plain, draw_seconds=seconds)
        return method.answer(asked), own

    plain = None if pilot is None else pilot.plain.x
    looked = unlike.look(prior, {name: rules[name] for name in observations}, seed, plain)
    with looked.explaining():
        try:
            outcome, own = ask(chosen)
            problems = outcome.warnings
            rejection_seconds = _rejection_seconds(outcome, samples, pilot, scenario)
        except SamplingError as error:
            problems = [error.problem]
            rejection_seconds = _rejection_seconds(None, samples, pilot, scenario)
            if requested != AUTO or rejection_seconds > MAX_FALLBACK_SECONDS:
                raise
        most = max(MAX_FALLBACK_SECONDS, 3 * (time.monotonic() - began))
        if (
            requested == AUTO
            and problems
            and chosen.name != "rejection"
            and rejection_seconds <= most
        ):
            chosen = method_named("rejection")
            why = f"particles failed: {'; '.join(problems)}"
            say(f"method: {chosen.name} ({why})")
            outcome, own = ask(chosen)
        _refuse_degenerate(outcome, own)
    given_the_laws(outcome, chosen.name, pilot)
    data = dataset_of(scenario, outcome.x)
    distances = _from_rejection(scenario, data, pilot) if chosen.name == "twisted" else {}
    data = _labelled(data, scenario, rules, own)
    data["log_weight"] = ("sample", outcome.log_weights.numpy(), {"long_name": "log of the weight"})
    about = {"long_name": "initial particle that the sample descends from"}
    data["origin"] = ("sample", outcome.ancestors.to(torch.int32).numpy(), about)
    seconds = time.monotonic() - began
    found = _diagnostics(outcome, chosen.name, why, samples, pilot, seconds, distances, scenario)
    found = looked.noted(found)
    if found.quantity == JOINT:
        say("the same given the data alone, for P(scenario | data)")
        noisy = [each for rule in rules.values() for each in factored(rule)[1]]
        alone = sample(prior, samples, noisy, seed=seed, method=method, say=say, **settings)
        found = found.given_data(alone.diagnostics)
    data = data.assign_attrs(
        surrogate_seed=seed,
        surrogate_model=prior.digest,
        surrogate_settings=json.dumps({"method": requested, **asdict(own)}),
        **found.attributes(),
    )
    return Answer(data, found)


def dataset_of(scenario: Scenario, x: Tensor) -> xr.Dataset:
    """Points (n, D) as a dataset; several instances have a dimension of their own."""
    data = scenario.prior.codec.to_dataset(scenario.shaped(x))  # in the precision of verdicts
    if scenario.instances == 1:
        return data
    count = scenario.instances
    rows = data.transpose("sample", ...)
    by_instance = {
        name: (
            ("sample", "instance", *array.dims[1:]),
            array.values.reshape(-1, count, *array.shape[1:]),
            array.attrs,
        )
        for name, array in rows.data_vars.items()
        if "sample" in array.dims
    }
    single = rows.drop_vars([*by_instance, "sample"], errors="ignore")
    own = {"sample": np.arange(len(x)), "instance": np.arange(1, count + 1)}
    return single.assign(by_instance).assign_coords(own)


# --- the scenario ---------------------------------------------------------------------------------


def _scenario(
    prior: Prior, rules: Mapping[str, Formula], settings: Settings, guided: bool
) -> Scenario:
    """The scenario of the rules; ImpossibleError if no data can meet them."""
    formula = conjunction(*rules.values(), *prior.codec.conditions().values())
    _check_instances(formula, prior)
    single = prior.codec.layout()
    layout = replace(single, instances=instances_of(formula))
    laws = dict(prior.codec.imposed_rules)
    always = [*laws.values(), *implied_values(prior.codec.followers(), single, formula)]
    given = [rule for each in always for rule in of_instances(each, layout)]
    # a proof lowers single conjuncts by itself, so that it can name those that contradict
    refuse_impossible(formula, layout, given=given, end=settings.end)
    hardness = (settings.hardness or GUIDED_HARDNESS) if guided else settings.hardness
    obeyed = laws if settings.consistency else {}
    return Scenario(prior, formula, obeyed, end=settings.end, hardness=hardness)


def _check_instances(formula: Formula, prior: Prior) -> None:
    """FormulaError if the covariance of all instances in the formula does not fit in memory."""
    count = instances_of(formula)
    limit = max(1, math.isqrt(MAX_COVARIANCE_SIZE // prior.covariance.vectors.numel()))
    if count > limit:
        raise FormulaError(
            f"the rule speaks of {count:,} instances, and at most {limit:,} of this model are "
            "sampled together",
            value=count,
            remedy=f"number them [1] to [{limit}], without gaps",
        )


def _labelled(
    data: xr.Dataset, scenario: Scenario, rules: Mapping[str, Formula], settings: Settings
) -> xr.Dataset:
    """Samples with verdicts and margins, by the programs that the scenario has compiled."""
    laws = {
        name: conjunction(*of_instances(program.formula, scenario.layout))
        for name, program in scenario.rules.items()
    }
    programs: dict[str, Program] = {}
    if len(rules) == 1:
        programs = dict.fromkeys(rules, scenario.program)
    if scenario.instances == 1:
        programs |= scenario.rules
    every = {**rules, **laws}
    return label(data, every, settings.end, layout=scenario.layout, programs=programs)


# --- the choice of a method -----------------------------------------------------------------------


def _settings_of(method: Method[Any], given: Mapping[str, Any], scenario: Scenario) -> Settings:
    """The settings of a method for this scenario; given ones that it does not have are left out."""
    known = names_of(method)
    own = method.settings(**{name: value for name, value in given.items() if name in known})
    resolved: Settings = method.resolve(own, scenario)
    return resolved


# --- diagnostics ----------------------------------------------------------------------------------


def _from_rejection(
    scenario: Scenario, data: xr.Dataset, pilot: Pilot | None
) -> dict[str, list[float]]:
    """The distances of samples from those that the pilot accepted, if these are enough."""
    if pilot is None or scenario.observes or len(pilot.accepted.x) < MIN_PILOT_COMPARED:
        return {}
    others = dataset_of(scenario, pilot.accepted.x)
    try:
        found = kind_of(data).compare(data, others, seed=0)
    except ModelError:  # there is nothing to compare
        return {}
    return {each.name: [each.median.value, each.median.floor] for each in found.variables}


def _diagnostics(
    outcome: Outcome,
    method: str,
    why: str,
    samples: int,
    pilot: Pilot | None,
    seconds: float,
    distances: dict[str, list[float]],
    scenario: Scenario,
) -> Diagnostics:
    log_p = outcome.log_probability
    rejection, pilot_evaluations = None, 0
    if pilot is not None:
        pilot_evaluations = pilot.accepted.drawn * PILOT_STEPS
        if log_p is not None and not scenario.observes:
            rejection = pilot.seconds * samples / math.exp(max(log_p, -700.0))
    return Diagnostics(
        method=method,
        why=why,
        quantity=quantity_of(scenario.program.has_verdict, scenario.observes),
        log_probability=log_p,
        log_probability_error=outcome.log_probability_error,
        batches=outcome.batches,
        ess=outcome.ess,
        sample_ess=outcome.sample_ess,
        min_ess=outcome.min_ess,
        ancestors=outcome.distinct_ancestors,
        ancestor_ess=outcome.ancestor_ess,
        particles=outcome.particles,
        steps=outcome.steps,
        evaluations=outcome.evaluations + pilot_evaluations,
        met_before=outcome.met,
        acceptance=pilot.accepted.rate if pilot and scenario.program.has_verdict else None,
        lawful=None if pilot is None else pilot.accepted.lawful_share,
        copies=outcome.copies,
        seconds=seconds,
        samples=samples,
        rejection_seconds=rejection,
        from_rejection=distances,
        warnings=[*outcome.warnings, *_improbable(log_p, scenario)],
        degenerate=outcome.degenerate,
    )


def _rejection_seconds(
    outcome: Outcome | None, samples: int, pilot: Pilot | None, scenario: Scenario
) -> float:
    """Estimate of the time that rejection takes, by the pilot or by what particles found; infinite
    where there are observations, which nothing can be accepted by."""
    if pilot is None or scenario.observes:
        return math.inf
    found = pilot.seconds_for(samples)
    if outcome is not None and outcome.log_probability is not None and not outcome.degenerate:
        draws = samples / math.exp(max(outcome.log_probability, -700.0))
        found = min(found, pilot.seconds * draws)
    return found


def _refuse_degenerate(outcome: Outcome, settings: Settings) -> None:
    """DegenerateError for samples that carry no information, unless they are to be kept."""
    if not outcome.degenerate or getattr(settings, "keep_degenerate", True):
        return
    raise failure.degenerate(outcome.degenerate, outcome.cause, outcome.particles, outcome.steps)


def given_the_laws(outcome: Outcome, method: str, pilot: Pilot | None) -> None:
    """Turn P(scenario and laws) of particles into P(scenario | laws), and say how many plain
    samples break a law."""
    if pilot is None or pilot.accepted.lawful == pilot.accepted.drawn:
        return
    share, drawn = pilot.accepted.lawful_share, pilot.accepted.drawn
    breaking = f"{drawn - pilot.accepted.lawful:,} of {drawn:,} plain samples break a law"
    if method == "twisted" and outcome.log_probability is not None:
        if share == 0:
            outcome.log_probability = outcome.log_probability_error = None
            breaking += ": the probability given the laws is unknown"
        else:
            outcome.log_probability -= math.log(share)
            outcome.batches = [each - math.log(share) for each in outcome.batches]
            noise = math.sqrt((1 - share) / (share * drawn))
            if outcome.log_probability_error is not None:
                outcome.log_probability_error = math.hypot(outcome.log_probability_error, noise)
    if 1 - share > MAX_UNLAWFUL_SHARE:
        known = "" if share == 0 else ": the probability is that given the laws"
        outcome.warnings = [*outcome.warnings, breaking + known]


def _improbable(log_p: float | None, scenario: Scenario) -> list[str]:
    """A warning where a scenario is improbable beyond what its equations explain.

    log P falls with every value that is stated, however ordinary it is: k equations A x = b within
    intervals of width h have, where b are values of data of covariance C, on average about the
    log-probability Σ log h - k/2 - ½ log det(2π A C Aᵀ).
    """
    if log_p is None or scenario.observes:
        return []
    equations = scenario.equations_about(torch.zeros(scenario.size, dtype=torch.float64))
    typical = 0.0
    if len(equations):
        width = equations.high - equations.low
        spread = scenario.covariance.apply(scenario.covariance.values, equations.rows)
        known = spread @ equations.rows.mT + torch.diag(width.square() / 12)
        log_det = float(torch.linalg.slogdet(2 * math.pi * known).logabsdet)
        typical = float(width.log().sum()) - 0.5 * len(equations) - 0.5 * log_det
    if log_p - min(typical, 0.0) > MIN_LEARNED_LOG_P:
        return []
    return [
        "so improbable a scenario is far from the training data: samples and probability are "
        "extrapolations"
    ]
