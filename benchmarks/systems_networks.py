"""Reaction networks in the table of systems: plain samples, events, modes, posteriors, bridges."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import xarray as xr
from report import Target
from systems_bench import SEED, TRUTH_SEED, Bench, Row, Training

from constraints import bridge, compiled, parse
from simulators import MasterEquation, models, simulate
from surrogate.data import evaluate
from surrogate.guidance.sampler import Answer, sample
from surrogate.kinds.signals import layout_of, tensors_of
from surrogate.model import Surrogate, pretrained

EVENT_SIMULATIONS = 200_000  # that the probability of an event is known from
EVENT_SEED = 777_002
BLOCK = 50_000  # trajectories at a time
EVENTS = {"P(max(I) <= 20)": "max(I) <= 20", "P(I(end) = 0)": "I(56) = 0"}
UNCERTAIN = {"beta": (0.5, 3.0), "gamma": (0.2, 1.0)}
OUTBREAK = "I(4) in [4, 12] and I(8) in [18, 34] and I(12) in [56, 96]"  # I1=8±4, I2=26±8, I3=76±20
MODES: dict[str, tuple[str, Callable[[xr.Dataset], np.ndarray]]] = {
    # the end of a trajectory that belongs to the first of two modes, as a share from 0 to 1
    "toggle_switch": (
        "U wins",
        lambda x: _share(x.U.values[:, -1] - x.V.values[:, -1].astype(int)),
    ),
    "schloegl": ("high level", lambda x: _share(x.X.values[:, -1].astype(int) - 248)),
}
BOUNDS = {"median": 1.15, "largest": 1.5, "c2st": 0.55}


def _share(difference: np.ndarray) -> np.ndarray:
    return np.where(difference == 0, 0.5, difference > 0)


def plain(name: str, bench: Bench) -> Row:
    """A built-in model with its defaults."""
    network = models.get(name)
    model, training = bench.of_network(name, network)
    draws = model.sample(bench.samples, seed=SEED)
    truth = simulate(network, samples=bench.samples, seed=TRUTH_SEED)
    exact = name in ("sir", *MODES)
    row = Row.of(name, evaluate(draws, truth), training).aim(1.0 if exact else 0.999, **BOUNDS)
    if name == "sir":
        _events(row, model, bench)
    if name in MODES:
        words, first = MODES[name]
        truth = simulate(network, samples=EVENT_SIMULATIONS, seed=EVENT_SEED)
        mine, true = float(first(draws).mean()), float(first(truth).mean())
        row.within(f"weight, {words}", mine, true, 0.05)
        row.within("weight of the other", 1 - mine, 1 - true, 0.05)
    return row


def _events(row: Row, model: Surrogate, bench: Bench) -> None:
    """Probabilities of events among plain samples, and a scenario of one of them."""
    network = models.sir()
    known = shares_of(
        EVENTS.values(), lambda k, n: simulate(network, samples=n, seed=EVENT_SEED, first=k)
    )
    count = bench.options.event_samples
    blocks = range(0, count, BLOCK)
    drawn = [model.sample(min(BLOCK, count - k), seed=SEED + 1 + k // BLOCK) for k in blocks]
    for name, text in EVENTS.items():
        mine = np.concatenate([_met(text, each) for each in drawn]).mean()
        row.within(name, float(mine), known[text], 0.1)
    text = EVENTS["P(max(I) <= 20)"]
    answer, seconds = row.scenario(model, 1_000, text, text)
    log_p, true = _log_p(answer), math.log(known[text])
    if log_p is not None:
        row.notes.append(f"scenario: {seconds:.0f} s, log P {log_p:.2f} ({true:.2f})")
    row.at_most("1,000 samples of max(I) <= 20", seconds if answer else None, 30, " s")
    row.at_most("their log P, off by", None if log_p is None else abs(log_p - true), 0.1)


def _log_p(answer: Answer | None) -> float | None:
    return None if answer is None else answer.diagnostics.log_probability


def _probability(answer: Answer | None) -> float | None:
    log_p = _log_p(answer)
    return None if log_p is None else math.exp(log_p)


def shares_of(texts: Iterable[str], make: Callable[[int, int], xr.Dataset]) -> dict[str, float]:
    """P of formulas among simulations."""
    met: dict[str, list[float]] = {text: [] for text in texts}
    for first in range(0, EVENT_SIMULATIONS, BLOCK):
        block = make(first, BLOCK)
        for text, shares in met.items():
            shares.append(_met(text, block).mean())
    return {text: float(np.mean(shares)) for text, shares in met.items()}


def _met(text: str, data: xr.Dataset) -> np.ndarray:
    layout = layout_of(data)
    found: np.ndarray = compiled(parse(text), layout).verdict(tensors_of(data, layout)).numpy()
    return found


def uncertain_sir(bench: Bench) -> Row:
    """SIR with beta and gamma drawn from ranges: plain samples, and their posterior given data."""
    network = models.sir()
    model, training = bench.of_network("sir-uncertain", network, parameters=UNCERTAIN)
    draws = model.sample(bench.samples, seed=SEED)
    truth = simulate(network, samples=bench.samples, seed=TRUTH_SEED, parameters=UNCERTAIN)
    row = Row.of("sir, beta=0.5..3, gamma=0.2..1", evaluate(draws, truth), training)
    row.aim(1.0, 1.15, 1.5, 0.57)
    kept = []
    for first in range(0, EVENT_SIMULATIONS, BLOCK):
        block = simulate(network, samples=BLOCK, seed=EVENT_SEED, first=first, parameters=UNCERTAIN)
        kept.append(block[list(UNCERTAIN)].isel(sample=np.flatnonzero(_met(OUTBREAK, block))))
    posterior = xr.concat(kept, "sample")
    true = posterior.sizes["sample"] / EVENT_SIMULATIONS
    answer, took = row.scenario(model, bench.options.guided, OUTBREAK, "outbreak")
    row.within("P(outbreak)", _probability(answer), true, 0.1)
    if answer is None:
        return row
    row.notes.append(f"{took:.0f} s")
    weights = np.exp(answer.dataset.log_weight.values - answer.dataset.log_weight.values.max())
    for name in UNCERTAIN:
        values = posterior[name].values
        mean = float(np.average(answer.dataset[name].values, weights=weights))
        row.notes.append(f"posterior mean of {name} {mean:.3f} ({values.mean():.3f})")
        off = abs(mean - values.mean()) / values.std()
        row.at_most(f"posterior mean of {name}, off by", float(off), 0.1, " sd")
    return row


def esirs_bridge(bench: Bench) -> Row:
    row = _conditioned(
        "eSIRS, bundled: bridge 95/5/30",
        bench,
        bridge("S0=95,I0=5,S25=30", ("S", "I", "R")),
        {0: "S = 95 and I = 5", 25: "S = 30"},
        0.55,
    )
    trusted = 100.0 * (row.verdict == "good")
    row.targets.append(Target("the samples can be trusted", trusted, 100, unit=" %"))
    return row


def esirs_capped(bench: Bench) -> Row:
    row = _conditioned(
        "eSIRS, bundled: forall t: I(t) <= 20",
        bench,
        parse("forall t: I(t) <= 20"),
        {"all": "I <= 20"},
        0.57,
    )
    text = "I(20) >= 50"
    answer, _ = row.scenario(pretrained("esirs"), bench.options.guided, text, text)
    true = MasterEquation(models.esirs()).probability({20: "I >= 50"})
    return row.within(f"P({text})", _probability(answer), true, 0.2)


def _conditioned(title: str, bench: Bench, goal: object, where: dict, most: float) -> Row:
    """Samples of a scenario against exact draws, and log P against the exact one."""
    exact = MasterEquation(models.esirs())
    count = bench.options.guided
    began = time.perf_counter()
    answer = sample(pretrained("esirs"), count, goal, seed=SEED)
    seconds = time.perf_counter() - began
    draws, true = exact.draw(count, where, seed=TRUTH_SEED), exact.log_probability(where)
    row = Row.of(title, evaluate(answer.dataset, draws), Training()).aim(1.0, 1.2, 1.5, most)
    log_p = answer.diagnostics.log_probability
    row.notes.append(f"log P {log_p:.3f} ({true:.3f}), {seconds:.0f} s")
    row.at_most("log P, off by", abs(log_p - true), 0.1)
    return row


ROWS: dict[str, Callable[[Bench], Row]] = {
    **{name: partial(plain, name) for name in models.MODELS},
    "sir-uncertain": uncertain_sir,
    "esirs-bridge": esirs_bridge,
    "esirs-capped": esirs_capped,
}
