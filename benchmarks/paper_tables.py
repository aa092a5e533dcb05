"""The paper's experiments on tables: rows of wines, pairs of them, and people of the census."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from paper_bench import Bench, Cost, Found, Row, cells, head, published, slower
from paper_table_models import ADULT, PAIRS, UNIVERSAL, WINE, Case, Trained, trained
from paper_table_reference import Reference, conditional, distances, rejected
from report import Section, Target

from constraints import parse
from surrogate.data import evaluate
from surrogate.kinds.labels import label

DRAWS = 5  # sets of unconditional rows that are compared
COLUMNS = ["column"]


def experiment(case: Case, bench: Bench) -> Found:
    """Ours and the paper's method against rejection from the same model."""
    given = trained(case, bench)
    reference = rejected(case, given, bench)
    ours, correlation_error = conditional(
        case, given, reference, bench, {"method": "twisted"}, "ours"
    )
    theirs, _ = conditional(case, given, reference, bench, case.paper, "paper")
    columns = head(COLUMNS)
    shown = [cells(row, ours) for row in (ours, theirs)]
    shown.append(_as_row(reference, bench.samples, ours, columns))
    shown.append(published("published", columns, **case.published))
    tables: dict[str, Section] = {case.where: (columns, shown)}
    targets = _targets(case, reference, ours, theirs, correlation_error)
    if case is not PAIRS:
        plain, more = unconditional(case, given, bench)
        tables["without a condition"] = plain
        targets += more
        tables["beside the table's own rows"] = _against_table(case, given, reference, bench)
    if given.minutes is not None:
        targets.append(Target("training, minutes", given.minutes, 15, at_most=True, unit=""))
    return Found(targets, tables, [*NOTES, f"Correlation error of ours: {correlation_error:.4f}."])


NOTES = [
    "D: from as many samples by rejection from the same model; floor: between two such sets. Both "
    "are means over splits of twice as many into two sets.",
    "Met: the formula after rounding and choosing words. CPU / ours: scaled linearly where the "
    "samples are fewer. The paper's method has the sub-VP SDE and our network; its hardness is in "
    "data units.",
]


def _as_row(reference: Reference, samples: int, ours: Row, columns: list[str]) -> list[str]:
    """Rejection, whose cost is that of as many samples."""
    half = Cost(
        samples, reference.cost.evaluations, reference.cost.cpu / 2, reference.cost.wall / 2
    )
    own = {"column": reference.floor(samples)}
    return cells(Row("rejection", half, own, own, 1.0, log_p=reference.log_p), ours)


def _targets(
    case: Case, reference: Reference, ours: Row, theirs: Row, correlation_error: float
) -> list[Target]:
    d, floor = ours.distances["column"], ours.floors["column"]
    assert ours.log_p is not None
    found = [
        Target("median D / that of rejection", _ratio(np.median, d, floor), case.max_median, True),
        Target("max D / that of rejection", _ratio(np.max, d, floor), case.max_largest, True),
        Target("met", 100 * ours.met, 100, unit=" %"),
        Target("CPU time, paper / ours", slower(theirs, ours), 20),
        Target("wall seconds", ours.cost.wall, 20, at_most=True, unit=" s"),
    ]
    if case.max_correlation_error is not None:
        error, most = abs(ours.log_p - reference.log_p), case.max_correlation_error
        found.append(Target("log P, from rejection's", error, 0.05, at_most=True, unit=""))
        found.append(Target("correlation error", correlation_error, most, at_most=True, unit=""))
    return found


def _ratio(summary: Callable[[np.ndarray], np.floating], d: np.ndarray, floor: np.ndarray) -> float:
    return float(summary(d) / summary(floor))


