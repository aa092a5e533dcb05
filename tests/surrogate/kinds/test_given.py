"""What is given beside a scenario: forms of data and of distributions in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from constraints import conjunction, parse
from surrogate.errors import ModelError
from surrogate.kinds.given import with_given

CASES = pd.DataFrame({"time": [1, 2], "I": [3, 8]})


@pytest.fixture(scope="module")
def model() -> sg.Surrogate:
    return sg.pretrained("sir")


def scenario(model: sg.Surrogate, **arguments: Any) -> Any:
    where, _, _ = with_given(model.kind, model.codec, None, arguments)
    assert isinstance(where, dict)
    return conjunction(*where.values())


def test_files_and_frames_and_forms_of_noise_say_the_same(
    model: sg.Surrogate, tmp_path: Path
) -> None:
    CASES.to_csv(tmp_path / "cases.csv", index=False)
    xr.Dataset({"I": ("time", [3, 8])}, {"time": [1, 2]}).to_netcdf(tmp_path / "cases.nc")
    wanted = parse("3 ~ poisson(0.9*I(4)) and 8 ~ poisson(0.9*I(8))")
    for given in (CASES, tmp_path / "cases.csv", str(tmp_path / "cases.nc")):
        assert scenario(model, given=given, noise="poisson(0.9*I)") == wanted
    assert scenario(model, given=CASES, noise={"I": "poisson(0.9*I)"}) == wanted


def test_what_is_not_about_the_data_is_left_over(model: sg.Surrogate) -> None:
    where, rest, record = with_given(model.kind, model.codec, "max(I) <= 9", {"seed": 1})
    assert (where, rest, record) == ("max(I) <= 9", {"seed": 1}, {})
    joined, _, _ = with_given(model.kind, model.codec, "max(I) <= 9", {"given": CASES})
    assert isinstance(joined, dict)
    assert list(joined) == ["max(I) <= 9", "I"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"noise": "poisson(I)"}, "noise is about observed data, and there are none"),
        ({"given": CASES, "noise": 3}, "noise cannot be 3"),
        ({"given": CASES, "columns": "B"}, "columns is a dict"),
        ({"given": CASES, "start": "1978-01-21", "unit": "fortnight"}, "unknown unit 'fortnight'"),
    ],
)
def test_other_arguments_are_refused(model: sg.Surrogate, arguments: Any, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        scenario(model, **arguments)
    assert says in str(caught.value)
