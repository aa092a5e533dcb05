"""A decoder with random weights: lawful draws, exact conditions, probabilities that add to 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from constraints.physics.rules import from_network
from simulators import models, simulate
from surrogate.kinds import noising
from surrogate.kinds.decoder import Pins
from surrogate.kinds.labels import label
from surrogate.kinds.signals import described
from surrogate.kinds.trajectories.decoder import TrajectoryDecoder
from tests.surrogate.analytic import SIGMAS, generator
from tests.surrogate.kinds.trajectories.decoders import decoder_of, drawn, drawn_from, encoded, pins
from tests.surrogate.kinds.trajectories.trajectories import trajectories, weather

INF = math.inf


def epidemic(steps: int = 4) -> xr.Dataset:
    return simulate(models.sir(), samples=200, seed=1).isel(time=slice(steps))


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("name", ["sir", "seir", "esirs"])
def test_random_weights_draw_only_lawful_trajectories(name: str, noisy: bool) -> None:
    data = simulate(getattr(models, name)(), samples=200, seed=1)
    decoder = decoder_of(data)
    if noisy:
        x = encoded(decoder.sites.codec, data) + 2 * torch.randn(
            200, *decoder.sites.codec.shape, generator=generator(3)
        )
        made, _ = drawn_from(decoder, x, 2.0)
    else:
        made, _ = drawn(decoder, 200)
    found = decoder.sites.codec.to_dataset(made)
    rules = from_network(described(data))
    assert len(rules) > 2
    labelled = label(found, rules)
    assert labelled.satisfied.all(), labelled.rule_satisfied.mean("sample")
    assert len(np.unique(found["S"].values[:, 3])) > 3  # weights are random, draws differ


def test_a_total_of_each_trajectory_is_kept() -> None:
    data = trajectories("population").isel(time=slice(5))
    decoder = decoder_of(data)
    made = decoder.sites.codec.to_dataset(drawn(decoder, 200)[0])
    assert (made.S + made.I + made.R == made.N).all()
    assert (made.R >= 0).all()
    assert made.N.min() < made.N.max()


def test_a_fixed_start_is_kept() -> None:
    data = trajectories("fixed").isel(time=slice(4))
    decoder = decoder_of(data)
    made = decoder.sites.codec.to_dataset(drawn(decoder, 50)[0])
    assert (made.S[:, 0] == 95).all()
    assert (made.I[:, 0] == 5).all()
    assert made.S[:, 3].values.std() > 0


# --- probabilities --------------------------------------------------------------------------------


def tiny() -> tuple[xr.Dataset, TrajectoryDecoder]:
    """A population of 3 over 3 steps: few enough trajectories to list them all."""
    data = simulate(models.sir(), samples=400, seed=1, parameters={"N": 3.0}, initial="uniform")
    data = data.isel(time=[0, 5, 20])
    return data, decoder_of(data)


def every_lawful(data: xr.Dataset, decoder: TrajectoryDecoder) -> tuple[xr.Dataset, Tensor]:
    """All trajectories of S and I with S + I <= 3 that laws allow, and encoded."""
    states = [(s, i) for s, i in product(range(4), repeat=2) if s + i <= 3]
    paths = np.array(list(product(states, repeat=3)))  # (n, T, 2)
    s, i = paths[..., 0], paths[..., 1]
    found = xr.Dataset(
        {"S": (("sample", "time"), s), "I": (("sample", "time"), i)}
        | {"R": (("sample", "time"), 3 - s - i)},
        {"time": data.time},
        attrs=data.attrs,
    )
    found = found.isel(sample=label(found, from_network(described(data))).satisfied.values)
    return found, encoded(decoder.sites.codec, found)


def test_probabilities_of_all_trajectories_add_to_one() -> None:
    data, decoder = tiny()
    _, clean = every_lawful(data, decoder)
    assert len(clean) > 50
    total = decoder.log_prob(clean).double().exp().sum()
    assert float(total) == pytest.approx(1, abs=1e-4)


def test_trajectories_are_drawn_as_often_as_their_probability_says() -> None:
    data, decoder = tiny()
    listed, clean = every_lawful(data, decoder)
    n = 20_000
    made = decoder.sites.codec.to_dataset(drawn(decoder, n)[0])

    def code(found: xr.Dataset) -> np.ndarray:
        both = np.concatenate([found.S.values, found.I.values], 1).astype(int)
        numbers: np.ndarray = both @ 4 ** np.arange(6)
        return numbers

    p = decoder.log_prob(clean).double().exp().numpy()
    counts = np.array([(code(made) == each).sum() for each in code(listed)])
    assert counts.sum() == n  # nothing else is drawn
    assert (np.abs(counts / n - p) <= SIGMAS * np.sqrt(p * (1 - p) / n) + 2 / n).all()


def test_the_loss_without_a_noisy_trajectory_is_the_log_likelihood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Per number that is drawn; exactly, where a training step looks at all steps."""
    monkeypatch.setattr(noising, "BLIND_SHARE", 1.0)
    data = mixed(steps=4)
    decoder = decoder_of(data, size=0.4, transforms=TRANSFORMS)
    clean = encoded(decoder.sites.codec, data)
    exact = decoder.log_prob(clean)
    assert exact.isfinite().all()
    with torch.no_grad():  # without dropout
        found = -decoder.loss(clean, generator()) * decoder.sites.size
    torch.testing.assert_close(found, exact)


