"""Observed data that cannot be used: a clear message, the documented exit code, and no file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main

START = ("--start", "1978-01-21")
FEW = ("-n", "20", "--particles", "5000")
POISSON = ("--map", "B=I", "--noise", "poisson(0.9*I)")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(rows: str, *words: str, code: int = 2, command: str = "sample") -> str:
    """What a command says about data with these rows."""
    Path("seen.csv").write_text(rows)
    done = CliRunner().invoke(main, [command, "sir", "--observe", "seen.csv", *words, *FEW])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    assert [each.name for each in Path().iterdir()] == ["seen.csv"]
    return " ".join(done.stderr.split())


DRAWN = ("--param", "beta=0.5..3", "--param", "gamma=0.2..1")
CASES = [
    ("time,B\n1.1,5\n", POISSON, "1 of the observed times are not on the model's grid: 1.1", 2),
    ("time,B\n1,5\n99,5\n", POISSON, "lie outside of the model's", 2),
    ("time,B\n1,-5\n", POISSON, "-5 cannot be observed under poisson", 2),
    ("time,B\n1,2.5\n", POISSON, "2.5 cannot be observed under poisson", 2),
    (
        "time,B\n1,2.5\n",
        ("--map", "B=I", "--noise", "binomial(I, 0.5)"),
        "2.5 cannot be observed under binomial",
        2,
    ),
    (
        "time,B\n1,5\n",
        ("--map", "B=I", "--noise", "binomial(I, beta)"),
        "of binomial is beta, which is drawn",
        2,
    ),
    ("time,B\n1,5\n", ("--map", "B=I", "--noise", "normal(I, beta - 1)"), "which is drawn from", 2),
    ("time,B\n1,5\n", ("--map", "B=I", "--noise", "normal(I, 0)"), "0", 2),
    ("time,B\n1,5\n", ("--map", "B=I", "--noise", "uniform(5, 2)"), "write uniform(2, 5)", 2),
    ("time,B\n1,5\n", ("--map", "B=J"), "the model has no 'J'", 2),
    ("time,cases\n1,5\n", (), "no column of the observed data has the name of a variable", 2),
    ("date,B\n1978-01-22,5\n", POISSON, "say when they begin: --start 1978-01-22", 2),
    (
        "date,B\n1978-01-22T00:00+02:00,5\n",
        (*POISSON, *START),
        "dates with a time zone are read in UTC: 1978-01-22T00:00+02:00 is 1978-01-21 22:00",
        2,
    ),
    ("time,B\n1,5000\n", ("--map", "B=I"), "no data can satisfy", 3),
    ("time,B\n1,5000\n", ("--map", "B=I", "--noise", "binomial(I, 0.5)"), "5000", 3),
]


@pytest.mark.parametrize(("rows", "words", "says", "code"), CASES)
def test_observed_data_that_cannot_be_used_are_refused_by_sample(
    rows: str, words: tuple[str, ...], says: str, code: int
) -> None:
    assert says in refused(rows, *words, "--method", "sequential", code=code)


@pytest.mark.parametrize(("rows", "words", "says", "code"), CASES)
def test_observed_data_that_cannot_be_used_are_refused_by_reference(
    rows: str, words: tuple[str, ...], says: str, code: int
) -> None:
    assert says in refused(rows, *words, *DRAWN, code=code, command="reference")
