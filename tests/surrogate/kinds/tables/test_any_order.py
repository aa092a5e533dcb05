"""Conditionals on any columns: probabilities, regressions, and posteriors given equations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from constraints import parse
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.sequential import settles_first
from surrogate.kinds.decoder import NO_SIGNAL
from surrogate.kinds.tables.any_order import AnyOrder, Ordered
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.decoder import TableDecoder
from surrogate.kinds.tables.settled import settled
from surrogate.kinds.tables.sites import Choice, Number
from surrogate.model import Surrogate
from tests.surrogate.analytic import SIGMAS, generator
from tests.surrogate.kinds.tables.decoders import dataset, discrete, encoded, every_row

N = 4_000
ROUNDING = 1e-9  # by which a number that is encoded and decoded may be off


def decoder_of(data: xr.Dataset, seed: int = 1) -> TableDecoder:
    """An untrained decoder with a network for any order, all weights random, the regression
    estimated from the data."""
    made = TableDecoder(TableCodec.fit(data), width=16, depth=1, any_order=True)
    source = generator(seed)
    with torch.no_grad():
        for weight in made.parameters():
            fan = weight.shape[-1] if weight.ndim > 1 else 1
            weight.copy_(torch.randn(weight.shape, generator=source) / math.sqrt(fan))
    made.measure(encoded(made, data))
    return made.eval()


def own_of(decoder: TableDecoder) -> AnyOrder:
    assert decoder.any_order is not None
    return decoder.any_order


def model_of(frame: pd.DataFrame, rules: list[str] | None = None, seed: int = 1) -> Surrogate:
    data = dataset(frame, rules)
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    model.decoder = decoder_of(data, seed)
    return model


def gaussian(rows: int = 4_000) -> pd.DataFrame:
    """theta ~ N(0, 1), two noisy views of it."""
    random = np.random.default_rng(3)
    theta = random.normal(size=rows)
    return pd.DataFrame(
        {
            "theta": theta,
            "x": theta + random.normal(size=rows),
            "y": theta + 0.5 * random.normal(size=rows),
        }
    )


def regression_model(frame: pd.DataFrame) -> Surrogate:
    """A model before its first step: the regression alone."""
    data = dataset(frame)
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    assert isinstance(model.decoder, TableDecoder)
    model.decoder.measure(encoded(model.decoder, data))
    return model


# --- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [(), (1,), (0, 2)])
def test_probabilities_of_a_column_add_up_to_1_given_any_others(given: tuple[int, ...]) -> None:
    frame = discrete()
    own = own_of(decoder_of(dataset(frame)))
    rows = own.drawn.codec.encode(own.drawn.codec.read(every_row(frame)), slice(None), generator(0))
    y = own.drawn.values(rows)
    for j, site in enumerate(own.drawn.sites):
        if j in given:
            continue
        known = torch.zeros(len(rows), len(y), dtype=torch.bool)
        known[:, list(given)] = True
        first = torch.stack([y[i] for i in given], 1) if given else torch.zeros(len(rows), 0)
        same = (first.nan_to_num(-1) == first[:1].nan_to_num(-1)).all(1)
        p = site.log_prob(own.heads(y, known)[j], y[j]).exp().detach()
        values = y[j].nan_to_num(-1)[same].numpy()
        _, once = np.unique(values, return_index=True)
        assert float(p[same][once].sum()) == pytest.approx(1, abs=1e-5)


def test_values_that_are_not_known_are_not_read() -> None:
    frame = discrete()
    decoder = decoder_of(dataset(frame))
    own = own_of(decoder)
    y = own.drawn.values(encoded(decoder, dataset(frame)))
    known = torch.rand((len(y[0]), len(y)), generator=generator(2)) < 0.5
    other = [torch.where(known[:, j], v, v.flip(0)) for j, v in enumerate(y)]
    for a, b in zip(own.heads(y, known), own.heads(other, known), strict=True):
        torch.testing.assert_close(a, b)


def test_before_training_numbers_have_the_gaussian_conditional() -> None:
    frame = gaussian()
    model = regression_model(frame)
    drawn = model.sample(N, where="x = 1.5 and y = -0.25", seed=1)
    precision = 1 + 1 + 4
    mean = (1.5 - 4 * 0.25) / precision
    assert np.abs(drawn["x"] - 1.5).max() < ROUNDING
    assert np.abs(drawn["y"] + 0.25).max() < ROUNDING
    sd = precision**-0.5  # regression on 4,000 rows
    assert drawn["theta"].mean() == pytest.approx(mean, abs=SIGMAS * sd / N**0.5 + 0.03)
    assert drawn["theta"].std() == pytest.approx(sd, abs=0.03)
    half = model.sample(N, where="x = 1.5", seed=1)  # the other view is not observed
    assert half["theta"].mean() == pytest.approx(0.75, abs=SIGMAS * 0.71 / N**0.5 + 0.03)
    assert half["theta"].std() == pytest.approx(0.5**0.5, abs=0.03)


def test_the_evidence_is_a_density_times_the_tolerance() -> None:
    frame = gaussian()
    drawn = regression_model(frame).sample(500, where="x = 1.5 +- 0.01 and y = -0.25", seed=1)
    covariance = np.array([[2.0, 1.0], [1.0, 1.25]])
    at = np.array([1.5, -0.25])
    exact = -0.5 * at @ np.linalg.solve(covariance, at)
    exact -= 0.5 * math.log(np.linalg.det(2 * math.pi * covariance))
    exact += math.log(0.02) + math.log(2e-3 * float(np.ptp(frame["y"])))
    assert drawn.attrs["surrogate_log_probability"] == pytest.approx(exact, abs=0.1)
    assert drawn["x"].std() > 1e-3  # a stated tolerance is an interval, of which all is drawn
    assert drawn["y"].std() < ROUNDING


def test_it_learns_what_a_regression_cannot() -> None:
    """y² is given: y has two values."""
    random = np.random.default_rng(0)
    y = random.uniform(-1, 1, 2_000)
    frame = pd.DataFrame({"square": y**2, "y": y})
    data = dataset(frame)
    torch.manual_seed(0)
    decoder = TableDecoder(TableCodec.fit(data), width=32, depth=1, any_order=True)
    own = own_of(decoder)
    clean = encoded(decoder, data)
    decoder.measure(clean)
    optimizer = torch.optim.Adam(own.parameters(), lr=0.01)
    for step in range(120):
        optimizer.zero_grad()
        own.loss(clean[step % 8 :: 8], generator(step)).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    model = Surrogate.untrained(decoder.drawn.codec, 0, width=32, depth=1)
    model.decoder = decoder.eval()
    drawn = model.sample(1_000, where="square = 0.49", seed=1)
    assert np.abs(drawn["y"].abs() - 0.7).quantile(0.9) < 0.1
    assert 0.3 < (drawn["y"] > 0).mean() < 0.7


def test_masks_leave_something_to_learn_and_are_of_every_size() -> None:
    own = own_of(decoder_of(dataset(discrete())))
    known = own._masks(6_400, generator(1))
    assert not known.all(1).any()
    assert set(known.sum(1).tolist()) == {0, 1, 2, 3}


# --- orders, laws and missing values --------------------------------------------------------------


def test_what_equations_settle_comes_first_and_only_if_it_is_rare() -> None:
    frame = gaussian(400).assign(grade=np.arange(400) % 4)
    model = model_of(frame)
    assert isinstance(model.decoder, TableDecoder)
    names = [site.name for site in model.decoder.drawn.sites]

    def first(where: str) -> tuple[list[str], bool]:
        found = settled(model.decoder.drawn, Scenario(model, parse(where)).pins)  # type: ignore[union-attr, arg-type]
        return [names[j] for j in found.order], found.rare

    order, rare = first("y = 0.5 and x >= 0")
    assert rare
    assert order[:2] == ["y", "x"]
    assert not first("grade = 2")[1]  # a quarter of the rows: particles do
    assert not first("x >= 0")[1]
    assert not first("x + y = 1")[1]  # settled by neither alone
    assert settles_first(Scenario(model, parse("y = 0.5 and x >= 0")))
    assert not settles_first(Scenario(model, parse("y[1] = 0.5 and y[1] > y[2]")))
    assert not settles_first(Scenario(model, parse("y = 0.5 and x * x < 1")))


def test_weights_are_found_again_in_any_order() -> None:
    model = model_of(discrete())
    decoder = model.decoder
    assert isinstance(decoder, TableDecoder)
    where = 'size = 2.5 and colour = "red" and grade = 2 and known >= 0'
    pins = Scenario(model, parse(where)).pins
    assert decoder.settles_first(pins)
    nothing = torch.zeros(200, *decoder.drawn.codec.shape)
    draw = decoder.draw(nothing, NO_SIGNAL, generator(4), pins)
    assert bool(draw.log_weights.isfinite().all())
    again = decoder.log_weight(draw.x, nothing, NO_SIGNAL, pins)
    torch.testing.assert_close(again, draw.log_weights, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("where", ["mid = 52.5", "high = 55 and low = 48.25", "low = 50.5"])
def test_orders_between_columns_hold_whatever_is_drawn_first(where: str) -> None:
    random = np.random.default_rng(7)
    low, a, b = random.normal(50, 5, 600), *random.exponential(2, (2, 600))
    frame = pd.DataFrame({"high": low + a + b, "mid": low + a, "low": low})
    model = model_of(frame, ["low <= mid", "mid <= high"])
    made = sample(model, 500, where, seed=1)
    assert made.diagnostics.method == "sequential"
    rows = made.dataset
    assert bool(rows.satisfied.all())
    assert bool((rows.low <= rows.mid).all() and (rows.mid <= rows.high).all())


def test_values_may_be_missing_and_those_of_a_condition_are_not() -> None:
    frame = gaussian(600)
    frame.loc[::3, "x"] = np.nan
    model = model_of(frame)
    made = model.sample(500, where="y = 0.5", seed=1)
    assert 0 < made["x"].isna().mean() < 1
    there = model.sample(500, where="y = 0.5 and x >= -1", seed=1)
    assert not there["x"].isna().any()


def test_particles_are_as_many_as_samples() -> None:
    found = sample(regression_model(gaussian()), 700, "x = 1.5 and y = 0.5", seed=1).diagnostics
    assert (found.particles, found.ancestors) == (700, 700)
    assert found.acceptance is None  # no pilot


# --- models ---------------------------------------------------------------------------------------


def test_models_with_and_without_it_are_stored(tmp_path: Path) -> None:
    data = dataset(gaussian(300))
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    assert isinstance(model.decoder, TableDecoder)
    model.decoder.measure(encoded(model.decoder, data))
    model.save(tmp_path / "new")
    again = Surrogate.load(tmp_path / "new")
    ask = {"where": "x = 0.5 and y = 0.5", "seed": 1}
    pd.testing.assert_frame_equal(again.sample(30, **ask), model.sample(30, **ask))  # type: ignore[arg-type]
    model.decoder = TableDecoder(model.decoder.drawn.codec)
    model.network = {**model.network, "decoder": {"width": None, "depth": None}}
    model.save(tmp_path / "old")
    old = Surrogate.load(tmp_path / "old").decoder
    assert isinstance(old, TableDecoder)
    assert old.any_order is None
    assert not old.settles_first(Scenario(model, parse("x = 0.5 and y = 0.5")).pins)


def test_an_order_gives_the_distributions_of_the_network() -> None:
    own = own_of(decoder_of(dataset(discrete())))
    y = own.drawn.values(encoded(decoder_of(dataset(discrete())), dataset(discrete())))
    order = [2, 0, 3, 1]
    known = torch.zeros(len(y[0]), 4, dtype=torch.bool)
    known[:, [2, 0]] = True
    head = Ordered(own, order).head(2, torch.zeros(len(y[0]), 0), [], [y[2], y[0]])
    torch.testing.assert_close(head, own.heads(y, known)[3])
    kinds = {type(site) for site in own.drawn.sites}
    assert kinds == {Choice, Number}
