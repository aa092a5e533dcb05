"""Tables in the table of systems: bikes, and the paper's conditions on wines and people."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import paper_bench
from paper_table_models import ADULT, PAIRS, WINE, Case, Trained, trained
from paper_table_reference import conditional, rejected
from report import Target
from systems_bench import SEED, Bench, Row, data_file

from surrogate import read
from surrogate.data import evaluate
from surrogate.diffusion.split import split
from surrogate.kinds.tables.schema import infer_types

BIKES = "Bike_Sharing.csv"
REJECTION_STEPS = 30
MAX_PLAIN = 16_000  # plain samples that trees look at


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


def condition(case: Case, bench: Bench) -> Row:
    """The paper's condition by particles (`auto` may choose rejection, which compares with itself),
    against rejection from the same model."""
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
    ours, _ = conditional(case, given, reference, own, {"method": "twisted"}, "ours")
    d, floor = ours.distances["column"], ours.floors["column"]
    row = Row(
        f"{case.name}, the paper's condition",
        laws=ours.met,
        median=float(np.median(d) / np.median(floor)),
        largest=float(d.max() / floor.max()),
        c2st=plain_accuracy(given),
    ).after(training)
    row.aim(1.0, case.max_median, case.max_largest)
    row.notes.append(ours.method)
    assert ours.log_p is not None
    row.notes.append(f"log P {ours.log_p:.3f} (rejection {reference.log_p:.3f})")
    return row.at_most("log P, off by", abs(ours.log_p - reference.log_p), 0.05)


def plain_accuracy(given: Trained) -> float:
    """The accuracy of trees that tell plain samples from the rows of the table."""
    draws = given.model.sample(min(len(given.table), MAX_PLAIN), seed=SEED)
    return evaluate(draws, given.table, seed=SEED).classifier.accuracy


ROWS: dict[str, Callable[[Bench], Row]] = {
    "bike": bikes,
    **{case.name: partial(condition, case) for case in (WINE, PAIRS, ADULT)},
}
