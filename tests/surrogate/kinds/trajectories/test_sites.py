"""The order in which a trajectory is drawn, and its values, their ranges and half units."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.sites import FAR, STATIC, Sites, edges, latent, value
from surrogate.kinds.trajectories.transforms import Identity, Log, Logit, for_counts
from surrogate.kinds.trajectories.variables import Variable
from tests.surrogate.kinds.trajectories.decoders import encoded
from tests.surrogate.kinds.trajectories.trajectories import KINDS, trajectories, weather


def sites(name: str) -> Sites:
    data = weather() if name == "weather" else trajectories(name)
    return Sites(TimeSeriesCodec.fit(data))


@pytest.mark.parametrize("name", [*KINDS, "weather"])
def test_every_coordinate_that_varies_belongs_to_one_site(name: str) -> None:
    own = sites(name)
    codec = own.codec
    found = [c for site in own.order(2) for c in own.coordinates(site)]
    assert len(found) == len(set(found))
    varies = codec.fixed.isnan()[codec._free].flatten()
    per_sample = varies.nonzero()[:, 0].tolist()
    size = math.prod(codec.shape)
    assert sorted(found) == [*per_sample, *(size + c for c in per_sample)]
    assert own.size == len(own.order(1))


def test_statics_come_first_then_the_steps_in_order() -> None:
    order = sites("weather").order(1)
    steps = [step for _, step, _ in order]
    assert steps == sorted(steps)
    assert steps.count(STATIC) == 2  # site and height
    assert steps.count(3) == 3  # rain, sky, frost


def test_what_is_constant_or_follows_is_not_drawn() -> None:
    own = sites("fixed")
    assert [v.name for v in own.series] == ["S", "I"]  # R follows
    assert not own.free[:, 0].any()  # the start is fixed
    assert own.free[:, 1:].all()


@pytest.mark.parametrize("name", [*KINDS, "weather"])
def test_values_are_those_of_the_data(name: str) -> None:
    data = weather() if name == "weather" else trajectories(name)
    own = Sites(TimeSeriesCodec.fit(data))
    values = own.values(encoded(own.codec, data))
    for v in own.codec.variables:
        if v.total:
            continue
        wanted = data[v.name].transpose("sample", ...).values
        found = values[v.name].numpy()[:, 0] if v.static else values[v.name].numpy()
        if v.kind == "words":
            assert (np.array(v.categories)[found] == wanted.astype(str)).all()
        else:
            np.testing.assert_allclose(found, wanted.astype(float), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["uniform", "population", "dimers"])
def test_restored_series_are_those_of_the_data(name: str) -> None:
    own = sites(name)
    data = trajectories(name)
    values = own.values(encoded(own.codec, data))
    now = {
        v.name: values[v.name][:, 0 if v.static else 2]
        for v in own.codec.variables
        if v.name not in own.codec.restored
    }
    restored = own.restore(now)
    assert own.codec.restored
    for dependent in own.codec.restored:
        assert restored[dependent].tolist() == data[dependent].values[:, 2].tolist()


COUNT = Variable("n", "integer", low=0.0, high=50.0)
MADE = {
    "count": COUNT,
    "log count": Variable("n", "integer", low=0.0, transform=for_counts(Log(0.0))),
    "logit count": Variable("n", "integer", low=0.0, high=50.0, transform=for_counts(Logit(0, 50))),
    "real": Variable("x", "real"),
    "log": Variable("x", "real", low=0.0, transform=Log(0.0)),
    "boolean": Variable("b", "boolean", transform=Identity()),
}


@pytest.mark.parametrize("name", [name for name in MADE if name not in ("real", "log")])
def test_the_intervals_of_neighbouring_counts_leave_no_room_between_them(name: str) -> None:
    """All that rounds to n is n, so that probabilities of counts add to 1."""
    v = MADE[name]
    n = torch.arange(2 if name == "boolean" else 20, dtype=torch.float64)
    low, high = edges(v, n, n)
    gap = (value(v, low[1:]) - value(v, high[:-1])).abs()
    assert (gap <= 1e-3).all()
    inside = value(v, (low + high).clamp(-1e9, 1e9) / 2)
    assert (torch.round(inside) == n).all()


@pytest.mark.parametrize("name", MADE)
def test_open_ends_are_far_and_finite(name: str) -> None:
    v = MADE[name]
    ends = edges(v, *torch.tensor([[-math.inf], [math.inf]], dtype=torch.float64))
    assert all(end.isfinite().all() for end in ends)
    assert ends[0] < ends[1]
    assert float(ends[0]) == -FAR


@pytest.mark.parametrize("name", MADE)
def test_latent_values_are_inverted(name: str) -> None:
    v = MADE[name]
    y = torch.tensor([1.0]) if name == "boolean" else torch.linspace(1, 40, 40).round()
    torch.testing.assert_close(value(v, latent(v, y.double())), y.double())
