"""`surrogate sample --observe FILE` and `surrogate plot --observed FILE`, end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

from cli.main import main

FEW = ("-n", "100", "--method", "sequential", "--particles", "1000", "--threads", "1")
NOISE = ("--map", "B=I", "--noise", "poisson(0.9*I)")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    days = pd.date_range("1978-01-22", periods=6).strftime("%Y-%m-%d")
    cases = pd.DataFrame({"date": days, "day": range(1, 7), "B": [1, 6, 26, 73, 222, 293]})
    cases.to_csv("flu.csv", index=False)


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, [*words])
    return done.exit_code, done.stdout, done.stderr


def test_a_forecast_from_four_days_of_counts() -> None:
    words = ("--observe", "flu.csv", "--time", "date", *NOISE, "--upto", "4")
    code, out, said = run("sample", "sir", *words, "--start", "1978-01-21", *FEW, "--json")
    assert code == 0, said
    assert "observed: B ~ poisson(0.9 * I), 4 values at 1978-01-22 to 1978-01-25" in said
    assert "log evidence = " in said
    assert "beta " in said
    assert json.loads(out)["samples"] == 100
    with xr.open_dataset("samples.nc") as data:
        assert str(data.time.values[0])[:10] == "1978-01-21"
        fourth = data.I.values[:, 16]  # four days of quarters
        assert 0.9 * np.quantile(fourth, 0.01) - 40 < 73 < 0.9 * np.quantile(fourth, 0.99) + 40
        assert json.loads(data.attrs["surrogate_observed"])["last_step"] == 16
    code, _, said = run("plot", "samples.nc", "--observed", "flu.csv")
    assert code == 0, said
    assert Path("samples.png").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--map", "B=I"), "add --observe FILE"),
        (("--observe", "none.csv"), "there is no file"),
        (("--observe", "flu.csv", *NOISE, "--time", "date"), "--start 1978-01-22 --unit day"),
        (("--observe", "flu.csv", "--time", "day", "--map", "B=J"), "the model has no 'J'"),
        (("--observe", "flu.csv", "--time", "day", "--map", "B"), "maps no column"),
        (("--observe", "flu.csv", "--time", "day", *NOISE, "--every", "0"), "every"),
        (("--unit", "day"), "add --start"),
        (("--observe", "flu.csv", *NOISE, "-o", "flu.csv", "--force"), "the command reads"),
    ],
)
def test_what_cannot_be_observed_is_refused_and_nothing_is_written(
    words: tuple[str, ...], says: str
) -> None:
    code, _, said = run("sample", "sir", *words, *(FEW if "--observe" in words else ()))
    assert code == 2, said
    assert says in said
    assert not Path("samples.nc").exists()