# --- conditions -----------------------------------------------------------------------------------


def test_conditions_are_met_exactly_and_weights_average_to_their_probability() -> None:
    decoder = decoder_of(epidemic())
    n = 4_000
    plain, weights = drawn(decoder, n)
    assert (weights == 0).all()
    S = decoder.signals(_data_units(decoder, plain))["S"]
    I = decoder.signals(_data_units(decoder, plain))["I"]
    ends = float(S[:, 3].quantile(0.4)), float(S[:, 3].quantile(0.6))
    level = float((S[:, 1] + 2 * I[:, 2]).median())
    for conditions, met in (
        ([({("S", 3): 1.0}, *ends)], (S[:, 3] >= ends[0]) & (S[:, 3] <= ends[1])),
        (
            [({("S", 1): 1.0, ("I", 2): 2.0}, level, INF), ({("S", 3): -1.0}, -ends[1], INF)],
            (S[:, 1] + 2 * I[:, 2] >= level) & (S[:, 3] <= ends[1]),
        ),
    ):
        made, log_weights = drawn(decoder, n, pins(decoder, *conditions), seed=5)
        rows = pins(decoder, *conditions)
        at = _data_units(decoder, made).flatten(1) @ rows.rows.mT
        held = ((at >= rows.low - 1e-6) & (at <= rows.high + 1e-6)).all(1)
        found = log_weights.exp()
        assert held[found > 0].all()
        share = met.double().mean()
        assert 0.02 < share < 0.98
        chance = math.sqrt(float(share * (1 - share) + found.var()) / n)
        assert abs(float(found.mean() - share)) <= SIGMAS * chance


def _data_units(decoder: TrajectoryDecoder, x: Tensor) -> Tensor:
    """Coordinates (B, C, T) before they are transformed and normalised."""
    codec = decoder.sites.codec
    values = codec.values(x.double())
    parts = []
    for variable in (*decoder.sites.codec.variables,):
        if variable.name in decoder.sites.channels:
            y = values[variable.name]
            if variable.kind == "words":
                y = torch.nn.functional.one_hot(y.argmax(1), y.shape[1]).movedim(-1, 1).to(y)
            parts.append(y.expand(-1, -1, codec.shape[1]))
    return torch.cat(parts, 1)


def test_weights_reproduce_the_distribution_given_a_condition() -> None:
    """On all trajectories of a tiny system: E[w; x] = p(x) for each x that meets S(2) = 1."""
    data, decoder = tiny()
    listed, clean = every_lawful(data, decoder)
    n = 20_000
    made, log_weights = drawn(decoder, n, pins(decoder, ({("S", 2): 1.0}, 1.0, 1.0)))
    found = decoder.sites.codec.to_dataset(made)
    weights = log_weights.exp().numpy()
    exact = decoder.log_prob(clean).double().exp().numpy()
    for i in range(4):
        share = weights * ((found.I.values[:, 1] == i) & (found.S.values[:, 2] == 1))
        wanted = exact[(listed.I.values[:, 1] == i) & (listed.S.values[:, 2] == 1)].sum()
        assert abs(share.mean() - wanted) <= SIGMAS * share.std() / math.sqrt(n) + 1e-5


