"""Ranges: what is learned of them, and how estimates are brought back into them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators import models, simulate
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.statistics import MIN_TIES, Edges


def series(**values: np.ndarray) -> xr.Dataset:
    return xr.Dataset({name: (("sample", "time"), each) for name, each in values.items()})


def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def epidemic() -> tuple[xr.Dataset, TimeSeriesCodec]:
    data = simulate(models.esirs(), samples=2000, seed=1)
    return data, TimeSeriesCodec.fit(data)


def mixed(samples: int = 400) -> xr.Dataset:
    """Two laws with other weights, one total for each sample; a real, a word, a logarithm."""
    rng = random()
    total = rng.integers(20, 30, samples)[:, None]
    a = rng.integers(0, 8, (samples, 6))
    c = rng.integers(0, 5, (samples, 6))
    data = series(A=a, C=c, B=total - 2 * a + c, X=rng.exponential(1, (samples, 6)))
    data["mood"] = ("sample", rng.choice(["good", "bad"], samples))
    return data


def test_known_limits_are_the_range(epidemic: tuple[xr.Dataset, TimeSeriesCodec]) -> None:
    _, codec = epidemic
    assert {v.name: (v.low, v.high) for v in codec.variables} == dict.fromkeys("SIR", (0, 100))


def test_ends_that_many_values_share() -> None:
    rng = random()
    counts = rng.poisson(2.0, (500, 4))
    real = rng.normal(size=(500, 4)).clip(-1.0, None)  # a pile at -1, a tail above
    found = {v.name: v for v in TimeSeriesCodec.fit(series(n=counts, x=real)).variables}
    assert found["n"].low == 0
    assert found["n"].high == math.inf
    assert (found["x"].low, found["x"].high) == (-1, math.inf)


@given(parts=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=40), min_size=1, max_size=5))
def test_edges_do_not_depend_on_chunks(parts: list[list[int]]) -> None:
    edges = Edges()
    for part in parts:
        edges.add(torch.tensor(part, dtype=torch.float64)[:, None])
    every = [value for part in parts for value in part]
    assert (edges.low, edges.high) == (min(every), max(every))
    low, high = edges.hard
    assert (low == min(every)) == (every.count(min(every)) >= MIN_TIES)
    assert (high == max(every)) == (every.count(max(every)) >= MIN_TIES)


def test_data_are_left_alone(epidemic: tuple[xr.Dataset, TimeSeriesCodec]) -> None:
    """The counts that they stand for are; a half unit across an edge may go."""
    data, codec = epidemic
    x = codec.encode(data, slice(None), torch.Generator().manual_seed(0))
    inside = codec.within(x)
    for name, values in codec.finish(inside).items():
        np.testing.assert_array_equal(values, data[name])
    moved = (inside != x).any(1)
    assert set(data["R"].values[moved.numpy()].tolist()) <= {0, 100}  # S + I is off by up to 1


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.1, 30))
def test_what_comes_back_is_in_range(
    epidemic: tuple[xr.Dataset, TimeSeriesCodec], seed: int, spread: float
) -> None:
    _, codec = epidemic
    x = spread * torch.randn((50, *codec.shape), generator=torch.Generator().manual_seed(seed))
    inside = codec.within(x)
    for values in codec.finish(inside).values():
        assert values.min() >= 0
        assert values.max() <= 100
    torch.testing.assert_close(codec.within(inside), inside, atol=1e-4, rtol=1e-4)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.1, 10))
def test_other_laws_and_kinds(seed: int, spread: float) -> None:
    data = mixed()
    laws = [{"A": 2, "B": 1, "C": -1}]
    codec = TimeSeriesCodec.fit(data, laws=laws, transforms={"X": "log"})
    kinds = {v.name: v for v in codec.variables}
    x = spread * torch.randn((50, *codec.shape), generator=torch.Generator().manual_seed(seed))
    inside = codec.within(x)
    assert bool(inside.isfinite().all())
    made = codec.decode(inside.double())
    for name in ("A", "C"):
        half = 0.5
        assert float(made[name].min()) >= kinds[name].low - half
        assert float(made[name].max()) <= kinds[name].high + half
    restored, room = made["B"], 1e-3
    assert float(restored.min()) >= kinds["B"].low - room
    assert float(restored.max()) <= kinds["B"].high + room
    assert -room <= float(made["mood"].min()) <= float(made["mood"].max()) <= 1 + room


def test_the_nearest_point_of_a_box_is_taken() -> None:
    data = series(n=random().integers(0, 5, (500, 3)))
    codec = TimeSeriesCodec.fit(data)
    x = torch.tensor([[[-9.0, 0.1, 9.0]]])
    inside = codec.within(x)
    assert inside[0, 0, 1] == x[0, 0, 1]
    np.testing.assert_array_equal(codec.finish(inside)["n"][0, [0, 2]], [0, 4])


def test_gradients_pass_inside() -> None:
    data = series(n=random().integers(0, 5, (500, 3)))
    codec = TimeSeriesCodec.fit(data)
    x = torch.tensor([[[-9.0, 0.1, 9.0]]], requires_grad=True)
    (slope,) = torch.autograd.grad(codec.within(x).sum(), x)
    assert slope.flatten().tolist() == [0, 1, 0]


def test_ranges_survive_json(epidemic: tuple[xr.Dataset, TimeSeriesCodec]) -> None:
    _, codec = epidemic
    again = TimeSeriesCodec.from_config(codec.to_config())
    x = 5 * torch.randn((20, *codec.shape), generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.within(x), codec.within(x))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.1, 5))
def test_many_that_are_rounded_up_together(seed: int, spread: float) -> None:
    """N - S - E - I is not negative after rounding either, nor above N."""
    data = simulate(models.seir(), samples=100, seed=1, parameters={"N": 50})
    codec = TimeSeriesCodec.fit(data)
    x = spread * torch.randn((200, *codec.shape), generator=torch.Generator().manual_seed(seed))
    made = codec.finish(codec.within(x))
    for name in "SEIR":
        assert made[name].min() >= 0, name
        assert made[name].max() <= 50, name
    assert (sum(made[name].astype(int) for name in "SEIR") == 50).all()


def test_what_is_never_negative() -> None:
    rng = random()
    data = series(
        price=rng.gamma(2, 1, (500, 3)),
        share=rng.uniform(0.001, 0.999, (500, 3)),
        change=rng.normal(size=(500, 3)),
    )
    found = {v.name: (v.low, v.high) for v in TimeSeriesCodec.fit(data).variables}
    assert found == {
        "price": (0, math.inf),
        "share": (0, 1),
        "change": (-math.inf, math.inf),
    }


def test_large_counts_in_single_precision() -> None:
    n = 1_000_000
    counts = random().integers(0, n + 1, (400, 3))
    counts[:30], counts[30:60] = 0, n
    codec = TimeSeriesCodec.fit(series(n=counts))
    far = torch.full((1, *codec.shape), 1e4)
    ends = [codec.finish(codec.within(sign * far))["n"] for sign in (-1, 1)]
    assert [int(ends[0].min()), int(ends[1].max())] == [0, n]
