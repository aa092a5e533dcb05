"""The verdict on calibrated and miscalibrated posteriors of a Gaussian, whose answer is exact.

θ ~ N(0, 1) and y ~ N(θ, s²) have the posterior N(y / (1 + s²), s² / (1 + s²)).
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from surrogate.calibration.page import page
from surrogate.calibration.result import REPLICATE_COLUMNS, Calibration
from surrogate.evaluation.ranks import randomised_ranks

NOISE = 0.5
DRAWS = 99


def gaussian(
    replicates: int = 300,
    width: float = 1.0,
    shift: float = 0.0,
    source: str = "given",
    failed: int = 0,
    seed: int = 1,
) -> Calibration:
    """Calibration of a posterior with `width` times the deviation, shifted by `shift` of them."""
    random = np.random.default_rng(seed)
    theta = random.normal(size=(replicates, 2))
    y = theta + NOISE * random.normal(size=theta.shape)
    sd = NOISE / np.sqrt(1 + NOISE**2)
    draws = y / (1 + NOISE**2) + sd * (shift + width * random.normal(size=(DRAWS, *theta.shape)))
    rows = []
    for i in range(replicates):
        u = randomised_ranks(theta[i], draws[:, i], random.random(2))
        own = draws[:, i]
        for q, name in enumerate("ab"):
            values = [i, name, theta[i, q], u[q], own[:, q].mean(), own[:, q].std(), DRAWS, ""]
            if i < failed:
                values = [i, name, theta[i, q], *[np.nan] * 4, "no sample was found"]
            rows.append(dict(zip(REPLICATE_COLUMNS, values, strict=True)))
    return Calibration(
        pd.DataFrame(rows), ("a", "b"), ("observed: a ~ normal",), source, DRAWS, replicates, 0, 1.0
    )


def test_the_exact_posterior_is_good() -> None:
    found = gaussian()
    assert found.verdict.words == "good"
    for level, (share, error) in found.coverage.items():
        assert abs(share - level) < 4 * error
    for each in found.found:
        assert each.contraction == pytest.approx(1 - NOISE**2 / (1 + NOISE**2), abs=0.1)
        assert abs(each.bias) < 0.3


def test_exact_posteriors_are_rarely_suspected() -> None:
    levels = [gaussian(100, seed=seed).verdict.level for seed in range(40)]
    assert levels.count("good") >= 38  # 0.4 expected otherwise


@pytest.mark.parametrize(
    ("width", "shift", "sentence"),
    [
        (0.5, 0.0, "samples are too narrow"),
        (2.5, 0.0, "samples are too wide"),
        (1.0, 1.0, "samples are too high: the truth is below their median"),
        (1.0, -1.0, "samples are too low: the truth is above their median"),
    ],
)
def test_a_wrong_posterior_is_not_usable_and_why(width: float, shift: float, sentence: str) -> None:
    verdict = gaussian(width=width, shift=shift).verdict
    assert verdict.words == "not usable"
    assert sentence in verdict.against[0]


def test_a_slightly_wrong_posterior_is_usable_with_care() -> None:
    verdict = gaussian(1_000, width=0.8).verdict
    assert verdict.words == "usable with care"
    assert "too narrow" in verdict.against[0]


def test_few_replicates_and_failed_ones_speak_against_it() -> None:
    assert "Only 20 replicates" in gaussian(20).verdict.against[0]
    some = gaussian(failed=6).verdict
    assert some.words == "usable with care"
    assert some.against == ("6 of 300 replicates have no samples: no sample was found",)
    assert gaussian(failed=60).verdict.words == "not usable"


def test_samples_of_the_model_itself_test_the_sampler_alone() -> None:
    found = gaussian(source="own")
    assert "the model was not tested" in found.verdict.summary
    assert any("sampler alone" in note for note in found.notes)


def test_what_is_shown() -> None:
    found = gaussian(failed=3)
    assert len(found.table().splitlines()) == 3
    text = json.dumps(found.to_dict())
    assert "NaN" not in text
    assert json.loads(text)["verdict"]["level"] == "care"
    shown = page(found, "Calibration of <toy>")
    assert "&lt;toy&gt;" in shown
    assert "data:image/svg+xml" in shown
    assert len(found.plot().axes) == 3
    assert "usable with care" in repr(found)
