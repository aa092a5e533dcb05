"""Tables as tensors: there and back, what fits a codec, and what does not."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from constraints import compiled
from surrogate.errors import ModelError
from surrogate.kinds.tables.codec import TableCodec, kinds
from surrogate.kinds.tables.schema import infer_types, to_frame
from surrogate.random import stream
from tests.surrogate.rows import wines

ROWS = 400


def table() -> pd.DataFrame:
    frame = wines(ROWS)
    random = np.random.default_rng(3)
    frame["bottled"] = pd.to_datetime("1999-05-01") + pd.to_timedelta(
        random.integers(0, 4_000, ROWS), unit="D"
    )
    frame["maker"] = random.choice(np.array(["Ada", "Bo", None], object), ROWS)
    frame["litres"] = 0.75
    return frame


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return infer_types(table()).data


@pytest.fixture(scope="module")
def codec(data: xr.Dataset) -> TableCodec:
    return TableCodec.fit(data)


def points(codec: TableCodec, count: int = 500, seed: int = 1) -> torch.Tensor:
    return torch.randn(count, *codec.shape, generator=stream(seed))


# --- there and back -------------------------------------------------------------------------------


def test_encoding_and_decoding_restore_the_data(codec: TableCodec, data: xr.Dataset) -> None:
    x = codec.encode(data, slice(None), stream(0), torch.float64)
    assert x.shape == (ROWS, *codec.shape)
    # alcohol, sugar, quality, colour, place, density with gaps, old, bottled, maker; no litres
    assert codec.shape == (3 + 2 + 2 + 2 + 2 + 1 + 3,)
    made = codec.to_dataset(x)
    assert set(made.data_vars) == set(data.data_vars)
    for name in data.data_vars:
        there, here = data[name].values, made[name].values
        assert made[name].attrs == data[name].attrs
        assert here.dtype == there.dtype
        if there.dtype.kind == "f":
            np.testing.assert_allclose(here, there, rtol=1e-6)
        else:
            assert here.tolist() == there.tolist()


def test_encoding_is_a_function_of_the_generator(codec: TableCodec, data: xr.Dataset) -> None:
    first, same, other = (codec.encode(data, slice(None), stream(s)) for s in (1, 1, 2))
    assert torch.equal(first, same)
    assert first.dtype == torch.float32
    numbers = [name for name in codec.names if name in ("quality", "density")]
    assert bool((first != other).any(0).sum() >= len(numbers))  # of ties and gaps
    assert torch.equal(first[:, :2], other[:, :2])  # alcohol and sugar have none
    some = codec.encode(data, np.array([5, 3]), stream(1), torch.float64)
    assert codec.finish(some)["quality"].tolist() == data["quality"].values[[5, 3]].tolist()


def test_samples_become_a_dataframe(codec: TableCodec) -> None:
    frame = to_frame(codec.to_dataset(points(codec), {"told": 1}))
    assert frame.attrs["told"] == 1
    assert list(frame.columns) == list(codec.names)
    assert frame["quality"].dtype == np.int64
    assert frame["old"].dtype == bool
    assert frame["bottled"].dtype.kind == "M"
    assert frame["maker"].isna().any()
    assert frame["density"].isna().any()
    assert (frame["litres"] == 0.75).all()
    again = infer_types(frame, {"maker": "category", "place": "category"})
    assert {c.name: c.kind for c in again.columns} == {c.name: c.kind for c in codec.columns}


def test_decoded_values_are_quantiles_of_latents(codec: TableCodec) -> None:
    x = points(codec).double().requires_grad_()
    latent, decoded = codec.latent(x), codec.decode(x)
    for name, warp in codec.warps().items():
        torch.testing.assert_close(warp.inverse(latent[name]), decoded[name])
    assert set(codec.warps()) == {"alcohol", "sugar", "quality", "density", "bottled", "litres"}
    total = torch.stack([y.reshape(len(x), -1).sum(1) for y in decoded.values()]).sum()
    (slope,) = torch.autograd.grad(total, x)
    assert bool(torch.isfinite(slope).all())
    codec.layout().check({k: v.detach() for k, v in decoded.items()}, set(decoded))


def test_within_is_idempotent(codec: TableCodec, data: xr.Dataset) -> None:
    x = codec.encode(data, slice(None), stream(0))
    torch.testing.assert_close(codec.within(x), x, atol=1e-5, rtol=1e-5)
    once = codec.within(points(codec))
    torch.testing.assert_close(codec.within(once), once, atol=1e-5, rtol=1e-5)


def test_wrong_shapes_and_infinite_values_are_refused(codec: TableCodec) -> None:
    for shape in ((3, 2), (3, *codec.shape, 1), codec.shape):
        with pytest.raises(ModelError, match="encoded rows have shape"):
            codec.finish(torch.zeros(shape))
        with pytest.raises(ModelError, match="encoded rows have shape"):
            codec.decode(torch.zeros(shape))
    for odd in (math.nan, math.inf):
        x = points(codec, 4)
        x[2, 1] = odd
        with pytest.raises(ModelError, match="a row has diverged"):
            codec.finish(x)


# --- what formulas see ----------------------------------------------------------------------------


def test_the_layout_has_the_range_of_the_data(codec: TableCodec, data: xr.Dataset) -> None:
    found = {signal.name: signal for signal in codec.layout().signals}
    assert list(found) == list(codec.names)
    for name in ("alcohol", "sugar", "quality", "density"):
        values = data[name].values.astype(float)
        assert found[name].low == np.nanmin(values)
        assert found[name].high == np.nanmax(values)
        assert found[name].span == np.nanmax(values) - np.nanmin(values)
    assert [name for name in found if found[name].integer] == ["quality"]
    assert [name for name in found if found[name].optional] == ["density"]
    assert [name for name in found if found[name].dates] == ["bottled"]
    assert found["maker"].categories == ("(missing)", "Ada", "Bo")
    assert found["old"].categories == ("False", "True")


def test_formulas_hold_for_finished_rows(codec: TableCodec) -> None:
    x = points(codec)
    frame = to_frame(codec.to_dataset(x))
    signals = codec.signals_of(x)
    for text, wanted in (
        ("quality >= 6 and colour = red", (frame.quality >= 6) & (frame.colour == "red")),
        ('bottled < "2003-01-01"', frame.bottled < pd.Timestamp("2003-01-01")),
        ('maker = "(missing)"', frame.maker.isna()),
        ("old = True or sugar <= 2", frame.old | (frame.sugar <= 2)),
        ("density <= 0.9", frame.density <= 0.9),
        ("litres = 0.75", frame.litres == 0.75),
    ):
        verdict = compiled(text, codec.layout()).verdict(signals)
        assert (verdict.numpy() == wanted.to_numpy()).all(), text


# --- what fits ------------------------------------------------------------------------------------


def test_tables_with_other_columns_do_not_match(codec: TableCodec, data: xr.Dataset) -> None:
    codec.matches(data)
    codec.matches(codec.to_dataset(points(codec, 3)))
    with pytest.raises(ModelError, match=r"the table lacks sugar, old; the model has alcohol"):
        codec.matches(data.drop_vars(["sugar", "old"]))
    words = data.assign(sugar=("sample", np.array(["a"] * ROWS, object)))
    with pytest.raises(ModelError, match="sugar is a category in the table, and a number in"):
        codec.matches(words)
    with pytest.raises(ModelError, match="no columns over the dimension 'sample'"):
        codec.matches(xr.Dataset({"a": (("sample", "time"), np.zeros((3, 2)))}))
    other: Any = pd.DataFrame({"a": [1]})
    with pytest.raises(ModelError, match=r"a table is an xarray\.Dataset here, not DataFrame"):
        codec.matches(other)


def test_read_makes_a_dataset_of_a_table(codec: TableCodec, data: xr.Dataset) -> None:
    frame = table()[list(codec.names)[::-1]].assign(more=1)
    found = codec.read(frame)
    codec.matches(found)
    first, second = (codec.encode(each, slice(None), stream(3)) for each in (found, data))
    assert torch.equal(first, second)
    text = frame.assign(quality=frame.quality.astype(str), bottled=frame.bottled.astype(str))
    assert torch.equal(codec.encode(codec.read(text), slice(None), stream(3)), first)
    nullable = frame.convert_dtypes()
    assert torch.equal(codec.encode(codec.read(nullable), slice(None), stream(3)), first)
    with pytest.raises(ModelError, match="the table lacks sugar"):
        codec.read(frame.drop(columns="sugar"))


@pytest.mark.parametrize(("name", "word"), [("sugar", "much"), ("bottled", "early")])
def test_read_refuses_what_is_no_number(codec: TableCodec, name: str, word: str) -> None:
    frame = table().astype({name: object})
    frame.loc[7, name] = word
    with pytest.raises(ModelError, match=name):
        codec.read(frame)


def test_columns_with_names_of_labels_are_kept() -> None:
    """If they say what they hold; else they are verdicts of an earlier judgement."""
    random = np.random.default_rng(0)
    data = xr.Dataset(
        {
            "satisfied": ("sample", random.uniform(size=80) < 0.5, {"kind": "boolean"}),
            "origin": ("sample", random.normal(size=80), {"kind": "number"}),
        }
    )
    assert kinds(data) == {"satisfied": "boolean", "origin": "number"}
    codec = TableCodec.fit(data)
    assert codec.names == ("satisfied", "origin")
    codec.matches(codec.to_dataset(points(codec, 2)))
    plain = data.drop_attrs().assign(x=("sample", np.arange(80.0)))
    assert kinds(plain) == {"x": "number"}


def test_column_types_follow_from_dtypes() -> None:
    each = {
        "whole": np.arange(3), "real": np.zeros(3), "truth": np.ones(3, bool),
        "date": np.array(["2020-01-01"] * 3, "datetime64[ns]"), "word": np.array(["a", "b", "c"]),
    }  # fmt: skip
    data = xr.Dataset({name: ("sample", values) for name, values in each.items()})
    assert kinds(data) == {
        "whole": "integer",
        "real": "number",
        "truth": "boolean",
        "date": "date",
        "word": "category",
    }
    own = data.assign_attrs().assign(whole=data.whole.assign_attrs(kind="category"))
    assert kinds(own)["whole"] == "category"


def test_values_missing_only_in_held_out_rows_can_be_encoded() -> None:
    """Whether a column has gaps is a matter of the whole table, or its rows cannot be encoded."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=100), "y": random.normal(size=100)})
    frame.loc[40, "x"] = np.nan
    data = infer_types(frame).data
    codec = TableCodec.fit(data, np.delete(np.arange(100), 40))
    x = codec.encode(data, slice(None), stream(0), torch.float64)
    assert np.isnan(codec.finish(x)["x"]).nonzero()[0].tolist() == [40]
    only = frame.assign(x=np.where(np.arange(100) == 40, 1.5, np.nan))
    data = infer_types(only).data
    codec = TableCodec.fit(data, np.delete(np.arange(100), 40))
    assert codec.finish(codec.encode(data, slice(None), stream(0)))["x"][40] == 1.5


