"""`surrogate report`, through its console script and in process, and wrong words of every kind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner, Result

from cli import files
from cli.main import main
from constraints import bridge, parse
from simulators import models, simulate
from surrogate.data import evaluate
from surrogate.kinds.labels import label
from surrogate.reports import figures as pictures


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trajectories as a sampler labels them, a reference, and the same as a table."""
    folder = tmp_path_factory.mktemp("report")
    plain = simulate(models.esirs(), samples=60, seed=1)
    rules = {str(rule): rule for rule in (bridge("S0=95"), parse("forall t: I(t) <= 90"))}
    samples = label(plain, rules).assign_attrs(surrogate_model="b44e5f3a")
    samples.to_netcdf(folder / "samples.nc")
    simulate(models.esirs(), samples=80, seed=2).to_netcdf(folder / "reference.nc")
    few = plain[["S", "I"]].isel(time=slice(4)).drop_attrs()
    few.to_dataframe().reset_index().rename(columns={"sample": "run"}).to_csv(
        folder / "runs.csv", index=False
    )
    files.write_data(few, folder / "few.zarr")
    return folder


@pytest.fixture(autouse=True)
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in made.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages in no time: tests of words need no pictures."""
    monkeypatch.setattr(pictures, "drawn", lambda *arguments: "data:,")


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["report", *words])
    assert done.exit_code == code, done.output
    assert code == 0 or isinstance(done.exception, SystemExit)
    return done


def test_a_page_with_its_figures_needs_no_other_file(here: Path) -> None:
    done = run("--against", "reference.nc", "--title", "A <title>")
    assert done.stdout == ""
    assert "samples.html" in done.stderr
    assert "next: open the page" in done.stderr
    page = Path("samples.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert page.count("<img ") == page.count('src="data:image/') == 8
    assert not list(here.glob(".*"))


def test_help_loads_no_torch() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom cli.main import main\n"
        "CliRunner().invoke(main, ['report', '--help'])\n"
        "print([name for name in ('torch', 'numba', 'xarray') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("undrawn")
def test_json_and_quiet() -> None:
    done = run("--against", "reference.nc", "-o", "a.html", "--json", "--quiet")
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["path"] == "a.html"
    assert told["bytes"] == Path("a.html").stat().st_size
    with xr.open_dataset("samples.nc") as a, xr.open_dataset("reference.nc") as b:
        assert told["evaluation"] == json.loads(json.dumps(evaluate(a, b).to_dict()))
        assert told["satisfied"] == float(a.satisfied.mean())
    assert told["verdict"] == "poor"  # of these, most miss the bridge
    assert json.loads(run("few.zarr", "-q", "--json").stdout)["verdict"] is None


@pytest.mark.usefixtures("undrawn")
def test_the_way_to_a_reference() -> None:
    said = run().stderr
    assert "next: surrogate reference esirs --where 'S(0) = 95'" in said
    assert "--where 'forall t: I(t) <= 90' -o reference.nc, then surrogate report" in said
    with xr.open_dataset("samples.nc") as data:
        names = [*data.data_vars][3:]
        del data.attrs["surrogate_constraint"]
        data.drop_vars(names).to_netcdf("draws.nc")
    assert "next: surrogate simulate esirs -o reference.nc" in run("draws.nc").stderr


@pytest.mark.usefixtures("undrawn")
def test_tables_and_folders() -> None:
    said = run("runs.csv", "--id", "run", "--time", "time", "--against", "few.zarr").stderr
    assert "60 runs of 4 steps" in said
    assert Path("runs.html").exists()
    assert "next: open the page" in run("few.zarr").stderr
    assert Path("few.html").exists()
    assert "--id is for tables" in run("few.zarr", "--id", "sample", "--force", code=2).output


@pytest.mark.usefixtures("undrawn")
def test_nothing_is_overwritten_without_force() -> None:
    Path("samples.html").write_text("mine")
    assert "exists" in run(code=2).output
    assert Path("samples.html").read_text() == "mine"
    run("--force")
    assert Path("samples.html").read_text().startswith("<!doctype")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none.nc",), "there is no file 'none.nc'"),
        (("",), "neither"),
        ((".",), "neither"),
        (("samples.nc", "--against", "none.nc"), "there is no file 'none.nc'"),
        (("samples.nc", "--against", "few.zarr"), "times"),
        (("samples.nc", "-o", "a.pdf"), "must end in .html"),
        (("samples.nc", "-o", "no/a.html"), "there is no folder"),
        (("runs.csv", "--id", "city"), "city"),
        (("runs.csv", "--target", "S"), "target needs real rows"),
        (("runs.csv", "--against", "samples.nc"), "give data of one kind"),
    ],
)
def test_bad_arguments_of_report_are_refused(here: Path, words: tuple[str, ...], says: str) -> None:
    assert says in run(*words, code=2).output
    assert not list(here.glob("*.html"))


def test_report_without_samples_names_the_command_that_draws_them() -> None:
    Path("samples.nc").unlink()
    assert "surrogate sample --bridge" in run(code=2).output


def test_data_that_cannot_be_shown(here: Path) -> None:
    with xr.open_dataset("reference.nc") as opened:
        data = opened.load().drop_encoding()

    def refused(bad: xr.Dataset, says: str, *words: str) -> None:
        bad.to_netcdf("bad.nc")
        assert says in run("bad.nc", *words, code=2).output

    refused(data.isel(sample=slice(0)), "is empty")
    refused(data.drop_vars([*data.data_vars]).assign(k=("sample", np.arange(80))), "no variables")
    refused(data[["S"]].rename(S="X"), "nothing to compare", "--against", "reference.nc")
    refused(data.assign_coords(time=2 * data.time), "the times differ", "--against", "reference.nc")
    refused(data.assign(log_weight=("sample", np.full(80, np.nan))), "log_weight must be")
    data.to_netcdf("damaged.nc")
    content = bytearray(Path("damaged.nc").read_bytes())
    content[-6_000:] = bytes(6_000)
    Path("damaged.nc").write_bytes(content)
    assert "cannot read" in run("damaged.nc", code=2).output
    Path("text.nc").write_text("not netCDF")
    assert "is not a netCDF file" in run("text.nc", code=2).output
    assert not list(here.glob("*.html"))


@pytest.mark.usefixtures("undrawn")
def test_a_table_of_rows(here: Path) -> None:
    """A table is one of rows, and a hint says how it would be one of runs."""
    said = run("runs.csv").stderr
    assert "--id run --time time" in said
    assert "next: surrogate report runs.csv --against REAL.csv" in said
    assert "The columns" in Path("runs.html").read_text(encoding="utf-8")
    rows = pd.read_csv("runs.csv")[["S", "I"]]
    rows.to_csv("rows.csv.gz", index=False)
    words = ("rows.csv.gz", "--against", "runs.csv", "--target", "I", "--json")
    told = json.loads(run(*words).stdout)
    assert told["path"] == "rows.html"
    assert told["evaluation"]["lone"] == ["run", "time"]
    assert told["verdict"] == "poor"  # they are copies
    assert any("exact copies" in reason for reason in told["reasons"])
    with xr.open_dataset("reference.nc") as opened:
        one = opened[["S", "I"]].isel(time=0, drop=True).drop_attrs()
        one.to_netcdf("rows.nc")
    assert json.loads(run("rows.nc", "--json", "--force").stdout)["samples"] == 80


@pytest.mark.parametrize("name", ["rows.csv", "rows.nc"])
def test_plot_draws_tables(name: str) -> None:
    rows = pd.read_csv("runs.csv")[["S", "I"]].assign(word="a")
    rows.to_csv("rows.csv", index=False)
    rows[["S", "I"]].rename_axis("sample").to_xarray().to_netcdf("rows.nc")
    done = CliRunner().invoke(main, ["plot", name, "--against", "runs.csv"])
    assert done.exit_code == 0, done.output
    assert Path("rows.png").read_bytes()[:4] == b"\x89PNG"
    assert "not drawn: run, time" in done.stderr
    for words, says in (
        (("--species", "Q"), "unknown column 'Q'"),
        (("--against", "samples.nc"), "holds trajectories"),
        (("-o", "rows.bmp"), "must end in"),
    ):
        done = CliRunner().invoke(main, ["plot", name, "--force", *words])
        assert done.exit_code == 2, done.output
        assert says in done.stderr
    done = CliRunner().invoke(main, ["plot", "samples.nc", "--against", "rows.csv"])
    assert done.exit_code == 2
    assert "give --against trajectories" in done.stderr


def test_plot_draws_observations_over_a_fan_chart() -> None:
    pd.DataFrame({"time": [0.0, 1.0], "S": [90, 40]}).to_csv("seen.csv", index=False)
    words = ["plot", "samples.nc", "--species", "S", "--observed", "seen.csv", "--force"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["plot", "seen.csv", "--observed", "seen.csv", "--force"])
    assert done.exit_code == 2
    assert "observed is for trajectories" in done.stderr


def test_plot_draws_the_scenario_unless_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from surrogate.kinds.trajectories import plot as plots

    seen = []
    draw = plots.fan_chart

    def watched(*words: object, **settings: object) -> object:
        figure = draw(*words, **settings)  # type: ignore[arg-type]
        seen.append(len(figure.axes[0].lines))
        return figure

    monkeypatch.setattr(plots, "fan_chart", watched)
    for words in ((), ("--no-constraints", "--force")):
        done = CliRunner().invoke(main, ["plot", "samples.nc", "--species", "S", *words])
        assert done.exit_code == 0, done.output
    assert seen[0] == seen[1] + 1
