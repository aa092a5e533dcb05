"""What `auto` chooses: the method that takes less time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from constraints import parse
from surrogate.guidance.choice import Pilot, choose, level_seconds, run_pilot
from surrogate.guidance.outcome import Question
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.settings import Settings
from tests.surrogate.guidance.bed import Bed

SAMPLES = 500


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Scenario(Bed("a", 11).model, parse("a(3) >= 1"))


@pytest.fixture(scope="module")
def pilot(scenario: Scenario) -> Pilot:
    return run_pilot(scenario, 0, 400)


@pytest.mark.parametrize(
    ("times", "method"), [(1e-3, "rejection"), (1.0, "rejection"), (1e5, "twisted")]
)
def test_the_time_of_a_draw_decides_and_not_its_number(
    scenario: Scenario, pilot: Pilot, times: float, method: str
) -> None:
    """`times`: the time of a draw, in evaluations of a particle."""
    seconds = times * level_seconds(scenario, "gaussian")
    chosen, why, _ = choose(scenario, {}, SAMPLES, 0, replace(pilot, seconds=seconds))
    assert chosen.name == method
    assert "draws, or 4,000 particles that take as long as" in why


def test_a_pilot_goes_on_where_draws_are_cheap_and_few_are_accepted() -> None:
    scenario = Scenario(Bed("a", 11).model, parse("a(3) >= 2.5"))
    pilot = run_pilot(scenario, 0, 100)
    seconds = level_seconds(scenario, "gaussian")
    assert len(pilot.accepted.x) < 5
    _, _, more = choose(scenario, {}, 20, 0, replace(pilot, seconds=seconds))
    assert more.accepted.drawn > pilot.accepted.drawn
    assert len(more.plain.x) == more.accepted.drawn
    _, _, same = choose(scenario, {}, 20, 0, replace(pilot, seconds=1e4 * seconds))
    assert same.accepted.drawn == pilot.accepted.drawn


def test_weighted_samples_are_those_of_particles(scenario: Scenario, pilot: Pilot) -> None:
    chosen, why, _ = choose(scenario, {"weighted": True}, SAMPLES, 0, replace(pilot, seconds=1e-9))
    assert chosen.name == "twisted"
    assert why == "weighted samples are requested"


def test_a_run_is_not_repeated_where_rejection_would_be_faster(scenario: Scenario) -> None:
    question = Question(scenario, 100, 0, Settings(), draw_seconds=1e-3)
    assert question.rejection_is_faster(-2.0, 10.0)  # 739 draws
    assert not question.rejection_is_faster(-2.0, 0.5)
    assert not question.rejection_is_faster(-1e4, 1e9)
    assert not replace(question, draw_seconds=None).rejection_is_faster(-2.0, 10.0)