def test_tables_that_cannot_be_learned() -> None:
    same = pd.DataFrame({"a": [1] * 60, "b": ["x"] * 60})
    with pytest.raises(ModelError, match="all rows are the same"):
        TableCodec.fit(infer_types(same).data)


# --- keeping --------------------------------------------------------------------------------------


def test_the_codec_is_restored_from_json(codec: TableCodec, data: xr.Dataset) -> None:
    again = TableCodec.from_config(json.loads(json.dumps(codec.to_config())))
    assert again.to_config() == codec.to_config()
    assert again.layout().signals == codec.layout().signals
    x = codec.encode(data, slice(None), stream(0))
    assert torch.equal(again.encode(data, slice(None), stream(0)), x)
    assert again.to_dataset(x).identical(codec.to_dataset(x))


def test_damaged_descriptions_are_refused(codec: TableCodec) -> None:
    good = json.loads(json.dumps(codec.to_config()))
    odd: Any
    for odd in (None, 3, [], {}, good | {"kind": "time series"}):
        with pytest.raises(ModelError, match="this is no codec of tables"):
            TableCodec.from_config(odd)
    for odd in (None, [], {}, 3):
        with pytest.raises(ModelError, match="there are no columns"):
            TableCodec.from_config(good | {"columns": odd})
    twice = copy.deepcopy(good)
    twice["columns"][1]["name"] = twice["columns"][0]["name"]
    with pytest.raises(ModelError, match="columns need names of their own"):
        TableCodec.from_config(twice)
    for odd in ("", 'a"b', "a\nb"):
        bad = copy.deepcopy(good)
        bad["columns"][0]["name"] = odd
        with pytest.raises(ModelError):
            TableCodec.from_config(bad)
