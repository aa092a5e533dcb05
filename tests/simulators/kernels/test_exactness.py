"""The simulator is exact: its ensembles differ from the master equation by sampling noise only."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from simulators import models, simulate
from simulators.exact.master_equation import MasterEquation

SAMPLES = 50_000
ESIRS = models.esirs()
STARTS = {"uniform": None, "outbreak": {"S": 95, "I": 5}}


@pytest.fixture(scope="module", params=list(STARTS))
def case(request: pytest.FixtureRequest) -> tuple[MasterEquation, xr.Dataset]:
    initial = STARTS[request.param]
    return MasterEquation(ESIRS, initial), simulate(ESIRS, SAMPLES, seed=11, initial=initial)


def noise_floor(p: np.ndarray, n: int) -> tuple[float, float]:
    """Mean and sd of ½Σ|c/n - p| for multinomial counts c, cells taken as independent.

    The mean deviation of a binomial is 2 m (1 - p) P(c = m) with m = floor(np) + 1 (De Moivre).
    """
    m = np.floor(n * p) + 1
    deviation = 2 * m * (1 - p) * stats.binom.pmf(m, n, p)
    variance = np.maximum(n * p * (1 - p) - deviation**2, 0)
    return 0.5 * deviation.sum() / n, 0.5 * np.sqrt(variance.sum()) / n


def test_the_noise_floor_is_right() -> None:
    p = stats.binom.pmf(np.arange(41), 40, 0.3)
    counts = np.random.default_rng(0).multinomial(2000, p, size=4000)
    distances = 0.5 * np.abs(counts / 2000 - p).sum(axis=1)
    mean, sd = noise_floor(p, 2000)
    assert distances.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(4000))
    assert distances.std() == pytest.approx(sd, rel=0.1)


def test_marginals_at_every_step(case: tuple[MasterEquation, xr.Dataset]) -> None:
    solver, data = case
    marginals = solver.marginals()
    for name in "SIR":
        for step in range(len(solver.times)):
            p = np.asarray(marginals[name][step])
            observed = np.bincount(data[name][:, step], minlength=len(p)) / SAMPLES
            mean, sd = noise_floor(p, SAMPLES)
            distance = 0.5 * np.abs(observed - p).sum()
            assert distance <= mean + 5 * sd + 1e-12, (name, step, distance, mean, sd)


@pytest.mark.parametrize("step", [1, 5, 15, 29])
def test_joint_cells(case: tuple[MasterEquation, xr.Dataset], step: int) -> None:
    solver, data = case
    joint = np.zeros((101, 101))
    joint[solver.states[:, 0], solver.states[:, 1]] = solver.joint(step)
    cells = np.asarray(data.S[:, step], dtype=int) * 101 + np.asarray(data.I[:, step])
    observed = np.bincount(cells, minlength=101 * 101)
    expected = SAMPLES * joint.ravel()
    often = expected >= 5
    seen = np.append(observed[often], observed[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    assert stats.chisquare(seen, wanted * SAMPLES / wanted.sum()).pvalue > 1e-4


@pytest.mark.parametrize(
    "where",
    [
        {3: "I > 25", 4: "I <= 25"},
        {5: "S < 50", 6: "S < 48", 20: "S > 30"},
        {10: "S > I", 29: "S > R"},
        {"all": "I <= 45"},
    ],
)
def test_several_steps_at_once(
    case: tuple[MasterEquation, xr.Dataset], where: dict[int | str, str]
) -> None:
    solver, data = case
    p = solver.probability(where)
    found = int(solver.conditions(where).holds(data).sum())
    assert abs(found - SAMPLES * p) < 4.5 * np.sqrt(SAMPLES * p * (1 - p)) + 1
