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
    words = ("esirs", "--where", "argmax(I) >= 5", "--initial", "S=95,I=5", "-n", "200", "--json",
             "--method", "rejection")  # fmt: skip
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
        (
            [
                "esirs",
                "--where",
                "min(S) >= 90 and argmax(I) >= 25",
                "--most",
                "100",
                "--method",
                "rejection",
            ],
            "--most",
            2,
        ),
    ],
)
def test_bad_arguments_of_reference_are_refused(words: list[str], message: str, code: int) -> None:
    assert message in run(*words, code=code)[1]
    assert not list(Path().iterdir())


def seen_by_half() -> None:
    """Half of the infected of an epidemic at four times; the times are steps."""
    Path("counts.csv").write_text("step,cases\n3,8\n10,15\n20,12\n28,9\n")


OBSERVED = ("--observe", "counts.csv", "--map", "cases=I", "--noise", "binomial(I, 0.5)")
CORNER = ("--initial", "S=95,I=5")


def test_data_and_a_scenario_have_the_probability_of_the_master_equation() -> None:
    seen_by_half()
    out, said = run("esirs", *CORNER, *OBSERVED, "--where", "max(I) <= 30", "-n", "200", "--json")
    found = json.loads(out)
    assert found["way"] == "exact"
    assert found["log_evidence"] == pytest.approx(-9.458069, abs=1e-5)
    assert found["log_conditional"] == pytest.approx(
        found["log_probability"] - found["log_evidence"]
    )
    assert "observed: cases ~ binomial(I, 0.5), 4 values at step 3 to step 28" in said
    assert f"P(scenario | data) = {math.exp(found['log_conditional']):.4g};" in said
    with xr.open_dataset("reference.nc") as data:
        assert int(data.I.max()) <= 30
        assert json.loads(data.attrs["surrogate_observed"])["last_step"] == 28
    few = ("--method", "filter", "--particles", "8000", "--force")
    filtered = json.loads(
        run("esirs", *CORNER, *OBSERVED, "--where", "max(I) <= 30", "-n", "200", "--json", *few)[0]
    )
    assert filtered["log_conditional"] == pytest.approx(
        found["log_conditional"], abs=4 * filtered["log_conditional_error"]
    )


def test_drawn_parameters_take_the_filter_and_the_report_shows_their_posterior() -> None:
    seen_by_half()
    few = ("--particles", "8192", "-n", "100", "--json")
    out, said = run("esirs", *CORNER, *OBSERVED, "--param", "beta=1..4", *few)
    found = json.loads(out)
    assert found["way"] == "filter"
    assert "the master equation needs fixed parameters" in said
    assert found["log_probability"] == pytest.approx(
        -9.470955, abs=4 * found["log_probability_error"]
    )
    with xr.open_dataset("reference.nc") as data:
        assert data.beta.dims == ("sample",)
        config = json.loads(data.attrs["surrogate_config"])
        assert config["parameters"]["beta"] == {"range": [1.0, 4.0]}


def test_dates_are_the_axis_of_the_reference() -> None:
    Path("flu.csv").write_text("date,B\n1978-01-22,1\n1978-01-24,26\n")
    words = ("--observe", "flu.csv", "--map", "B=I", "--noise", "poisson(0.9*I)")
    run("sir", *words, "--start", "1978-01-21", "--particles", "400", "-n", "20")
    with xr.open_dataset("reference.nc") as data:
        assert str(data.time.values[0])[:10] == "1978-01-21"


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["--observe", "none.csv"], "there is no file", 2),
        (["--map", "cases=I"], "add --observe FILE", 2),
        (["--unit", "day", "--where", "I(3) = 3"], "add --start", 2),
        ([*OBSERVED, "--method", "rejection"], "neither met nor missed", 2),
        ([*OBSERVED, "--method", "exact", "--param", "beta=1..4"], "fixed parameters", 2),
        ([*OBSERVED, "--method", "filters"], "did you mean 'filter'", 2),
    ],
)
def test_bad_arguments_about_data_are_refused(words: list[str], message: str, code: int) -> None:
    seen_by_half()
    assert message in run("esirs", *words, code=code)[1]
    assert not Path("reference.nc").exists()


@pytest.mark.parametrize(
    ("rule", "log_p"),
    [
        ("exists t: I(t) > 20", math.log1p(-3.25681e-4)),
        ("I <= 20 until S < 0", -math.inf),
    ],
)
def test_rules_that_relate_steps_are_followed_exactly(rule: str, log_p: float) -> None:
    """As the complement at every step has it."""
    words = ("esirs", "--where", rule, "-n", "100", "--json")
    if log_p == -math.inf:
        assert "probability 0" in run(*words, code=3)[1]
        return
    found = json.loads(run(*words)[0])
    assert found["method"] == "exact, by the master equation"
    assert found["log_probability"] == pytest.approx(log_p, abs=1e-8)
    with xr.open_dataset("reference.nc") as data:
        assert bool(data.satisfied.all())
