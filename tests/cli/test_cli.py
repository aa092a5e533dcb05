"""The command as people use it: through its console script, with right and with wrong words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner

from cli.main import main

SCRIPT = Path(sys.executable).with_name("surrogate")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def script(tmp_path: Path) -> Run:
    """Runs the installed console script in an empty folder."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*words: str) -> str:
    """The message of a command that is refused as wrongly typed."""
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    return done.output


def test_simulate_and_plot_end_to_end(script: Run, here: Path) -> None:
    done = script("simulate", "esirs", "--samples", "500")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for part in (
        "trajectories.nc",
        "500 trajectories",
        "seed 0",
        "trajectories/s",
        "next: surrogate",
    ):
        assert part in done.stderr
    with xr.open_dataset("trajectories.nc") as data:
        assert dict(data.sizes) == {"sample": 500, "time": 30}
        assert data.attrs["history"].endswith("surrogate simulate esirs --samples 500")
    drawn = CliRunner().invoke(main, ["plot"])
    assert drawn.exit_code == 0, drawn.output
    assert (here / "trajectories.png").read_bytes()[:4] == b"\x89PNG"
    assert "--force" in refused("simulate", "esirs")


def test_json_goes_to_stdout_and_quiet_is_quiet(here: Path) -> None:
    words = ["simulate", "esirs", "-n", "50", "--seed", "9", "--json", "--quiet", "-o", "a.nc"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    summary = json.loads(done.stdout)
    assert (summary["samples"], summary["seed"], summary["variables"]) == (50, 9, ["S", "I", "R"])


def test_options_reach_the_simulation(here: Path) -> None:
    words = [
        "simulate",
        "esirs",
        "-n",
        "40",
        "--points",
        "11",
        "--until",
        "2",
        "--population",
        "50",
    ]
    words += ["--initial", "S=40,I=5", "--param", "beta=2..3", "--param", "gamma=1", "-o", "a.zarr"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    data = xr.open_zarr(here / "a.zarr")
    assert data.sizes == {"sample": 40, "time": 11}
    assert float(data.time[-1]) == 2
    assert (data.S[:, 0] == 40).all()
    assert (data.R[:, 0] == 5).all()
    assert ((data.beta >= 2) & (data.beta <= 3)).all()


@pytest.mark.parametrize("method", ["tau", "ode"])
def test_simulate_runs_with_each_method(here: Path, method: str) -> None:
    done = CliRunner().invoke(main, ["simulate", "esirs", "-n", "5", "--method", method])
    assert done.exit_code == 0, done.output


SBML = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">
  <model id="decay" substanceUnits="item" timeUnits="second">
    <listOfCompartments><compartment id="c" size="1" constant="true"/></listOfCompartments>
    <listOfSpecies>
      <species id="X" compartment="c" initialAmount="30" hasOnlySubstanceUnits="true"
               boundaryCondition="false" constant="false"/>
    </listOfSpecies>
    <listOfParameters><parameter id="mu" value="0.1" constant="true"/></listOfParameters>
    <listOfReactions>
      <reaction id="death" reversible="false" fast="false">
        <listOfReactants>
          <speciesReference species="X" stoichiometry="1" constant="true"/>
        </listOfReactants>
        <kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
          <apply><times/><ci>mu</ci><ci>X</ci></apply></math></kineticLaw>
      </reaction>
    </listOfReactions>
  </model>
</sbml>
"""


def test_an_sbml_file_takes_the_place_of_a_model(here: Path) -> None:
    (here / "my_model.xml").write_text(SBML)
    words = ["simulate", "my_model.xml", "-n", "20", "--param", "mu=0.2", "--initial", "X=40"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    with xr.open_dataset(here / "trajectories.nc") as data:
        assert (data.X[:, 0] == 40).all()
        assert data.time.attrs["units"] == "second"
    (here / "my_model.xml").write_text(SBML[:300])
    assert "not an SBML file" in refused("simulate", "my_model.xml")
    (here / "my_model.xml").write_text(SBML)
    assert "mu*X" in CliRunner().invoke(main, ["models", "my_model.xml"]).output


def test_names_with_brackets_and_spaces_are_shown_as_they_are(here: Path) -> None:
    done = CliRunner().invoke(main, [*SIMULATE, "-o", "run [a].nc"])
    assert done.exit_code == 0, done.output
    assert "next: surrogate plot 'run [a].nc'" in done.output
    drawn = CliRunner().invoke(main, ["plot", "run [a].nc"])
    assert "run [a].png" in drawn.output


def test_a_damaged_file_is_told(here: Path) -> None:
    CliRunner().invoke(main, ["simulate", "esirs", "-n", "3000", "-o", "t.nc"])
    damaged = bytearray((here / "t.nc").read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 40_000] = bytes(40_000)
    (here / "t.nc").write_bytes(damaged)
    assert "cannot read" in refused("plot", "t.nc")


def test_models_lists_and_shows() -> None:
    listed = CliRunner().invoke(main, ["models"]).output
    for name in ("esirs", "seir", "schloegl", "beta="):
        assert name in listed
    shown = CliRunner().invoke(main, ["models", "esirs"]).output
    assert "S + I -> 2 I" in shown
    described = json.loads(CliRunner().invoke(main, ["models", "--json"]).stdout)
    assert described["esirs"]["parameters"]["N"] == 100


SIMULATE = ("simulate", "esirs", "-n", "10")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("simulte",), "did you mean 'simulate'"),
        (("models", "esir"), "did you mean 'esirs'"),
        (("simulate", "esris"), "did you mean 'esirs'"),
        (("simulate", "missing.xml"), "missing.xml"),
        (("simulate",), "Missing argument"),
        (("simulate", "esirs", "--samples", "0"), "samples must be"),
        (
            ("simulate", "esirs", "--samples", "many"),
            "--samples must be a whole number >= 1, not 'many'",
        ),
        ((*SIMULATE, "--seed", "-1"), "seed must be"),
        ((*SIMULATE, "--points", "0"), "points must be"),
        (
            (*SIMULATE, "--points", "1000000000"),
            "--points must be a whole number from 2 to 10,000,000",
        ),
        ((*SIMULATE, "--until", "-2"), "--until must be a finite number > 0"),
        ((*SIMULATE, "--until", "nan"), "--until must be a finite number > 0"),
        ((*SIMULATE, "--threads", "1000000"), "threads must be a whole number from 1 to 1,024"),
        (("simulate", "esirs", "--samples", "1000000000000"), "MB free"),
        ((*SIMULATE, "--threads", "0"), "threads must be"),
        ((*SIMULATE, "--max-events", "0"), "--max-events must be a whole number >= 1, not 0"),
        ((*SIMULATE, "--initial", "S=95,Q=5"), "unknown species 'Q'"),
        ((*SIMULATE, "--initial", "S=95,I=6"), "more than the population"),
        ((*SIMULATE, "--initial", "S=9.5"), "whole number"),
        ((*SIMULATE, "--initial", "S=-3"), "whole number"),
        ((*SIMULATE, "--initial", "S"), "name=number"),
        ((*SIMULATE, "--initial", "S=1..2..3"), "two bounds"),
        ((*SIMULATE, "--initial", "S=1", "--initial", "S=2"), "given twice"),
        ((*SIMULATE, "--param", "bta=1"), "did you mean 'beta'"),
        ((*SIMULATE, "--param", "beta=high"), "not a number"),
        ((*SIMULATE, "--param", "N=50", "--population", "60"), "say the same"),
        ((*SIMULATE, "--population", "-5"), "--population must be"),
        (("simulate", "birth_death", "--population", "5"), "no conserved population"),
        ((*SIMULATE, "--method", "magic"), "unknown --method 'magic' (have: direct, tau, ode)"),
        ((*SIMULATE, "-o", "out.csv"), "must end in"),
        ((*SIMULATE, "-o", "no/where.nc"), "no folder"),
        (("plot", "nothing.nc"), "there is no file"),
        (("plot", "."), "neither"),
    ],
)
def test_bad_arguments_of_simulate_and_plot_are_refused(
    here: Path, words: tuple[str, ...], says: str
) -> None:
    assert says in refused(*words)
    assert os.listdir(here) == []


def test_negative_rates_end_with_exit_code_1(here: Path) -> None:
    done = CliRunner().invoke(main, [*SIMULATE, "--param", "gamma=-1"])
    assert done.exit_code == 1
    assert "reaction 'recovery' has the rate" in done.output
    assert os.listdir(here) == []


def test_plot_refuses_what_it_cannot_draw(here: Path) -> None:
    (here / "bad.nc").write_bytes(b"not a netCDF file at all")
    assert "cannot read" in refused("plot", "bad.nc")
    xr.Dataset({"a": ("x", [1, 2])}).to_netcdf(here / "other.nc")
    assert "holds no samples" in refused("plot", "other.nc")
    CliRunner().invoke(main, [*SIMULATE, "-o", "t.nc"])
    assert "unknown variable 'Q'" in refused("plot", "t.nc", "--species", "S,Q")
    assert "must end in" in refused("plot", "t.nc", "-o", "t.bmp")
    assert (
        CliRunner().invoke(main, ["plot", "t.nc", "--species", "S", "-o", "t.svg"]).exit_code == 0
    )
    assert "exists" in refused("plot", "t.nc", "-o", "t.svg")
