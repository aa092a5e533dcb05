"""Ensembles: the labelled result, and every way in which a run can fail."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from simulators import InputError, Reaction, ReactionNetwork, SimulationError, models, simulate
from simulators.engine import Engine
from simulators.start import Start


def one(
    rate: str, equation: str = "X -> 0", start: int = 10, **parameters: float
) -> ReactionNetwork:
    return ReactionNetwork("n", {"X": start}, parameters, [Reaction("r", equation, rate)])


def test_the_dataset_keeps_the_contract() -> None:
    data = simulate(models.esirs(), 50, seed=7)
    assert dict(data.sizes) == {"sample": 50, "time": 30}
    assert list(data.data_vars) == ["S", "I", "R"]
    assert all(array.dtype == np.int8 for array in data.data_vars.values())
    assert all(array.dims == ("sample", "time") for array in data.data_vars.values())
    assert data.sample.attrs["standard_name"] == "realization"
    assert data.time.dtype == np.float64
    assert data.time.attrs["units"]
    np.testing.assert_allclose(data.time, np.linspace(0, 3.2, 30))
    assert (data.S.astype(int) + data.I + data.R == 100).all()
    for key in ("Conventions", "title", "source", "history", "surrogate_versions"):
        assert data.attrs[key]
    assert data.attrs["surrogate_seed"] == "7"


def test_the_attributes_are_enough_to_make_it_again() -> None:
    data = simulate(models.esirs(), 20, seed=5, initial={"S": 90}, parameters={"beta": (2, 3)})
    config = json.loads(data.attrs["surrogate_config"])
    network = ReactionNetwork.from_dict(config["network"])
    parameters = {
        name: tuple(value["range"]) if isinstance(value, dict) else value
        for name, value in config["parameters"].items()
    }
    again = simulate(
        network, 20, data.time.values, int(data.attrs["surrogate_seed"]),
        config["initial"], parameters, method=config["method"],
    )  # fmt: skip
    xr.testing.assert_equal(data, again)
    assert config["conservation_laws"] == [{"S": 1, "I": 1, "R": 1}]


@pytest.mark.parametrize(
    ("start", "kind"), [(127, np.int8), (128, np.int16), (40_000, np.int32), (2**31, np.int64)]
)
def test_types_are_the_smallest_that_hold_the_counts(start: int, kind: type) -> None:
    data = simulate(one("k", start=start, k=0.0), 3)
    assert data.X.dtype == kind
    assert (start == data.X).all()


def test_rules_and_varying_parameters_are_variables() -> None:
    network = ReactionNetwork(
        "n", {"X": 10}, {"k": 1.0, "a": 2.0}, [Reaction("r", "X -> 0", "k")],
        rules={"twice": "a*X", "late": "twice + time"},
    )  # fmt: skip
    data = simulate(network, 5, parameters={"a": np.arange(5.0), "k": stats.uniform(1, 2)})
    np.testing.assert_allclose(data.twice, np.arange(5)[:, None] * data.X)
    np.testing.assert_allclose(data.late, data.twice + data.time)
    assert data.k.dims == ("sample",)
    assert ((data.k > 1) & (data.k < 3)).all()


def test_an_absorbing_state_is_not_an_error() -> None:
    assert (simulate(one("k", start=0, k=1.0), 3).X == 0).all()
    assert (simulate(models.sir(), 3, initial={"S": 763}).S == 763).all()
    assert (simulate(ReactionNetwork("empty", {"X": 4}), 3).X == 4).all()


def test_the_grid_may_start_anywhere_and_have_one_time() -> None:
    data = simulate(models.esirs(), 5, times=[2.0, 2.5, 9.0], initial={"S": 95, "I": 5})
    assert (data.S[:, 0] == 95).all()
    assert simulate(models.esirs(), 5, times=[1.0]).sizes["time"] == 1


@pytest.mark.parametrize(
    ("network", "says"),
    [
        (one("k*(X - 4.5)", "X -> 0", k=1.0), ["'r'", "-0.5", "X=4", "k*(X - 4.5)"]),
        (one("k*X/(X - 5)", "X -> 0", k=1.0), ["'r'", "inf", "X=5"]),
        (one("(X - 5)/(X - 5)", "X -> 0"), ["'r'", "nan", "X=5"]),
        (ReactionNetwork("n", {"X": 1}, {}, [Reaction("r", "X -> 0", 9.0, mass_action=False)]),
         ["'r'", "make X negative", "must be 0 when reactants run out"]),
        (one("sqrt(X - 4.5)", "X -> 0"), ["'r'", "nan", "X=4"]),
        (one("log(X - 3)*log(X - 4.5)^2", "X -> 0"), ["'r'", "nan", "X=4"]),
    ],
)  # fmt: skip
def test_bad_rates_stop_the_run_and_say_where(network: ReactionNetwork, says: list[str]) -> None:
    with pytest.raises(SimulationError) as caught:
        simulate(network, 100)
    for part in says:
        assert part in str(caught.value)


@pytest.mark.parametrize("method", ["direct", "tau"])
def test_an_explosion_meets_the_event_budget(method: str) -> None:
    says = "max_events=50,000" if method == "direct" else r"past 2\^53"
    with pytest.raises(SimulationError, match=says):
        simulate(one("X*X", "X -> 2 X"), 40, method=method, max_events=50_000)


@pytest.mark.parametrize("kernel", ["lanes", "graph"])
def test_the_event_budget_is_exact(kernel: str) -> None:
    """A pure death of ten has exactly ten events."""
    network = one("k", k=100.0)
    engine = Engine(
        network, Start(network, samples=50), network.times, kernel=kernel, max_events=10
    )
    out = np.empty((50, 1, 30))
    engine.fill(0, out)
    assert (out[:, 0, -1] == 0).all()
    engine = Engine(network, Start(network, samples=50), network.times, kernel=kernel, max_events=9)
    with pytest.raises(SimulationError, match="max_events=9"):
        engine.fill(0, out)


def test_a_name_or_a_function_is_not_a_network() -> None:
    for wrong in ("esirs", models.esirs):
        with pytest.raises(InputError, match=r"models.esirs\(\)"):
            simulate(wrong)  # type: ignore[arg-type]


def test_rates_that_overflow_are_reported() -> None:
    with pytest.raises(SimulationError, match="'infection' has the rate inf at time 0"):
        simulate(models.esirs(), 40, parameters={"beta": 1e308}, initial={"S": 50, "I": 50})


def test_leaps_past_the_exact_integers_in_one_event_are_reported() -> None:
    with pytest.raises(SimulationError, match=r"2\^53"):
        simulate(one("k", "0 -> 10000000000000000 X", k=1.0), 3)


def test_a_population_may_be_a_range() -> None:
    data = simulate(models.esirs(), 30, parameters={"N": (50, 60)})
    assert ((data.N >= 50) & (data.N <= 60)).all()
    assert (data.S.astype(int) + data.I + data.R == data.N).all()


def test_counts_past_the_exact_integers_are_refused() -> None:
    with pytest.raises(SimulationError, match=r"2\^53"):
        simulate(one("k", "0 -> X", k=1e18), 2, method="tau", times=[0, 1])


def test_an_ode_that_explodes_says_so() -> None:
    with pytest.raises(SimulationError, match="stiff or explodes"):
        simulate(one("X*X", "X -> 2 X"), 1, method="ode")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"samples": 0}, "samples must be"),
        ({"samples": 2.5}, "samples must be"),
        ({"times": [0, 1, 1]}, "times must increase: 1 is followed by 1"),
        ({"times": []}, "at least one"),
        ({"times": [0, float("nan")]}, "finite"),
        ({"times": "abc"}, "numbers"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 2**64}, "seed must be"),
        ({"threads": 0}, "threads must be a whole number from 1"),
        ({"max_events": 0}, "max_events must be"),
        ({"first": -1}, "first must be"),
        ({"first": 1.5}, "first must be"),
        ({"first": 2**63}, "first must be"),
        ({"threads": "2"}, "threads must be"),
        ({"max_events": 10**30}, "max_events must be"),
        ({"initial": ["S"]}, "initial is a mapping"),
        ({"parameters": ["beta"]}, "parameters is a mapping"),
        ({"initial": {"S": (1, 1.5)}}, "whole bounds"),
        ({"parameters": {"N": 10**30}}, "2\\^53"),
        ({"parameters": {"N": 0, "beta": 1}, "initial": {"S": 0}}, "in a rate law is"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        simulate(models.esirs(), **options)


def test_progress_counts_every_trajectory() -> None:
    seen: list[int] = []
    simulate(models.esirs(), 5_000, progress=seen.append, threads=2)
    assert sum(seen) == 5_000


def test_a_grid_is_stated_by_its_number_of_points_and_its_end() -> None:
    network = models.sir()
    data = simulate(network, samples=3, points=50, until=10)
    np.testing.assert_array_equal(data.time, np.linspace(0, 10, 50))
    assert simulate(network, 1, points=5).time.values[-1] == network.until
    assert simulate(network, 1, until=2).sizes["time"] == network.points


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": 0}, "points must be a whole number from 2"),
        ({"points": 2.5}, "points must be a whole number from 2"),
        ({"points": True}, "points must be a whole number from 2"),
        ({"until": 0}, "until must be a number > 0"),
        ({"until": "long"}, "until must be a number > 0"),
        ({"times": [0, 1], "points": 3}, r"give either times=... or points=... and until=..."),
    ],
)
def test_an_invalid_time_grid_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(models.sir(), 1, **options)


def test_parameters_given_as_a_range_vary_between_trajectories() -> None:
    data = simulate(models.sir(), samples=200, seed=0, parameters={"beta": (0.5, 3.0)}, points=3)
    assert data.I.dims == ("sample", "time")
    assert data.beta.dims == ("sample",)
    assert 0.5 <= float(data.beta.min()) < 0.7 < 2.8 < float(data.beta.max()) <= 3.0
