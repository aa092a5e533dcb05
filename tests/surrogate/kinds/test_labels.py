"""Datasets as signals, and verdicts as labels, against numpy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from constraints import DataError, FormulaError, parse
from surrogate.kinds.labels import explanation_of, label
from surrogate.kinds.signals import layout_of, tensors_of

LAW = "forall t: 0 <= S(t) + I(t) <= N"


def config(**more: Any) -> dict[str, Any]:
    """The account of itself that a simulated dataset carries."""
    network = {
        "name": "sir",
        "species": {"S": "N - 1", "I": "1", "R": "0"},
        "parameters": {"beta": 2.0, "N": 100.0},
        "reactions": [{"name": "r", "equation": "I -> R", "rate": "1", "mass_action": True}],
        "population": "N",
    }
    laws = [{"S": 1, "I": 1, "R": 1}]
    parameters = {"beta": 2.0, "N": 100.0}
    return {"network": network, "parameters": parameters, "conservation_laws": laws} | more


def epidemic(samples: int = 50, steps: int = 6, **more: Any) -> xr.Dataset:
    """Counts that add up to 100, as bytes."""
    draws = np.random.default_rng(3).multinomial(100, [0.5, 0.3, 0.2], (samples, steps))
    series = {
        name: (("sample", "time"), draws[..., i].astype(np.int8)) for i, name in enumerate("SIR")
    }
    attrs = {"surrogate_config": json.dumps(config(**more)), "history": "made"}
    return xr.Dataset(series, {"time": 0.5 * np.arange(steps)}, attrs)


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "fixed acidity": [7.0, 8.5, 6.5],
            "quality": pd.array([5, 6, 7], dtype="Int64"),
            "colour": ["red", " white", "red"],
            "grade": pd.Categorical(["b", "a", "b"]),
            "organic": [True, False, True],
            "bottled": pd.to_datetime(["2020-01-01"] * 3),
        }
    )


def told(data: xr.Dataset | pd.DataFrame) -> tuple[Any, ...]:
    """What a layout says."""
    layout = layout_of(data)
    return layout.signals, layout.times, dict(layout.parameters)


# --- layouts --------------------------------------------------------------------------------------


def test_series_grid_parameters_and_bounds() -> None:
    layout = layout_of(epidemic())
    assert layout.names == ["S", "I", "R"]
    assert layout.times == (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    assert dict(layout.parameters) == {"beta": 2.0, "N": 100.0}
    for signal in layout.signals:
        assert (signal.kind, signal.integer, signal.low, signal.high) == ("series", True, 0, 100)


def test_a_parameter_that_differs_is_a_column() -> None:
    data = epidemic(parameters={"beta": {"range": [2, 3]}, "N": 100.0})
    data["beta"] = ("sample", np.linspace(2, 3, 50))
    layout = layout_of(data)
    assert dict(layout.parameters) == {"N": 100.0}
    beta = layout.find("beta")
    assert beta is not None
    assert (beta.kind, beta.integer) == ("column", False)
    assert label(data, [parse("beta >= 2.5")]).satisfied.sum() == 25


def test_the_population_of_a_network_without_one_is_its_conserved_total() -> None:
    parts = config()
    for place in (parts["network"], parts):
        del place["parameters"]["N"]
    parts["network"]["population"] = None
    data = epidemic(samples=5).assign_attrs(surrogate_config=json.dumps(parts))
    assert layout_of(data).parameters["N"] == 100
    assert bool(label(data, [parse(LAW)]).satisfied.all())
    data["S"][1, 0] += 1  # no longer the same for all
    assert "N" not in layout_of(data).parameters
    two = parts | {"conservation_laws": [{"S": 1, "I": 1}, {"I": 1, "R": 1}]}
    data = epidemic(samples=5).assign_attrs(surrogate_config=json.dumps(two))
    assert "N" not in layout_of(data).parameters


@pytest.mark.parametrize("text", ["", "not JSON", "[1]", '{"network": 3}', "{}"])
def test_data_that_do_not_say_where_they_come_from(text: str) -> None:
    layout = layout_of(epidemic().assign_attrs(surrogate_config=text))
    assert layout.names == ["S", "I", "R"]
    assert not layout.parameters
    assert layout.signals[0].low == -np.inf


def test_scalars_columns_words_and_what_is_no_signal() -> None:
    data = epidemic(samples=4).assign(
        volume=2.5,
        age=("sample", np.arange(4, dtype=np.uint16)),
        clinic=("sample", ["a", "b", "a", "c"]),
        treated=("sample", [True, False, True, True]),
        note=("time", np.arange(6)),
        image=(("sample", "x", "y"), np.zeros((4, 2, 2))),
        log_weight=("sample", np.zeros(4)),
        origin=("sample", ["x"] * 4),
    )
    layout = layout_of(data)
    assert layout.names == ["S", "I", "R", "age", "clinic", "treated"]
    assert layout.parameters["volume"] == 2.5
    clinic = layout.find("clinic")
    assert clinic is not None
    assert clinic.categories == ("a", "b", "c")
    judged = label(data, [parse("clinic = a and treated = True and age >= 1 and volume > 2")])
    assert judged.satisfied.values.tolist() == [False, False, True, False]


def test_times_that_are_dates_count_in_seconds() -> None:
    data = epidemic()
    dates = data.assign_coords(time=pd.date_range("2020-01-01", periods=6, freq="min"))
    assert layout_of(dates).times == (0, 60, 120, 180, 240, 300)
    spans = data.assign_coords(time=pd.timedelta_range("1min", periods=6, freq="min"))
    assert layout_of(spans).times == (60, 120, 180, 240, 300, 360)
    assert layout_of(data.drop_vars("time")).times == (0, 1, 2, 3, 4, 5)
    with pytest.raises(DataError, match="neither numbers nor dates"):
        layout_of(data.assign_coords(time=list("abcdef")))
    with pytest.raises(DataError, match="times are missing"):
        layout_of(data.assign_coords(time=[0, 1, 2, 3, 4, np.nan]))
    with pytest.raises(FormulaError, match="increase"):
        layout_of(data.assign_coords(time=[0, 1, 2, 3, 5, 4]))


def test_axes_may_come_in_either_order_and_counts_with_gaps_stay_counts(tmp_path: Path) -> None:
    data = epidemic()
    turned = data.transpose("time", "sample")
    assert told(turned) == told(data)
    assert torch.equal(tensors_of(turned, layout_of(data))["S"], torch.tensor(data.S.values))
    data.to_netcdf(tmp_path / "a.nc", encoding={"S": {"_FillValue": -1}})
    with xr.open_dataset(tmp_path / "a.nc") as stored:
        assert stored.S.dtype.kind == "f"
        assert told(stored) == told(data)


def test_tables() -> None:
    layout = layout_of(table())
    kinds = {signal.name: (signal.kind, signal.integer) for signal in layout.signals}
    assert kinds == {
        "fixed acidity": ("column", False),
        "quality": ("column", True),
        "colour": ("category", False),
        "grade": ("category", False),
        "organic": ("category", False),
        "bottled": ("column", False),
    }
    assert [s.categories for s in layout.signals if s.categories] == [
        ("red", "white"),
        ("a", "b"),
        ("False", "True"),
    ]
    assert layout.steps == 0
    found = tensors_of(table(), layout)
    assert found["quality"].tolist() == [5, 6, 7]
    assert found["colour"].tolist() == [0, 1, 0]
    assert found["organic"].tolist() == [1, 0, 1]
    odd = table().rename(columns={"colour": 'a "name"', "grade": "two\nlines"})
    assert layout_of(odd).names == ["fixed acidity", "quality", "organic", "bottled"]
    assert 'a "name"' in label(odd, [parse("quality >= 5")])
    for names in (["a", "a"], [1, 2]):
        with pytest.raises(DataError, match="the same name, or one that is no text"):
            layout_of(pd.DataFrame([[1, 2]], columns=names))


def test_instances_are_rows_one_after_the_other() -> None:
    data = pd.DataFrame({"x": np.arange(6.0), "c": list("ababab")})
    layout = layout_of(data, instances=2)
    assert layout.instances == 2
    found = tensors_of(data, layout, slice(1, 3))
    assert found["x"].tolist() == [[2, 3], [4, 5]]
    assert found["c"].tolist() == [[0, 1], [0, 1]]
    with pytest.raises(DataError, match="groups of 4"):
        tensors_of(data, layout_of(data, instances=4))


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 7, 50, None])
def test_labels_of_a_dataset(chunk: int | None) -> None:
    data = epidemic()
    total = data.S.values.astype(int) + data.I.values
    rules = {"few": parse("max(S) <= 60"), "law": parse(LAW), "sum": parse("always(S + I <= 88)")}
    made = label(data, rules, chunk=chunk)
    each = np.stack([data.S.values.max(1) <= 60, total.max(1) <= 100, total.max(1) <= 88], 1)
    margin = np.stack(
        [60 - data.S.values.max(1).astype(int), 100 - total.max(1), 88 - total.max(1)], 1
    )
    assert made["rule"].values.tolist() == ["few", "law", "sum"]
    assert 0 < each.all(1).sum() < 50
    np.testing.assert_array_equal(made.rule_satisfied, each)
    np.testing.assert_array_equal(made.satisfied, each.all(1))
    np.testing.assert_array_equal(made.rule_robustness, margin)
    np.testing.assert_array_equal(made.robustness, margin.min(1))
    assert made.attrs["surrogate_constraint"] == " and ".join(
        ["max(S) <= 60", f"({LAW})", "always(S + I <= 88)"]
    )
    assert made.history == "made"
    assert "satisfied" not in data
    assert made.S.dtype == np.int8


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, ">i2", "f2"])
def test_small_types_do_not_wrap(kind: Any) -> None:
    values = np.full((2, 3), 100).astype(kind)
    data = xr.Dataset(dict.fromkeys("SI", (("sample", "time"), values)))
    made = label(data, [parse("always(2 * S + I >= 300 and S - 2 * I <= -100)")])
    assert made.robustness.values.tolist() == [0, 0]
    assert bool(made.satisfied.all())


def test_labelling_again_replaces_the_labels() -> None:
    data = epidemic()
    once = label(data, [parse("S(0) >= 50"), parse("S(1) >= 50")])
    assert told(once) == told(data)
    again = label(once, [parse("S(2) >= 50")])
    assert again.rule.values.tolist() == ["S(2) >= 50"]
    xr.testing.assert_identical(again, label(data, [parse("S(2) >= 50")]))


def test_labels_of_a_table() -> None:
    rules = [parse('"fixed acidity" >= 7'), parse("colour = red or grade = a")]
    made = label(table(), rules)
    assert made.satisfied.tolist() == [True, True, False]
    assert made['satisfied: "fixed acidity" >= 7'].tolist() == [True, True, False]
    assert told(made) == told(table())
    alone = label(made, rules[:1])
    assert alone.columns.tolist() == [*table().columns, "satisfied", "robustness"]
    assert alone.robustness.tolist() == [0, 1.5, -0.5]
    own = table().assign(satisfied=["very", "not", "very"])
    assert explanation_of(own, [parse("satisfied = very")]).rows[0].satisfied == 2 / 3
    with pytest.raises(DataError, match="'satisfied' of its own"):
        label(own, rules)


def test_the_end_is_told() -> None:
    rules = [parse("always[0,9](S >= 45)")]
    with pytest.raises(FormulaError, match="past the last step"):
        label(epidemic(), rules)
    made = label(epidemic(), rules, end="clip")
    assert made.attrs["surrogate_end"] == "clip"
    np.testing.assert_array_equal(made.satisfied, (epidemic().S >= 45).all("time"))


def test_a_formula_about_nothing_and_data_without_signals() -> None:
    assert bool(label(epidemic(), [parse("true")]).satisfied.all())
    assert not label(table(), [parse("1 > 2")]).satisfied.any()
    with pytest.raises(DataError, match="no signals"):
        label(xr.Dataset({"x": ("sample", pd.to_timedelta(["1D"]))}), [parse("true")])
    with pytest.raises(DataError, match="no dimension 'sample'"):
        layout_of(xr.Dataset({"x": ("y", [1])}))
    with pytest.raises(FormulaError, match="at least one rule"):
        label(epidemic(), [])
    with pytest.raises(FormulaError, match="chunk"):
        label(epidemic(), [parse("true")], chunk=0)


@pytest.mark.parametrize("chunk", [4, None])
def test_missing_values_are_counted_and_placed_in_the_whole(chunk: int | None) -> None:
    data = epidemic()
    data["S"] = data.S.astype(float)
    data["S"][13, 2] = data["S"][13, 4] = data["S"][40, 0] = np.nan
    with pytest.raises(
        DataError, match=r"S has missing values in 2 of 50 samples, .* sample 13, step 2"
    ):
        label(data, [parse(LAW)], chunk=chunk)
    label(data, [parse("max(I) <= 40")], chunk=chunk)  # S is not asked for
    data["S"][3, 1] = np.inf
    with pytest.raises(
        DataError, match="S has infinite values in 3 of 50 samples, first at sample 3"
    ):
        explanation_of(data, [parse(LAW)], chunk=chunk)
    gaps = table()
    gaps.loc[1, "colour"] = None
    gaps.loc[2, "quality"] = pd.NA
    # in a table a missing word is one like others, and of a missing number nothing is true
    made = label(gaps, [parse('colour = "(missing)"')], chunk=chunk)
    assert made.satisfied.tolist() == [False, True, False]
    for rule in ("quality >= 5", "quality < 100", "not quality = 0"):
        assert label(gaps, [parse(rule)], chunk=chunk).satisfied.tolist() == [True, True, False]
    gaps["quality"] = [5.0, np.inf, np.nan]
    with pytest.raises(DataError, match="quality has infinite values in 1 of 3"):
        label(gaps, [parse("quality >= 5")], chunk=chunk)


def test_explanations_of_datasets_do_not_depend_on_chunks() -> None:
    rules = [parse(LAW), parse("S(0) >= 50 implies eventually(I >= 35)")]
    seen: list[int] = []
    whole = explanation_of(epidemic(), rules)
    assert explanation_of(epidemic(), rules, chunk=9, progress=seen.append) == whole
    assert sum(seen) == 50
    assert whole.rows[1].text == LAW
    assert whole.rows[1].satisfied == 1
