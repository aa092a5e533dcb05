"""Runs that carry no information, scenarios without hope, and probabilities given the laws."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from constraints import parse
from surrogate.errors import DegenerateError, SamplingError
from surrogate.guidance.choice import Pilot
from surrogate.guidance.method import method_named
from surrogate.guidance.outcome import Outcome, Plain, Question
from surrogate.guidance.plain_draws import Accepted, reject
from surrogate.guidance.rejection import answer as by_rejection
from surrogate.guidance.sampler import given_the_laws, sample
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.twisted_batches import answer
from surrogate.random import Sampling, stream
from tests.surrogate.guidance.bed import Bed

HOPELESS = "a(3) >= 0 and a(4) * a(4) <= -0.5"  # nothing is proved of products
HARD = "a(2) >= 3.2 and a(5) <= -1 and a(8) >= 2"
RARE = "a(3) >= 9 and a(4) * a(5) <= -4"  # neighbours that are very unlike


@pytest.fixture(scope="module")
def bed() -> Bed:
    return Bed("a", 11)


def question(bed: Bed, text: str, samples: int = 50, **settings: object) -> Question:  # type: ignore[type-arg]
    method = method_named("twisted")
    scenario = Scenario(bed.model, parse(text))
    own = method.resolve(method.settings(**settings), scenario)  # type: ignore[arg-type]
    return Question(scenario, samples, 0, own)


def test_a_stated_number_of_particles_is_kept_to(bed: Bed) -> None:
    """64 particles are too few for 500 samples, and by default there would be more."""
    said: list[str] = []
    asked = question(bed, HARD, 500, particles=64, steps=4, keep_degenerate=True)
    found = answer(replace(asked, say=said.append))
    assert found.warnings
    assert found.particles == 64
    assert not said


def test_particles_are_doubled_by_default(bed: Bed) -> None:
    said: list[str] = []
    asked = replace(question(bed, HARD, 500, steps=4, keep_degenerate=True), say=said.append)
    found = answer(asked)
    assert found.particles > 4_000
    assert any("again with 8,000 particles, 6 steps" in each for each in said)


def test_a_degenerate_run_is_an_error_that_says_what_to_do(bed: Bed) -> None:
    settings = {"method": "twisted", "particles": 40, "steps": 6, "pilot_samples": 50}
    with pytest.raises(DegenerateError) as problem:
        sample(bed.model, 30, RARE, seed=1, **settings)
    assert problem.value.exit_code == 4
    told = problem.value.render("command")
    assert "the run is degenerate: " in told
    assert "--particles 160 and --steps 12; --keep-degenerate returns" in told


def test_a_degenerate_run_may_be_kept(bed: Bed) -> None:
    settings = {"method": "twisted", "particles": 40, "steps": 6, "pilot_samples": 50}
    found = sample(bed.model, 30, RARE, seed=1, keep_degenerate=True, **settings).diagnostics
    assert found.degenerate
    assert found.samples == 30
    assert found.sample_ess <= min(found.ancestors, 30)


def test_the_part_that_no_particle_meets_is_named(bed: Bed) -> None:
    with pytest.raises(SamplingError) as problem:
        sample(bed.model, 20, HOPELESS, method="twisted", particles=400, steps=10, pilot_samples=50)
    told = str(problem.value)
    assert "none of 200 particles and none of 50 plain samples meet the scenario" in told
    assert "'a(4) * a(4) <= -0.5' is met by 0 of 200 particles and 0 of 50 plain samples" in told
    assert "relax that part" in told


def test_a_hopeless_scenario_costs_few_particles_whatever_the_number_of_samples(bed: Bed) -> None:
    """30,000 particles in three attempts of 40 levels and more would be 13 times that."""
    done: list[float] = []
    asked = question(bed, HOPELESS, 10_000)
    plain = Plain(bed.draw(100, 1), 0)
    with pytest.raises(SamplingError, match="none of 1,000 particles"):
        answer(replace(asked, plain=plain, progress=done.append))
    assert len(done) <= 27 + 60 + 2


def test_two_parts_that_exclude_one_another_are_named_together(bed: Bed) -> None:
    text = "a(3) * a(4) >= 0.01 and a(3) * a(4) <= -0.01"
    with pytest.raises(SamplingError) as problem:
        sample(bed.model, 20, text, method="twisted", particles=400, steps=10, pilot_samples=50)
    told = str(problem.value)
    assert "'a(3) * a(4) >= 0.01' and 'a(3) * a(4) <= -0.01' are met together by 0 of 200" in told


def test_samples_are_worth_at_most_their_number_and_their_ancestors() -> None:
    """3,673 effective particles, of which 200 samples with 150 ancestors are taken."""
    x = torch.randn(200, 3, generator=stream(0), dtype=torch.float64)
    found = Outcome.even(x, particles=9_000, ess=3_673.0, steps=40, evaluations=0)
    assert found.sample_ess == pytest.approx(200)
    found.ancestors = torch.arange(200) % 150
    assert found.sample_ess == pytest.approx(150)
    found.log_weights = torch.where(torch.arange(200) < 10, 0.0, -math.inf).double()
    assert found.sample_ess == pytest.approx(10)


def test_a_warning_of_improbability_allows_for_the_number_of_equations(bed: Bed) -> None:
    """Eight ordinary values within ±1e-3 have a probability of 1e-20, and are no extrapolation."""
    x = bed.draw(1, 3)[0]
    ordinary = " and ".join(f"a({t}) = {float(x[t])!r} +- 0.001" for t in range(1, 9))
    settings = {"method": "twisted", "particles": 2_000, "steps": 40, "pilot_samples": 50}
    found = sample(bed.model, 50, ordinary, **settings, keep_degenerate=True).diagnostics
    assert found.log_probability is not None
    assert found.log_probability < -40
    assert not any("far from the training data" in each for each in found.warnings)
    strange = sample(bed.model, 50, "a(5) = 12 +- 0.1", **settings, keep_degenerate=True)
    assert any("far from the training data" in each for each in strange.diagnostics.warnings)


def test_equal_samples_of_different_ancestors_are_no_copies() -> None:
    x = torch.tensor([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]]).double()
    found = Outcome.even(x, steps=1, evaluations=1)
    assert found.copies == 0
    found.ancestors = torch.tensor([0, 0, 2, 3])
    assert found.copies == 1


# --- laws that plain samples break ----------------------------------------------------------------


def outcome(log_p: float) -> Outcome:
    x = torch.zeros(5, 2, dtype=torch.float64)
    return Outcome.even(
        x, steps=1, evaluations=1, log_probability=log_p, log_probability_error=0.1, batches=[log_p]
    )


def lawful(count: int) -> Pilot:
    """A pilot of 100 draws of which so many obey the laws."""
    none = torch.zeros(0, 2, dtype=torch.float64)
    return Pilot(Accepted(none, 100, 0, count), 1e-3)


def test_the_probability_of_particles_is_given_the_laws() -> None:
    found = outcome(math.log(0.01))
    given_the_laws(found, "twisted", lawful(20))
    assert found.log_probability == pytest.approx(math.log(0.05))
    assert found.batches == pytest.approx([math.log(0.05)])
    assert found.log_probability_error == pytest.approx(math.hypot(0.1, 0.2))
    assert found.warnings == [
        "80 of 100 plain samples break a law: the probability is that given the laws"
    ]


def test_the_probability_is_unknown_where_no_plain_sample_obeys_the_laws() -> None:
    found = outcome(-3.0)
    given_the_laws(found, "twisted", lawful(0))
    assert found.log_probability is None
    assert found.log_probability_error is None
    assert "the probability given the laws is unknown" in found.warnings[0]


def test_nothing_is_said_where_all_plain_samples_obey_the_laws() -> None:
    found = outcome(-3.0)
    given_the_laws(found, "twisted", lawful(100))
    assert found.log_probability == -3.0
    assert not found.warnings


def test_the_probability_of_rejection_is_given_the_laws(bed: Bed) -> None:
    """P(a(3) >= 0.5 | a(4) >= 1), by exact draws of the mixture."""
    scenario = Scenario(bed.model, parse("a(3) >= 0.5"), {"law": parse("a(4) >= 1")})
    method = method_named("rejection")
    found = by_rejection(Question(scenario, 300, 0, method.settings(steps=20)))
    exact = bed.draw(200_000, 1)
    law = exact[:, 4] >= 1
    truth = float((exact[law][:, 3] >= 0.5).double().mean())
    assert found.log_probability is not None
    assert abs(math.exp(found.log_probability) - truth) < 0.1
    drawn = reject(scenario, 300, 300, 0, Sampling.PILOT, steps=20)
    assert abs(drawn.lawful_share - float(law.double().mean())) < 0.1
