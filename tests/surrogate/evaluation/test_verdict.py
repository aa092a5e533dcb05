"""The verdict in words: its bounds, and what it says of good, flawed and useless samples."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from surrogate.data import evaluate
from surrogate.evaluation.result import Distance
from surrogate.evaluation.verdict import (
    SUMMARIES,
    Reason,
    Verdict,
    level_of,
    level_of_accuracy,
    level_of_excess,
    level_of_laws,
    too_few,
)
from surrogate.evaluation.weights import Array
from tests.surrogate.evaluation.test_evaluate import epidemic


@pytest.mark.parametrize(
    ("value", "floor", "deviation", "level"),
    [
        (0.05, 0.04, 0.001, "good"),  # 1.25 times the floor
        (0.018, 0.01, 0.001, "good"),  # 0.008 above it
        (0.09, 0.05, 0.02, "good"),  # two deviations
        (0.09, 0.05, 0.002, "care"),
        (0.2, 0.15, 0.002, "good"),
        (0.16, 0.05, 0.002, "poor"),  # 3.2 times the floor, 0.11 above it
        (0.4, 0.2, 0.002, "care"),
        (0.55, 0.2, 0.002, "poor"),
    ],
)
def test_histogram_distances_have_levels(
    value: float, floor: float, deviation: float, level: str
) -> None:
    assert level_of(Distance(value, floor, deviation)) == level


def test_a_difference_of_correlations_must_be_large_enough_to_matter() -> None:
    tiny = Distance(0.006, 0.001, 0.0001)
    assert level_of_excess(tiny) == "care"
    assert level_of_excess(tiny, negligible=0.01) == "good"
    assert level_of_excess(Distance(0.2, 0.01, 0.001), 0.01, 0.15) == "poor"
    assert level_of_excess(Distance(0.03, 0.01, 0.01), 0.01, 0.15) == "good"  # by chance


@pytest.mark.parametrize(
    ("accuracy", "error", "floor", "level"),
    [
        (0.54, 0.005, 0.5, "good"),
        (0.56, 0.005, 0.5, "care"),
        (0.56, 0.02, 0.5, "good"),
        (0.85, 0.005, 0.5, "poor"),
        (0.62, 0.005, 0.6, "good"),  # of windows that overlap
    ],
)
def test_accuracies_have_levels(accuracy: float, error: float, floor: float, level: str) -> None:
    assert level_of_accuracy(accuracy, error, floor) == level


def test_laws_have_levels() -> None:
    shares = (1.0, 0.9995, 0.99, 0.5)
    assert [level_of_laws(each) for each in shares] == ["good", "good", "care", "poor"]


def test_the_gravest_reason_decides() -> None:
    found = Verdict.of([Reason("good", "A."), Reason("poor", "B."), Reason("care", "C.")])
    assert (found.level, found.words, found.summary) == ("poor", "not usable", SUMMARIES["poor"])
    assert found.reasons == ("B.", "C.", "A.")
    assert Verdict.of([]).words == "good"
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["words"], told["against"], told["good"]) == ("not usable", ["B.", "C."], ["A."])


def test_samples_at_the_floor_can_be_trusted() -> None:
    found = evaluate(epidemic(900, seed=1), epidemic(900, seed=2))
    assert found.verdict.level == "good", found.verdict.against
    assert "can be trusted" in found.verdict.summary
    assert any("cannot tell samples from the reference" in each for each in found.verdict.good)
    assert any("obeys the laws" in each for each in found.verdict.good)
    assert found.to_dict()["verdict"] == found.verdict.to_dict()


def test_few_samples_are_used_with_care_on_either_side() -> None:
    for count, other in ((10, 10), (100, 900), (900, 100)):
        found = evaluate(epidemic(count, seed=1), epidemic(other, seed=2))
        floor = found.overall.median.floor
        assert found.verdict.level == "care"
        assert found.verdict.against == (
            f"Only {min(count, other)} samples are compared: differences below D = {floor:.2f} "
            "cannot be seen.",
        )


def test_few_effective_samples_are_used_with_care() -> None:
    data, against = epidemic(900, seed=1), epidemic(900, seed=2)
    weights = np.where(np.arange(900) < 100, 0.0, -30.0)
    for weighted, plain in ((data, against), (against, data)):
        weighted = weighted.assign(log_weight=("sample", weights))
        pair = (weighted, plain) if plain is against else (plain, weighted)
        found = evaluate(*pair)
        assert found.compared == pytest.approx(100, rel=1e-3)
        assert found.verdict.words == "usable with care"
        assert found.verdict.against[0].startswith("Only 100 samples are compared")


def test_the_number_of_samples_is_no_reason_where_others_decide() -> None:
    found = evaluate(epidemic(100, seed=1, rate=0.4), epidemic(100, seed=2))
    assert found.verdict.level == "poor"
    assert not any("samples are compared" in each for each in found.verdict.against)


def test_200_samples_are_enough() -> None:
    assert too_few(200, 0.1) is None
    assert too_few(199, 0.1) is not None


def rough(data: xr.Dataset, share: float, seed: int = 0) -> xr.Dataset:
    """The same with some cases moved between S and R at some steps: levels hardly change."""
    random, made = np.random.default_rng(seed), data.copy(deep=True)
    shift: Array = random.integers(-4, 5, data.S.shape) * (random.random(data.S.shape) < share)
    shift = np.clip(shift, -data.R.values, data.S.values).astype(np.int8)
    shift[:, 0] = 0
    made["S"], made["R"] = data.S - shift, data.R + shift
    return made


def test_samples_with_rough_increments_are_used_with_care() -> None:
    found = evaluate(rough(epidemic(2_000, seed=1), 0.5), epidemic(2_000, seed=2))
    assert found.overall.median.ratio < 1.3
    assert found.trees.accuracy > 0.55
    assert found.verdict.level != "good"


def test_samples_that_break_laws_are_not_usable() -> None:
    broken = epidemic(600, seed=1)
    broken["S"][:100, 3] += 1
    found = evaluate(broken, epidemic(600, seed=2))
    assert found.consistent == pytest.approx(5 / 6)
    assert found.verdict.words == "not usable"
    assert any("break a law of the network" in each for each in found.verdict.against)


def test_another_epidemic_is_not_usable() -> None:
    found = evaluate(epidemic(seed=1, rate=0.4), epidemic(seed=2))
    assert found.verdict.words == "not usable"


# --- floors of samples that depend on each other --------------------------------------------------


def test_floors_of_data_against_data_replace_those_of_splits() -> None:
    x, y, z = (epidemic(300, seed=k) for k in range(3))
    found, data = evaluate(x, y), evaluate(z, y)
    made = found.with_floors_of(data)
    assert made.overall.median.value == found.overall.median.value
    assert made.overall.median.floor == data.overall.median.value
    assert made.variables[1].max.floor == data.variables[1].max.value
    assert made.energy.floor == data.energy.value
    assert made.trees.floor == max(0.5, data.trees.accuracy)
    assert made.classifier == found.classifier
    assert made.times == found.times
