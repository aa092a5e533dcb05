"""Observations in guidance, against the master equation, analytic mixtures and enumeration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import MultivariateNormal

import surrogate as sg
from constraints import observe, parse, poisson, signals
from simulators import MasterEquation, models
from simulators.exact.conditions import Likelihood
from surrogate.guidance import sequential
from surrogate.guidance.cases import cases_of
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.tables.codec import TableCodec
from surrogate.model import Surrogate
from surrogate.random import stream
from tests.surrogate.guidance.bed import Bed
from tests.surrogate.kinds.tables.decoders import dataset, decoder_of, discrete, listed

COUNTS = {3: 8, 10: 15, 20: 12, 28: 9}  # half of the infected are seen
THINNED = " and ".join(f"{y} ~ binomial(I({t}), 0.5)" for t, y in COUNTS.items())


@pytest.fixture(scope="module")
def model() -> Surrogate:
    return sg.pretrained("esirs")


@pytest.fixture(scope="module")
def exact() -> MasterEquation:
    return MasterEquation(models.esirs())


def seen(counts: dict[int, int]) -> dict[int, Likelihood]:
    def likelihood(y: int) -> Likelihood:
        return Likelihood(lambda values: stats.binom.pmf(y, values["I"], 0.5))

    return {step: likelihood(y) for step, y in counts.items()}


@pytest.mark.parametrize(
    "text",
    [
        THINNED,
        "20 ~ poisson(0.9*I(25)) and 2.5 ~ normal(R(4) - S(3), 30)",
        "100 ~ normal(S(2) + I(2) + R(2), 3) and 12 ~ poisson(mean(I, 3, 8))",
        "max(I) <= 60 and 9 ~ negative_binomial(I(12), 3)",
    ],
)
def test_the_decoder_weighs_by_the_likelihood_of_what_it_draws(model: Surrogate, text: str) -> None:
    observed = Scenario(model, parse(text))
    plain = Scenario(model, parse("max(I) <= 60" if "max" in text else "true"))
    nothing = torch.zeros(200, observed.size)
    x, draw = observed.decode(nothing, math.inf, stream(3))
    same, other = plain.decode(nothing, math.inf, stream(3))
    torch.testing.assert_close(x, same)
    expected = observed.log_likelihood(x)
    torch.testing.assert_close(draw.log_weights - other.log_weights, expected)
    again = observed.decoding_log_weight(x, nothing, math.inf)
    torch.testing.assert_close(again, draw.log_weights, rtol=1e-4, atol=1e-4)


def test_thinned_counts_have_the_evidence_of_the_master_equation(
    model: Surrogate, exact: MasterEquation
) -> None:
    expected = exact.log_probability(seen(COUNTS))
    made = sample(model, 1_000, parse(THINNED), seed=1, method="sequential", particles=6_000)
    found = made.diagnostics
    assert found.quantity == "evidence"
    assert found.acceptance is None
    assert found.log_probability_error is not None
    slack = 4 * found.log_probability_error + 0.05  # and the model's own error
    assert found.log_probability == pytest.approx(expected, abs=slack)
    marginals = exact.marginals(seen(COUNTS))
    draws = exact.draw(1_000, seen(COUNTS), seed=2)
    for step in (0, 3, 10, 15, 28):
        law = marginals["I"].values[step]

        def distance(counts: np.ndarray, law: np.ndarray = law) -> float:
            shares = np.bincount(counts.astype(int), minlength=len(law)) / len(counts)
            return 0.5 * float(np.abs(shares - law).sum())

        floor = distance(draws["I"].values[:, step])
        assert distance(made.dataset["I"].values[:, step]) < 1.6 * floor + 0.03


def test_a_formula_and_observations_multiply(model: Surrogate, exact: MasterEquation) -> None:
    counts = {3: 8, 12: 15}
    text = "I(20) <= 25 and 8 ~ binomial(I(3), 0.5) and 15 ~ binomial(I(12), 0.5)"
    expected = exact.log_probability({**seen(counts), 20: "I <= 25"})
    made = sample(model, 500, parse(text), seed=1, method="sequential", particles=4_000)
    found = made.diagnostics
    assert found.quantity == "probability and evidence"
    assert found.log_probability == pytest.approx(expected, abs=0.15)
    evidence = exact.log_probability(seen(counts))
    assert found.log_evidence == pytest.approx(evidence, abs=0.15)
    assert found.log_conditional == pytest.approx(expected - evidence, abs=0.15)
    assert found.log_conditional_error is not None
    assert found.log_conditional_error < 0.2
    assert (made.dataset["I"].values[:, 20] <= 25).all()
    assert made.dataset.satisfied.all()
    assert "log_likelihood" in made.dataset


def test_auto_weighs_plain_draws_where_enough_carry_the_likelihood(
    model: Surrogate, exact: MasterEquation
) -> None:
    I = signals("I")
    text = observe(8, poisson(0.5 * I[3]))
    made = sample(model, 300, text, seed=1)
    found = made.diagnostics
    assert found.method == "rejection"
    assert "carry the likelihood" in found.why
    given = {3: Likelihood(lambda values: stats.poisson.pmf(8, 0.5 * values["I"]))}
    assert found.log_probability == pytest.approx(exact.log_probability(given), abs=0.15)
    law = exact.marginals(given)["I"].values[3]
    mean = float((law * np.arange(len(law))).sum())
    spread = math.sqrt(float((law * np.arange(len(law)) ** 2).sum()) - mean**2)
    own = made.dataset["I"].values[:, 3]
    assert own.mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(found.sample_ess))


def test_a_look_ahead_prepares_for_late_observations(
    model: Surrogate, exact: MasterEquation
) -> None:
    """A wave that is nearly over at the end: the first values decide, and plain ones do not know.

    log Z has an error of 0.3 with 4,000 particles, and of 1.5 without the look-ahead.
    """
    counts = {3: 30, 6: 33, 25: 5}
    text = " and ".join(f"{y} ~ binomial(I({t}), 0.9)" for t, y in counts.items())
    rare = Scenario(model, parse(text))
    (case,) = cases_of(rare, 0)
    assert case.lookahead is not None
    found = sequential.filtered(rare, case, 4_000, stream(5))
    blind = sequential.filtered(rare, replace(case, lookahead=None), 4_000, stream(5))
    assert found.distinct_ancestors > 2 * blind.distinct_ancestors
    given = {
        t: Likelihood(lambda values, y=y: stats.binom.pmf(y, values["I"], 0.9))
        for t, y in counts.items()
    }
    assert found.log_z == pytest.approx(exact.log_probability(given), abs=0.9)
    assert sequential.suits(rare, seed=0)


def test_particles_have_the_evidence_of_a_mixture() -> None:
    bed = Bed("a b", 8)
    text = "1.5 ~ normal(a(5), 0.4) and -0.5 ~ normal(b(2) - a(1), 0.3)"
    weights, means, covariances = bed.parts
    rows = torch.zeros(2, 16, dtype=torch.float64)
    rows[0, 5], rows[1, 10], rows[1, 1] = 1.0, 1.0, -1.0
    noise = torch.diag(torch.tensor([0.4, 0.3], dtype=torch.float64).square())
    laws = [
        MultivariateNormal(rows @ mean, rows @ covariance @ rows.T + noise)
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    y = torch.tensor([1.5, -0.5], dtype=torch.float64)
    logs = torch.stack([law.log_prob(y) for law in laws]) + weights.log()
    few = {"method": "twisted", "particles": 4_000, "steps": 30}
    made = sample(bed.model, 1_500, parse(text), seed=2, **few)
    found = made.diagnostics
    assert found.quantity == "evidence"
    assert found.log_probability == pytest.approx(float(logs.logsumexp(0)), abs=0.1)
    # the posterior mean of a(5), by the means of the parts
    shares = logs.softmax(0)
    moved = []
    for mean, covariance, law in zip(means, covariances, laws, strict=True):
        gain = torch.linalg.solve(law.covariance_matrix, rows @ covariance)[:, 5]
        moved.append(float(mean[5] + gain @ (y - rows @ mean)))
    expected = float((shares * torch.tensor(moved)).sum())
    own = made.dataset["a"].values[:, 5]
    assert own.mean() == pytest.approx(expected, abs=5 * own.std() / math.sqrt(found.sample_ess))
    assert "satisfied" not in made.dataset


def test_a_row_has_the_evidence_that_enumeration_gives() -> None:
    frame = discrete()
    data = dataset(frame)
    own = Surrogate.untrained(TableCodec.fit(data), 0, width=32, depth=1)
    own.decoder = decoder_of(data)
    rows, p = listed(own.decoder, frame)
    where = '5 ~ normal(size + grade, 0.7) and 0.8 ~ normal(known, 0.5) and colour != "blue"'
    made = own.sample(500, where=where, method="sequential", particles=8_000, seed=1)
    likelihood = stats.norm(rows["size"] + rows["grade"], 0.7).pdf(5)
    likelihood = likelihood * np.nan_to_num(stats.norm(rows["known"], 0.5).pdf(0.8))
    allowed = (rows["colour"] != "blue").to_numpy()
    exact = math.log(float((p.numpy() * likelihood * allowed).sum()))
    assert made.attrs["surrogate_log_probability"] == pytest.approx(exact, abs=0.1)
    assert made["log_likelihood"].notna().all()
    assert made["known"].notna().all()
