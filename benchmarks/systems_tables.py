"""Tables in the table of systems: bikes, and conditions on wines and people."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import paper_bench
from paper_table_models import ADULT, PAIRS, WINE, Case, Trained, trained
from paper_table_reference import conditional, rejected
from report import Target
from systems_bench import SEED, Bench, Row, data_file

from constraints import parse
from surrogate import read
from surrogate.data import evaluate
from surrogate.diffusion.split import split
from surrogate.guidance.choice import particles_method
from surrogate.guidance.method import AUTO
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.tables.schema import infer_types

BIKES = "Bike_Sharing.csv"
REJECTION_STEPS = 30
MAX_PLAIN = 16_000  # plain samples that trees look at
HELD_OUT = (  # conditions that nothing was tuned on
    replace(
        ADULT,
        name="adult-hours",
        where='"hours-per-week" >= 60 and (sex = "Female" or "capital-gain" > 5000)',
    ),
    replace(
        WINE,
        name="wine-quality",
        where='quality >= 7 and (density < 0.992 implies "residual sugar" >= 2)',
    ),
)


def bikes(bench: Bench) -> Row:
    """Rows whose count is the sum of two other columns; some rows of the file are copies."""
    frame = read(data_file(bench.options, BIKES))
    data = infer_types(frame).data
    model, training = bench.model("bike", lambda: data)
    parts = split(len(frame), int(model.about["seed"]))
    learned, held = frame.iloc[parts.learned], frame.iloc[parts.held_out]
    draws = model.sample(len(held), seed=SEED)
    found = evaluate(draws, held, seed=SEED, train=learned)
    overall = found.overall
    row = Row(
        "Bike table",
        laws=share_of_sums(draws),
        median=overall.median.ratio,
        largest=overall.max.ratio,
        c2st=found.classifier.accuracy,
        verdict=found.verdict.words,
    ).after(training)
    row.aim(1.0, 1.15, c2st=0.60)
    some = np.random.default_rng(SEED).permutation(len(learned))[: len(held)]
    copies = evaluate(learned.iloc[some], held, seed=SEED, train=learned)
    warned = 100.0 * bool(copies.privacy.memorised)
    row.notes.append(f"copies of rows: memorised {bool(copies.privacy.memorised)}")
    row.targets.append(Target("the nearest-row test warns of copies", warned, 100, unit=" %"))
    return row


def share_of_sums(frame: pd.DataFrame) -> float:
    """The share of rows with count = casual + registered."""
    return float((frame["count"] == frame["casual"] + frame["registered"]).mean())


def condition(case: Case, kind: str, bench: Bench) -> Row:
    """A condition by particles, the ones that `auto` takes where rejection takes long, and by
    `auto` itself, both against rejection from the same model."""
    path = data_file(bench.options, case.file)
    name = case.file.split(".")[0]
    _, training = bench.model(name, lambda: infer_types(read(path)).data)
    options = argparse.Namespace(
        samples=bench.options.guided,
        paper_samples=None,
        seed=SEED,
        model=bench.folder / name,
        data=path.parent,
        rejection_steps=REJECTION_STEPS,
    )
    own = paper_bench.Bench(options)
    given = trained(case, own)
    reference = rejected(case, given, own)
    particles = particles_method(Scenario(given.model, parse(case.where)), {}, SEED).name
    ours, _ = conditional(case, given, reference, own, {"method": particles}, "particles")
    users, _ = conditional(case, given, reference, own, {"method": AUTO}, AUTO)
    median, largest = ratios(ours)
    row = Row(
        f"{case.name}, {kind}",
        laws=min(ours.met, users.met),
        median=median,
        largest=largest,
        c2st=plain_accuracy(given),
    ).after(training)
    row.aim(1.0, case.max_median, case.max_largest)
    for each in (ours, users):
        assert each.log_p is not None
        found = f"D {{:.2f}} / {{:.2f}}, log P {each.log_p:.3f}".format(*ratios(each))
        row.notes.append(f"{each.method} {found}")
        row.at_most(f"log P of {each.method}, off by", abs(each.log_p - reference.log_p), 0.05)
    row.notes.append(f"rejection log P {reference.log_p:.3f} ± {reference.error:.3f}")
    median, largest = ratios(users)
    row.at_most("median D of auto", median, case.max_median, "×")
    return row.at_most("max D of auto", largest, case.max_largest, "×")


def ratios(row: paper_bench.Row) -> tuple[float, float]:
    """The median and the largest D of the columns, in multiples of the floor's."""
    d, floor = row.distances["column"], row.floors["column"]
    return float(np.median(d) / np.median(floor)), float(d.max() / floor.max())


def plain_accuracy(given: Trained) -> float:
    """The accuracy of trees that tell plain samples from the rows of the table."""
    draws = given.model.sample(min(len(given.table), MAX_PLAIN), seed=SEED)
    return evaluate(draws, given.table, seed=SEED).classifier.accuracy


ROWS: dict[str, Callable[[Bench], Row]] = {
    "bike": bikes,
    **{
        case.name: partial(condition, case, "the paper's condition")
        for case in (WINE, PAIRS, ADULT)
    },
    **{case.name: partial(condition, case, "a held-out condition") for case in HELD_OUT},
}
