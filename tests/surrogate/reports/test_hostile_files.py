"""Text and attributes of a stranger's file: they stay text, or count as absent."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from simulators import models, simulate
from tests.surrogate.reports.pages import DIAGNOSTICS, Page, report

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&$\\frac{$"


def test_text_from_a_file_stays_text(scenario: xr.Dataset) -> None:
    """Names, rules, attributes, units, diagnostics: none becomes an element."""
    config = json.loads(scenario.attrs["surrogate_config"])
    config["network"] |= {
        "name": EVIL,
        "title": EVIL,
        "reference": EVIL,
        "reactions": [{"name": EVIL}, 3],
    }
    config["parameters"] = {EVIL: EVIL}
    found = DIAGNOSTICS | {"warnings": [EVIL], "why": EVIL, "method": EVIL}
    texts = dict.fromkeys(("title", "source", "history", "surrogate_model", "surrogate_end"), EVIL)
    data = scenario.rename(R=EVIL).assign_attrs(
        **texts,
        surrogate_constraint=EVIL,
        surrogate_config=json.dumps(config),
        surrogate_diagnostics=json.dumps(found),
    )
    data["time"].attrs["units"] = EVIL
    data = data.assign_coords(rule=[f"{EVIL}{k}" for k in range(data.sizes["rule"])])
    other = simulate(models.esirs(), samples=50, seed=2).rename(R=EVIL)
    undescribed = data.assign_attrs(surrogate_config=EVIL)
    compared = report(undescribed, other.assign_attrs(source=EVIL, surrogate_config=EVIL))
    for text in (report(data, title=EVIL), compared):
        read = Page(text)
        assert "<script" not in text
        assert all(str(each["src"]).startswith("data:") for each in read.pictures())
        assert not [a for _, a in read.elements if "onerror" in a]
        assert EVIL in read.said


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("value", ["{", "[1]", '{"warnings": 3, "log_probability": "x"}', 3.5])
def test_attributes_of_the_wrong_kind_count_as_absent(scenario: xr.Dataset, value: object) -> None:
    odd = dict.fromkeys(("surrogate_diagnostics", "surrogate_settings", "surrogate_config"), value)
    odd |= {"surrogate_log_probability": "likely", "surrogate_seconds": np.array([1.0, 2.0])}
    page = Page(report(scenario.assign_attrs(odd)))
    assert "What it took" not in page.sections
    assert "does not tell how probable" in page.said