def test_an_impossible_condition_has_no_weight() -> None:
    """S only falls: S(3) = 750 after S(1) <= 740."""
    decoder = decoder_of(epidemic())
    _, log_weights = drawn(
        decoder, 20, pins(decoder, ({("S", 1): 1.0}, 0, 740), ({("S", 3): 1.0}, 750, 750))
    )
    assert (log_weights == -INF).all()


def test_conditions_on_a_start_that_all_data_share() -> None:
    """It is not drawn, and yet counts: S(0) + S(2) = 180, where S(0) = 95 always."""
    data = trajectories("fixed").isel(time=slice(3))
    decoder = decoder_of(data)
    made, log_weights = drawn(
        decoder, 100, pins(decoder, ({("S", 0): 1.0, ("S", 2): 1.0}, 180, 180))
    )
    found = decoder.sites.codec.to_dataset(made)
    possible = (log_weights > -INF).numpy()
    assert possible.any()
    assert (found.S.values[possible, 2] == 85).all()


@pytest.mark.parametrize(("start", "possible"), [(95.0, True), (50.0, False)])
def test_a_condition_on_constants_alone_is_met_or_not(start: float, possible: bool) -> None:
    decoder = decoder_of(trajectories("fixed").isel(time=slice(3)))
    _, log_weights = drawn(decoder, 10, pins(decoder, ({("S", 0): 1.0}, start, start)))
    assert ((log_weights == 0) if possible else (log_weights == -INF)).all()


def test_conditions_may_be_about_several_instances() -> None:
    """S(2) of the first trajectory of a pair equals S(2) of the second."""
    decoder = decoder_of(epidemic(3))
    one = pins(decoder, ({("S", 2): 1.0}, 0, 0))
    both = torch.cat([one.rows, -one.rows], 1)
    made, log_weights = drawn(decoder, 60, Pins(both, one.low, one.high))
    found = decoder.sites.codec.to_dataset(made).S.values[:, 2].reshape(30, 2)
    assert log_weights.shape == (30,)
    possible = (log_weights > -INF).numpy()
    assert possible.any()
    assert (found[possible, 0] == found[possible, 1]).all()
    assert len(np.unique(found[possible, 0])) > 3


def test_the_first_samples_do_not_depend_on_the_count() -> None:
    for data in (epidemic(), weather()):
        decoder = decoder_of(data)
        many, _ = drawn(decoder, 30, total=50)
        few, _ = drawn(decoder, 7, total=50)
        # real values to the rounding of products of unequal size, others exactly
        torch.testing.assert_close(few, many[:7], rtol=0, atol=1e-4)
        other, _ = drawn(decoder, 7)
        assert (few - other).abs().max() > 0.1


# --- every kind of variable -----------------------------------------------------------------------


def mixed(samples: int = 120, steps: int = 4) -> xr.Dataset:
    """Counts with a long tail, real and true series, and statics: a word, a truth, a number."""
    rng = np.random.default_rng(1)
    shape = (samples, steps)
    over = ("sample", "time")
    return xr.Dataset(
        {
            "cases": (over, np.floor(rng.lognormal(3, 1.5, shape)).astype(int)),
            "flow": (over, rng.normal(5, 2, shape)),
            "depth": (over, rng.lognormal(0, 1, shape)),
            "open": (over, rng.random(shape) < 0.4),
            "sky": (over, rng.choice(["clear", "cloudy", "fog"], shape)),
            "site": ("sample", rng.choice(["hill", "shore"], samples)),
            "pumped": ("sample", rng.random(samples) < 0.5),
            "height": ("sample", rng.normal(100, 9, samples)),
            "gauges": ("sample", rng.integers(1, 9, samples)),
        },
        {"time": np.arange(steps)},
    )


TRANSFORMS = {"cases": "log", "depth": "log"}


