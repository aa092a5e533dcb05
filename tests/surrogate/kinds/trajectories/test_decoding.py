"""Decoding: what is conserved, what has a gradient, and what a config keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import xarray as xr

from constraints import parse
from surrogate.kinds.labels import label
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from tests.surrogate.kinds.trajectories.trajectories import KINDS, generator, trajectories, weather

EVERYTHING = slice(None)


# --- conservation ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "law", "channels", "total"),
    [
        ("uniform", {"S": 1, "I": 1, "R": 1}, ("S", "I"), 100.0),
        ("population", {"S": 1, "I": 1, "R": 1}, ("S", "I", "N"), "N"),
        ("totals", {"S": 1, "I": 1, "R": 1}, ("S", "I", "total of S + I + R"), None),
        ("dimers", {"P": 1, "P2": 2}, ("P2",), 301.0),
        ("mean field", {"S": 1, "I": 1, "R": 1}, ("S", "I"), 100.0),
    ],
)
def test_what_is_conserved_stays_so_whatever_the_model_draws(
    kind: str, law: dict[str, int], channels: tuple[str, ...], total: float | str | None
) -> None:
    codec = TimeSeriesCodec.fit(trajectories(kind))
    assert codec.names == channels
    x = 3 * torch.randn((200, *codec.shape), generator=generator())
    made = codec.finish(x)
    sums = sum(weight * made[name].astype(np.float64) for name, weight in law.items())
    exact = 0 if kind != "mean field" else 1e-9
    assert np.abs(sums - sums[:, :1]).max() <= exact
    if isinstance(total, str):
        assert np.array_equal(sums[:, 0], made[total])
    elif total is not None:
        np.testing.assert_allclose(sums, total, atol=exact)
    soft = codec.decode(x)
    sums = sum(weight * soft[name].numpy() for name, weight in law.items())
    np.testing.assert_allclose(sums, sums[:, :1] * np.ones(sums.shape), rtol=1e-5, atol=1e-3)


def test_laws_may_be_given_or_refused() -> None:
    data = trajectories("uniform")
    assert TimeSeriesCodec.fit(data, laws=[]).names == ("S", "I", "R")
    bare = data.assign_attrs(surrogate_config="")
    assert TimeSeriesCodec.fit(bare).names == ("S", "I", "R")
    codec = TimeSeriesCodec.fit(bare, laws=[{"S": 1, "I": 1, "R": 1}], transforms={"R": "identity"})
    assert codec.names == ("S", "R")
    assert codec.restored == ("I",)


def test_a_constant_species_by_itself() -> None:
    rng = np.random.default_rng(0)
    enzyme = np.repeat(rng.integers(1, 9, (30, 1)), 4, 1)
    over = ("sample", "time")
    data = xr.Dataset({"E": (over, enzyme), "S": (over, rng.integers(0, 9, (30, 4)))})
    codec = TimeSeriesCodec.fit(data, laws=[{"E": 1}])
    made = codec.finish(codec.encode(data, EVERYTHING, generator()))
    assert np.array_equal(made["E"], enzyme)
    codec = TimeSeriesCodec.fit(data.assign(E=(over, np.full((30, 4), 7))), laws=[{"E": 1}])
    assert codec.names == ("S",)
    assert bool((codec.decode(torch.zeros(2, 1, 4))["E"] == 7).all())


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_flow_to_every_channel(kind: str) -> None:
    data = trajectories(kind)
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, slice(3), generator()).requires_grad_()
    for signal in codec.decode(x).values():
        (slope,) = torch.autograd.grad(signal.sum(), x, retain_graph=True)
        assert bool(slope.isfinite().all())
    for name, signal in codec.decode(x).items():
        if name in codec.names:
            (slope,) = torch.autograd.grad(signal.sum(), x, retain_graph=True)
            at = codec.names.index(name)
            free = codec.fixed[codec._free][at].isnan()
            assert bool((slope[:, at, free] > 0).all())
            assert bool((slope[:, at, ~free] == 0).all())


def test_the_derivative_is_right_through_transforms_and_relations() -> None:
    data = trajectories("population").isel(time=slice(4))
    codec = TimeSeriesCodec.fit(data, transforms={"S": "log", "I": "logit(0, 120)"})
    x = codec.encode(data, slice(2), generator(), torch.float64).requires_grad_()
    names = list(codec.decode(x))
    assert torch.autograd.gradcheck(lambda y: tuple(codec.decode(y)[n] for n in names), (x,))


def test_a_formula_about_a_constant_still_has_a_gradient() -> None:
    codec = TimeSeriesCodec.fit(weather())
    x = torch.zeros((1, *codec.shape), requires_grad=True)
    (slope,) = torch.autograd.grad(codec.decode(x)["year"].sum(), x)
    assert bool((slope == 0).all())


def test_formulas_speak_data_units() -> None:
    data = trajectories("uniform")
    codec = TimeSeriesCodec.fit(data)
    formula = parse("forall t: S(t) + I(t) + R(t) = N and I(t) <= 60")
    made = codec.to_dataset(codec.encode(data, EVERYTHING, generator()))
    assert np.array_equal(label(made, [formula]).satisfied, label(data, [formula]).satisfied)


# --- keeping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "weather"])
def test_a_config_gives_the_same_codec(kind: str) -> None:
    data = weather() if kind == "weather" else trajectories(kind)
    codec = TimeSeriesCodec.fit(data)
    config = json.loads(json.dumps(codec.to_config(), allow_nan=False))
    again = TimeSeriesCodec.from_config(config)
    assert again.to_config() == codec.to_config()
    x = torch.randn((20, *codec.shape), generator=generator())
    before, after = codec.decode(x), again.decode(x)
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert codec.to_dataset(x).identical(again.to_dataset(x))
    assert torch.equal(
        codec.encode(data, EVERYTHING, generator()), again.encode(data, EVERYTHING, generator())
    )
    again.matches(data)
    again.matches(codec.to_dataset(x))
