"""`surrogate evaluate`: trajectories and tables, and wrong words of every kind."""

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

from cli import reading
from cli.main import main
from simulators import models, simulate
from surrogate.data import evaluate
from surrogate.errors import TrainingError

SCRIPT = Path(sys.executable).with_name("surrogate")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ensembles of one epidemic, a third that starts elsewhere, and two tables."""
    folder = tmp_path_factory.mktemp("evaluate")
    for name, *more in (
        ("a.nc", "--seed", "1"),
        ("b.zarr", "--seed", "2"),
        ("far.nc", "--initial", "S=95,I=5"),
    ):
        words = ["simulate", "esirs", "-n", "300", "-q", "-o", str(folder / name), *more]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
    random = np.random.default_rng(0)
    for name in ("x.csv", "y.csv"):
        colour = random.choice(["red", "white"], 200)
        pd.DataFrame({"alcohol": random.normal(10, 1, 200), "colour": colour}).to_csv(
            folder / name, index=False
        )
    return folder


@pytest.fixture(autouse=True)
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def run(*words: str, code: int = 0, **settings: str) -> Result:
    done = CliRunner(env=settings).invoke(main, ["evaluate", *words])
    assert done.exit_code == code, done.output
    assert code == 0 or isinstance(done.exception, SystemExit)
    return done


def test_evaluate_end_to_end(here: Path) -> None:
    words = [SCRIPT, "evaluate", "far.nc", "--against", "a.nc"]
    done = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["measure", "value", "floor", "ratio"]
    assert lines[2].startswith("D(S), max")
    assert lines[2].endswith("step 0 (time 0)")
    assert "verdict: not usable" in lines
    assert "\n  The samples as a whole differ from the reference: " in done.stdout
    assert done.stderr == "300 samples against 300\n"


def test_help_loads_no_torch() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom cli.main import main\n"
        "for words in (['evaluate', '--help'], ['evaluate']):\n"
        "    CliRunner().invoke(main, words)\n"
        "print([name for name in ('torch', 'numba', 'xarray') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_json_and_quiet() -> None:
    done = run("a.nc", "--against", "b.zarr", "--json", "--quiet", "--seed", "3")
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert (told["data"], told["against"], told["seed"]) == ("a.nc", "b.zarr", 3)
    assert told["verdict"]["words"] == "good"
    assert told["verdict"]["against"] == []
    assert 0.4 < told["trees"]["accuracy"] < 0.6
    with xr.open_dataset("a.nc") as a, xr.open_zarr("b.zarr") as b:
        found = evaluate(a, b, seed=3)
    assert told["variables"] == found.to_dict()["variables"]
    assert [each["name"] for each in told["variables"]] == ["S", "I", "R"]
    assert told["consistent"] == 1
    assert told["overall"]["median"]["ratio"] < 1.3


def test_tables_are_compared_column_by_column() -> None:
    told = json.loads(run("x.csv", "--against", "y.csv", "--json").stdout)
    assert [each["name"] for each in told["variables"]] == ["alcohol", "colour"]
    assert told["kind"] == "rows"
    assert "D(colour)" in run("x.csv", "--against", "y.csv").stdout


def test_where_compares_with_the_reference_rows_that_meet_the_rule() -> None:
    """Rows of a scenario are as far from the whole table as the scenario is from everything."""
    strong = pd.read_csv("x.csv").query("alcohol >= 10")
    strong.to_csv("strong.csv", index=False)

    def far(*words: str) -> float:
        told = json.loads(run("strong.csv", "--against", "y.csv", *words, "--json").stdout)
        found: float = told["overall"]["max"]["ratio"]
        return found

    assert far() > 2 > far("--where", "alcohol >= 10")
    said = run("strong.csv", "--against", "y.csv", "--where", "alcohol >= 10").stderr
    assert f"{(pd.read_csv('y.csv').alcohol >= 10).sum()} of 200 samples" in said
    few = run("strong.csv", "--against", "y.csv", "--where", "alcohol >= 99", code=2)
    assert "a comparison needs 10" in few.output
    assert (
        "did you mean" in run("x.csv", "--against", "y.csv", "--where", "alchol > 1", code=2).output
    )
    run("a.nc", "--against", "b.zarr", "--where", "S(0) >= 10")


def test_evaluating_a_table_reports_distances_copies_and_prediction(tmp_path: Path) -> None:
    many = [
        pd.DataFrame({"x": r.normal(size=300)}).assign(
            y=lambda t, r=r: t.x + r.normal(0, 0.3, len(t)), word=r.choice(["a", "b"], 300)
        )
        for r in map(np.random.default_rng, range(2))
    ]
    for name, each in zip(("rows.csv", "real.csv"), many, strict=True):
        each.to_csv(tmp_path / name, index=False)
    many[0].assign(extra=1).to_parquet(tmp_path / "rows.parquet")
    rows, real = str(tmp_path / "rows.csv"), str(tmp_path / "real.csv")
    said = run(rows, "--against", real, "--target", "y").stdout
    for part in (
        "D(word)",
        "y predicted, R²",
        "exact copies of training rows",
        "gradient boosting",
    ):
        assert part in said
    told = json.loads(run(rows, "--against", real, "--train", rows, "--json").stdout)
    assert told["privacy"]["memorised"]
    assert told["privacy"]["held_out"]
    assert "only on one side" in run(str(tmp_path / "rows.parquet"), "--against", real).stdout
    chosen = json.loads(run(rows, "--against", real, "--columns", "x,word", "--json").stdout)
    assert [each["name"] for each in chosen["variables"]] == ["x", "word"]
    for words, says in (
        (("--target", "z"), "unknown column 'z' to predict"),
        (("--target", "wrd"), "did you mean 'word'?"),
        (("--columns", "x,z"), "unknown column 'z'"),
        (("--train", "a.nc"), "give data of one kind"),
    ):
        assert says in run(rows, "--against", real, *words, code=2).output
    assert "target is for rows" in run("a.nc", "--against", "a.nc", "--target", "S", code=2).output


def test_people_at_a_terminal_get_a_drawn_table() -> None:
    done = run("far.nc", "--against", "a.nc", "-q", FORCE_COLOR="1", COLUMNS="120")
    for part in ("D(I), median", "classifier accuracy", "─", "\x1b[31m"):
        assert part in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a.nc",), "Missing option '--against'"),
        (("none.nc", "--against", "a.nc"), "there is no file 'none.nc'"),
        (("a.nc", "--against", "none.csv"), "there is no file 'none.csv'"),
        (("a.nc", "--against", "x.csv"), "the samples are trajectories"),
        (("a.nc", "--against", "b.zarr", "--seed", "-1"), "seed must be a whole number"),
        (
            ("a.nc", "--against", "b.zarr", "--seed", "x"),
            "--seed must be a whole number >= 0, not 'x'",
        ),
    ],
)
def test_bad_arguments_of_evaluate_are_refused(words: tuple[str, ...], says: str) -> None:
    assert says in run(*words, code=2).output


def test_other_grids_and_other_variables() -> None:
    with xr.open_dataset("a.nc") as data:
        data.isel(time=slice(9)).to_netcdf("short.nc")
        data.drop_vars("R").to_netcdf("fewer.nc")
    said = run("short.nc", "--against", "a.nc", code=2).output
    assert "the samples have 9 times, the reference has 30" in said
    assert "only in the reference: R" in run("fewer.nc", "--against", "a.nc", code=2).output


@pytest.mark.parametrize("swapped", [False, True])
def test_data_that_cannot_be_compared(tmp_path: Path, swapped: bool) -> None:
    """Refused whichever side they are on, with the side and the place."""

    def refused(bad: str, good: str, says: str) -> None:
        words = (good, "--against", bad) if swapped else (bad, "--against", good)
        done = run(*words, "--json", code=2)
        assert done.stdout == ""
        side = "the reference" if swapped else "the samples"
        assert says.replace("SIDE", side) in done.output

    def netcdf(data: xr.Dataset) -> str:
        data.to_netcdf(tmp_path / "bad.nc")
        return str(tmp_path / "bad.nc")

    def text(content: str, name: str = "bad.csv") -> str:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return str(tmp_path / name)

    with xr.open_dataset("a.nc") as opened:
        data = opened.load()
    holes = data.astype(float)
    holes["I"][7, 3] = np.nan
    refused(
        netcdf(holes), "a.nc", "SIDE: I has missing values in 1 of 300 samples, first at sample 7"
    )
    holes["I"][7, 3] = np.inf
    refused(netcdf(holes), "a.nc", "SIDE: I has infinite values")
    refused(netcdf(data.isel(sample=[0])), "a.nc", "SIDE: at least 2 are needed, not 1")
    refused(netcdf(data.assign_coords(time=2 * data.time)), "a.nc", "the times differ: step 1")
    refused(netcdf(data.rename(S="X")), "a.nc", "only in SIDE: X")
    refused(netcdf(data.assign(S=data.S.isel(time=0, drop=True))), "a.nc", "S is a ")
    refused(netcdf(data.rename(sample="draw")), "a.nc", "holds no samples")
    refused(netcdf(data.isel(time=0, drop=True)), "a.nc", "give data of one kind")
    unweighted = np.full(300, -np.inf)
    refused(netcdf(data.assign(log_weight=("sample", unweighted))), "a.nc", "SIDE: log_weight")
    damaged = Path(netcdf(data))
    damaged.write_bytes(damaged.read_bytes()[:5000])
    refused(str(damaged), "a.nc", "cannot read")
    refused(text("not netCDF", "text.nc"), "a.nc", "is not a netCDF file")
    refused(text("alcohol,colour\n10,red\n"), "y.csv", "SIDE: at least 2 are needed, not 1")
    refused(text("alcohol,colour\nhigh,red\nlow,red\n"), "y.csv", "alcohol holds ")
    refused(text("strength\n10\n11\n"), "y.csv", "no column is in common")
    refused(text("alcohol,colour\n10,red\ninf,red\n"), "y.csv", "SIDE: alcohol is infinite")
    refused(text("a\n10\n11,12\n"), "y.csv", "line 3")
    refused(text("", "x.txt"), "y.csv", "(have: .nc, ")


def test_a_run_that_had_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training's own error has the exit code 1; what nobody foresaw is not hidden."""

    def stops(path: str, given: object, say: object, shared: bool) -> None:
        raise TrainingError("the loss diverged")

    monkeypatch.setattr(reading, "opened", stops)
    assert run("a.nc", "--against", "a.nc", code=1).output == "Error: the loss diverged\n"

    def breaks(path: str, given: object, say: object, shared: bool) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(reading, "opened", breaks)
    done = CliRunner().invoke(main, ["evaluate", "a.nc", "--against", "a.nc"])
    assert isinstance(done.exception, RuntimeError)


def test_a_table_that_holds_trajectories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = simulate(models.esirs(), samples=40, seed=1)[["S", "I"]].drop_attrs()
    data.to_netcdf("samples.nc")
    data.to_dataframe().reset_index().to_csv("runs.csv", index=False)
    words = ["evaluate", "samples.nc", "--against", "runs.csv"]
    done = CliRunner().invoke(main, [*words, "--id", "sample", "--time", "time"])
    assert done.exit_code == 0, done.output
    assert "40 runs" in done.stderr
    assert "D(S), median" in done.stdout
    done = CliRunner().invoke(main, [*words[:2], "--against", "samples.nc", "--id", "sample"])
    assert done.exit_code == 2
    assert "--id is for tables" in done.stderr
