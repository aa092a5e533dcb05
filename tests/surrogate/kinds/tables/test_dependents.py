"""Columns that follow from another: found where it holds for all rows, and then kept exactly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.dependents import DerivedColumn
from surrogate.kinds.tables.schema import infer_types
from surrogate.random import stream

CITIES = {
    "Lyon": ("France", "Europe"),
    "Paris": ("France", "Europe"),
    "Rome": ("Italy", "Europe"),
    "Lima": ("Peru", "America"),
    "Cusco": ("Peru", "America"),
    "Hanoi": ("Vietnam", "Asia"),
}
LEVEL = {"Lyon": 2, "Paris": 3, "Rome": 3, "Lima": 2, "Cusco": 1, "Hanoi": 2}
ROWS = 600


def table(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng([seed, 8])
    city = random.choice(list(CITIES), rows)
    return pd.DataFrame(
        {
            "continent": [CITIES[each][1] for each in city],
            "level": [LEVEL[each] for each in city],
            "city": city,
            "income": np.exp(random.normal(size=rows)),
            "country": [CITIES[each][0] for each in city],
        }
    )


def codec_of(frame: pd.DataFrame, **types: str) -> TableCodec:
    return TableCodec.fit(infer_types(frame, types).data)


def led(codec: TableCodec) -> dict[str, str]:
    return {c.name: c.determinant.name for c in codec.columns if isinstance(c, DerivedColumn)}


@pytest.fixture(scope="module")
def codec() -> TableCodec:
    return codec_of(table())


# --- found ----------------------------------------------------------------------------------------


def test_a_city_determines_all_columns_that_depend_on_it(codec: TableCodec) -> None:
    assert led(codec) == {"country": "city", "continent": "city", "level": "city"}
    assert codec.shape == (len(CITIES) + 1,)
    assert codec.names == ("continent", "level", "city", "income", "country")
    assert codec.learned.endswith("(continent from city, level from city, country from city)")
    follower = codec.followers()["country"]
    assert (follower.leader, follower.words) == ("city", tuple(sorted(CITIES)))
    countries = sorted({country for country, _ in CITIES.values()})
    assert follower.values == tuple(countries.index(CITIES[city][0]) for city in sorted(CITIES))
    assert codec.followers()["level"].values == tuple(LEVEL[city] for city in sorted(CITIES))


def test_one_contradicting_row_rules_out_a_dependency() -> None:
    for row in (0, ROWS - 1):  # early, and after what a first glance sees
        frame = table(3 * ROWS + row)
        frame.loc[len(frame) - 1 - row, "country"] = "Norway"
        frame.loc[len(frame) - 1 - row, "level"] = 9
        assert led(codec_of(frame)) == {"continent": "city"}


def test_a_contradiction_late_in_a_long_table_is_found() -> None:
    frame = table(4_000)
    frame.loc[3_999, "continent"] = "Asia" if frame.loc[3_999, "continent"] != "Asia" else "Europe"
    assert led(codec_of(frame)) == {"country": "city", "level": "city"}


def test_without_the_city_the_country_is_the_determinant() -> None:
    frame = table().drop(columns="city")
    assert led(codec_of(frame)) == {"continent": "country"}


def test_words_that_hardly_repeat_are_no_determinant() -> None:
    random = np.random.default_rng(0)
    rows = 400
    street = np.array([f"s{i}" for i in range(100)])[np.arange(rows) % 100]  # 4 rows each
    town = random.choice(list("abcd"), 100)[np.arange(rows) % 100]
    frame = pd.DataFrame({"street": street, "town": town, "x": random.normal(size=rows)})
    assert led(codec_of(frame)) == {}
    longer = pd.concat([frame] * 6, ignore_index=True)
    assert led(codec_of(longer)) == {"town": "street"}


def test_of_two_equivalent_columns_the_first_is_the_determinant() -> None:
    frame = table()
    frame["code"] = frame["city"].str[:3].str.upper()
    found = led(codec_of(frame))
    assert found == {"country": "city", "continent": "city", "level": "city", "code": "city"}
    turned = frame[["code", *frame.columns.drop("code")]]
    assert led(codec_of(turned))["city"] == "code"
    assert "code" not in led(codec_of(turned))


def test_constants_and_columns_with_missing_values_are_no_dependents() -> None:
    frame = table()
    frame["constant"] = 3
    frame["alone"] = "word"
    level = frame["level"].astype(float)
    frame["gaps"] = level.where(np.arange(ROWS) % 7 > 0)
    assert set(led(codec_of(frame))) == {"country", "continent", "level"}
    numbers = frame[["level", "income"]].assign(twice=2 * frame["level"])
    assert led(codec_of(numbers)) == {}  # a number does not lead


def test_a_missing_word_is_a_category_in_dependencies() -> None:
    frame = table()
    lost = (frame["city"] == "Hanoi").to_numpy()
    frame.loc[lost, ["city", "country"]] = None
    codec = codec_of(frame)
    assert led(codec) == {"country": "city", "continent": "city", "level": "city"}
    made = codec.to_dataset(torch.randn(300, *codec.shape, generator=stream(1)))
    city, country = made["city"].values, made["country"].values
    assert any(each is None for each in city)
    assert all((a is None) == (b is None) for a, b in zip(city, country, strict=True))


def test_booleans_and_dates_can_be_dependents() -> None:
    frame = table()
    frame["big"] = frame["level"] == 3
    frame["since"] = pd.to_datetime("2000-01-01") + pd.to_timedelta(frame["level"], unit="D")
    codec = codec_of(frame)
    assert {"big", "since"} <= set(led(codec))
    made = codec.to_dataset(torch.randn(200, *codec.shape, generator=stream(1)))
    assert made["big"].dtype == bool
    assert (made["big"].values == (made["level"].values == 3)).all()
    wanted = np.datetime64("2000-01-01") + made["level"].values.astype("timedelta64[D]")
    assert (made["since"].values == wanted).all()


def test_words_of_held_out_rows_determine_too() -> None:
    """Numbers are learned from some rows; a follower's are those of all."""
    frame = table()
    frame.loc[17, "city"] = "Oslo"
    frame.loc[17, ["country", "continent", "level"]] = ["Norway", "Europe", 40]
    data = infer_types(frame).data
    codec = TableCodec.fit(data, np.delete(np.arange(ROWS), 17))
    column = next(c for c in codec.columns if c.name == "level")
    assert isinstance(column, DerivedColumn)
    assert max(column.values) == 40
    signal = codec.layout().find("level")
    assert signal is not None
    assert (signal.low, signal.high) == (1, 40)


