"""The tables of the paper's experiments: formulas, published figures, and models of the tables."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from paper_bench import Absent, Bench, Cost, measured

from surrogate import fitting, read
from surrogate.diffusion.presets import PRESETS
from surrogate.diffusion.split import split
from surrogate.kinds.tables.schema import infer_types
from surrogate.model import Surrogate

DATA = Path(__file__).parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """A formula about a table; `paper` are the settings of the published experiment.

    `max_median` and `max_largest` bound the median and the largest D, in multiples of the floor.
    """

    name: str
    file: str
    where: str
    paper: dict[str, Any]
    published: dict[str, str]  # figures
    max_median: float
    max_largest: float
    max_accuracy: float = 0.65  # of a classifier that tells samples from rows of the table
    max_correlation_error: float | None = None


WINE = Case(
    "wine",
    "winequality-white.csv",
    '("fixed acidity" in [5,6] or "fixed acidity" in [8,9]) and alcohol >= 11 and '
    '("residual sugar" <= 5 implies "citric acid" >= 0.5)',
    {"method": "guidance", "hardness": 30.0, "schedule": "snr", "langevin": 2000},
    {"column": "0.100 / – / 0.153", "floor": "0.05", "met": "86 %"},
    max_median=1.1,
    max_largest=1.3,
    max_correlation_error=0.025,
)
PAIRS = replace(
    WINE,
    name="wine-pairs",
    where="alcohol[1] > alcohol[2] + 1",
    paper={"method": "guidance", "hardness": 50.0, "schedule": "snr", "langevin": 4000},
    published={"column": "0.06 / 0.06 / 0.086", "met": "99 %"},
    max_correlation_error=None,
)
ADULT = Case(
    "adult",
    "adult.csv.gz",
    'age >= 40 and (race != "White" or education = "Masters")',
    {"method": "guidance", "hardness": 30.0, "schedule": "snr", "langevin": 10},
    {"column": "0.05 / – / 0.13", "met": "100 %"},
    max_median=1.2,
    max_largest=1.6,
    max_accuracy=0.70,
)
UNIVERSAL: dict[str, tuple[dict[str, Any], str, str]] = {
    # parts of universal guidance, and the published D without and with Langevin steps at the end
    "paper": ({}, "0.081 / 0.100 / 0.205", "0.130 / 0.132 / 0.221"),
    "forward": ({"forward": True}, "0.112 / 0.123 / 0.262", "0.114 / 0.127 / 0.232"),
    "forward + backward": (
        {"forward": True, "backward": 20},
        "0.130 / 0.238 / 0.827",
        "0.117 / 0.141 / 0.300",
    ),
    "forward + backward + recurrence": (
        {"forward": True, "backward": 20, "recurrence": 3},
        "0.162 / 0.288 / 0.850",
        "0.124 / 0.167 / 0.377",
    ),
}


@dataclass
class Trained:
    """A table, its held-out rows, and a model of the others."""

    table: pd.DataFrame
    held_out: pd.DataFrame
    model: Surrogate
    minutes: float | None  # of training


def trained(case: Case, bench: Bench) -> Trained:
    """The case's table with a model of it: that of --model, or one trained now."""
    folder = bench.options.data or DATA
    path = Path(folder) / case.file
    if not path.exists():
        raise Absent(f"there is no {path}; give the folder of {case.file} with --data")
    table = read(path)
    assert isinstance(table, pd.DataFrame)
    data = infer_types(table).data
    given = bench.options.model
    model, minutes = bench.once(case.file, lambda: _model(data, given, bench))
    parts = split(data.sizes["sample"], int(model.about["seed"]))
    return Trained(table, table.iloc[parts.held_out], model, minutes)


def _model(data: xr.Dataset, given: Path | None, bench: Bench) -> tuple[Surrogate, float | None]:
    if given is not None:
        return Surrogate.load(given), None
    run = fitting.Run(data, 0, PRESETS["default"])
    cost, advance = Cost(1, 0), bench.progress("training", run.preset.settings.steps)
    with measured(cost):
        run.train(lambda trainer: advance(1))
        model = run.finish()
    with tempfile.TemporaryDirectory() as folder:  # saving sets the hash of the model
        model.save(Path(folder) / "model", force=True)
    bench.say(f"trained in {cost.wall / 60:.1f} min")
    return model, cost.wall / 60
