"""Ways to answer a scenario, or data, with the simulator itself: one entry each in `WAYS`.

Each draws from p(x | scenario, data) of the network, and knows log P. Which one takes a question
depends on what it refuses; `auto` takes the first that does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from cli import console
from cli.console import Percent
from cli.errors import UsageError

if TYPE_CHECKING:
    import torch
    import xarray as xr

    from constraints import Layout, Program
    from simulators import ReactionNetwork

AUTO = "auto"
SIMULATED_PER_BLOCK = 20_000  # trajectories simulated at a time
MAX_SECONDS = {AUTO: 120.0}  # of a pass of a master equation that is solved without being asked for
MAX_EXACT_STATES = 4_000_000  # of any: about 1 GB
MIN_ANCESTORS = 100  # of a particle filter, below which samples are few points many times
MAX_ERROR = 1.0  # of log P: beyond, independent runs do not estimate the same number


@dataclass(frozen=True)
class Question:
    """What is asked: `given` are start, parameters and times, as `simulate` takes them. `most`
    trajectories are simulated by rejection, and `particles` by a filter. The master equation is
    solved if a pass over the times takes at most `max_seconds` (None: however long)."""

    network: ReactionNetwork
    given: Mapping[str, Any]
    program: Program
    layout: Layout
    samples: int
    seed: int
    most: int
    particles: int | None
    max_seconds: float | None
    say: Console

    @property
    def varying(self) -> list[str]:
        """Parameters that are drawn."""
        return [name for name, value in self.given["parameters"].items() if np.ndim(value)]


@dataclass(frozen=True)
class Found:
    """Draws, how they were made, and log P of the question with its error."""

    data: xr.Dataset
    words: str
    log_p: float
    error: float = 0.0
    degenerate: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Unsuited(Exception):
    """Why a way cannot answer, known only once it was tried."""


@dataclass(frozen=True)
class Way:
    """`refusal` says why it cannot answer a question, or None; `answer` may raise Unsuited.

    `evidence` is log P and its error alone, without draws.
    """

    name: str
    refusal: Callable[[Question], str | None]
    answer: Callable[[Question], Found]
    evidence: Callable[[Question], tuple[float, float]]


def answered(question: Question, method: str) -> tuple[Found, Way]:
    """The answer by a method, or by the first that can; why others cannot is printed."""
    asked = [way for way in WAYS if method in (AUTO, way.name)]
    reasons: list[str] = []
    for way in asked:
        reason = way.refusal(question)
        if reason is None:
            try:
                found = way.answer(question)
            except Unsuited as problem:
                reason = str(problem)
            else:
                if reasons:
                    question.say.print(f"method: {way.name} ({escape('; '.join(reasons))})")
                return found, way
        reasons.append(f"{way.name}: {reason}")
    raise UsageError(
        f"no answer by {reasons[0]}" if method != AUTO else "; ".join(reasons),
        value=method,
        remedy=f"use --method {AUTO}" if method != AUTO else "use surrogate sample",
    )


# --- the master equation --------------------------------------------------------------------------


def _not_exact(question: Question) -> str | None:
    from constraints.compile.monitor import monitored
    from constraints.compile.stepwise import related

    if drawn := question.varying:
        return f"the master equation needs fixed parameters, and {', '.join(drawn)} is drawn"
    path = related(question.program)
    if path is None:
        return "the master equation needs observations of single steps, and one relates several"
    if monitored(path) is None:
        return "the master equation cannot follow a rule that relates several steps"
    return None


def _exact(question: Question) -> Found:
    from constraints.compile.monitor import TooManyMemoriesError
    from simulators import UnreachableError

    try:
        with console.bar(question.say, "solving", 100) as advance:
            exact, where = _solver(question, Percent(advance))
            log_p = exact.log_probability(where)
    except TooManyMemoriesError as problem:
        raise Unsuited(problem.problem) from None
    if log_p == -math.inf:
        raise UnreachableError(
            "the scenario has probability 0 from this start",
            remedy="change the scenario, or the start with --initial",
        )
    with question.say.status("drawing from the conditional law"):
        data = exact.draw(question.samples, where, seed=question.seed)
    return Found(data, "exact, by the master equation", log_p)


def _exact_evidence(question: Question) -> tuple[float, float]:
    with console.bar(question.say, "solving", 100) as advance:
        exact, where = _solver(question, Percent(advance))
        return exact.log_probability(where), 0.0


def _solver(question: Question, progress: Percent) -> tuple[Any, dict[Any, list[Any]]]:
    """The master equation, and the conditions at each step and on whole paths."""
    from constraints.compile.monitor import monitored
    from constraints.compile.stepwise import related
    from simulators import InputError, MasterEquation

    try:
        exact = MasterEquation(
            question.network,
            **question.given,
            max_states=MAX_EXACT_STATES,
            max_seconds=question.max_seconds,
            progress=progress.named,
        )
    except (InputError, RuntimeError) as problem:  # too many states, events, rates that change
        reason = problem.problem if isinstance(problem, InputError) else str(problem)
        raise Unsuited(reason.partition("\n")[0]) from None
    where: dict[Any, list[Any]] = {**_conditions(question)[0]}
    path = related(question.program)
    monitor = None if path is None else monitored(path)
    if monitor is not None and monitor.start() is not True:
        where["path"] = [monitor]
    return exact, where


def _conditions(question: Question) -> tuple[dict[int, list[Any]], dict[int, list[Any]]]:
    """Predicates and likelihoods of states, and factors of trajectories, by step."""
    import torch

    from constraints.compile.stepwise import known_by_step
    from simulators import Likelihood

    def of_arrays(judge: Callable[[dict[str, torch.Tensor]], torch.Tensor]) -> Any:
        def answer(values: dict[str, np.ndarray]) -> np.ndarray:
            size = max(map(len, (v for v in values.values() if np.ndim(v))))
            full = {
                name: torch.from_numpy(np.array(np.broadcast_to(v, (size, *np.shape(v)[1:]))))
                for name, v in values.items()
            }
            return judge(full).numpy()

        return answer

    predicates, likelihoods, paths = known_by_step(question.program)
    where = {step: [of_arrays(each) for each in those] for step, those in predicates.items()}
    for step, those in likelihoods.items():
        where.setdefault(step, []).extend(Likelihood(of_arrays(each)) for each in those)
    return where, {step: [of_arrays(each) for each in those] for step, those in paths.items()}


# --- rejection ------------------------------------------------------------------------------------


def _not_rejection(question: Question) -> str | None:
    if question.program.observations:
        return "observations with noise are neither met nor missed, so nothing can be rejected"
    return None


def _kept(question: Question) -> Found:
    """Simulated trajectories that satisfy the scenario."""
    import xarray as xr

    samples = question.samples
    parts: list[xr.Dataset] = []
    drawn = kept = 0
    with console.bar(question.say, "simulating", samples) as advance:
        while kept < samples and drawn < question.most:
            count = min(SIMULATED_PER_BLOCK, question.most - drawn)
            data, met = _judged(question, count, drawn)
            parts.append(data.isel(sample=np.flatnonzero(met)))
            drawn += count
            advance(min(int(met.sum()), samples - kept))
            kept += int(met.sum())
    if not kept:
        raise UsageError(
            f"none of {drawn:,} simulated trajectories satisfies the scenario",
            remedy="allow more with --most",
        )
    data = xr.concat(parts, "sample").isel(sample=slice(samples))
    data = data.assign_coords(sample=("sample", np.arange(data.sizes["sample"])))
    data["sample"].attrs = parts[0]["sample"].attrs
    few = f"only {kept:,} of {samples:,} were found in {drawn:,}"
    return Found(
        data,
        f"{kept / drawn:.3%} of {drawn:,} simulated trajectories",
        math.log(kept / drawn),
        math.sqrt((1 - kept / drawn) / kept),
        warnings=(few,) if kept < samples else (),
    )


def _kept_share(question: Question) -> tuple[float, float]:
    found = _kept(question)
    return found.log_p, found.error


def _judged(question: Question, count: int, first: int) -> tuple[xr.Dataset, np.ndarray]:
    from simulators import simulate
    from surrogate.kinds.signals import tensors_of

    data = simulate(
        question.network, samples=count, seed=question.seed, first=first, **question.given
    )
    return data, question.program.verdict(tensors_of(data, question.layout)).numpy()


# --- the particle filter --------------------------------------------------------------------------


def _filtered(question: Question) -> Found:
    data = _filter(question, question.samples)
    about = data.attrs
    error, ancestors = float(about["log_probability_error"]), int(about["ancestors"])
    words = f"a particle filter of {about['particles']:,} particles"
    words += f", {ancestors:,} distinct ancestors"
    draws = about.get("parameter_draws")
    words += "" if draws is None else f" and {draws:,} draws of the parameters"
    fewest = min(ancestors, ancestors if draws is None else int(draws))
    few = (
        f"all samples descend from {fewest:,} particles: they are few points many times; "
        "raise --particles"
    )
    beyond = f"independent runs disagree: the error of log P is {error:.2g}; raise --particles"
    return Found(
        data,
        words,
        float(about["log_probability"]),
        error,
        (beyond,) if not error <= MAX_ERROR else (),
        (few,) if fewest < min(MIN_ANCESTORS, question.samples) else (),
    )


def _filter_evidence(question: Question) -> tuple[float, float]:
    about = _filter(question, 1).attrs
    return float(about["log_probability"]), float(about["log_probability_error"])


def _filter(question: Question, samples: int) -> xr.Dataset:
    from simulators import particle_filter

    where, paths = _conditions(question)
    with console.bar(question.say, "filtering", 100) as advance:
        return particle_filter(
            question.network, where, samples, seed=question.seed, paths=paths,
            particles=question.particles, progress=Percent(advance), **question.given,
        )  # fmt: skip


WAYS = (
    Way("exact", _not_exact, _exact, _exact_evidence),
    Way("rejection", _not_rejection, _kept, _kept_share),
    Way("filter", lambda question: None, _filtered, _filter_evidence),
)
METHODS = (AUTO, *(way.name for way in WAYS))
