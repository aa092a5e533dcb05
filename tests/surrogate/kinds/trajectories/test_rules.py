"""Rules of trajectories: declared ones are checked, found ones kept, identities are exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import surrogate as sg
from constraints import FormulaError, ImpossibleError, parse
from simulators import models, simulate
from surrogate.errors import ModelError
from surrogate.fitting import Run
from surrogate.io.rules import RULES, rules_in, stated_in
from surrogate.kinds import kind_of
from surrogate.kinds.rule_options import RuleOptions
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.rules import found_rules, with_rules

DATA = Path(__file__).parents[5] / "shared" / "data"


def visits(samples: int = 300, steps: int = 8) -> xr.Dataset:
    """Counts with an exact sum, and a real series below another."""
    rng = np.random.default_rng(0)
    casual, registered = rng.poisson((3, 9), (samples, steps, 2)).transpose(2, 0, 1)
    low = rng.normal(size=(samples, steps))
    dims = ("sample", "time")
    return xr.Dataset(
        {
            "casual": (dims, casual),
            "registered": (dims, registered),
            "total": (dims, casual + registered),
            "low": (dims, low),
            "high": (dims, low + rng.exponential(size=low.shape)),
        },
        {"time": np.arange(steps, dtype=float)},
    )


def test_rules_are_found_stored_and_restored() -> None:
    data, rules = with_rules(visits(), RuleOptions())
    assert list(rules.found) == ["total = casual + registered", "low <= high"]
    assert set(rules_in(data.attrs)) == set(rules.found)
    codec = TimeSeriesCodec.fit(data)
    assert codec.restored == ("total",)
    assert codec.relations[0].total == 0
    again = TimeSeriesCodec.from_config(json.loads(json.dumps(codec.to_config())))
    assert again.rules == codec.rules == rules.found
    made = again.to_dataset(torch.randn(50, *again.shape))
    assert (made.total == made.casual + made.registered).all()
    assert rules_in(made.attrs) == rules.found
    config = codec.to_config()
    assert kind_of(data).rules_in_config(config) == rules.found


def test_a_config_of_an_earlier_version_has_no_rules() -> None:
    config = TimeSeriesCodec.fit(visits()).to_config()
    assert "rules" not in config
    assert TimeSeriesCodec.from_config(config).rules == {}
    with pytest.raises(ModelError, match="the rule 'x' cannot be read"):
        TimeSeriesCodec.from_config({**config, "rules": {"x": "a <"}})


def test_found_rules_can_be_refused() -> None:
    _, rules = with_rules(visits(), RuleOptions(refused=["low <= high"]))
    assert list(rules.found) == ["total = casual + registered"]
    _, rules = with_rules(visits(), RuleOptions(search=False))
    assert not rules.found
    with pytest.raises(ModelError, match=r"no found rule 'x' to refuse \(have: total = casual"):
        with_rules(visits(), RuleOptions(refused=["x"]))


@pytest.mark.parametrize(
    "rules",
    [
        "low <= high",
        ["low <= high"],
        parse("low <= high"),
        {"low <= high": "forall t: low(t) <= high(t)"},
    ],
)
def test_rules_are_declared_as_text_formula_list_or_dict(rules: Any) -> None:
    data, stated = with_rules(visits(), RuleOptions(rules))
    assert list(stated.declared) == ["low <= high"]
    assert "low <= high" not in stated.found
    codec = TimeSeriesCodec.fit(data)
    assert list(codec.rules) == ["total = casual + registered", "low <= high"]


def test_a_declared_identity_is_restored() -> None:
    data, _ = with_rules(visits(), RuleOptions("total = casual + registered", search=False))
    assert TimeSeriesCodec.fit(data).restored == ("total",)


def test_an_identity_that_holds_nearly_is_a_rule_and_no_relation() -> None:
    data = visits()
    data["copy"] = data.low + 1e-4 * np.sin(np.arange(data.low.size).reshape(data.low.shape))
    data, rules = with_rules(data, RuleOptions("copy = low", search=False))
    assert list(rules.declared) == ["copy = low"]
    assert TimeSeriesCodec.fit(data).restored == ()


def test_a_rule_that_the_data_break_is_refused_with_its_first_place() -> None:
    data = visits()
    data.high[7, 3] = data.low[7, 3] - 1
    data.high[9, 1] = data.low[9, 1] - 1
    wanted = "the data break the rule low <= high: 2 of 300 samples do, first at sample 7, step 3"
    with pytest.raises(ModelError, match=wanted):
        with_rules(data, RuleOptions("low <= high"))
    assert "low <= high" not in with_rules(data, RuleOptions())[1].found
    with pytest.raises(
        ModelError, match=r"mean\(low\) >= 0: \d+ of 300 samples do, first at sample"
    ):
        with_rules(data, RuleOptions("mean(low) >= 0"))


def test_rules_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ImpossibleError, match="casual"):
        with_rules(visits(), RuleOptions(["casual <= 20", "casual >= 21"]))
    with pytest.raises(ImpossibleError, match=r"low > high"):
        with_rules(visits(), RuleOptions(["low <= high", "low > high"]))


def test_names_of_declared_rules_are_checked() -> None:
    with pytest.raises(FormulaError, match="the rule lw <= high: unknown signal"):
        with_rules(visits(), RuleOptions("lw <= high"))


def test_nothing_is_searched_for_among_the_species_of_a_network() -> None:
    for name in ("sir", "seir", "lotka_volterra"):
        data = simulate(models.get(name), 300, seed=1, threads=1)
        assert found_rules(data) == []
        made, rules = with_rules(data, RuleOptions())
        assert RULES not in made.attrs
        assert not rules.found
        assert TimeSeriesCodec.fit(made).rules == rules_in(data.attrs) != {}


def test_rules_that_data_carry_are_kept_while_they_obey_them() -> None:
    data, _ = with_rules(visits(), RuleOptions("casual <= 99", search=False))
    again, rules = with_rules(data, RuleOptions(search=False))
    assert list(rules.found) == ["casual <= 99"]
    again["casual"] = again.casual * 40
    assert stated_in(with_rules(again, RuleOptions(search=False))[0].attrs) == {}
    assert with_rules(again.drop_vars("casual"), RuleOptions(search=False))[1].texts == {}


def test_a_run_learns_the_rules_and_its_samples_carry_them() -> None:
    model = sg.fit(visits(), iterations=2, preset="quick", rules="casual <= 99")
    assert list(model.codec.rules) == ["total = casual + registered", "low <= high", "casual <= 99"]
    samples = model.sample(20, seed=0)
    assert set(rules_in(samples.attrs)) == set(model.codec.rules)
    plain = sg.fit(visits(), iterations=2, preset="quick", rules_found=False)
    assert plain.codec.rules == {}


def test_images_have_no_rules() -> None:
    with pytest.raises(ModelError, match="not of images"):
        sg.fit(np.zeros((60, 8, 8), np.uint8), rules="mean(image) >= 0")


# --- real series ----------------------------------------------------------------------------------


def windows(table: pd.DataFrame, length: int, stride: int) -> xr.Dataset:
    starts = range(0, len(table) - length + 1, stride)
    numbers = table.to_numpy()
    values = np.stack([numbers[at : at + length] for at in starts])
    made = {name: (("sample", "time"), values[..., j]) for j, name in enumerate(table.columns)}
    data = xr.Dataset(made, {"time": np.arange(float(length))})
    return data.assign_attrs(surrogate_overlap=-(-length // stride) - 1)


def table(name: str) -> pd.DataFrame:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return pd.read_csv(path)


@pytest.mark.parametrize(("length", "stride"), [(24, 1), (24, 24), (12, 4)])
def test_prices_show_their_orders(length: int, stride: int) -> None:
    found = found_rules(windows(table("stock_data.csv").astype(float), length, stride))
    assert [rule.name for rule in found] == [
        "Adj_Close = Close",
        "Open <= High",
        "Low <= Open",
        "Low <= Close",
        "Close <= High",
    ]


@pytest.mark.parametrize(
    ("name", "length", "stride"),
    [
        ("ETTh1.csv.gz", 24, 1),
        ("ETTh1.csv.gz", 48, 12),
        ("measles_england_wales.csv", 52, 4),
        ("measles_england_wales.csv", 26, 1),
        ("measles_england_wales.csv", 10, 2),
    ],
)
def test_loads_and_cases_show_none(name: str, length: int, stride: int) -> None:
    numbers = table(name).drop(columns="date").dropna()
    assert found_rules(windows(numbers, length, stride)) == []


def test_a_run_lists_what_it_found() -> None:
    run = Run(visits(), rules=RuleOptions("casual <= 99"))
    assert list(run.rules.declared) == ["casual <= 99"]
    assert list(run.rules.found) == ["total = casual + registered", "low <= high"]
