"""Rules of tables: orders and identities are found; a column that is a sum is restored exactly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import surrogate as sg
from constraints import Layout, Signal, compiled
from constraints.compile.sums import DependentSum, without_sums
from surrogate.errors import ModelError
from surrogate.io.rules import rules_in
from surrogate.kinds.rule_options import RuleOptions
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.rules import found_rules, with_rules
from surrogate.kinds.tables.schema import infer_types

DATA = Path(__file__).parents[5] / "shared" / "data"


def rentals(rows: int = 2_000) -> xr.Dataset:
    rng = np.random.default_rng(0)
    casual, registered = rng.poisson((3, 9), (rows, 2)).T
    low = rng.normal(20, 5, rows)
    frame = pd.DataFrame(
        {
            "casual": casual,
            "registered": registered,
            "total": casual + registered,
            "low": low,
            "high": low + rng.exponential(size=rows),
            "season": rng.choice(["dry", "wet"], rows),
        }
    )
    return infer_types(frame).data


def test_orders_and_identities_are_found_and_stored() -> None:
    data, rules = with_rules(rentals(), RuleOptions())
    assert list(rules.found) == ["total = casual + registered", "low <= high"]
    codec = TableCodec.fit(data)
    assert codec.rules == rules.found
    assert not codec.imposed_rules
    again = TableCodec.from_config(json.loads(json.dumps(codec.to_config())))
    assert again.rules == codec.rules
    assert again.shape == codec.shape == (6,)  # of seven channels, one is restored
    assert rules_in(again.to_dataset(torch.zeros(1, *again.shape)).attrs) == rules.found


def test_a_column_that_is_a_sum_is_restored_exactly() -> None:
    data, _ = with_rules(rentals(), RuleOptions())
    codec = TableCodec.fit(data)
    x = 2 * torch.randn(500, *codec.shape, generator=torch.Generator().manual_seed(0))
    made = codec.finish(x)
    assert made["total"].dtype == np.int64
    np.testing.assert_array_equal(made["total"], made["casual"] + made["registered"])
    signals = codec.signals_of(x)
    assert torch.equal(signals["total"], signals["casual"] + signals["registered"])
    decoded = codec.decode(x)
    torch.testing.assert_close(decoded["total"], decoded["casual"] + decoded["registered"])
    encoded = codec.encode(data, slice(None), torch.Generator().manual_seed(0))
    np.testing.assert_array_equal(codec.finish(encoded)["total"], data["total"].values)


def test_a_refused_identity_leaves_the_column_its_own_channel() -> None:
    refused = RuleOptions(refused=["total = casual + registered"])
    assert TableCodec.fit(with_rules(rentals(), refused)[0]).shape == (7,)
    assert TableCodec.fit(rentals()).shape == (7,)


@pytest.mark.parametrize(
    "about",
    [None, {"weights": {}}, {"weights": {"x": 1}, "constant": 0}, {"weights": {"low": "a"}}],
)
def test_damaged_sums_are_refused(about: object) -> None:
    config = TableCodec.fit(with_rules(rentals(), RuleOptions())[0]).to_config()
    config["columns"][2]["sum"] = about
    with pytest.raises(ModelError, match="total is a sum of no columns"):
        TableCodec.from_config(config)


def test_scenarios_about_a_sum_are_about_its_terms() -> None:
    model = sg.fit(rentals(600), iterations=20, preset="quick", rules="low <= high")
    for where in ("total >= 14", "total = 12 and casual = 2", "total - casual >= 9"):
        draws = model.sample(40, where=where, seed=0)
        assert (draws["total"] == draws["casual"] + draws["registered"]).all()
        assert draws["satisfied"].all()


def test_formulas_about_a_sum_are_restated() -> None:
    layout = Layout(tuple(Signal(name, "column") for name in ("a", "b", "c")))
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.normal(size=200)) for _ in range(2))
    data = {"a": a, "b": b, "c": 1 + a - 2 * b}
    sums = {"c": DependentSum({"a": 1.0, "b": -2.0}, 1.0)}
    for text in ("c >= 0.5", "c - a <= 1", "abs(c) <= 1 or a >= 0", "c * c >= 1", "c >= a - 2 * b"):
        program = compiled(text, layout)
        other = without_sums(program, sums)
        assert "c" not in other.needed
        assert torch.equal(program.verdict(data), other.verdict(data))
    assert without_sums(compiled("a >= b", layout), sums).needed == {"a", "b"}


def test_fit_warns_of_an_order_that_too_few_values_show() -> None:
    says = r"hold in all 600 values, .*: low <= high; declare them with rules=\['low <= high'\]"
    with pytest.warns(UserWarning, match=says) as told:
        sg.fit(rentals(600), iterations=2, preset="quick")
    assert told[0].filename == __file__


def test_missing_values_take_no_part() -> None:
    data = rentals()
    data["total"] = data["total"].astype(float).where(np.arange(2_000) > 5)
    assert [rule.name for rule in found_rules(data)] == ["low <= high"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Bike_Sharing.csv", ["count = casual + registered"]),
        ("winequality-white.csv", []),
        ("adult.csv.gz", []),
    ],
)
def test_real_tables(name: str, wanted: list[str]) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not here")
    frame = pd.read_csv(DATA / name, sep=None, engine="python")
    assert [rule.name for rule in found_rules(infer_types(frame).data)] == wanted