def unconditional(case: Case, given: Trained, bench: Bench) -> tuple[Section, list[Target]]:
    """Rows without a condition, beside rows that the model never saw."""
    held, model = given.held_out, given.model
    learned = given.table.drop(index=held.index)
    count = len(held)
    draws = model.sample(max(DRAWS * count, min(len(given.table), 10_000)), seed=bench.seed)
    order = np.random.default_rng(bench.seed).permutation(len(learned))
    sets = [slice(i * count, (i + 1) * count) for i in range(min(DRAWS, len(learned) // count))]
    d = np.mean([distances(draws.iloc[s], held) for s in sets], 0)
    floor = np.mean([distances(learned.iloc[order[s]], held) for s in sets], 0)
    result = evaluate(draws, given.table, seed=bench.seed)
    accuracy, error = result.classifier
    section = (
        ["rows", "D median / max", "data from data", "classifier's accuracy"],
        [
            [
                f"{count:,} against {count:,} held out, {len(sets)} times",
                f"{np.median(d):.4f} / {d.max():.4f}",
                f"{np.median(floor):.4f} / {floor.max():.4f}",
                f"{accuracy:.3f} ± {error:.3f} ({len(draws):,} rows, the whole table)",
            ]
        ],
    )
    return section, [
        Target("median D / data from data", _ratio(np.median, d, floor), 1.15, at_most=True),
        Target("accuracy of a classifier", accuracy, case.max_accuracy, at_most=True, unit=""),
    ]


def _against_table(case: Case, given: Trained, reference: Reference, bench: Bench) -> Section:
    """The model's conditional rows beside those rows of the table that meet the formula."""
    judged = label(given.table, [parse(case.where)])
    real = given.table[np.asarray(judged["satisfied"])]
    rng = np.random.default_rng(bench.seed)
    d = np.mean([distances(one, real) for one, _ in reference.splits(len(real))], 0)
    again = [
        distances(real.iloc[a], real.iloc[b])
        for a, b in (np.array_split(rng.permutation(len(real)), 2) for _ in range(20))
    ]
    floor = np.mean(again, 0) / np.sqrt(2)  # halves are that much further apart
    return (
        [
            "rows of the table that meet it",
            "share",
            "D of as many of the model, median / max",
            "of the table from itself",
        ],
        [
            [
                f"{len(real):,} of {len(given.table):,}",
                f"{len(real) / len(given.table):.2%} (model {np.exp(reference.log_p):.2%})",
                f"{np.median(d):.3f} / {d.max():.3f}",
                f"{np.median(floor):.3f} / {floor.max():.3f}",
            ]
        ],
    )


def universal_guidance(bench: Bench) -> Found:
    """Universal guidance on the wine's formula, its parts one by one."""
    given = trained(WINE, bench)
    reference = rejected(WINE, given, bench)
    ours, _ = conditional(WINE, given, reference, bench, {"method": "twisted"}, "ours")
    rows, theirs = [], []
    for name, (parts, *figures) in UNIVERSAL.items():
        for langevin, figure in zip((0, 2000), figures, strict=True):
            settings = dict(method="universal", hardness=30.0, langevin=langevin, **parts)
            settings = settings if parts else WINE.paper | {"langevin": langevin}
            title = name + (" + Langevin" if langevin else "")
            row, _ = conditional(WINE, given, reference, bench, settings, title)
            rows.append(replace(row, method=title))
            theirs.append(figure)
    columns = head(COLUMNS)
    best = min(row.excess for row in rows)
    targets = [Target("mean D / floor, best of the others / ours", best / ours.excess, 1)]
    body = [
        [*cells(row, ours), figure]
        for row, figure in zip((ours, *rows), ("–", *theirs), strict=True)
    ]
    columns = [*columns, "published: D median / mean / max"]
    return Found(targets, {f"universal guidance: {WINE.where}": (columns, body)}, NOTES)


EXPERIMENTS = {
    "wine": partial(experiment, WINE),
    "wine-pairs": partial(experiment, PAIRS),
    "adult": partial(experiment, ADULT),
    "wine-universal": universal_guidance,
}
