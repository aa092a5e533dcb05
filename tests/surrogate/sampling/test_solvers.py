"""Solvers by name: which a model may use, their steps, and the noise level at which they stop."""

from __future__ import annotations

import pytest
import torch

from surrogate.errors import ModelError
from surrogate.sampling.solvers import AUTOREGRESSIVE, SOLVERS, solve, solver_named, steps_of
from surrogate.sampling.steps import SIGMA_MAX
from tests.surrogate.analytic import assert_moments, gaussian, generator

DIFFUSIONS = [name for name in SOLVERS if name != AUTOREGRESSIVE]
SLACK = 0.08  # relative, of 40 steps from SIGMA_MAX, or of 300 by Euler-Maruyama


@pytest.mark.parametrize("handover", [None, 0.3, 1.0])
@pytest.mark.parametrize("solver", DIFFUSIONS)
def test_a_solver_stops_at_data_or_at_the_level_of_a_decoder(
    solver: str, handover: float | None
) -> None:
    """Data with covariance C, or with C + σ² I where noise of the level σ is left."""
    data, n = gaussian(3), 3_000
    x = SIGMA_MAX * torch.randn((n, 3), generator=generator(1), dtype=torch.float64)
    steps = 300 if solver == "predictor-corrector" else 40
    made = solve(solver, data, x, steps, data.covariance, generator(2), handover)
    exact = data.covariance.matrix(data.covariance.values)
    noise = (handover or 0.0) ** 2 * torch.eye(3, dtype=torch.float64)
    assert_moments(made, data.mean, exact + noise, slack=SLACK)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_has_default_steps(solver: str) -> None:
    assert steps_of(solver, None) >= 2
    assert steps_of(solver, 7) == 7
    with pytest.raises(ModelError, match="steps must be a whole number from 2 to 100,000, not 1"):
        steps_of(solver, 1)


def test_solvers_are_refused_by_name() -> None:
    assert solver_named(AUTOREGRESSIVE, decoder=True) == AUTOREGRESSIVE
    with pytest.raises(ModelError, match="no decoder, which the solver autoregressive needs"):
        solver_named(AUTOREGRESSIVE, decoder=False)
    for decoder in (True, False):
        with pytest.raises(ModelError, match="unknown solver 'magic'"):
            solver_named("magic", decoder=decoder)
        assert solver_named("ode", decoder=decoder) == "ode"
