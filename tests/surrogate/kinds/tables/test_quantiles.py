"""Columns of numbers as standard normals: there and back, and what an inequality becomes."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surrogate.errors import ModelError
from surrogate.kinds.tables.quantiles import MAX_DIGITS, Quantiles

FAST = settings(max_examples=60)
ENDS = st.tuples(st.booleans(), st.booleans())


def finite(size: float = 1e6) -> st.SearchStrategy[float]:
    return st.floats(-size, size, allow_nan=False, allow_subnormal=False).map(lambda x: x + 0.0)


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 5])


def continuous(random: np.random.Generator) -> np.ndarray:
    return random.normal(size=700) ** 3


def rounded(random: np.random.Generator) -> np.ndarray:
    """Few enough rows for each value to be linear pieces, with a digit after the point."""
    return np.round(random.normal(0, 300, 800), 1)


def stairs(random: np.random.Generator) -> np.ndarray:
    return random.integers(-4, 9, 400).astype(float)


def inflated(random: np.random.Generator) -> np.ndarray:
    """A heap of zeros, another at the top, and what is between."""
    values = np.where(random.uniform(size=900) < 0.4, 0.0, np.exp(random.normal(size=900)))
    return np.minimum(values, 3.0)


def gapped(random: np.random.Generator) -> np.ndarray:
    """A heap within a stretch of whole numbers that are too many to be all atoms."""
    values = random.integers(-30_000, 30_000, 500).astype(float)
    return np.concatenate([values, np.full(60, 250.0)])


LAWS = [continuous, rounded, stairs, inflated, gapped]


@cache
def law(which: int, seed: int) -> tuple[Quantiles, np.ndarray]:
    values = LAWS[which](generator(seed))
    return Quantiles.fit(values), values


DRAWN = st.tuples(st.integers(0, len(LAWS) - 1), st.integers(0, 30))


# --- there and back -------------------------------------------------------------------------------


def test_the_example_columns_cover_atoms_and_linear_pieces() -> None:
    found = [law(which, 0)[0] for which in range(len(LAWS))]
    assert [each.stepped for each in found] == [False, False, True, False, False]
    assert [each.digits for each in found] == [None, 1, 0, None, 0]
    atoms = [set(each.start[each.start == each.stop].tolist()) for each in found]
    assert atoms[2] == set(range(-4, 9))
    assert atoms[3] == {0.0, 3.0}
    assert atoms[4] == {250.0}


@FAST
@given(DRAWN, st.integers(0, 10**6))
def test_values_are_restored_from_latents(which: tuple[int, int], seed: int) -> None:
    quantiles, values = law(*which)
    uniform = generator(seed).uniform(size=len(values))
    found = quantiles.finish(quantiles.forward(values, uniform))
    if quantiles.digits is None:
        atom = np.isin(values, quantiles.start[quantiles.start == quantiles.stop])
        assert (found[atom] == values[atom]).all()
        np.testing.assert_allclose(found, values, rtol=1e-6, atol=1e-9)
    else:
        assert (found == values).all()


@FAST
@given(
    st.lists(finite(), min_size=1, max_size=12, unique=True),
    st.integers(3, 6),
    st.floats(0, 1 - 1e-9, allow_subnormal=False),
)
def test_every_latent_of_an_atom_decodes_to_it(values: list[float], times: int, u: float) -> None:
    known = np.array(values)
    quantiles = Quantiles.fit(np.repeat(known, times))
    assert quantiles.stepped
    assert (quantiles.finish(quantiles.forward(known, np.full(len(known), u))) == known).all()


@FAST
@given(
    st.lists(finite(), min_size=1, max_size=60),
    st.lists(finite(2e6), min_size=2, max_size=20),
    st.lists(finite(6.0), min_size=2, max_size=20),
)
def test_encoding_and_decoding_are_increasing(
    values: list[float], asked: list[float], latents: list[float]
) -> None:
    quantiles = Quantiles.fit(np.array(values))
    ordered, z = np.sort(asked), np.sort(latents)
    forward = quantiles.forward(ordered, np.full(len(ordered), 0.5))
    assert (np.diff(forward) >= -1e-12).all()
    finished = quantiles.finish(z)
    assert (np.diff(finished) >= -1e-12 * np.abs(values).max()).all()
    least, most = quantiles.values
    assert (finished >= least).all()
    assert (finished <= most).all()


@pytest.mark.parametrize("which", range(len(LAWS)))
def test_latents_of_the_data_are_standard_normal(which: int) -> None:
    quantiles, values = law(which, 1)
    z = quantiles.forward(values, generator(9).uniform(size=len(values)))
    assert stats.kstest(z, "norm").pvalue > 0.01
    assert quantiles.low <= z.min() < z.max() <= quantiles.high


def test_decoded_normals_have_the_distribution_of_the_data() -> None:
    """Values of standard normals have the shares that the data have."""
    for which in range(len(LAWS)):
        quantiles, values = law(which, 2)
        made = quantiles.finish(generator(3).normal(size=20_000))
        at = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
        for level in at:
            there, here = (values <= level).mean(), (made <= level).mean()
            assert abs(there - here) < 4 * math.sqrt(0.25 / 20_000) + 2 / len(values)
        if which == 3:
            assert abs((made == 0).mean() - (values == 0).mean()) < 0.02


# --- intervals ------------------------------------------------------------------------------------


def inside(values: np.ndarray, low: float, high: float, ends: tuple[bool, bool]) -> np.ndarray:
    above = values > low if ends[0] else values >= low
    return above & (values < high if ends[1] else values <= high)


def agrees(quantiles: Quantiles, low: float, high: float, ends: tuple[bool, bool]) -> None:
    """That the latents in an interval are those whose finished value is in the other."""
    first, last = quantiles.interval(low, high, *ends)
    grid = np.linspace(-5.5, 5.5, 4001) + 1e-5 * math.pi
    near = [quantiles.bounds[1:-1] + by for by in (-1e-7, 1e-7)]
    z = np.concatenate([grid, *near, [first - 1e-7, first + 1e-7, last - 1e-7, last + 1e-7]])
    z = z[np.isfinite(z)]
    edge = np.minimum(np.abs(z - first), np.abs(z - last)) < 1e-8
    z = z[~edge]
    wanted = inside(quantiles.finish(z), low, high, ends)
    found = (z >= first) & (z <= last)
    odd = z[wanted != found]
    assert not len(odd), (low, high, ends, first, last, odd[:3], quantiles.finish(odd[:3]))


@FAST
@given(DRAWN, st.integers(0, 10**6), ENDS)
def test_an_interval_of_values_maps_to_an_interval_of_latents(
    which: tuple[int, int], seed: int, ends: tuple[bool, bool]
) -> None:
    """For ends at values, between them and beyond them."""
    quantiles, values = law(*which)
    random = generator(seed)
    choices = [random.choice(values), random.choice(values) + random.normal() * values.std()]
    choices += [random.choice(quantiles.start), random.choice(quantiles.stop)]
    choices += [-math.inf if random.uniform() < 0.5 else values.min(), math.inf]
    low, high = sorted(random.choice(choices, 2, replace=False).tolist())
    if quantiles.digits is None and not quantiles.stepped:  # no tie is met by chance
        atoms = set(quantiles.start[quantiles.start == quantiles.stop].tolist())
        low, high = (x if x in atoms else x + 1e-4 * random.uniform() for x in (low, high))
    agrees(quantiles, low, high, ends)


@pytest.mark.parametrize("ends", [(False, False), (True, True), (True, False), (False, True)])
def test_intervals_between_atoms_are_exact(ends: tuple[bool, bool]) -> None:
    quantiles, _ = law(2, 0)
    for low in np.arange(-5, 10, 0.5):
        for width in (0.0, 0.5, 1.0, 2.5, 20.0):
            agrees(quantiles, float(low), float(low + width), ends)


@pytest.mark.parametrize("ends", [(False, False), (True, True)])
def test_intervals_of_rounded_values_are_exact(ends: tuple[bool, bool]) -> None:
    """0.1 is 0.1 whatever the floats say, and half a unit belongs to it."""
    for which in (1, 4):
        quantiles, values = law(which, 0)
        unit = 10.0 ** -float(quantiles.digits or 0)
        for value in np.unique(values)[5:600:60]:
            for by in (0.0, unit, -unit, unit / 4, unit / 2):
                near, far = (round(float(value) + x, 4) for x in (by, 7 * unit + by))
                agrees(quantiles, float(value), far, ends)
                agrees(quantiles, near, math.inf, ends)
                agrees(quantiles, -math.inf, near, ends)


def test_an_interval_without_values_has_no_latents() -> None:
    quantiles, _ = law(2, 0)
    for low, high in ((20.0, 30.0), (-30.0, -20.0), (2.2, 2.8), (3.0, 2.0)):
        first, last = quantiles.interval(low, high)
        assert first >= last
    assert quantiles.interval(-math.inf, math.inf) == (-math.inf, math.inf)
    assert quantiles.interval(-4, 8) == (-math.inf, math.inf)
    first, last = quantiles.interval(-4, 8, True, True)
    assert (first, last) == (quantiles.bounds[1], quantiles.bounds[-2])


# --- the inverse with a slope ---------------------------------------------------------------------


@FAST
@given(DRAWN)
def test_the_smoothed_inverse_is_increasing_and_has_a_gradient(which: tuple[int, int]) -> None:
    quantiles, _ = law(*which)
    z = torch.linspace(-6, 6, 2001, dtype=torch.float64).requires_grad_()
    y = quantiles.inverse(z)
    least, most = quantiles.values
    room = 1e-12 * (abs(least) + abs(most))
    assert bool((y >= least - room).all() & (y <= most + room).all())
    assert bool((y.diff() >= -room).all())
    (slope,) = torch.autograd.grad(y.sum(), z)
    assert bool(torch.isfinite(slope).all() & (slope >= 0).all())
    middle = (z > -1.5) & (z < 1.5)
    assert float((slope[middle] > 0).double().mean()) > 0.5
    exact = torch.from_numpy(quantiles.finish(z.detach().numpy()))
    widest = float(np.diff(quantiles.start).max()) if quantiles.stepped else 0.2 * (most - least)
    assert float((y.detach() - exact).abs().max()) <= widest + room


def test_slopes_of_the_smoothed_inverse_do_not_depend_on_the_number_of_rows() -> None:
    """What is believed of a sum goes by them: those of few rows are nearly those of many."""
    z = torch.linspace(-1.5, 1.5, 301, dtype=torch.float64).requires_grad_()
    for count in (300, 30_000):
        values = 170 + 10 * generator(4).normal(size=count)
        (slope,) = torch.autograd.grad(Quantiles.fit(values).inverse(z).sum(), z)
        noise = 3 / math.sqrt(0.13 * 0.2 * count)  # of the rows between two knots
        assert float((slope / 10 - 1).abs().max()) < 0.05 + noise


def test_the_inverse_keeps_dtype_and_shape() -> None:
    quantiles, _ = law(3, 0)
    z = torch.randn(5, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = quantiles.inverse(z)
    assert whole.shape == z.shape
    assert torch.equal(quantiles.inverse(z.mT), whole.mT)
    single = quantiles.inverse(z.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), whole, atol=1e-4, rtol=1e-4)


# --- odd columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, 1e-300, 7.0])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_constant_is_restored(value: float, count: int) -> None:
    quantiles = Quantiles.fit(np.full(count, value))
    assert quantiles.stepped
    z = quantiles.forward(np.array([value, value - 1, value + 1]), np.array([0.0, 0.5, 0.99]))
    assert np.isfinite(z).all()
    assert (quantiles.finish(np.array([-9.0, 0, 9])) == value).all()
    assert (quantiles.inverse(torch.linspace(-9, 9, 7).double()) == value).all()
    assert quantiles.interval(value, value) == (-math.inf, math.inf)
    first, last = quantiles.interval(value, value, True, False)
    assert first >= last


@pytest.mark.parametrize("count", [1, 2, 40])
def test_two_values_are_restored(count: int) -> None:
    quantiles = Quantiles.fit(np.array([-2.0, 5.0] * count))
    made = quantiles.finish(np.linspace(-4, 4, 101))
    assert made.min() >= -2
    assert made.max() <= 5
    assert set(
        quantiles.finish(quantiles.forward(np.array([-2.0, 5.0]), np.array([0.3, 0.3])))
    ) == {
        -2.0,
        5.0,
    }


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1e16, 1e-9])
@pytest.mark.parametrize("which", range(len(LAWS)))
def test_huge_and_tiny_numbers_are_restored(which: int, unit: float) -> None:
    values = LAWS[which](generator(0)) * unit
    quantiles = Quantiles.fit(values)
    uniform = generator(1).uniform(size=len(values))
    z = quantiles.forward(values, uniform)
    assert stats.kstest(z, "norm").pvalue > 0.01
    np.testing.assert_allclose(quantiles.finish(z) / unit, values / unit, rtol=1e-6, atol=1e-6)
    y = quantiles.inverse(torch.from_numpy(z))
    assert bool(torch.isfinite(y).all())
    middle = float(np.median(values))
    first, _ = quantiles.interval(middle, math.inf)
    assert abs(first) < 1


def test_large_integers_stay_integers() -> None:
    values = generator(0).integers(2**52, 2**53, 300).astype(float)
    quantiles = Quantiles.fit(values)
    made = quantiles.finish(generator(1).normal(size=500))
    assert (made == np.round(made)).all()
    np.testing.assert_allclose(quantiles.finish(quantiles.forward(values, 0 * values)), values)


def test_unseen_values_are_encoded_as_the_nearest() -> None:
    steps = Quantiles.fit(np.repeat([0.0, 10.0, 100.0], 20))
    asked = np.array([-50.0, 4.0, 6.0, 54.0, 56.0, 1e9])
    found = steps.finish(steps.forward(asked, np.full(6, 0.5)))
    assert found.tolist() == [0, 0, 10, 10, 100, 100]
    quantiles, values = law(3, 0)
    ends = quantiles.finish(quantiles.forward(np.array([-5.0, 99.0]), np.array([0.5, 0.5])))
    assert ends.tolist() == [values.min(), values.max()]


def test_digits_suffice_for_all_values() -> None:
    some = generator(0).uniform(0, 50, 200)
    for digits in (0, 1, 3, 6):
        assert Quantiles.fit(np.round(some, digits)).digits == digits
    assert Quantiles.fit(some).digits is None
    assert Quantiles.fit(some * 1e-20).digits is None


# --- keeping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(len(LAWS)))
def test_quantiles_are_restored_from_json(which: int) -> None:
    quantiles, values = law(which, 4)
    config = json.loads(json.dumps(quantiles.to_config()))
    again = Quantiles.from_config(config, "x")
    assert again.to_config() == quantiles.to_config()
    z = quantiles.forward(values, generator(0).uniform(size=len(values)))
    assert (again.finish(z) == quantiles.finish(z)).all()
    assert again.bounds.tobytes() == quantiles.bounds.tobytes()


GOOD: dict[str, Any] = {
    "edges": [0.0, 0.25, 1.0],
    "start": [1.0, 2.0],
    "stop": [1.0, 3.0],
    "digits": 1,
    "beyond": 0.001,
}


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [0.0, 1.0]}, {"edges": [0.0, 0.0, 1.0]}, {"edges": [0.1, 0.2, 1.0]},
        {"edges": [0.0, 0.5, 0.9]}, {"edges": [1.0, 0.5, 0.0]}, {"edges": []}, {"edges": None},
        {"edges": 3}, {"edges": [[0.0, 0.5, 1.0]]}, {"edges": [0.0, math.nan, 1.0]},
        {"edges": [0.0, [0.5], 1.0]}, {"edges": [0.0, 10**400, 1.0]}, {"edges": "0 1"},
        {"start": [1.0]}, {"start": [2.5, 2.0]}, {"start": [math.inf, 2.0]}, {"start": []},
        {"start": ["a", "b"]}, {"start": {}}, {"start": 1.0}, {"start": [10**400, 2.0]},
        {"stop": [2.5, 3.0]}, {"stop": [0.5, 3.0]}, {"stop": [1.0, math.nan]}, {"stop": [1.0]},
        {"stop": None}, {"stop": []},
        {"digits": -1}, {"digits": MAX_DIGITS + 1}, {"digits": 0.5}, {"digits": "1"},
        {"digits": True},
        {"beyond": 0.0}, {"beyond": 0.5}, {"beyond": -1}, {"beyond": math.nan}, {"beyond": "x"},
        {"beyond": None}, {"beyond": []}, {"beyond": 10**400},
    ],
)  # fmt: skip
def test_damaged_descriptions_are_refused(change: dict[str, Any]) -> None:
    Quantiles.from_config(GOOD, "x")
    with pytest.raises(ModelError, match=r"in the codec, .*x"):
        Quantiles.from_config(GOOD | change, "x")


@pytest.mark.parametrize("key", ["edges", "start", "digits", "beyond"])
def test_descriptions_without_a_part_are_refused(key: str) -> None:
    with pytest.raises(ModelError, match="'x' has no quantiles"):
        Quantiles.from_config({k: v for k, v in GOOD.items() if k != key}, "x")
    odd: Any
    for odd in ([], "x", 3, None):
        with pytest.raises(ModelError, match="'x' has no quantiles"):
            Quantiles.from_config(odd, "x")
