"""Rows of `inference.py`: calibration of the bundled eSIRS model, and data of a wrong model.

calibration  counts of S and I, exact at four steps: ranks of the values between, and of maxima
wrong-model  counts of S and I at all steps, of a simulator with all rates doubled and of the right
             one: which are flagged as unlike what was learned
"""

from __future__ import annotations

import argparse

import torch
from report import Target

import surrogate as sg
from constraints import parse
from simulators import models, simulate
from surrogate.guidance.unlike import REFERENCE, SIGNIFICANCE, extremeness
from surrogate.kinds.measurements import Measurements
from surrogate.kinds.signals import tensors_of
from surrogate.random import stream

SEED, TRUTH_SEED, WRONG_SEED = 100, 777, 778
REPLICATES, TRIALS = 400, 200


def calibration(options: argparse.Namespace) -> list[Target]:
    """Ranks among samples given four exact counts of S and I."""
    truths = simulate(models.esirs(), samples=REPLICATES, seed=TRUTH_SEED)
    found = sg.calibrate(
        sg.pretrained("esirs"), truths, replicates=REPLICATES, given=["S", "I"], seed=SEED
    )
    least = min(each.uniform.chi_square for each in found.found) * len(found.found)
    rows = [Target("least p of χ² × quantities", min(1.0, least), 0.01, unit="")]
    for level, (share, _) in found.coverage.items():
        name = f"truths in {level:.0%} intervals, points off"
        rows.append(Target(name, 100 * abs(share - level), 3, at_most=True, unit=""))
    seconds = found.seconds / found.replicates
    return [*rows, Target("a replicate", seconds, 1, at_most=True, unit=" s")]


def wrong_model(options: argparse.Namespace) -> list[Target]:
    """Trials with the right rates and with all of them doubled."""
    network, model = models.esirs(), sg.pretrained("esirs")
    layout = model.codec.layout()
    goal = " and ".join(f"S({t}) = 1 and I({t}) = 1" for t in range(layout.steps))
    seen = Measurements({"seen": parse(goal)}, layout)

    def observed(data: object, number: int) -> torch.Tensor:
        return seen.drawn(tensors_of(data, layout), stream(SEED, number))  # type: ignore[arg-type]

    reference = observed(model.dataset(REFERENCE, seed=SEED), 0)
    doubled = {name: 2 * rate for name, rate in network.parameters.items() if name != "N"}
    flagged = []
    for seed, rates in ((TRUTH_SEED, None), (WRONG_SEED, doubled)):
        data = simulate(network, samples=TRIALS, seed=seed, parameters=rates)
        found = [extremeness(y[None], reference) < SIGNIFICANCE for y in observed(data, 1)]
        flagged.append(100 * sum(found) / TRIALS)
    return [
        Target("right model flagged", flagged[0], 5, at_most=True, unit=" %"),
        Target("rates doubled, flagged", flagged[1], 80, unit=" %"),
    ]