# --- kept -----------------------------------------------------------------------------------------


def consistent(data: xr.Dataset) -> bool:
    rows = zip(*(data[n].values for n in ("city", "country", "continent", "level")), strict=True)
    return all(CITIES[a] == (b, c) and LEVEL[a] == d for a, b, c, d in rows)


@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_the_dependency_holds_for_any_sample(codec: TableCodec, spread: float) -> None:
    x = spread * torch.randn(500, *codec.shape, generator=stream(2), dtype=torch.float64)
    data = codec.to_dataset(x)
    assert consistent(data)
    assert data["level"].dtype == np.int64
    assert consistent(codec.to_dataset(codec.within(x)))
    signals = codec.signals_of(x)
    for name in ("country", "continent"):
        words = np.array(codec.layout().find(name).categories, object)  # type: ignore[union-attr]
        assert (words[signals[name].numpy()] == data[name].values).all()
    assert (signals["level"].numpy() == data["level"].values).all()


def test_encoding_and_decoding_restore_the_data(codec: TableCodec) -> None:
    frame = table(seed=3)
    data = infer_types(frame).data
    x = codec.encode(data, slice(None), stream(0), torch.float64)
    assert x.shape == (ROWS, *codec.shape)
    made = codec.to_dataset(x)
    for name in ("city", "country", "continent", "level"):
        assert made[name].values.tolist() == frame[name].tolist()
    decoded = codec.decode(x)
    np.testing.assert_allclose(decoded["level"], frame["level"], atol=1e-9)
    codes = decoded["country"].argmax(1).numpy()
    words = np.array(sorted(set(frame["country"])))
    assert (words[codes] == frame["country"].to_numpy()).all()
    torch.testing.assert_close(decoded["continent"].sum(1), torch.ones(ROWS).double())


def test_decoded_values_have_a_gradient(codec: TableCodec) -> None:
    x = torch.randn(20, *codec.shape, generator=stream(4), dtype=torch.float64).requires_grad_()
    decoded = codec.decode(x)
    total = decoded["level"].sum() + decoded["country"][:, 0].sum()
    (slope,) = torch.autograd.grad(total, x)
    assert bool((slope != 0).any(1).all())


def test_dependencies_are_restored_from_json(codec: TableCodec) -> None:
    again = TableCodec.from_config(json.loads(json.dumps(codec.to_config())))
    assert again.to_config() == codec.to_config()
    assert led(again) == led(codec)
    assert again.layout().signals == codec.layout().signals
    assert again.followers() == codec.followers()
    x = torch.randn(100, *codec.shape, generator=stream(5))
    assert again.to_dataset(x).identical(codec.to_dataset(x))


@pytest.mark.parametrize(
    "odd",
    [
        3, "city", [], {}, {"leader": "city"}, {"leader": None, "values": [0.0] * 6},
        {"leader": "level", "values": [0.0] * 6}, {"leader": "continent", "values": [0.0] * 3},
        {"leader": "country", "values": [0.0] * 6}, {"leader": "income", "values": [0.0] * 6},
        {"leader": "city", "values": [0.0] * 5}, {"leader": "city", "values": None},
        {"leader": "city", "values": [0.5] * 6}, {"leader": "city", "values": [-1.0] * 6},
        {"leader": "city", "values": [99.0] * 6}, {"leader": "city", "values": ["a"] * 6},
        {"leader": "city", "values": [float("nan")] * 6}, {"leader": "city", "values": [True] * 6},
        {"leader": "city", "values": [10**400] * 6},
    ],
)  # fmt: skip
def test_damaged_descriptions_of_dependencies_are_refused(codec: TableCodec, odd: Any) -> None:
    config = json.loads(json.dumps(codec.to_config()))
    column = next(each for each in config["columns"] if each["name"] == "country")
    column["follows"] = odd
    with pytest.raises(ModelError, match="the column that 'country' depends on is missing"):
        TableCodec.from_config(config)
