"""Samples under a scenario, end to end, from the bundled model."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch

import surrogate as sg
from constraints import ImpossibleError, bridge, parse
from surrogate.guidance.method import method_named
from surrogate.guidance.plain_draws import reject
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.model import Surrogate
from surrogate.random import Sampling


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
    found = diagnostics(data)
    copies = int(str(found["copies"]))
    assert copies <= 300 - len(np.unique(trajectories, axis=0)) <= 15
    assert found["method"] == "twisted"
    assert abs(float(str(found["log_probability"])) - -11.253) < 0.3
    assert float(str(found["rejection_seconds"])) > 1000
    assert data.attrs["surrogate_model"] == model.digest


def test_what_is_common_is_rejected_for(model: Surrogate) -> None:
    answer = sample(model, 200, parse("I(29) >= 10"), seed=2)
    data = answer.dataset
    assert answer.diagnostics.method == "rejection"
    assert bool((data.I.values[:, 29] >= 10).all())
    assert data.sizes["sample"] == 200


def test_weights(model: Surrogate) -> None:
    settings = {"method": "twisted", "particles": 400, "steps": 15, "weighted": True}
    data = sample(model, 100, "forall t: I(t) <= 40", seed=2, **settings).dataset
    assert data.log_weight.dims == ("sample",)
    assert float(data.log_weight.max()) == 0


def test_soft_rules(model: Surrogate) -> None:
    settings = {"method": "twisted", "particles": 400, "steps": 15, "hardness": 0.5}
    data = sample(model, 100, "I(5) >= 60", seed=2, **settings).dataset
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
    settings = {"steps": 60, "langevin": 30, "hardness": 1.0}
    data = sample(model, 60, "I(29) >= 30", seed=2, method=method, **settings).dataset
    plain = model.sample(60, seed=2)
    assert float(data.I[:, 29].mean()) > float(plain.I[:, 29].mean()) + 4
    found = diagnostics(data)
    assert found["log_probability"] is None
    met = bool(data.satisfied.all())
    assert met != bool(found["warnings"])


def test_neighbouring_seeds_share_no_draw(model: Surrogate) -> None:
    """Neither with one another nor with the pilot's."""
    scenario = Scenario(model, parse("I(29) >= 0"))
    found = [
        reject(scenario, 1200, 1200, seed, purpose, steps=3).x
        for seed in (1, 2, 3)
        for purpose in (Sampling.REJECTION, Sampling.PILOT)
    ]
    every = torch.cat(found)
    assert len(torch.unique(every, dim=0)) == len(every)


@pytest.mark.parametrize(
    ("bundled", "method", "where", "chosen"),
    [
        ("esirs", "twisted", "S(25) >= 40", "gaussian"),
        ("esirs", "moments", "S(25) >= 40", "gaussian"),
        ("esirs", "moments", "S(25) * I(25) >= 40", "network"),
        ("digits", "twisted", "class(image, 3)", "network"),
        ("digits", "twisted", "mean(image) >= 0.1", "network"),
        ("digits", "moments", "class(image, 3)", "network"),
        ("digits", "moments", "mean(image) >= 0.1", "gaussian"),
    ],
)
def test_the_jacobian_auto_is_resolved_before_sampling(
    bundled: str, method: str, where: str, chosen: str
) -> None:
    scenario = Scenario(sg.pretrained(bundled), parse(where))
    own = method_named(method)
    assert own.resolve(own.settings(), scenario).jacobian == chosen
    explicit = "network" if chosen == "gaussian" else "gaussian"
    assert own.resolve(own.settings(jacobian=explicit), scenario).jacobian == explicit


def test_the_settings_of_a_file_say_which_jacobian_was_used(model: Surrogate) -> None:
    data = model.sample(10, where="S(25) >= 40", method="moments", steps=5)
    assert json.loads(data.attrs["surrogate_settings"])["jacobian"] == "gaussian"


def test_the_answer_carries_the_diagnostics_that_the_file_does(model: Surrogate) -> None:
    answer = sample(model, 20, "I(29) >= 10", seed=2, method="rejection", pilot_samples=100)
    assert diagnostics(answer.dataset) == asdict(answer.diagnostics)
    assert answer.dataset.attrs["surrogate_ess"] == answer.diagnostics.ess == 20
