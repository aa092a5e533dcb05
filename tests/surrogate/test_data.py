"""sg.plot and sg.report on data of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import surrogate as sg
from surrogate.errors import ModelError
from surrogate.kinds.images.values import from_array
from tests.surrogate.evaluation.test_evaluate import epidemic, table

IMAGES = from_array(np.arange(4 * 36, dtype=np.uint8).reshape(4, 6, 6))


def test_trajectories_have_a_panel_for_each_variable_and_points_that_were_observed() -> None:
    data, observed = epidemic(30), pd.DataFrame({"time": [0.5, 1.0], "I": [9, 20]})
    axes = sg.plot(data, against=epidemic(20, seed=1))
    assert [axis.get_title(loc="left") for axis in axes] == ["S", "I", "R"]
    plain = sg.plot(data, variables=["I"], trajectories=0)
    assert isinstance(plain, Axes)
    with_points = sg.plot(data, observed=observed, variables=["I"], trajectories=0)
    assert len(with_points.lines) == len(plain.lines) + 1
    np.testing.assert_array_equal(with_points.lines[-1].get_xydata(), observed.to_numpy())


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (epidemic(20), {"variables": ["S"]}),
        (table(40), {"columns": ["quality"]}),
        (IMAGES, {"title": "images"}),
    ],
)
def test_samples_are_plotted_on_given_axes(data: Any, options: dict[str, Any]) -> None:
    ax = Figure().subplots()
    assert sg.plot(data, ax=ax, **options) is ax
    assert ax.has_data()


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (epidemic(20), {"columns": ["S"]}, "columns is for rows, and these are trajectories"),
        (epidemic(20), {"variables": ["Q"]}, "unknown variable 'Q' (have: S, I, R)"),
        (epidemic(20), {"titel": "x"}, "did you mean 'title'?"),
        (epidemic(20), {"ax": Figure().subplots()}, "3 variables need as many Axes, not 1"),
        (epidemic(20), {"observed": pd.DataFrame({"I": [1]})}, "is a time by its name"),
        (table(20), {"observed": table(2)}, "observed is for trajectories"),
        (table(20), {"against": epidemic(20)}, "give data of one kind"),
        (IMAGES, {"against": IMAGES}, "against is not for images"),
    ],
)
def test_what_cannot_be_plotted_is_refused(data: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError) as refused:
        sg.plot(data, **options)
    assert says in str(refused.value)


def test_a_report_is_written_once_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert sg.report(IMAGES, target, title="Four images") == target
    assert "<h1>Four images</h1>" in target.read_text(encoding="utf-8")
    with pytest.raises(ModelError, match=r"exists; force=True"):
        sg.report(IMAGES, target)
    sg.report(IMAGES, target, force=True)
    with pytest.raises(ModelError, match="target is for rows"):
        sg.report(IMAGES, tmp_path / "other.html", target="x")
