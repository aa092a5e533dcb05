"""Trajectories to tensors and back: exactly, normalised, in bounded memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from constraints import compiled, parse
from surrogate.kinds.signals import layout_of
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from tests.surrogate.kinds.trajectories.trajectories import KINDS, generator, trajectories, weather

EVERYTHING = slice(None)


def assert_same(made: xr.Dataset, data: xr.Dataset) -> None:
    for name in made.data_vars:
        assert made[name].dtype == data[name].dtype, name
        if data[name].dtype.kind == "f":  # single precision of the tensor
            np.testing.assert_allclose(made[name], data[name], rtol=2e-5, atol=2e-5)
        else:
            assert np.array_equal(made[name], data[name]), name
        assert made[name].dims == data[name].dims
        assert made[name].attrs == data[name].attrs


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_trajectories_come_back(kind: str) -> None:
    data = trajectories(kind)
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, EVERYTHING, generator())
    assert x.dtype == torch.float32
    assert x.shape[1:] == codec.shape
    made = codec.to_dataset(x, {"title": "sampled"})
    assert list(made.data_vars) == list(data.data_vars)
    assert_same(made, data)
    assert made.sizes == data.sizes
    for name in ("sample", "time"):
        assert made[name].identical(data[name])
    assert made.attrs == {"surrogate_config": data.attrs["surrogate_config"], "title": "sampled"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_layout_is_that_of_the_data_and_of_samples(kind: str) -> None:
    data = trajectories(kind)
    codec = TimeSeriesCodec.fit(data)
    made = codec.to_dataset(codec.encode(data, slice(50), generator()))
    for other in (layout_of(data), layout_of(made)):
        for own, theirs in zip(codec.layout().signals, other.signals, strict=True):
            assert replace(own, span=theirs.span) == theirs
        assert codec.layout().times == codec.times == other.times
    decoded = codec.decode(codec.encode(data, slice(7), generator()))
    assert set(codec.layout().check(decoded)) == set(data.data_vars)


def test_words_truth_values_and_constants() -> None:
    data = weather()
    codec = TimeSeriesCodec.fit(data, transforms={"rain": "log", "height": "logit(0, 2000)"})
    sky = ("sky: clear", "sky: cloudy", "sky: fog")
    assert codec.names == ("rain", *sky, "frost", "site: hill", "site: shore", "height")
    assert codec.shape == (8, 5)
    assert codec.constant == ("year",)
    assert codec.ignored == ("picture", "note")
    x = codec.encode(data, EVERYTHING, generator())
    made = codec.to_dataset(x)
    left = data.drop_vars(["picture", "note", "satisfied", "volume"])
    assert_same(made.drop_vars("volume"), left)
    assert set(made.data_vars) == set(left.data_vars)
    assert made.volume == 2.5
    assert np.array_equal(made.time, data.time)
    assert np.array_equal(made.week, data.week)
    decoded = codec.decode(x)
    assert decoded["sky"].shape == (60, 5, 3)
    assert decoded["site"].shape == (60, 2)
    assert decoded["height"].shape == (60,)
    torch.testing.assert_close(decoded["frost"], torch.from_numpy(data.frost.values).float())
    assert bool((decoded["year"] == 1948).all())
    program = compiled(parse('site = "hill" and forall t: frost(t) <= 1'), codec.layout())
    assert program.verdict(decoded).numpy().tolist() == (data.site == "hill").values.tolist()


counts = hnp.arrays(
    np.int64,
    st.tuples(st.integers(2, 6), st.integers(1, 5)),
    elements=st.integers(-2000, 2000) | st.integers(-3, 3),
)


@given(counts, st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_any_counts_come_back_exactly(values: np.ndarray, seed: int) -> None:
    data = xr.Dataset({"n": (("sample", "time"), values), "m": ("sample", values[:, 0])})
    if (values == values[0]).all():
        return
    codec = TimeSeriesCodec.fit(data)
    made = codec.finish(codec.encode(data, EVERYTHING, generator(seed)))
    assert np.array_equal(made["n"], values)
    assert np.array_equal(made["m"], values[:, 0])


@given(st.data(), st.sampled_from(["log", "logit", "logit(0, 3000)", "auto"]))
@settings(max_examples=60)
def test_transformed_counts_come_back_exactly(data: st.DataObject, text: str) -> None:
    shape = data.draw(st.tuples(st.integers(2, 6), st.integers(1, 5)))
    values = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(0, 3000)))
    if (values == values[0]).all():
        return
    made = xr.Dataset({"n": (("sample", "time"), values)})
    if text == "logit":
        network = {"species": {"n": "0", "m": "3000"}, "reactions": [], "parameters": {}}
        about = {"network": network, "conservation_laws": [{"n": 1, "m": 1}]}
        made.attrs["surrogate_config"] = json.dumps(about)
    codec = TimeSeriesCodec.fit(made, transforms={"n": text})
    x = codec.encode(made, EVERYTHING, generator(), torch.float64)
    assert np.array_equal(codec.finish(x)["n"], values)


def test_large_counts_in_double_precision_and_wider_types() -> None:
    values = np.array([[2**40, 3], [2**40 + 1, 4]])
    data = xr.Dataset({"n": (("sample", "time"), values)})
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, EVERYTHING, generator(), torch.float64)
    assert np.array_equal(codec.finish(x)["n"], values)
    data = xr.Dataset({"n": (("sample", "time"), np.array([[100, 3], [90, 4]], np.uint8))})
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, EVERYTHING, generator())
    assert codec.finish(x)["n"].dtype == np.uint8
    x[0] += 1000  # nothing is clipped, nothing wraps around
    x[1, 0, 1] -= 1000
    made = codec.finish(x)["n"]
    assert made.dtype == np.int16
    assert made[0, 0] > 1000
    assert made[1, 1] < -100


def test_counts_with_a_fill_value_are_counts(tmp_path: Path) -> None:
    data = trajectories("predators").isel(sample=slice(20))
    path = tmp_path / "filled.nc"
    data.to_netcdf(path, encoding={name: {"_FillValue": -1} for name in data.data_vars})
    with xr.open_dataset(path) as read:
        assert read.prey.dtype.kind == "f"
        codec = TimeSeriesCodec.fit(read)
        made = codec.to_dataset(codec.encode(read, EVERYTHING, generator()))
    assert made.prey.dtype == np.int16
    assert np.array_equal(made.prey, data.prey)


# --- normalisation --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_coordinate_has_mean_0_and_deviation_1(kind: str) -> None:
    """Exact but for the noise of dequantisation, whose share is at most all of it."""
    data = trajectories(kind)
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, EVERYTHING, generator(), torch.float64)
    error = 5 / len(x) ** 0.5
    assert float(x.mean(0).abs().max()) < error
    spread = x.std(0, correction=0)
    real = codec.fixed[codec._free].isnan() | (spread > 0)  # a real constant has no noise
    assert float((spread[real] - 1).abs().max()) < error


def test_exact_moments_of_real_numbers() -> None:
    values = np.random.default_rng(2).gamma(2, 1e-3, (40, 6)) + 1e3
    data = xr.Dataset({"y": (("sample", "time"), values)})
    codec = TimeSeriesCodec.fit(data, chunk=7)
    x = codec.encode(data, EVERYTHING, generator(), torch.float64)
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-8)
    np.testing.assert_allclose(x.std(0, correction=0), 1, rtol=1e-8)
    np.testing.assert_allclose(codec.mean[0], values.mean(0), rtol=1e-14)


def test_noise_is_part_of_the_scale() -> None:
    rng = np.random.default_rng(3)
    data = xr.Dataset({"n": (("sample", "time"), rng.poisson(2, (5000, 3)))})
    plain = TimeSeriesCodec.fit(data)
    expected = np.sqrt(data.n.values.var(0) + (1 - 2**-10) ** 2 / 12)
    np.testing.assert_allclose(plain.scale[0], expected, rtol=1e-12)
    logged = TimeSeriesCodec.fit(data, transforms={"n": "log"})
    x = logged.encode(data, EVERYTHING, generator(), torch.float64)
    assert float(x.mean(0).abs().max()) < 5 / 5000**0.5
    assert float((x.std(0) - 1).abs().max()) < 0.05


def test_a_fixed_start_is_noise_that_decodes_to_itself() -> None:
    data = trajectories("fixed")
    codec = TimeSeriesCodec.fit(data)
    assert codec.constant == ()
    assert codec.fixed[:, 0].tolist() == [95, 5]
    assert codec.fixed[:, 1:].isnan().all()
    x = codec.encode(data, EVERYTHING, generator())
    assert 0.9 < float(x[:, :, 0].std()) < 1.1
    wild = codec.decode(torch.full((3, 2, 30), 100.0))
    assert wild["S"][:, 0].tolist() == [95] * 3
    assert wild["R"][:, 0].tolist() == [0] * 3


def test_constant_reals_have_scale_one() -> None:
    values = np.random.default_rng(0).normal(size=(10, 4))
    values[:, 0] = 0.1
    data = xr.Dataset({"y": (("sample", "time"), values)})
    codec = TimeSeriesCodec.fit(data)
    assert codec.scale[0, 0] == 1
    x = codec.encode(data, EVERYTHING, generator())
    assert bool((x[:, :, 0] == 0).all())
    assert codec.finish(x + 3)["y"][:, 0].tolist() == [0.1] * 10


def test_auto_takes_logarithms_of_long_tails_only() -> None:
    rng = np.random.default_rng(4)
    tail = np.exp(2 * rng.normal(size=(500, 4)))
    over = ("sample", "time")
    data = xr.Dataset(
        {
            "tail": (over, tail),
            "epidemic": (over, np.floor(50 * tail).astype(int)),
            "signed": (over, tail - 1),
            "bell": (over, rng.normal(10, 1, (500, 4))),
        }
    )
    codec = TimeSeriesCodec.fit(data, transforms={"*": "auto"})
    kinds = {v.name: v.transform.kind for v in codec.variables}
    assert kinds == {"tail": "log", "epidemic": "log", "signed": "identity", "bell": "identity"}
    codec = TimeSeriesCodec.fit(trajectories("uniform"), transforms={"*": "auto"})
    assert {v.transform.kind for v in codec.variables} == {"identity"}


# --- memory and randomness ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_chunks_of_a_lazy_file_give_what_memory_gives(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("zarr" if suffix == "zarr" else "netCDF4")
    data = trajectories("population")
    path = tmp_path / f"data.{suffix}"
    if suffix == "nc":
        data.to_netcdf(path)
    else:
        data.to_zarr(path, zarr_format=3, consolidated=False)
    whole = TimeSeriesCodec.fit(data, transforms={"I": "log"})
    options: dict[str, Any] = {} if suffix == "nc" else {"engine": "zarr", "consolidated": False}
    with xr.open_dataset(path, cache=False, chunks=None, **options) as lazy:
        parts = TimeSeriesCodec.fit(lazy, transforms={"I": "log"}, chunk=37)
        x = parts.encode(lazy, slice(10, 20), generator())
    order = [whole.names.index(name) for name in parts.names]  # Zarr sorts variables by name
    torch.testing.assert_close(parts.mean, whole.mean[order], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.scale, whole.scale[order], rtol=1e-12, atol=1e-12)
    assert parts.relations == whole.relations
    assert sorted(parts.variables, key=str) == sorted(whole.variables, key=str)
    if suffix == "nc":
        torch.testing.assert_close(x, whole.encode(data, slice(10, 20), generator()))


def test_no_read_is_larger_than_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    from surrogate.kinds.trajectories import variables

    sizes = []
    stored = variables._stored

    def watched(*given: Any) -> np.ndarray:
        values = stored(*given)
        sizes.append(len(values))
        return values

    monkeypatch.setattr(variables, "_stored", watched)
    TimeSeriesCodec.fit(trajectories("uniform"), chunk=50)
    assert set(sizes) == {50}
    sizes.clear()
    monkeypatch.setattr("surrogate.kinds.trajectories.codec.CHUNK_VALUES", 6000)
    codec = TimeSeriesCodec.fit(trajectories("uniform"))
    sizes.clear()
    codec.encode(trajectories("uniform"), EVERYTHING, generator())
    assert max(sizes) == 100


def test_batches_do_not_change_the_noise() -> None:
    data = trajectories("population")
    codec = TimeSeriesCodec.fit(data)
    whole = codec.encode(data, slice(0, 60), generator(5))
    source = generator(5)
    parts = [codec.encode(data, slice(i, i + 20), source) for i in (0, 20, 40)]
    assert torch.equal(torch.cat(parts), whole)
    chosen = codec.encode(data, [3, 1, 2], generator())
    assert chosen.shape[0] == 3
    assert np.array_equal(codec.finish(chosen)["S"], data.S[[3, 1, 2]])
    backwards = codec.finish(codec.encode(data, slice(None, None, -1), generator()))
    assert np.array_equal(backwards["S"], data.S[::-1])
    assert codec.encode(data, slice(0, 0), generator()).shape == (0, *codec.shape)
    assert not torch.equal(whole, codec.encode(data, slice(0, 60), generator(6)))