def test_every_kind_of_variable_is_drawn_in_its_range_and_type() -> None:
    data = mixed()
    decoder = decoder_of(data, size=0.4, transforms=TRANSFORMS)
    made = decoder.sites.codec.to_dataset(drawn(decoder, 300)[0])
    for name in data.data_vars:
        assert made[name].dims == data[name].dims
        assert made[name].dtype.kind == data[name].dtype.kind, name
        assert len(np.unique(made[name])) > 1, name
    assert (made.cases >= 0).all()
    assert (made.depth > 0).all()
    assert set(np.unique(made.sky)) <= {"clear", "cloudy", "fog"}
    assert made.depth.notnull().all()
    assert made.flow.notnull().all()


def test_every_weight_of_every_kind_of_variable_learns() -> None:
    data = mixed()
    decoder = decoder_of(data, size=0.4, transforms=TRANSFORMS)
    loss = decoder.loss(encoded(decoder.sites.codec, data), generator())
    assert loss.shape == (120,)
    assert loss.isfinite().all()
    loss.mean().backward()
    for name, weight in decoder.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("weights", "low", "high", "holds"),
    [
        ({("cases", 2): 1.0}, 10, 30, lambda d: (d.cases[:, 2] >= 10) & (d.cases[:, 2] <= 30)),
        ({("flow", 1): 1.0}, 6, INF, lambda d: d.flow[:, 1] >= 6 - 1e-6),
        ({("depth", 3): 1.0}, -INF, 1, lambda d: d.depth[:, 3] <= 1 + 1e-6),
        ({("open", 3): 1.0}, 1, 1, lambda d: d.open[:, 3]),
        ({("sky: fog", 2): 1.0}, 1, 1, lambda d: d.sky[:, 2] == "fog"),
        ({("sky: fog", 2): 1.0}, 0, 0, lambda d: d.sky[:, 2] != "fog"),
        ({("site: hill", 0): 1.0}, 1, 1, lambda d: d.site == "hill"),
        ({("pumped", 0): 1.0}, 0, 0, lambda d: ~d.pumped),
        ({("height", 0): 1.0}, 95, 105, lambda d: (d.height > 95 - 1e-6) & (d.height < 105 + 1e-6)),
        ({("gauges", 0): 1.0}, 3, 4, lambda d: (d.gauges >= 3) & (d.gauges <= 4)),
    ],
)
def test_every_kind_of_variable_meets_conditions(
    weights: dict[tuple[str, int], float],
    low: float,
    high: float,
    holds: Callable[[xr.Dataset], xr.DataArray],
) -> None:
    """And the weights average to the share of unconditional draws that meet them."""
    decoder = decoder_of(mixed(), size=0.4, transforms=TRANSFORMS)
    codec, n = decoder.sites.codec, 2_000
    plain = codec.to_dataset(drawn(decoder, n)[0])
    share = float(holds(plain).mean())
    assert 0.002 < share < 0.998
    made, log_weights = drawn(decoder, n, pins(decoder, (weights, low, high)), seed=7)
    met = holds(codec.to_dataset(made)).values
    assert met[(log_weights > -INF).numpy()].all()
    found = log_weights.exp()
    chance = math.sqrt((share * (1 - share) + float(found.var())) / n)
    assert abs(float(found.mean()) - share) <= SIGMAS * chance


def test_a_single_step_is_drawn() -> None:
    data = mixed(steps=1)
    decoder = decoder_of(data)
    assert decoder.sites.codec.to_dataset(drawn(decoder, 20)[0]).sizes["time"] == 1


def test_noise_tells_the_decoder_less_the_more_of_it_there_is() -> None:
    """The noisy point is seen: other points, other draws with the same random numbers."""
    decoder = decoder_of(epidemic())
    x = torch.randn(40, *decoder.sites.codec.shape, generator=generator())
    near, _ = drawn_from(decoder, x, 0.3)
    other, _ = drawn_from(decoder, -x, 0.3)
    assert not torch.equal(near, other)
    blind = [drawn_from(decoder, s * x, INF)[0] for s in (1, -1)]
    assert torch.equal(*blind)
