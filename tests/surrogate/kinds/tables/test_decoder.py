"""The decoder of tables: probabilities, orders between columns, conditions and their weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from constraints import parse
from surrogate.errors import ModelError
from surrogate.guidance.choice import particles_method
from surrogate.guidance.scenario import LATE_HANDOVER, Scenario
from surrogate.kinds import noising
from surrogate.kinds.decoder import NO_SIGNAL, Pins, Uniforms
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.decoder import TableDecoder
from surrogate.kinds.tables.schema import to_frame
from surrogate.kinds.tables.sites import Choice, Number
from surrogate.model import Surrogate
from tests.surrogate.analytic import SIGMAS, generator
from tests.surrogate.kinds.tables.decoders import (
    dataset,
    decoder_of,
    discrete,
    encoded,
    listed,
)
from tests.surrogate.rows import wines

N = 20_000


def nothing(decoder: TableDecoder, count: int = N) -> torch.Tensor:
    return torch.zeros(count, *decoder.drawn.codec.shape)


def frame_of(decoder: TableDecoder, x: torch.Tensor) -> pd.DataFrame:
    return to_frame(decoder.drawn.codec.to_dataset(x))


def plain(decoder: TableDecoder, count: int = N) -> pd.DataFrame:
    return frame_of(decoder, decoder.draw(nothing(decoder, count), NO_SIGNAL, generator(2)).x)


def pins(decoder: TableDecoder, *conditions: tuple[dict[str, float], float, float]) -> Pins:
    """({name: weight}, low, high); "colour=1" is a category, "grade[2]" of the second instance."""
    names = [
        name
        for site in decoder.drawn.sites
        for name in (
            [f"{site.name}={k}" for k in range(site.outputs)]
            if isinstance(site, Choice) and site.numbers is None
            else [site.name]
        )
    ]
    names += [f"{name}[2]" for name in names]
    rows = torch.zeros(len(conditions), len(names), dtype=torch.float64)
    for row, (weights, _, _) in zip(rows, conditions, strict=True):
        for name, weight in weights.items():
            row[names.index(name)] = weight
    if not bool(rows[:, len(names) // 2 :].any()):
        rows = rows[:, : len(names) // 2]
    ends = torch.tensor([c[1:] for c in conditions], dtype=torch.float64)
    return Pins(rows, ends[:, 0], ends[:, 1])


# --- distributions --------------------------------------------------------------------------------


def test_the_probabilities_of_all_rows_add_up_to_1() -> None:
    frame = discrete()
    decoder = decoder_of(dataset(frame))
    kinds = {site.name: type(site) for site in decoder.drawn.sites}
    assert kinds == {"colour": Choice, "grade": Choice, "known": Choice, "size": Number}
    rows, p = listed(decoder, frame)
    assert len(rows) == 3 * 4 * 10 * 3
    assert float(p.sum()) == pytest.approx(1, abs=1e-5)
    assert float(p.max()) < 0.5


def test_rows_are_drawn_with_their_probabilities() -> None:
    frame = discrete()
    decoder = decoder_of(dataset(frame))
    rows, p = listed(decoder, frame)
    made = plain(decoder).astype({"grade": float})
    counts = made.fillna(-1).value_counts()
    keys = [tuple(row) for row in rows.fillna(-1)[list(made)].itertuples(index=False)]
    found = np.array([counts.get(key, 0) for key in keys])
    assert found.sum() == N  # nothing else is drawn
    expected = p.numpy()
    assert (
        np.abs(found / N - expected) <= SIGMAS * np.sqrt(expected * (1 - expected) / N) + 2 / N
    ).all()


def test_a_number_of_many_values_may_be_missing() -> None:
    values = np.arange(12.0).repeat(10)
    frame = pd.DataFrame({"x": np.where(np.arange(120) % 10 < 3, np.nan, values)})
    decoder = decoder_of(dataset(frame))
    assert isinstance(decoder.drawn.sites[0], Number)
    _, p = listed(decoder, frame)
    assert float(p.sum()) == pytest.approx(1, abs=1e-5)
    assert plain(decoder)["x"].isna().mean() == pytest.approx(float(p[0]), abs=0.02)


class Ones(Uniforms):
    """The last point of every interval."""

    def __call__(self, each: int) -> torch.Tensor:
        return torch.ones(each, self.count, dtype=torch.float64)


def test_the_end_of_an_interval_is_drawn_as_a_value_in_it() -> None:
    frame = pd.DataFrame({"x": np.arange(12.0).repeat(10)})
    decoder = decoder_of(dataset(frame))
    site, wanted = decoder.drawn.sites[0], torch.arange(12.0).double()
    head = torch.zeros(12, site.outputs)
    drawn = site.draw(head, wanted - 0.5, wanted, False, Ones(generator(), 12))
    assert torch.equal(drawn, wanted)


def test_it_learns_a_small_joint_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noising, "BLIND_SHARE", 1.0)
    random = np.random.default_rng(1)
    a = random.integers(0, 3, 200)
    b = (a + (random.uniform(size=200) < 0.25)) % 3
    frame = pd.DataFrame({"a": a, "b": np.array(["x", "y", "z"])[b]})
    data = dataset(frame)
    torch.manual_seed(0)
    decoder = TableDecoder(TableCodec.fit(data), width=16, depth=1)
    clean = encoded(decoder, data)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    for step in range(150):
        optimizer.zero_grad()
        decoder.loss(clean, generator(step)).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    rows, p = listed(decoder, frame)
    shares = frame.value_counts(normalize=True)
    truth = np.array([shares.get(tuple(row), 0.0) for row in rows.itertuples(index=False)])
    assert np.abs(p.numpy() - truth).max() < 0.03


def test_the_loss_without_a_noisy_row_is_the_log_likelihood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noising, "BLIND_SHARE", 1.0)
    data = dataset(wines(300))
    decoder = decoder_of(data, size=0.4)
    clean = encoded(decoder, data)
    with torch.no_grad():
        found = -decoder.loss(clean, generator()) * len(decoder.drawn.sites)
    torch.testing.assert_close(found, decoder.log_prob(clean))
    assert found.isfinite().all()


def test_the_first_samples_do_not_depend_on_how_many_are_drawn() -> None:
    decoder = decoder_of(dataset(wines(300)), size=0.4)
    many = decoder.draw(nothing(decoder, 50), NO_SIGNAL, generator(3), total=50).x
    few = decoder.draw(nothing(decoder, 20), NO_SIGNAL, generator(3), total=50).x
    torch.testing.assert_close(many[:20], few)


def test_values_are_those_of_the_data_and_may_be_missing() -> None:
    frame = wines(600)
    decoder = decoder_of(dataset(frame), size=0.4)
    made = plain(decoder, 2_000)
    assert set(made["colour"]) <= set(frame["colour"])
    assert set(made["quality"]) <= set(frame["quality"])
    assert made["alcohol"].between(frame["alcohol"].min(), frame["alcohol"].max()).all()
    assert 0 < made["density"].isna().mean() < 1
    assert not made.drop(columns="density").isna().any(axis=None)


# --- orders ---------------------------------------------------------------------------------------


def prices(rows: int = 500, digits: int | None = 1) -> pd.DataFrame:
    random = np.random.default_rng(7)
    low, a, b = random.normal(50, 5, rows), *random.exponential(2, (2, rows))
    frame = pd.DataFrame({"high": low + a + b, "mid": low + a, "low": low, "note": a > 2})
    return frame if digits is None else frame.round(digits)


@pytest.mark.parametrize("digits", [None, 1, 0])
def test_orders_hold_with_any_weights(digits: int | None) -> None:
    data = dataset(prices(digits=digits), ["low <= mid", "mid <= high"])
    for seed in range(3):
        decoder = decoder_of(data, seed)
        made = plain(decoder, 3_000)
        assert (made["low"] <= made["mid"]).all()
        assert (made["mid"] <= made["high"]).all()
        clean = encoded(decoder, data)
        assert decoder.log_prob(clean).isfinite().all()


def test_orders_with_sums_hold() -> None:
    frame = prices(digits=0)
    frame["total"] = frame["low"] + frame["mid"]
    data = dataset(frame, ["total = low + mid", "total <= 130", "low <= mid"])
    decoder = decoder_of(data)
    assert "total" not in [site.name for site in decoder.drawn.sites]
    made = plain(decoder, 3_000)
    assert (made["total"] == made["low"] + made["mid"]).all()
    assert (made["low"] <= made["mid"]).all()


def test_rows_in_which_a_later_value_has_no_place_are_drawn_again() -> None:
    """Between 26 and 29 there is no multiple of 5."""
    random = np.random.default_rng(0)
    low, high = np.array([(1, 29), (1, 99), (26, 99)]).repeat(100, axis=0).T
    mid = 5 * random.integers((low + 4) // 5, high // 5 + 1)
    frame = pd.DataFrame({"low": low, "high": high, "mid": mid})
    decoder = decoder_of(dataset(frame, ["low <= mid", "mid <= high"]))
    assert decoder.drawn.sites[-1].name == "mid"
    made = plain(decoder, 2_000)
    assert (made["low"] <= made["mid"]).all()
    assert (made["mid"] <= made["high"]).all()
    given = pins(decoder, ({"low": 1.0}, 20.0, 30.0))  # no weight where there is no place
    draw = decoder.draw(nothing(decoder, 2_000), NO_SIGNAL, generator(3), given)
    high_drawn = frame_of(decoder, draw.x)["high"].to_numpy()
    assert (high_drawn == 29).any()
    assert (draw.log_weights.isfinite().numpy() == (high_drawn == 99)).all()


def test_the_probabilities_under_an_order_add_up_to_1() -> None:
    frame = discrete().drop(columns=["known", "colour"])
    frame = frame.assign(size=frame["size"].clip(lower=1), grade=frame["grade"].clip(upper=4))
    frame["size"] = np.maximum(frame["size"], frame["grade"] / 2)
    frame["grade"] = frame["grade"] / 2
    decoder = decoder_of(dataset(frame, ["grade <= size"]))
    rows, p = listed(decoder, frame)
    lawful = torch.tensor((rows["grade"] <= rows["size"]).to_list())
    assert float(p[lawful].sum()) == pytest.approx(1, abs=1e-5)


# --- conditions -----------------------------------------------------------------------------------

CONDITIONS = {
    "an interval": ({"size": 1.0}, 1.5, 3.0),
    "a sum": ({"size": 1.0, "grade": -1.0}, -0.2, 1.1),
    "a category": ({"colour=1": 1.0, "colour=2": 1.0}, 0.5, np.inf),
    "one that may be missing": ({"known": -2.0}, -np.inf, -1.5),
    "a sum with one that may be missing": ({"known": 1.0, "size": 1.0}, 2.5, 4.0),
}


def met(rows: pd.DataFrame, condition: tuple[dict[str, float], float, float]) -> np.ndarray:
    """Which rows meet a condition; those in which a value is missing do not."""
    weights, low, high = condition
    total = np.zeros(len(rows))
    for name, weight in weights.items():
        column, _, category = name.partition("=")
        words = np.array(["blue", "green", "red"])
        value = rows[column] == words[int(category)] if category else rows[column]
        total = total + weight * value.to_numpy(float)
    return np.asarray((total >= low - 1e-9) & (total <= high + 1e-9))


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_are_met_and_their_weights_are_probabilities(name: str) -> None:
    frame, condition = discrete(), CONDITIONS[name]
    decoder = decoder_of(dataset(frame))
    rows, p = listed(decoder, frame)
    allowed = met(rows, condition)
    given = pins(decoder, condition)
    draw = decoder.draw(nothing(decoder), NO_SIGNAL, generator(4), given)
    weight = draw.log_weights.exp()
    made = frame_of(decoder, draw.x)
    assert met(made[(weight > 0).numpy()], condition).all()
    # rows that cannot meet it get no weight
    assert float((p * torch.from_numpy(allowed)).sum()) == pytest.approx(
        float(weight.mean()), abs=SIGMAS * float(weight.std()) / N**0.5 + 1e-6
    )
    for column in ("grade", "size"):  # and weighted, they have the conditional distribution
        total = np.average(made[column], weights=weight.numpy())
        exact = np.average(rows[column], weights=p.numpy() * allowed)
        assert total == pytest.approx(exact, abs=0.06)
    again = decoder.log_weight(draw.x, nothing(decoder), NO_SIGNAL, given)
    alive = weight > 0
    torch.testing.assert_close(again[alive], draw.log_weights[alive], rtol=1e-4, atol=1e-4)


def test_a_condition_on_two_instances_is_met() -> None:
    frame = discrete()
    decoder = decoder_of(dataset(frame))
    rows, p = listed(decoder, frame)
    given = pins(decoder, ({"size": 1.0, "size[2]": -1.0}, 1.0, np.inf))
    draw = decoder.draw(nothing(decoder, 2 * N), NO_SIGNAL, generator(4), given)
    weight = draw.log_weights.exp()
    size = torch.tensor(frame_of(decoder, draw.x)["size"].to_list()).reshape(-1, 2)
    assert bool((size[:, 0] >= size[:, 1] + 1)[weight > 0].all())
    own = torch.tensor(rows["size"].to_list())
    apart = (own[:, None] >= own[None] + 1).double()
    exact = float(p @ apart @ p)
    assert float(weight.mean()) == pytest.approx(exact, abs=SIGMAS * float(weight.std()) / N**0.5)


def test_weights_given_noisy_rows_are_found_again() -> None:
    data = dataset(wines(300))
    decoder = decoder_of(data, size=0.4)
    clean = encoded(decoder, data)
    noisy = clean + 0.3 * torch.randn(clean.shape, generator=generator(1))
    given = pins(decoder, ({"alcohol": 1.0, "quality": 1.0}, 15.0, 19.0), ({"sugar": 1}, 1, 9))
    draw = decoder.draw(noisy, 0.3, generator(2), given)
    alive = draw.log_weights.isfinite()
    assert bool(alive.any())
    assert float(draw.log_weights[alive].min()) < -1e-3
    again = decoder.log_weight(draw.x, noisy, 0.3, given)
    torch.testing.assert_close(again[alive], draw.log_weights[alive], rtol=1e-4, atol=1e-4)


def test_signals_are_affine_in_the_values_of_columns_that_follow_too() -> None:
    frame = discrete()
    frame["code"] = frame["colour"].map({"blue": 7, "green": 5, "red": 3})
    frame["twice"] = 2 * frame["size"] + 1
    frame["same"] = 4.0
    data = dataset(frame, ["twice = 2 * size + 1"])
    decoder = decoder_of(data)
    assert [site.name for site in decoder.drawn.sites] == ["colour", "known", "grade", "twice"]
    values = decoder.drawn.values(encoded(decoder, data))
    y = torch.cat([s.data_units(v) for s, v in zip(decoder.drawn.sites, values, strict=True)], 1)
    found = decoder.signals(y)
    for name in ("code", "twice", "same", "size"):
        np.testing.assert_allclose(found[name].numpy(), frame[name].to_numpy(float))


# --- models ---------------------------------------------------------------------------------------


def test_a_model_is_stored_with_its_decoder_and_one_without_loads(tmp_path: Path) -> None:
    data = dataset(wines(300))
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    assert isinstance(model.decoder, TableDecoder)
    model.save(tmp_path / "with")
    again = Surrogate.load(tmp_path / "with")
    pd.testing.assert_frame_equal(again.sample(30, seed=1), model.sample(30, seed=1))
    model.decoder, model.network = None, {"width": 32, "depth": 1}
    model.save(tmp_path / "without")
    old = Surrogate.load(tmp_path / "without")
    assert old.decoder is None
    assert len(old.sample(10)) == 10
    with pytest.raises(ModelError):
        old.sample(10, where="alcohol >= 10", method="sequential")


def test_a_soft_scenario_about_two_rows_has_no_conditions_to_meet() -> None:
    data = dataset(discrete())
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    scenario = Scenario(model, parse("size[1] > size[2]"), hardness=2.0)
    assert model.decoder is not None
    assert scenario.pins.rows.shape == (0, 2 * model.decoder.coordinates)
    x, draw = scenario.decode(torch.zeros(7, scenario.size), 1.0, generator())
    assert x.shape == (7, scenario.size)
    assert bool((draw.log_weights == 0).all())


def test_particles_hand_over_to_the_decoder_where_plain_samples_do() -> None:
    model = Surrogate.untrained(TableCodec.fit(dataset(discrete())), 0, width=32, depth=1)
    linear, other = (Scenario(model, parse(text)) for text in ("size > 2", "size > 2 or grade = 1"))
    assert model.decoder is not None
    assert (linear.handover, other.handover) == (model.decoder.handover, LATE_HANDOVER)
    model.about = {**model.about, "solver": "ode"}
    assert linear.handover == other.handover == model.decoder.plain_handover


def test_auto_draws_value_by_value_only_where_plain_samples_are_drawn_so() -> None:
    model = Surrogate.untrained(TableCodec.fit(dataset(discrete())), 0, width=32, depth=1)
    scenario = Scenario(model, parse('size > 2 or colour = "red"'))
    assert particles_method(scenario, {}, 0).name == "sequential"
    assert particles_method(scenario, {"steps": 20}, 0).name == "twisted"
    model.about = {**model.about, "solver": "ode"}
    assert particles_method(scenario, {}, 0).name == "twisted"


def test_a_scenario_has_the_probability_that_enumeration_gives() -> None:
    """A strict bound, a sum and a category, in the language."""
    frame = discrete()
    data = dataset(frame)
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    model.decoder = decoder_of(data)
    rows, p = listed(model.decoder, frame)
    where = 'size > 1.5 and size + grade <= 6 and colour != "blue" and known >= 0'
    made = model.sample(500, where=where, method="sequential", particles=8_000, seed=1)
    assert made["satisfied"].all()
    allowed = (
        (rows["size"] > 1.5)
        & (rows["size"] + rows["grade"] <= 6)
        & (rows["colour"] != "blue")
        & (rows["known"] >= 0)
    )
    exact = float(p[torch.tensor(allowed.to_list())].sum().log())
    assert made.attrs["surrogate_log_probability"] == pytest.approx(exact, abs=0.1)
