"""Starts: named species are set, the rest follow, and slices agree with the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simulators import InputError, models
from simulators.random import uniforms, words
from simulators.start import Start

ESIRS = models.esirs()


def test_words_do_not_depend_on_the_slice_and_differ_by_seed_and_draw() -> None:
    whole = words(3, 5, 0, 1000)
    assert (words(3, 5, 400, 50) == whole[400:450]).all()
    assert (
        len({*whole.tolist(), *words(4, 5, 0, 1000).tolist(), *words(3, 6, 0, 1000).tolist()})
        == 3000
    )


def test_uniforms_are_uniform() -> None:
    drawn = uniforms(0, 0, 0, 100_000)
    assert 0 < drawn.min() < drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(drawn, uniforms(0, 1, 0, 100_000))[0, 1]) < 5 / np.sqrt(100_000)
    assert abs(np.corrcoef(drawn, uniforms(1, 0, 0, 100_000))[0, 1]) < 5 / np.sqrt(100_000)


def test_a_uniform_start_is_uniform_over_all_states() -> None:
    small = models.esirs()
    states = Start(small, None, {"N": 6}, samples=56_000).states(0, 56_000)
    assert (states.sum(axis=1) == 6).all()
    _, counts = np.unique(states, axis=0, return_counts=True)
    assert len(counts) == 28
    assert stats.chisquare(counts).pvalue > 1e-3


def test_support_lists_every_state_once() -> None:
    states, weight = Start(ESIRS).support()
    assert len(np.unique(states, axis=0)) == len(states) == 5151
    assert weight.sum() == pytest.approx(1)
    states, weight = Start(ESIRS, {"S": 95}).support()
    assert sorted(states[:, 1].tolist()) == [0, 1, 2, 3, 4, 5]


@given(first=st.integers(0, 900), count=st.integers(1, 100), seed=st.integers(0, 2**64 - 1))
def test_slices_agree_with_the_whole(first: int, count: int, seed: int) -> None:
    start = Start(ESIRS, {"I": (1, 9)}, {"beta": (2, 3)}, samples=1000, seed=seed)
    assert (start.states(first, count) == start.states(0, 1000)[first : first + count]).all()
    beta = start.parameters(0, 1000)["beta"]
    assert (start.parameters(first, count)["beta"] == beta[first : first + count]).all()


@pytest.mark.parametrize(
    ("model", "initial", "parameters", "state"),
    [
        ("esirs", {"S": 95, "I": 5}, {}, [95, 5, 0]),
        ("esirs", {"S": 95, "R": 5}, {}, [95, 0, 5]),
        ("esirs", "fixed", {}, [95, 5, 0]),
        ("esirs", {"S": 900, "I": 50}, {"N": 1000}, [900, 50, 50]),
        ("sir", {"I": 63}, {}, [700, 63, 0]),
        ("sir", None, {"N": 1000}, None),
        ("lotka_volterra", {"prey": 7}, {}, None),
    ],
)
def test_species_not_given_share_what_is_left_of_the_population(
    model: str, initial: Any, parameters: dict[str, float], state: list[int] | None
) -> None:
    network = models.get(model)
    made = Start(network, initial, parameters).states(0, 1)[0]
    if state is not None:
        assert made.tolist() == state
    if network.population:
        assert made.sum() == {**network.parameters, **parameters}[network.population]


def test_distributions_ranges_and_given_values() -> None:
    given = np.arange(50)
    parameters = {"beta": stats.norm(2, 0.1), "gamma": (1.0, 2.0)}
    start = Start(ESIRS, {"S": given, "I": stats.poisson(5)}, parameters, samples=50)
    states, drawn = start.states(0, 50), start.parameters(0, 50)
    assert (states[:, 0] == given).all()
    assert (states.sum(axis=1) == 100).all()
    assert start.varying == ("beta", "gamma")
    assert ((drawn["gamma"] >= 1) & (drawn["gamma"] <= 2)).all()
    described = start.describe()
    assert described["parameters"]["beta"] == {"distribution": "norm(2, 0.1)"}
    assert described["initial"]["S"] == "given per trajectory"


@pytest.mark.parametrize(
    ("initial", "parameters", "says"),
    [
        ({"Q": 1}, {}, "unknown species 'Q'"),
        ({"s": 1}, {}, "did you mean 'S'"),
        ({"S": -1}, {}, "whole number >= 0"),
        ({"S": 1.5}, {}, "whole number >= 0"),
        ({"S": float("nan")}, {}, "finite"),
        ({"S": 60, "I": 60}, {}, "more than the population N=100"),
        ({"S": 1, "I": 2, "R": 3}, {}, "does not add up"),
        ({"S": (9, 3)}, {}, "empty"),
        ({"S": [1, 2, 3]}, {}, "one per trajectory"),
        ("everywhere", {}, "'fixed' or 'uniform'"),
        (None, {"bet": 1}, "did you mean 'beta'"),
        (None, {"beta": "high"}, "finite number"),
        (None, {"N": 10.5}, "whole number"),
        (None, {"N": -3}, "whole number"),
    ],
)
def test_bad_starts_are_refused_with_the_reason(
    initial: Any, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError) as caught:
        Start(ESIRS, initial, parameters, samples=2).states(0, 2)
    assert says in str(caught.value)


def test_a_uniform_start_needs_a_total() -> None:
    with pytest.raises(InputError, match="conserves no total"):
        Start(models.birth_death(), "uniform")


def test_neighbouring_seeds_and_uses_share_no_words() -> None:
    drawn = [words(seed, k, 0, 1_000) for seed in range(8) for k in (*range(6), 1_000_000)]
    assert len(np.unique(np.concatenate(drawn))) == sum(map(len, drawn))
