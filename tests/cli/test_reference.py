"""surrogate reference: the true answer to a scenario."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner

from cli.main import main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str, code: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(main, ["reference", *words])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.stdout, done.stderr


def test_a_bridge_is_answered_by_the_master_equation() -> None:
    """1/5151 · 0.06819, as the master equation has it."""
    out, err = run("esirs", "--bridge", "S0=95,I0=5,S25=30", "-n", "300", "--json")
    found = json.loads(out)
    assert found["log_probability"] == pytest.approx(math.log(0.0681922 / 5151), abs=1e-4)
    assert found["log_probability_error"] == 0
    assert "exact, by the master equation" in err
    with xr.open_dataset("reference.nc") as data:
        assert data.sizes["sample"] == 300
        assert (data.S[:, 0] == 95).all()
        assert (data.S[:, 25] == 30).all()
        assert bool(data.satisfied.all())


def test_bounds_at_every_step() -> None:
    out, _ = run("esirs", "--where", "forall t: I(t) <= 20", "-n", "50", "--json")
    assert json.loads(out)["log_probability"] == pytest.approx(math.log(3.25681e-4), abs=1e-4)
    with xr.open_dataset("reference.nc") as data:
        assert int(data.I.max()) <= 20


def test_simulated_where_steps_hang_together() -> None:
    words = ("esirs", "--where", "argmax(I) >= 5", "--initial", "S=95,I=5", "-n", "200", "--json")
    found = json.loads(run(*words)[0])
    assert "simulated trajectories" in found["method"]
    assert found["log_probability_error"] > 0
    with xr.open_dataset("reference.nc") as data:
        assert data.sizes["sample"] == 200
        assert (data.I.argmax("time") >= 5).all()
        assert list(data.sample.values) == list(range(200))


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["esirs"], "state a scenario", 2),
        (["essirs", "--where", "S(0) = 3"], "did you mean 'esirs'", 2),
        (
            ["esirs", "--where", "S(0) = 3", "-n", "0"],
            "--samples must be a whole number >= 1, not 0",
            2,
        ),
        (["esirs", "--where", "X(0) = 3"], "unknown signal or function 'X'", 2),
        (["esirs", "--where", "S(0) >= 60 and S(0) <= 50"], "S(0)", 3),
        (["esirs", "--initial", "S=95,I=5", "--bridge", "S0=30"], "probability 0", 3),
        (["esirs", "--where", "min(S) >= 90 and argmax(I) >= 25", "--most", "100"], "--most", 2),
    ],
)
def test_bad_arguments_of_reference_are_refused(words: list[str], message: str, code: int) -> None:
    assert message in run(*words, code=code)[1]
    assert not list(Path().iterdir())
