"""Trajectories with and without the labels of a sampler."""

from __future__ import annotations

import json

import pytest
import xarray as xr

from constraints import parse
from constraints.physics.rules import from_network
from simulators import models, simulate
from surrogate.kinds.labels import label
from surrogate.kinds.signals import described
from surrogate.reports import figures as pictures
from tests.surrogate.reports.pages import DIAGNOSTICS, RULES, Page, report


@pytest.fixture(scope="package")
def plain() -> xr.Dataset:
    return simulate(models.esirs(), samples=120, seed=1)


@pytest.fixture(scope="package")
def scenario(plain: xr.Dataset) -> xr.Dataset:
    """As the sampler labels its trajectories; not all of these meet the rules."""
    rules = {text: parse(text) for text in RULES} | from_network(described(plain))
    return label(plain, rules).assign_attrs(
        surrogate_model="b44e5f3a",
        surrogate_settings=json.dumps({"method": "auto", "particles": None}),
        surrogate_diagnostics=json.dumps(DIAGNOSTICS),
        history="2026-01-01T00:00:00Z surrogate sample --where ...",
    )


@pytest.fixture(scope="package")
def full(scenario: xr.Dataset) -> Page:
    return Page(report(scenario, simulate(models.esirs(), samples=150, seed=2)))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages in no time: tests of words need no pictures."""
    monkeypatch.setattr(pictures, "drawn", lambda *arguments: "data:,")
