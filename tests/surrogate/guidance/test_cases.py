"""Scenarios by cases: probabilities against enumeration and the master equation."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import surrogate as sg
from constraints import parse
from simulators import MasterEquation, models
from surrogate.guidance import sequential, smc
from surrogate.guidance.cases import EVEN_SHARE, Allocation, cases_of, log_share
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.tables.codec import TableCodec
from surrogate.model import Surrogate
from surrogate.random import stream
from tests.surrogate.kinds.tables.decoders import dataset, decoder_of, discrete, listed

PARTICLES = 8_000
ALTERNATIVES = {
    'colour != "blue" or grade >= 4': lambda r: (r["colour"] != "blue") | (r["grade"] >= 4),
    "size > 3 or known >= 0": lambda r: (r["size"] > 3) | (r["known"] >= 0),
    "size >= 4.5 implies known = 1": lambda r: (r["size"] < 4.5) | (r["known"] == 1),
    'grade <= 2 xor colour = "red"': lambda r: (r["grade"] <= 2) != (r["colour"] == "red"),
    "size > 3 or size > 3.2 or size > 4": lambda r: r["size"] > 3,
    '(grade = 1 or size >= 5) and (known = 0 or colour in {"red", "green"})': lambda r: (
        ((r["grade"] == 1) | (r["size"] >= 5)) & ((r["known"] == 0) | (r["colour"] != "blue"))
    ),
}


@cache
def table() -> tuple[Surrogate, pd.DataFrame, Tensor]:
    """A model with random weights, all rows that there can be, and their probabilities."""
    frame = discrete()
    data = dataset(frame)
    model = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    model.decoder = decoder_of(data)
    return model, *listed(model.decoder, frame)


@pytest.mark.parametrize("where", ALTERNATIVES)
def test_alternatives_have_the_probability_and_the_rows_that_enumeration_gives(where: str) -> None:
    model, rows, p = table()
    met = torch.tensor(ALTERNATIVES[where](rows).to_list())
    made = sample(model, 2_000, where, method="sequential", particles=PARTICLES, seed=1)
    exact = float(p[met].sum())
    assert made.dataset.satisfied.all()
    # at least a quarter of the particles are effective
    assert made.diagnostics.ess > PARTICLES / 4
    error = math.sqrt((1 - exact) / exact / (PARTICLES / 4))
    assert made.diagnostics.log_probability == pytest.approx(math.log(exact), abs=5 * error)
    for name in ("colour", "grade"):
        wanted = pd.Series((p * met).numpy()).groupby(rows[name]).sum() / exact
        labels = made.dataset[name].values
        if name == "colour":
            labels = np.array([str(each) for each in labels])
        found = pd.Series(labels).value_counts(normalize=True).reindex(wanted.index).fillna(0)
        assert float((found - wanted).abs().max()) < 5 * 0.5 / math.sqrt(1_000)


def test_the_shares_of_a_row_in_its_cases_add_up_to_1() -> None:
    model, _, _ = table()
    scenario = Scenario(model, parse("size > 4 or known >= 1 or grade = 3 or size > 4.5"))
    x = model.draw(500, seed=3).double()
    shares = [log_share(scenario, case, x).exp() for case in cases_of(scenario, 0)]
    assert len(shares) == 4
    met = scenario.satisfied(x).satisfied
    torch.testing.assert_close(torch.stack(shares).sum(0), met.double())
    assert 0 < int(met.sum()) < 500


def test_a_case_gets_particles_by_its_probability_and_effective_share() -> None:
    assert Allocation.of([-3.0], [0.2]) == Allocation((1.0,), pytest.approx(0.2))
    found = Allocation.of([math.log(0.3), math.log(0.1), -math.inf], [1.0, 0.25, 0.0])
    even = EVEN_SHARE / 3
    rest = 1 - EVEN_SHARE
    assert found.shares == pytest.approx((even + rest * 0.6, even + rest * 0.4, even))
    assert found.effective == pytest.approx(
        0.4**2 / (0.3**2 / found.shares[0] + 0.1**2 / found.shares[1] / 0.25)
    )
    assert sum(found.counts(1_000)) == pytest.approx(1_000, abs=3)
    assert Allocation.of([-math.inf, -math.inf], [0.0, 0.0]) == Allocation((0.5, 0.5), 0.0)


def test_no_other_division_of_the_particles_has_a_greater_ess() -> None:
    log_p, effective = [math.log(0.3), math.log(0.1)], [1.0, 0.04]
    best = 0.3 / (0.3 + 0.1 / 0.2)

    def ess(share: float) -> float:
        return 0.4**2 / (0.3**2 / share + 0.1**2 / (1 - share) / 0.04)

    shares = np.linspace(0.01, 0.99, 99)
    assert max(map(ess, shares)) <= ess(best)
    assert Allocation.of(log_p, effective).effective == pytest.approx(ess(best), rel=EVEN_SHARE)


# --- trajectories ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def esirs() -> Surrogate:
    return sg.pretrained("esirs")


def estimates(scenario: Scenario, particles: int, batches: int) -> list[float]:
    """Of log P, by independent batches."""
    cases = cases_of(scenario, 0)
    counts = sequential.allocated(scenario, cases, 0).counts(particles)
    return [
        sequential.batch_of(scenario, cases, counts, stream(5, k)).log_z for k in range(batches)
    ]


def test_two_tails_have_the_probability_of_the_master_equation(esirs: Surrogate) -> None:
    start = "S(0) = 95 and I(0) = 5"
    whole, alone = (
        smc.log_mean_exp(torch.tensor(estimates(Scenario(esirs, parse(text)), 1_500, 4)))
        for text in (f"{start} and (I(15) >= 42 or I(15) <= 18)", start)
    )
    law = MasterEquation(models.esirs(), initial={"S": 95, "I": 5})
    exact = law.log_probability({15: "I >= 42 or I <= 18"})
    assert float(whole - alone) == pytest.approx(exact, abs=0.2)  # 0.05 of it noise


def test_exists_has_the_probability_of_the_master_equation(esirs: Surrogate) -> None:
    """Rare, of cases that overlap."""
    scenario = Scenario(esirs, parse("exists t in [16, 20]: I(t) <= 5"))
    assert len(scenario.cases) == 5
    found = smc.log_mean_exp(torch.tensor(estimates(scenario, 2_000, 3)))
    never = MasterEquation(models.esirs()).probability(dict.fromkeys(range(16, 21), "I > 5"))
    # noise 0.1, and the model's own error as in other rare scenarios
    assert float(found) == pytest.approx(math.log1p(-never), abs=0.5)
