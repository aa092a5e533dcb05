"""Data, settings and configs that a codec refuses: what, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from simulators import models, simulate
from surrogate.errors import ModelError
from surrogate.kinds.trajectories.codec import TimeSeriesCodec

OVER = ("sample", "time")
DATA = simulate(models.esirs(), samples=30, seed=0)
CODEC = TimeSeriesCodec.fit(DATA)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def series(values: Any) -> xr.Dataset:
    return xr.Dataset({"y": (OVER, np.asarray(values))}, {"time": [0.0, 0.5, 1.0]})


def reals() -> np.ndarray:
    return np.arange(15.0).reshape(5, 3) ** 1.5


def with_value(value: float) -> xr.Dataset:
    values = reals()
    values[2, 1] = values[4, 0] = values[4, 2] = value
    return series(values)


def words(value: Any) -> xr.Dataset:
    values = np.array([["a", "b", "a"], ["b", "b", "a"]], dtype=object)
    values[1, 2] = value
    return series(reals()[:2]).assign(sky=(OVER, values))


# --- values ---------------------------------------------------------------------------------------

REFUSED: list[tuple[str, xr.Dataset, dict[str, Any], str]] = [
    (
        "NaN",
        with_value(np.nan),
        {},
        r"y has missing \(NaN\) values: 3 values in 2 of 5 samples, first at sample 2, step 1 "
        r"\(time 0.5\); drop or repair",
    ),
    ("inf", with_value(-np.inf), {}, "y has infinite values: 3 values in 2 of 5 samples"),
    (
        "static",
        series(reals()).assign(beta=("sample", [1.0, 2, np.nan, 4, 5])),
        {},
        r"beta has missing \(NaN\) values: 1 values in 1 of 5 samples, first at sample 2;",
    ),
    ("word", words(None), {}, "sky is missing 1 values in 1 of 2 samples, first at sample 1, step"),
    ("blank", words("  "), {}, "sky is missing 1 values in 1 of 2 samples"),
    (
        "log",
        with_value(-2.0),
        {"transforms": {"y": "log"}},
        "y: log needs values between 0 and inf, not 0: 4 values in 3 of 5 samples, first at "
        "sample 0, step 0",
    ),
    ("logit", series(reals()), {"transforms": {"y": "logit(-1, 40)"}}, "between -1 and 40, not 41"),
    ("large", series([[2**60, 0, 0], [1, 1, 1]]), {}, r"whole numbers below 2\^53, and has 1.15"),
    ("one", series(reals()[:1]), {}, "1 trajectory is too little"),
    ("none", series(reals()[:0]), {}, "empty"),
    ("same", series(np.ones((5, 3))), {}, "all trajectories are the same"),
    ("copies", series([[1, 2, 3]] * 4), {}, "all trajectories are the same"),
    ("dimensions", xr.Dataset({"y": ("sample", [1, 2])}), {}, r"have the dimensions \(sample, t"),
    (
        "no series",
        xr.Dataset({"y": ("sample", [1, 2])}, {"time": [1, 2]}),
        {},
        "no variable over",
    ),
    ("times", series(reals()).assign_coords(time=[0, 1, 1]), {}, "times of a grid are finite and"),
    ("no time", series(reals()).assign_coords(time=[0, np.nan, 1]), {}, "times are missing"),
    (
        "names",
        xr.Dataset({"1": (OVER, reals()), 1: (OVER, reals())}),  # type: ignore[dict-item]
        {},
        "two variables have the name '1'",
    ),
    ("quote", series(reals()).rename(y='a"b'), {}, "cannot be a name in formulas"),
    (
        "many words",
        series(np.arange(300.0).reshape(100, 3)).assign(
            who=("sample", [f"w{i}" for i in range(100)])
        ),
        {},
        "who has more than 64 different words, such as w0, w1, w10; drop it",
    ),
    (
        "words alone",
        words("a")[["sky"]],
        {},
        "sky: series of words alone cannot be learned; add a series of numbers",
    ),
    ("chunk", series(reals()), {"chunk": 0}, "chunk is a number of samples >= 1, not 0"),
    (
        "nobody",
        series(reals()),
        {"transforms": {"z": "log"}},
        "no variable 'z' of numbers.*have: y",
    ),
    ("worded", words("a"), {"transforms": {"sky": "log"}}, "no variable 'sky' of numbers"),
    ("odd", series(reals()), {"transforms": {"*": "sqrt"}}, "unknown transform 'sqrt'"),
    ("lawless", series(reals()), {"laws": [{"z": 1}]}, "a law names 'z'.*have: y"),
    ("no law", series(reals()), {"laws": [{"y": 0}]}, "maps names to weights"),
    ("frame", None, {}, "an xarray.Dataset, not NoneType"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(
    ("data", "settings", "words"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_cannot_be_learned_from(data: xr.Dataset, settings: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        TimeSeriesCodec.fit(data, **settings)


def test_a_law_that_the_data_break() -> None:
    broken = DATA.copy(deep=True)
    broken["I"][7, 3] += 1
    words = r"S \+ I \+ R is said to be conserved, but in sample 7 it is 100 at step 0 and 101 at "
    with pytest.raises(ModelError, match=words + r"step 3; repair the data, or drop"):
        TimeSeriesCodec.fit(broken, chunk=4)
    with pytest.raises(ModelError, match="conserved, but in sample 7 it is 100"):
        CODEC.encode(broken, [2, 7], generator())
    TimeSeriesCodec.fit(broken, laws=[])


def test_a_damaged_law_in_the_description() -> None:
    about = json.dumps({"conservation_laws": [3]})
    with pytest.raises(ModelError, match="a conservation law maps names"):
        TimeSeriesCodec.fit(DATA.assign_attrs(surrogate_config=about))


# --- another dataset ------------------------------------------------------------------------------


def test_data_that_match() -> None:
    CODEC.matches(DATA)
    CODEC.matches(simulate(models.esirs(), samples=3, seed=5))
    CODEC.matches(DATA.assign(satisfied=("sample", np.ones(30, bool))))


OTHERS: list[tuple[Callable[[], xr.Dataset], str]] = [
    (lambda: DATA.drop_vars("R"), "the dataset lacks R; give the variables of the model: S, I, R"),
    (lambda: DATA.assign(X=DATA.S), "the dataset has X besides"),
    (lambda: DATA.rename(R="Q"), "lacks R and has Q besides"),
    (lambda: DATA.astype(float), "S is real for each step in the data, integer for each step in"),
    (lambda: DATA.isel(time=slice(20)), "20 times, the model 30"),
    (
        lambda: DATA.assign_coords(time=DATA.time + np.where(np.arange(30) < 4, 0, 0.01)),
        "the grids differ, first at step 4: time 0.45",
    ),
    (lambda: DATA.assign(S=DATA.S.isel(time=0)), "S is integer for each sample in the data"),
]


@pytest.mark.parametrize(("other", "words"), OTHERS, ids=[w for _, w in OTHERS])
def test_data_that_do_not_match(other: Callable[[], xr.Dataset], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        CODEC.matches(other())


def test_values_that_a_codec_cannot_tell() -> None:
    other = simulate(models.esirs(), samples=5, seed=0, parameters={"N": 50})
    with pytest.raises(ModelError, match=r"S \+ I \+ R is 50 in sample 2, and 100 in the training"):
        CODEC.encode(other, slice(2, 4), generator())
    start = simulate(models.esirs(), samples=20, seed=0, initial={"S": 95, "I": 5})
    codec = TimeSeriesCodec.fit(start)
    with pytest.raises(ModelError, match="S is 95 at step 0 in all trajectories that the model"):
        codec.encode(DATA, slice(3), generator())
    worded = TimeSeriesCodec.fit(words("a"))
    with pytest.raises(ModelError, match=r"sky has unknown words, such as 'fog'.*\(have: a, b"):
        worded.encode(words("fog"), slice(None), generator())
    missing = DATA.astype(float)
    missing["I"][4, 2] = np.nan
    with pytest.raises(ModelError, match=r"I has missing.* first at sample 4, step 2"):
        CODEC.encode(missing, slice(3, 6), generator())
    halves = DATA.astype(float)
    halves["I"][4, 2] = 0.5
    with pytest.raises(ModelError, match=r"I should hold whole numbers below 2\^53, and has 0.5"):
        CODEC.encode(halves, slice(3, 6), generator())


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data.nc"
    large = simulate(models.esirs(), samples=20_000, seed=0)
    large.to_netcdf(path, encoding={name: {"zlib": True} for name in large.data_vars})
    whole = path.read_bytes()
    with xr.open_dataset(path, cache=False) as lazy:
        place = len(whole) // 3
        path.write_bytes(whole[:place] + bytes(len(whole) // 3) + whole[place * 2 :])
        with pytest.raises(ModelError, match="cannot read the values of"):
            CODEC.encode(lazy, slice(None), generator())


# --- tensors --------------------------------------------------------------------------------------


def test_tensors_of_another_shape() -> None:
    for shape in ((2, 30), (5, 30, 2), (5, 2, 29)):
        with pytest.raises(ModelError, match=r"have shape \(B, 2, 30\), not"):
            CODEC.decode(torch.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_samples_that_have_diverged(value: float) -> None:
    x = torch.zeros(4, 2, 30)
    x[1, 0, 3] = value
    with pytest.raises(ModelError, match="S decodes to numbers beyond any data"):
        CODEC.finish(x)


# --- configs --------------------------------------------------------------------------------------


def edited(*path: Any, value: Any = None, drop: bool = False) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(json.dumps(CODEC.to_config()))
    place: Any = config
    for key in path[:-1]:
        place = place[key]
    if drop:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return config


CONFIGS: list[tuple[Any, str]] = [
    (None, "no codec of time series: its kind is None"),
    (edited("kind", value="tabular"), "its kind is 'tabular' \\(have: timeseries\\)"),
    (edited("mean", drop=True), "lacks 'mean'"),
    (edited("mean", value=[[1.0]]), r"'mean' has shape \(1, 1\) where \(2, 30\) is expected"),
    (edited("mean", value=[[1.0], [1.0, 2.0]]), "'mean' cannot be read"),
    (edited("mean", 0, 0, value="x"), "'mean' cannot be read"),
    (edited("mean", 0, 0, value=None), "means are finite"),
    (edited("scale", 0, 0, value=0.0), "scales are above 0"),
    (edited("variables", value=3), "'variables' is a list, not 3"),
    (edited("variables", value=[]), "names of their own"),
    (edited("variables", 1, "name", value="S"), "names of their own"),
    (edited("variables", 0, value=[]), "lacks 'name'"),
    (
        edited("variables", 0, "kind", value="complex"),
        r"unknown kind 'complex' \(have: real, integer",
    ),
    (edited("variables", 0, "dtype", value="rm -rf"), "cannot be integer of type 'rm -rf'"),
    (edited("variables", 0, "dtype", value="object"), "cannot be integer of type 'object'"),
    (edited("variables", 0, "dims", value=["x"]), "S has the dimensions"),
    (edited("variables", 0, "static", value=1), "'static' is true or false"),
    (edited("variables", 0, "categories", value=["a"]), "S has the categories"),
    (edited("variables", 0, "transform", "kind", value="sqrt"), "unknown transform 'sqrt'"),
    (edited("relations", 0, "total", value="N"), "relation of 'R' names no variable"),
    (edited("relations", 0, "weights", value={"S": "1"}), "conservation law"),
    (edited("relations", 0, "weights", value={"R": 1}), "depends on itself"),
    (edited("layout", "times", 1, value=-1.0), "layout cannot be read: the times of a grid"),
    (edited("layout", "signals", 0, "kind", value="sound"), "layout cannot be read"),
    (edited("layout", "signals", 0, "name", value="Q"), "has a signal 'Q' of no variable"),
    (edited("layout", "signals", value=[3]), "layout cannot be read"),
    (edited("coords", "time", "values", value=["a"]), "coords cannot be read"),
    (edited("coords", "time", "dtype", value="object"), "coords cannot be read"),
    (edited("coords", "time", "values", value=[1.0, 2.0]), "2 times where there are 30 steps"),
    (edited("coords", "time", "dims", value=["x"]), "coords cannot be read: time has type"),
    (edited("coords", "time", value=3), "coords cannot be read"),
    (edited("about", value=3), "'about' is text"),
]


@pytest.mark.parametrize(("config", "words"), CONFIGS, ids=[w for _, w in CONFIGS])
def test_configs_that_are_wrong(config: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        TimeSeriesCodec.from_config(config)
