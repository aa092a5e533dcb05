"""`surrogate train` declares, finds, lists and refuses rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.cli.small import SHORT, run

TRAIN = ("train", "visits.nc", "--force", *SHORT)


@pytest.fixture(autouse=True)
def visits(small: Path) -> None:
    rng = np.random.default_rng(0)
    casual, registered = rng.poisson((3, 9), (300, 8, 2)).transpose(2, 0, 1)
    made = {"casual": casual, "registered": registered, "total": casual + registered}
    dims = ("sample", "time")
    data = xr.Dataset({k: (dims, v) for k, v in made.items()}, {"time": np.arange(8.0)})
    data.to_netcdf("visits.nc")


def test_found_rules_are_listed_and_samples_carry_them() -> None:
    told = run(*TRAIN).stderr
    assert "found in the data: total = casual + registered" in told
    assert "refuse one with --no-rule NAME, all with --no-found-rules" in told
    run("sample", "model", "-n", "20", "-o", "s.nc")
    assert "100 %" in run("check", "s.nc", "--consistency").stdout


def test_found_rules_are_refused_by_name_or_all_together() -> None:
    for words in (("--no-rule", "total = casual + registered"), ("--no-found-rules",)):
        assert "found in the data" not in run(*TRAIN, *words).stderr
    told = run(*TRAIN, "--no-rule", "x", code=2).stderr
    assert "no found rule 'x' to refuse (have: total = casual + registered)" in told


def test_declared_rules_come_from_options_and_files() -> None:
    Path("rules.txt").write_text("casual <= 99\n# a comment\nforall t: total(t) >= casual(t)\n")
    told = run(*TRAIN, "--rule", "@rules.txt", "--rule", "registered <= 99").stderr
    assert "declared: casual <= 99; forall t: total(t) >= casual(t); registered <= 99" in told


@pytest.mark.parametrize(
    ("rules", "code", "says"),
    [
        (["casual >= registered"], 2, "the data break the rule casual >= registered: 300 of 300"),
        (["casual <= 99", "casual >= 100"], 3, "no data can satisfy these together"),
        (["casul <= 99"], 2, "the rule casul <= 99: unknown signal"),
        (["casual <="], 2, "--rule"),
        (["@missing.txt"], 2, "there is no file 'missing.txt' of rules"),
    ],
)
def test_bad_rules_end_before_training(rules: list[str], code: int, says: str) -> None:
    words = [word for rule in rules for word in ("--rule", rule)]
    assert says in run(*TRAIN, *words, code=code).stderr
    assert not Path("model").exists()


def prices(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    start = rng.uniform(10, 100, rows)
    end = start * np.exp(rng.normal(0, 0.02, rows))
    up, down = np.abs(rng.normal(0, 0.01, (2, rows)))
    high, low = np.maximum(start, end) * (1 + up), np.minimum(start, end) * (1 - down)
    return pd.DataFrame({"open": start, "high": high, "low": low, "close": end})


def test_orders_that_too_few_values_show_are_reported_and_not_kept() -> None:
    prices(400).to_csv("prices.csv", index=False)
    told = run("train", "prices.csv", "--force", *SHORT).stderr
    assert "found in the data" not in told
    (line,) = [each for each in told.splitlines() if "too few" in each]
    assert line == (
        "hold in all 400 values, too few to be taken as rules: open <= high, low <= open, "
        'low <= close, close <= high; declare them with --rule "open <= high"'
    )
    words = [w for r in ("high >= open", "low <= open and low <= close") for w in ("--rule", r)]
    told = run("train", "prices.csv", "--force", *SHORT, *words).stderr
    assert 'rules: close <= high; declare them with --rule "close <= high"' in told
    told = run("train", "prices.csv", "--force", *SHORT, "--no-found-rules").stderr
    assert "too few" not in told
