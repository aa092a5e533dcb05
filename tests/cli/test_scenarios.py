"""`surrogate sample` with a scenario: what it writes and says, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner

from cli.console import Percent
from cli.main import main

BRIDGE = ("--bridge", "S0=80,I0=10,S25=30")
SMALL = ("--samples", "60", "--particles", "400", "--steps", "15", "--threads", "1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["sample", *words])
    return done.exit_code, done.stdout, done.stderr


def test_a_bridge_and_a_rule() -> None:
    code, out, said = run(*BRIDGE, "--where", "forall t: I(t) <= 60", *SMALL, "--json")
    assert code == 0, said
    told = json.loads(out)
    assert told["satisfied"] == told["consistent"] == 1
    assert "scenario satisfied by 100.0% of the samples; 100.0% consistent with the network" in said
    assert "; the model's own error comes on top" in said
    assert "the samples are worth about " in said
    assert "rejection would have taken" in said
    assert "next: surrogate report samples.nc" in said
    with xr.open_dataset("samples.nc") as data:
        assert (data.S.values[:, 0] == 80).all()
        assert (data.S.values[:, 25] == 30).all()
        assert data.attrs["surrogate_method"] == "twisted"
        assert set(json.loads(data.attrs["surrogate_settings"])) == {
            *("method", "hardness", "consistency", "end"),
            *("particles", "steps", "weighted", "keep_degenerate", "jacobian"),
        }


def test_a_probable_scenario_is_sampled_by_rejection() -> None:
    code, _, said = run("--where", "I(0) <= 10", "--samples", "1", "--threads", "1")
    assert code == 0, said
    assert "method: rejection" in said
    assert "1 trajectory of S, I, R" in said
    accepted = int(re.search(r"accepted (\d+) of 500 draws", said)[1])  # type: ignore[index]
    assert f"P = {accepted / 500:.3g} " in said


def test_a_scenario_far_from_the_training_data_is_an_extrapolation() -> None:
    few = ("--samples", "20", "--particles", "3000", "--steps", "20", "--threads", "1")
    code, _, said = run("--where", "I(20) = 58", *few, "--quiet")
    assert code == 0, said
    with xr.open_dataset("samples.nc") as data:
        told = json.loads(data.attrs["surrogate_diagnostics"])
    assert any("samples and probability are extrapolations" in w for w in told["warnings"])


DEGENERATE = (
    *("--where", "I(3) >= 90 and I(4) <= 10", "--samples", "20"),
    *("--particles", "40", "--steps", "6", "--threads", "1"),
)


def test_a_degenerate_run_writes_no_file_and_ends_with_exit_code_4() -> None:
    code, out, said = run(*DEGENERATE, "--json")
    assert code == 4
    assert not out
    assert "the run is degenerate" in said
    assert "--keep-degenerate returns the samples all the same" in said
    assert not list(Path().iterdir())


def test_a_degenerate_run_that_is_kept_writes_its_file_and_ends_with_exit_code_4() -> None:
    code, out, said = run(*DEGENERATE, "--keep-degenerate", "--json")
    assert code == 4
    assert json.loads(out)["diagnostics"]["degenerate"]
    assert "degenerate: " in said
    assert Path("samples.nc").exists()


def test_the_exit_code_of_degenerate_runs_is_in_the_help() -> None:
    assert "4  a degenerate run" in CliRunner().invoke(main, ["--help"]).stdout


def test_the_bar_of_a_repeated_run_starts_again_and_never_exceeds_its_end() -> None:
    at, seen = 0, []

    def advance(count: int) -> None:
        nonlocal at
        at += count
        seen.append(at)

    percent = Percent(advance)
    for last in (1.0, 1.0, 1.3):
        for share in (0.2, 0.7, last):
            percent(share)
        percent.restart()
    assert max(seen) == 100
    assert seen.count(0) == 3


def test_a_large_hardness_gives_exact_equalities() -> None:
    code, _, said = run("--bridge", "S25=30", *SMALL, "--hardness", "1e9")
    assert code == 0, said
    with xr.open_dataset("samples.nc") as data:
        assert (data.S.values[:, 25] == 30).all()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--bridge", "X0=3"], 2, "unknown signal 'X' (have: I, R, S)"),
        (["--bridge", "S30=3"], 2, "past the last step, 29"),
        (["--bridge", "S0=101"], 3, "S(0) is at most 100"),
        (["--bridge", "S0=95,I0=6"], 3, "must be 100 or less"),
        (["--where", "S(3) >= 60", "--where", "S(3) <= 50"], 3, "no data can satisfy"),
        (["--where", "Q(3) >= 2"], 2, "unknown signal or function 'Q'"),
        (["--where", "S@2.55 >= 2"], 2, "not on the grid; nearby are"),
        (["--where", "@missing.txt"], 2, "there is no file 'missing.txt' of rules"),
        ([*BRIDGE, "--samples", "0"], 2, "--samples must be a whole number >= 1, not 0"),
        ([*BRIDGE, "--particles", "1"], 2, "particles must be a whole number from 8"),
        ([*BRIDGE, "--hardness", "nan"], 2, "hardness must be a finite number"),
        (
            [*BRIDGE, "--method", "guidance", "--particles", "50"],
            2,
            "choose --method moments, sequential or twisted, or leave out --particles",
        ),
        (
            [*BRIDGE, "--recurrence", "2"],
            2,
            "--recurrence is no setting of --method auto; choose --method moments or universal",
        ),
        ([*BRIDGE, "--solver", "sde"], 2, "--solver is for draws without a scenario"),
        (["--hardness", "5"], 2, "--hardness needs a scenario; add --bridge S25=30 or --where"),
        (["--no-consistency"], 2, "--no-consistency needs a scenario"),
        (
            [*BRIDGE, "--method", "universal", "--no-forward"],
            2,
            "both are off; turn on --forward or --backward 10",
        ),
    ],
)
def test_bad_scenarios_are_refused_with_their_exit_code(
    words: list[str], code: int, message: str
) -> None:
    found, out, said = run(*words)
    assert found == code
    assert message in said
    assert not out
    assert not list(Path().iterdir())
