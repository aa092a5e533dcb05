"""The verdict on samples: good, care or poor."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from constraints import parse
from simulators import models, simulate
from surrogate.kinds.labels import label
from tests.surrogate.reports.pages import DIAGNOSTICS, facts, report


def judged(data: xr.Dataset, against: xr.Dataset | None = None, **changes: object) -> str:
    """The level of the verdict on samples that all meet their rule, with other diagnostics."""
    text = json.dumps(DIAGNOSTICS | {"effective": 120.0, "ancestors": 400, "copies": 0} | changes)
    data = label(data, [parse("forall t: I(t) >= 0")])
    found = facts(
        data.assign_attrs(surrogate_model="b4", surrogate_diagnostics=text), against
    ).verdict
    assert found is not None
    return found.level


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "good"),
        ({"warnings": ["batches disagree"]}, "care"),
        ({"effective": 5.0}, "care"),
        ({"ancestors": 7}, "care"),
        ({"copies": 60}, "care"),
        ({"log_probability_error": 0.8}, "care"),
        ({"degenerate": ["all particles descend from one initial particle"]}, "poor"),
    ],
)
def test_signs_of_trouble(plain: xr.Dataset, changes: dict[str, object], level: str) -> None:
    assert judged(plain, **changes) == level


def test_the_effective_sample_size_is_at_most_that_of_samples_and_ancestors(
    plain: xr.Dataset,
) -> None:
    count = plain.sizes["sample"]
    for given, expected in (
        ({"ess": 3_673.0, "ancestors": 10_000}, count),
        ({"ess": 3_673.0, "ancestors": 7}, 7),
        ({"ess": 3_673.0, "sample_ess": 5.0}, 5),
        ({"ess": 3.0, "ancestors": 7}, 3),
    ):
        attrs = {"surrogate_model": "b4", "surrogate_diagnostics": json.dumps(given)}
        assert facts(plain.assign_attrs(attrs)).effective == expected


def test_a_reference_tells_good_samples_from_bad_ones(plain: xr.Dataset) -> None:
    same = simulate(models.esirs(), samples=400, seed=7)
    many = simulate(models.esirs(), samples=400, seed=1)
    assert judged(many, same) == "good"
    assert "Good: the samples can be trusted." in report(many, same)
    assert judged(plain, same) == "care"  # 120 samples show too little
    far = simulate(models.esirs(), samples=120, seed=7, parameters={"beta": 9.0, "omega": 0.1})
    assert judged(far, same) == "poor"
    mixed = plain.copy()  # the right values at each step, of the wrong trajectories
    for name in "SIR":
        values = np.stack(
            [np.random.default_rng(k).permutation(plain[name][:, k]) for k in range(30)], 1
        )
        mixed[name] = (("sample", "time"), values)
    assert judged(mixed, same) == "poor"


def test_plain_simulations_are_not_judged(plain: xr.Dataset) -> None:
    assert facts(plain).verdict is None
