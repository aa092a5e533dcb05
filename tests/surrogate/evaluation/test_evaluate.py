"""Samples against reference data: what is measured, weighted and refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from constraints import parse
from surrogate.data import evaluate
from surrogate.errors import ModelError
from surrogate.evaluation import distances
from surrogate.evaluation.result import Distance
from surrogate.evaluation.weights import effective_sample_size
from surrogate.kinds.labels import label

CONFIG = {
    "network": {
        "name": "sir",
        "species": {"S": "N - 1", "I": "1", "R": "0"},
        "parameters": {"N": 100.0},
        "reactions": [
            {"name": "i", "equation": "S + I -> 2 I", "rate": "1", "mass_action": True},
            {"name": "r", "equation": "I -> R", "rate": "1", "mass_action": True},
        ],
        "population": "N",
    },
    "parameters": {"N": 100.0},
    "conservation_laws": [{"S": 1, "I": 1, "R": 1}],
    "method": "direct",
}


def epidemic(samples: int = 600, seed: int = 0, steps: int = 8, rate: float = 0.2) -> xr.Dataset:
    """Counts that add up to 100: people fall ill, then recover."""
    random = np.random.default_rng(seed)
    S, I = np.full(samples, 95), np.full(samples, 5)
    made = [(S, I)]
    for _ in range(steps - 1):
        ill, well = random.binomial(S, rate), random.binomial(I, 0.3)
        S, I = S - ill, I + ill - well
        made.append((S, I))
    s, i = (np.stack(part, 1).astype(np.int8) for part in zip(*made, strict=True))
    series = {"S": s, "I": i, "R": (100 - s - i).astype(np.int8)}
    return xr.Dataset(
        {name: (("sample", "time"), value) for name, value in series.items()},
        {"time": 0.5 * np.arange(steps)},
        {"surrogate_config": json.dumps(CONFIG)},
    )


def table(rows: int = 800, seed: int = 0, share: float = 0.5) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "acidity": random.normal(7, 1, rows),
            "quality": random.integers(3, 9, rows),
            "colour": np.where(random.uniform(size=rows) < share, "red", "white"),
        }
    )


def within(measured: Distance, deviations: float = 5) -> bool:
    return abs(measured.value - measured.floor) < deviations * measured.floor_sd


# --- what is measured -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(600, 600), (300, 1500), (1500, 300)])
def test_data_are_at_their_floor(n: int, m: int) -> None:
    found = evaluate(epidemic(n, seed=1), epidemic(m, seed=2))
    assert [each.name for each in found.variables] == ["S", "I", "R"]
    for each in (*found.variables, found.overall):
        assert within(each.median)
        assert within(each.mean)
        assert within(each.max)
    for measured in (found.correlation, found.autocorrelation, found.energy):
        assert measured is not None
        assert within(measured)
    accuracy, error = found.classifier
    assert abs(accuracy - 0.5) < 4 * error
    assert (found.samples, found.effective, found.reference) == (n, n, m)
    assert found.consistent == 1
    assert found.satisfied is None


def test_summaries_over_steps() -> None:
    x, y = epidemic(300, seed=1), epidemic(400, seed=2)
    found = evaluate(x, y)
    each = found.variables[1]
    steps = distances.histogram_distance(
        x.I.values.astype(float), y.I.values.astype(float), whole=True
    )
    assert each.steps == pytest.approx(steps)
    assert len(each.floors) == 8
    assert each.median.value == pytest.approx(np.median(steps))
    assert each.mean.value == pytest.approx(steps.mean())
    assert each.max.value == pytest.approx(steps.max())
    assert each.worst == steps.argmax()
    assert each.steps[0] == each.floors[0] == 0  # all begin alike
    assert each.max.floor >= max(each.floors)  # of the furthest step, whichever it is


def test_another_epidemic_is_far() -> None:
    found = evaluate(epidemic(seed=1, rate=0.3), epidemic(seed=2))
    for each in found.variables:
        assert each.median.ratio > 1.5
    assert found.overall.max.ratio > 3
    assert found.energy.ratio > 10
    assert found.classifier[0] > 0.9


def test_shuffled_in_time_only_the_course_differs() -> None:
    """Marginals as in the data, but each step from another sample."""
    x, y = epidemic(1000, seed=1), epidemic(1000, seed=2)
    random = np.random.default_rng(0)
    orders = np.stack([random.permutation(1000) for _ in range(8)], 1)
    mixed = x.copy()
    for name in "SIR":
        mixed[name] = x[name].dims, np.take_along_axis(x[name].values, orders, 0)
    found = evaluate(mixed, y)
    assert within(found.overall.median)
    assert found.correlation is not None
    assert found.correlation.ratio > 5
    assert found.autocorrelation is not None
    assert found.autocorrelation.ratio > 5
    assert found.consistent is not None
    assert found.consistent < 0.5  # people come back, which the network forbids


def test_the_share_that_is_consistent_is_counted_without_adding_a_rule() -> None:
    x = epidemic(100, seed=1)
    x["S"][:7, 3] += 1
    found = evaluate(x, epidemic(100, seed=2))
    assert found.consistent == pytest.approx(0.93)
    assert found.rules > 3
    foreign = x.drop_attrs()
    assert evaluate(foreign, epidemic(100)).consistent == pytest.approx(0.93)  # the reference's
    assert evaluate(foreign, foreign).consistent is None
    partial = evaluate(x[["S", "I"]], epidemic(100)[["S", "I"]])
    assert 0 < partial.rules < found.rules


def test_verdicts_that_the_samples_carry() -> None:
    x = label(epidemic(seed=1), [parse("max(I) <= 40")])
    found = evaluate(x, epidemic(seed=2))
    assert found.satisfied == pytest.approx(float(x.satisfied.mean()))
    assert "satisfied" in found.table()
    rows = label(table(seed=1), [parse("quality >= 5")])
    assert evaluate(rows, table(seed=2)).satisfied == pytest.approx(rows.satisfied.mean())


def test_tables_with_words() -> None:
    found = evaluate(table(seed=1), table(1200, seed=2))
    assert [each.name for each in found.variables] == ["acidity", "quality", "colour"]
    assert all(len(each.steps) == 1 and within(each.median) for each in found.variables)
    assert not hasattr(found, "autocorrelation")  # which is the trajectories'
    other = evaluate(table(seed=1, share=0.7), table(1200, seed=2))
    colour = other.variables[2].median
    assert colour.value == pytest.approx(0.2, abs=4 * colour.floor)
    assert not within(colour)
    pink = table(seed=1).replace("red", "pink")
    assert evaluate(pink, table(seed=2)).variables[2].max.value > 0.4


def test_a_column_that_is_alone_or_constant() -> None:
    x, y = table(50, seed=1), table(50, seed=2)
    alone = evaluate(x[["acidity"]], y[["acidity"]])
    assert alone.correlation is None
    assert alone.contingency is None
    x["acidity"] = y["acidity"] = 7.0
    still = evaluate(x[["acidity"]], y[["acidity"]])
    assert still.variables[0].max.ratio == 1
    assert still.energy.ratio == 1
    assert still.classifier[0] == 0.5


def test_columns_beside_series() -> None:
    x, y = epidemic(seed=1), epidemic(seed=2)
    for k, data in enumerate((x, y)):
        data["beta"] = "sample", np.random.default_rng(k).uniform(2, 3, 600)
    found = evaluate(x, y)
    assert found.variables[-1].name == "beta"
    assert within(found.variables[-1].mean)


# --- weights --------------------------------------------------------------------------------------


def test_weights_bring_samples_of_one_law_to_another() -> None:
    random = np.random.default_rng(3)
    times = {"time": np.arange(3.0)}
    wide = random.normal(0, 1.4, (6_000, 1)) + 0.2 * random.normal(size=(6_000, 3))
    start = random.normal(0, 1, (6_000, 1)) + 0.2 * random.normal(size=(6_000, 3))
    x, y = (xr.Dataset({"v": (("sample", "time"), each)}, times) for each in (wide, start))
    # the law of the mean over time is normal in both, and all else is the same
    mean, noise = wide.mean(1), 0.04 / 3
    logs = -0.5 * mean**2 * (1 / (1 + noise) - 1 / (1.96 + noise))
    plain = evaluate(x, y)
    assert plain.overall.median.ratio > 3
    weighted = evaluate(x.assign(log_weight=("sample", logs - 1000)), y)
    assert weighted.effective == pytest.approx(effective_sample_size(np.exp(logs)))
    assert weighted.effective < 6_000
    assert within(weighted.overall.median)
    assert within(weighted.energy)
    assert weighted.classifier[0] < 0.5 + 4 * weighted.classifier[1]
    assert weighted.overall.median.floor > plain.overall.median.floor
    assert "effective samples" in weighted.table()
    turned = evaluate(y, x.assign(log_weight=("sample", logs)))
    assert within(turned.overall.median)


def test_of_many_samples_some_are_compared_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = epidemic(900, seed=1), epidemic(700, seed=2)
    all_of_them = evaluate(x, y)
    monkeypatch.setattr("surrogate.kinds.trajectories.compare.MAX_COMPARED", 300)
    some = evaluate(x, y)
    assert some.overall == all_of_them.overall
    assert some.consistent == 1
    assert some.correlation is not None
    assert all_of_them.correlation is not None
    assert within(some.correlation)
    assert some.correlation.floor > 1.3 * all_of_them.correlation.floor


def test_samples_without_weight_do_not_count() -> None:
    x, y = epidemic(200, seed=1), epidemic(300, seed=2)
    junk = x.copy()
    junk["S"] = 0 * x.S
    both = xr.concat([x, junk], "sample")
    both["log_weight"] = "sample", np.repeat([3.0, -np.inf], 200)
    found, expected = evaluate(both, y), evaluate(x, y)
    assert found.effective == pytest.approx(200)
    assert found.consistent == 1
    assert found.overall.steps == pytest.approx(expected.overall.steps)
    assert found.energy == expected.energy


def test_weights_of_a_table() -> None:
    x = table(seed=1, share=0.8)
    x["log_weight"] = np.log(np.where(x.colour == "red", 0.5 / 0.8, 0.5 / 0.2))
    found = evaluate(x, table(seed=2))
    assert [each.name for each in found.variables] == ["acidity", "quality", "colour"]
    assert within(found.variables[2].max)


# --- what is told ---------------------------------------------------------------------------------


def test_json_and_text() -> None:
    found = evaluate(epidemic(200, seed=1), epidemic(200, seed=2), seed=5)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["variables"][0]["name"] == "S"
    assert told["variables"][0]["max"]["ratio"] == pytest.approx(found.variables[0].max.ratio)
    assert told["classifier"] == dict(zip(("accuracy", "error"), found.classifier, strict=True))
    assert told["times"] == [0.5 * k for k in range(8)]
    assert told["satisfied"] is None
    lines = str(found).splitlines()
    assert lines[0].split() == ["measure", "value", "floor", "ratio"]
    assert [line.split("  ")[0] for line in lines[1:3]] == ["D(S), median", "D(S), max"]
    assert len(lines) == 1 + len(found.rows())
    assert evaluate(epidemic(200, seed=1), epidemic(200, seed=2), seed=5) == found


def test_a_floor_of_nothing() -> None:
    assert Distance(0.0, 0.0, 0.0).ratio == 1
    assert Distance(0.1, 0.0, 0.0).ratio == math.inf
    assert Distance(0.1, 0.0, 0.0).to_dict()["ratio"] is None


# --- what is refused ------------------------------------------------------------------------------


def gaps(data: xr.Dataset) -> xr.Dataset:
    broken = data.astype(float)
    broken["I"][3, 2] = np.nan
    return broken


@pytest.mark.parametrize(
    ("data", "against", "says"),
    [
        (epidemic(9).drop_vars("R"), epidemic(9), "only in the reference: R"),
        (epidemic(9), epidemic(9).rename(I="J"), "samples: I; only in the reference: J"),
        (epidemic(9, steps=5), epidemic(9), "have 5 times, the reference has 8"),
        (epidemic(9).assign_coords(time=np.arange(8.0)), epidemic(9), "step 1 is at 1 in"),
        (epidemic(9), table(9), "are trajectories, the reference are rows"),
        (table(9), table(9)[["acidity"]].add_prefix("my "), "no column is in common"),
        (table(9), table(9).assign(quality="good"), "quality holds numbers in the samples, words"),
        (gaps(epidemic(9)), epidemic(9), "the samples: I has missing values in 1 of 9"),
        (epidemic(9), gaps(epidemic(9)), "the reference: I has missing values"),
        (epidemic(1), epidemic(9), "the samples: at least 2 are needed, not 1"),
        (epidemic(9), epidemic(9).isel(sample=[]), "the reference: at least 2"),
        (epidemic(2).assign(log_weight=("sample", [0, np.nan])), epidemic(9), "log_weight must"),
        (epidemic(2).assign(log_weight=("sample", [-np.inf] * 2)), epidemic(9), "log_weight must"),
        (epidemic(2).assign(log_weight=("sample", ["a", "b"])), epidemic(9), "log_weight must"),
        (epidemic(2).assign(log_weight=("time", np.zeros(8))), epidemic(9), "log_weight must"),
        (
            xr.Dataset({"S": ("time", [1, 2])}),
            epidemic(9),
            "no kind of data has the dimensions (time) (have: traj",
        ),
        (np.zeros((3, 4)), epidemic(9), "the samples are images, the reference are trajectories"),
    ],
)
def test_refusals(data: Any, against: Any, says: str) -> None:
    with pytest.raises(ModelError) as told:
        evaluate(data, against)
    assert says in str(told.value)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ModelError, match="seed must be a whole number"):
        evaluate(table(9), table(9), seed=seed)
