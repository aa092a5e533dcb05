"""surrogate sample, through its console script and in process."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import surrogate as sg
from cli.main import main
from simulators import models, simulate
from surrogate.diffusion.training import Settings
from surrogate.fitting import Preset, Run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "model"
    settings = Settings(steps=20, batch=64, warm_up=2, check_every=10)
    Run(simulate(models.esirs(), samples=200, seed=1), 0, Preset(settings, depth=1)).fit().save(
        folder
    )
    return folder


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["sample", *words])
    return done.exit_code, done.stdout, done.stderr


def test_the_bundled_model_is_used_where_there_is_no_other() -> None:
    code, out, err = run("-n", "50", "--json")
    assert code == 0, err
    assert "esirs, which comes with the package" in err
    assert json.loads(out)["samples"] == 50
    with xr.open_dataset("samples.nc") as data:
        assert set(data.data_vars) == {"S", "I", "R"}
        assert (data.S.astype(int) + data.I + data.R == 100).all()
        assert all(int(data[name].min()) >= 0 for name in "SIR")
        assert data.attrs["surrogate_model"] == sg.pretrained("esirs").digest


def test_a_summary_is_a_table_of_quantiles() -> None:
    code, _, err = run("sir", "-n", "40", "--summary", "table.csv")
    assert code == 0, err
    assert "table.csv" in err
    assert "90 % in [" in next(line for line in err.splitlines() if line.startswith("beta "))
    table = pd.read_csv("table.csv")
    assert set(table.variable) == {"S", "I", "R", "beta", "gamma"}
    assert ((table["q5"] <= table["q50"]) & (table["q50"] <= table["q95"])).all()
    code, _, err = run("sir", "-n", "40", "--summary", "table.csv", "-o", "other.nc")
    assert (code, "exists" in err) == (2, True)
    assert not Path("other.nc").exists()
    assert run("sir", "--summary", "table.txt", "-o", "other.nc")[0] == 2


def test_a_model_that_was_trained_here_comes_first(trained: Path) -> None:
    Path("model").symlink_to(trained)
    code, _, err = run("-n", "5", "--steps", "3")
    assert code == 0, err
    assert "model: model" in err
    assert "comes with the package" not in err


def test_a_bundled_model_by_name() -> None:
    code, _, err = run("esirs", "-n", "5", "--steps", "3", "-o", "a.zarr")
    assert code == 0, err
    assert Path("a.zarr").is_dir()


@pytest.mark.parametrize("solver", ["ode", "heun", "sde", "predictor-corrector"])
def test_every_solver(trained: Path, solver: str) -> None:
    code, _, err = run(str(trained), "-n", "5", "--steps", "4", "--solver", solver)
    assert code == 0, err
    with xr.open_dataset("samples.nc") as data:
        assert data.attrs["surrogate_solver"] == solver


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "there is no model folder 'nowhere'"),
        (["-n", "0"], "--samples must be a whole number >= 1, not 0"),
        (["-n", "99999999999999"], "do not fit in memory"),
        (["-n", "99999999999999999999"], "samples must be a whole number"),
        (["--steps", "1"], "--steps must be a whole number >= 2, not 1"),
        (["--steps", "999999999999999999999"], "steps must be a whole number from 2 to 100,000"),
        (["--seed", "-1"], "seed must be"),
        (["--seed", "1180591620717411303424"], "seed must be"),
        (["--device", "meta"], "unknown --device 'meta' (have: cpu, cuda, mps"),
        (["--threads", "99999999999"], "--threads must be a whole number from 1 to 1,024"),
        (["--solver", "magic"], "unknown --solver 'magic' (have: autoregressive, ode, heun, sde"),
        (["-o", "samples.txt"], "must end in"),
    ],
)
def test_bad_arguments_of_sample_are_refused(words: list[str], message: str) -> None:
    code, _, err = run(*words)
    assert code == 2, err
    assert message in err
    assert "Traceback" not in err
    assert not list(Path().iterdir())


def test_the_bundled_model_knows_where_it_comes_from() -> None:
    model = sg.pretrained("esirs")
    assert "--simulate esirs" in model.about["command"]
    assert model.about["card"]["consistent"] > 0.995
    with pytest.raises(sg.ModelError, match="have: digits, esirs, sir"):
        sg.pretrained("esris")
