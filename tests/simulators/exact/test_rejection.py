"""Rejection against the master equation, and what it says when the budget is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from simulators import (
    Event,
    InputError,
    Reaction,
    ReactionNetwork,
    SimulationError,
    models,
    simulate,
)
from simulators.exact import rejection as module
from simulators.exact.conditions import Conditions
from simulators.exact.master_equation import MasterEquation
from simulators.exact.rejection import reject

ESIRS = models.esirs()
START = {"S": 95, "I": 5}
BRIDGE = {25: "S = 30"}


def test_rejection_agrees_with_the_master_equation() -> None:
    kept = reject(ESIRS, BRIDGE, 3000, seed=2, initial=START)
    solver = MasterEquation(ESIRS, START)
    off = kept.attrs["log_probability"] - solver.log_probability(BRIDGE)
    assert abs(off) < 4 * kept.attrs["log_probability_error"]
    assert (kept.S[:, 25] == 30).all()
    marginals = solver.marginals(BRIDGE)
    for name in "SI":
        for step in (1, 12, 24, 29):
            expected = 3000 * np.asarray(marginals[name][step])
            observed = np.bincount(kept[name][:, step], minlength=101)
            often = expected >= 5
            seen = np.append(observed[often], observed[~often].sum())
            wanted = np.append(expected[often], expected[~often].sum())
            assert stats.chisquare(seen, wanted * 3000 / wanted.sum()).pvalue > 1e-4


def test_it_keeps_the_first_that_hold_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = reject(ESIRS, BRIDGE, 40, seed=4, initial=START)
    whole = simulate(ESIRS, kept.attrs["simulated"], seed=4, initial=START)
    good = np.flatnonzero(Conditions(BRIDGE, ESIRS).holds(whole))
    assert kept.sample.values.tolist() == good.tolist()
    assert (len(good), good[-1]) == (40, kept.attrs["simulated"] - 1)
    xr.testing.assert_equal(kept, whole.isel(sample=good))
    monkeypatch.setattr(module, "SIMULATED_CHUNK_BYTES", 50_000)
    xr.testing.assert_identical(
        kept.drop_attrs(), reject(ESIRS, BRIDGE, 40, seed=4, initial=START).drop_attrs()
    )


def test_attributes_record_the_acceptance_rate_and_the_probability() -> None:
    kept = reject(ESIRS, BRIDGE, 50, initial=START)
    found, simulated = kept.attrs["accepted"], kept.attrs["simulated"]
    assert (found, kept.sizes["sample"]) == (50, 50)
    assert kept.attrs["acceptance_rate"] == found / simulated
    assert kept.attrs["log_probability"] == pytest.approx(np.log(49 / (simulated - 1)))
    assert kept.attrs["where"] == "step 25: S == 30"
    assert kept.attrs["complete"] == 1


def test_a_spent_budget_is_reported() -> None:
    with pytest.warns(UserWarning, match=r"gave [\d,]+ of 1,000 samples"):
        kept = reject(ESIRS, BRIDGE, 1000, initial=START, budget=2000)
    found = kept.sizes["sample"]
    assert 0 < found < 1000
    assert kept.attrs["simulated"] == 2000
    assert kept.attrs["complete"] == 0
    assert kept.attrs["log_probability"] == pytest.approx(np.log(found / 2000))


def test_nothing_found_bounds_the_probability() -> None:
    with pytest.raises(SimulationError, match=r"none of 3,000 .* \(step 25: S == 101\).* 0\.001 "):
        reject(ESIRS, {25: "S = 101"}, 10, budget=3000)


def test_parameters_that_vary_belong_to_the_trajectory() -> None:
    kept = reject(ESIRS, {0: "beta > 2.5"}, 100, parameters={"beta": (2.0, 3.0), "gamma": 1.0})
    assert float(kept.beta.min()) > 2.5
    assert kept.attrs["acceptance_rate"] == pytest.approx(0.5, abs=0.15)
    assert reject(ESIRS, {0: "gamma = 1"}, 10, parameters={"gamma": 1.0}).attrs["simulated"] == 10


def test_rejection_works_for_networks_with_events() -> None:
    network = ReactionNetwork(
        name="pulse",
        species={"X": 0},
        parameters={"k": 2.0},
        reactions=[Reaction("make", "0 -> X", "k")],
        events=[Event("double", "time >= 1", {"X": "2*X"}, initially=False)],
        until=2,
        points=3,
    )
    kept = reject(network, {2: "X >= 6"}, 200)
    assert int(kept.X[:, 2].min()) >= 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": {"S": np.array([95, 94]), "I": 5}}, "'S' has 2 values, one per trajectory"),
        ({"parameters": {"beta": [1.0, 2.0, 3.0]}}, "'beta' has 3 values"),
        ({"budget": 0}, "budget must be"),
        ({"samples": 0}, "samples must be"),
        ({"parameters": {"bets": 1.0}}, "did you mean 'beta'"),
        ({"where": {30: "S = 1"}}, r"steps are 0\.\.29"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reject(ESIRS, **{"where": BRIDGE, "samples": 10, **options})


def test_conditions_of_another_grid_are_refused() -> None:
    other = Conditions({2: "S = 3"}, ESIRS, np.linspace(0, 1, 4))
    with pytest.raises(InputError, match="another network or time grid"):
        reject(ESIRS, other, 10)


def test_conditions_read_before_follow_the_parameters_of_the_run() -> None:
    network = models.esirs()
    asked = Conditions({25: "I > 0.3*N"}, network)
    kept = reject(network, asked, 50, parameters={"N": 50}, budget=20_000)
    exact = MasterEquation(network, parameters={"N": 50}).log_probability(asked)
    assert abs(kept.attrs["log_probability"] - exact) < 5 * kept.attrs["log_probability_error"]
