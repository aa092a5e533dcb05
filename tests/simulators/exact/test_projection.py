"""Finite state projection as larger spaces use it: grown by jumps, then pruned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from simulators import SimulationError, models
from simulators.exact import projection
from simulators.exact.master_equation import MasterEquation


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9, 1e-15])
def test_spaces_grown_by_jumps_lose_what_they_say(
    tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the Poisson marginals of immigration and death, in total variation."""
    whole = MasterEquation(models.birth_death(), times=[0.0, 4.0, 10.0], tolerance=tolerance)
    monkeypatch.setattr(projection, "SMALL_SPACE", 5)
    solver = MasterEquation(models.birth_death(), times=[0.0, 4.0, 10.0], tolerance=tolerance)
    assert 0 < solver.truncation_error <= tolerance
    assert len(solver.states) < 1.5 * len(whole.states)
    marginals = solver.marginals()
    for step, time in enumerate(solver.times):
        mean = 100 * (1 - np.exp(-0.1 * time))
        error = 0.5 * np.abs(marginals.X[step] - stats.poisson.pmf(marginals.value, mean)).sum()
        assert error <= solver.truncation_error + 1e-13  # rounding of a thousand products


def test_two_species_grown_by_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MasterEquation(models.toggle_switch(), times=[0.0, 2.0])
    monkeypatch.setattr(projection, "SMALL_SPACE", 5)
    solver = MasterEquation(models.toggle_switch(), times=[0.0, 2.0])
    assert solver.truncation_error <= 1e-9
    assert len(solver.states) < len(whole.states)
    p = {1: "U > V + 3"}
    assert abs(solver.probability(p) - whole.probability(p)) <= 2e-9
    with pytest.raises(SimulationError, match="max_states=50 states"):
        MasterEquation(models.toggle_switch(), times=[0.0, 2.0], max_states=50)
