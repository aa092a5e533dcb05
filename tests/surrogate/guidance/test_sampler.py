"""Samples under a scenario, end to end, from the bundled model."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import surrogate as sg
from constraints import ImpossibleError, bridge, parse
from surrogate.guidance.sampler import Settings, sample
from surrogate.model import Surrogate


@pytest.fixture(scope="module")
def model() -> Surrogate:
    return sg.pretrained("esirs")


def diagnostics(data: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(data.attrs["surrogate_diagnostics"])  # type: ignore[attr-defined]
    return found


def test_a_bridge(model: Surrogate) -> None:
    """P = 1/5151 * 0.0682 from the master equation."""
    goal = bridge("S0=80,I0=10,S25=30", ["S", "I", "R"])
    data = model.sample(300, seed=1, where=goal, particles=1600, steps=30)
    assert (data.S.values[:, 0] == 80).all()
    assert (data.I.values[:, 0] == 10).all()
    assert (data.S.values[:, 25] == 30).all()
    assert (data.S.astype(int) + data.I + data.R == 100).all()
    assert bool(data.satisfied.all())
    assert {"robustness", "rule_satisfied", "rule_robustness"} <= set(data.variables)
    trajectories = np.concatenate([data[name].values for name in "SI"], 1)
    assert len(np.unique(trajectories, axis=0)) == 300
    found = diagnostics(data)
    assert found["method"] == "twisted"
    assert abs(float(str(found["log_probability"])) - -11.253) < 0.3
    assert float(str(found["rejection_seconds"])) > 1000
    assert data.attrs["surrogate_model"] == model.digest


def test_what_is_common_is_rejected_for(model: Surrogate) -> None:
    data = sample(model, 200, parse("I(29) >= 10"), seed=2)
    found = diagnostics(data)
    assert found["method"] == "rejection"
    assert bool((data.I.values[:, 29] >= 10).all())
    assert data.sizes["sample"] == 200


def test_weights(model: Surrogate) -> None:
    settings = Settings(method="twisted", particles=400, steps=15, weighted=True)
    data = sample(model, 100, parse("forall t: I(t) <= 40"), seed=2, settings=settings)
    assert data.log_weight.dims == ("sample",)
    assert float(data.log_weight.max()) == 0


def test_soft_rules(model: Surrogate) -> None:
    settings = Settings(method="twisted", particles=400, steps=15, hardness=0.5)
    data = sample(model, 100, parse("I(5) >= 60"), seed=2, settings=settings)
    met = float(data.rule_satisfied[:, 0].mean())
    assert 0 < met <= 1
    assert float(data.I[:, 5].mean()) > 50


def test_impossible_scenarios(model: Surrogate) -> None:
    with pytest.raises(ImpossibleError):
        model.sample(10, where=parse("S(3) >= 60 and S(3) <= 50"))
    with pytest.raises(ImpossibleError):
        model.sample(10, where=parse("S(3) + I(3) >= 120"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "unknown method"),
        ({"particles": 2}, "particles must be"),
        ({"steps": 1}, "3 to 10,000"),
        ({"hardness": -1.0}, "hardness must be"),
        ({"hardness": math.nan}, "hardness must be"),
    ],
)
def test_settings_that_cannot_be(
    model: Surrogate, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(sg.ModelError, match=message):
        model.sample(10, where=parse("S(3) >= 60"), **settings)


@pytest.mark.parametrize("method", ["guidance", "universal"])
def test_gradients_lead_towards_a_scenario(model: Surrogate, method: str) -> None:
    """Not to its conditional law, and not all the way: what is missed is labelled and told."""
    settings = Settings(method=method, steps=60, langevin=30, hardness=1.0)
    data = sample(model, 60, parse("I(29) >= 30"), seed=2, settings=settings)
    plain = model.sample(60, seed=2)
    assert float(data.I[:, 29].mean()) > float(plain.I[:, 29].mean()) + 4
    found = diagnostics(data)
    assert found["log_probability"] is None
    met = bool(data.satisfied.all())
    assert met != bool(found["warnings"])
