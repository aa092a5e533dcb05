"""Mistakes that users make: one message with the bad value, the legal values and a remedy.

The exit codes are those of `surrogate --help`. No command of this file gets as far as its work.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from simulators import models, simulate_to

SAMPLE = ("sample", "esirs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and files that are none."""
    made = tmp_path_factory.mktemp("mistakes")
    simulate_to(made / "runs.nc", models.esirs(), samples=20)
    rows = "\n".join(f"{i},{i % 7}" for i in range(40))
    (made / "rows.csv").write_text(f"a,b\n{rows}\n")
    (made / "empty.csv").write_text("")
    (made / "empty.xml").write_text("")
    (made / "letter.xml").write_text("Dear reader")
    (made / "junk.nc").write_text("junk")
    (made / "taken.nc").write_text("")
    (made / "taken.html").write_text("")
    (made / "taken.png").write_text("")
    (made / "plain").mkdir()
    return made


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str, code: int = 2) -> str:
    monkeypatch.chdir(folder)
    before = sorted(each.name for each in folder.iterdir())
    done = CliRunner().invoke(main, words, prog_name="surrogate")
    assert done.exit_code == code, done.output
    assert isinstance(done.exception, SystemExit)
    assert done.stdout == ""
    assert sorted(each.name for each in folder.iterdir()) == before
    return done.stderr


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("models", "esrs"), ["'esrs'", "did you mean 'esirs'?", "have: esirs, sir", "SBML file"]),
        (("simulate", "esrs"), ["'esrs'", "did you mean 'esirs'?", "have: esirs, sir"]),
        (("simulate", "esirs", "--sampls", "3"), ["'--sampls'", "did you mean '--samples'?"]),
        (("simulate", "esirs", "--method", "direkt"), ["did you mean 'direct'?", "tau, ode"]),
        (("simulate", "esirs", "--param", "bta=2"), ["'bta'", "did you mean 'beta'?", "gamma"]),
        (("simulate", "esirs", "--param", "beta=2days"), ["'2days'", "without units"]),
        (("simulate", "esirs", "--param", "beta=3..2"), ["3..2", "beta=2..3"]),
        (("simulate", "esirs", "--param", "beta"), ["'beta'", "write name=number"]),
        (("simulate", "esirs", "--initial", "Q=5"), ["unknown species 'Q'", "have: S, I, R"]),
        (("simulate", "esirs", "--initial", "S=-5"), ["'S'", ">= 0", "not -5"]),
        (("simulate", "esirs", "--initial", "S=95,I=50"), ["N=100", "smaller counts", "--initial"]),
        (("simulate", "esirs", "--initial", "S=95,I=5,R=5"), ["105", "N=100", "leave out one"]),
        (("simulate", "letter.xml"), ["letter.xml: not an SBML file", "surrogate models"]),
        (("simulate", "empty.xml"), ["empty.xml: the file is empty", "surrogate models"]),
        (("simulate", "plain"), ["plain: this is a folder", "surrogate models"]),
        (("simulate", "none.xml"), ["none.xml: cannot read the file: No such file"]),
        (("simulate", "esirs", "-o", "taken.nc"), ["'taken.nc' exists", "--force"]),
        (("simulate", "esirs", "-o", "runs.txt"), ["'runs.txt'", ".nc or .zarr"]),
        (("simulate", "esirs", "-o", "no/x.nc"), ["there is no folder 'no'"]),
        (("train", "none.csv"), ["there is no file 'none.csv'"]),
        (("train", "runs.nc", "--preset", "quik"), ["did you mean 'quick'?", "default, best"]),
        (("train", "--simulate", "esrs"), ["did you mean 'esirs'?"]),
        (("train", "runs.nc", "--transform", "I"), ["'I' is not NAME=KIND", "--transform I=log"]),
        (("train", "runs.nc", "-o", "taken.nc"), ["'taken.nc' is a file, where a folder"]),
        (("train", "empty.csv"), ["'empty.csv'", "empty"]),
        (("train", "junk.nc"), ["'junk.nc'", "not a netCDF file"]),
        (("train", "plain"), ["'plain'", "have: .nc"]),
        (("train", "runs.nc", "--resume"), ["no interrupted run", "leave out --resume"]),
        (("sample", "esrs"), ["did you mean 'esirs'?", "digits, esirs, sir", "surrogate train"]),
        (("sample", "rows.csv"), ["'rows.csv' is a file", "surrogate train rows.csv"]),
        (("sample", "plain"), ["'plain' is no model folder", "surrogate train"]),
        ((*SAMPLE, "--method", "twistd"), ["did you mean 'twisted'?", "rejection"]),
        ((*SAMPLE, "--method", "twisted"), ["--method needs a scenario", "add --bridge"]),
        ((*SAMPLE, "--solver", "hen"), ["did you mean 'heun'?"]),
        ((*SAMPLE, "--device", "gpu"), ["'gpu'", "cpu, cuda, mps"]),
        ((*SAMPLE, "--bridge", "Q25=3"), ["unknown signal 'Q'", "have: I, R, S"]),
        ((*SAMPLE, "--bridge", "S99=3"), ["S(99) is past the last step, 29", "0..29"]),
        ((*SAMPLE, "--where", "max(I <= 20"), ["the formula stops here", "^"]),
        ((*SAMPLE, "--where", "I(3) <= 20 days"), ["'days'", "^"]),
        ((*SAMPLE, "--where", "@none.txt"), ["'none.txt'", "one rule on each line"]),
        ((*SAMPLE, "--where", "@plain"), ["'plain'", "text file"]),
        ((*SAMPLE, "-o", "taken.nc"), ["'taken.nc' exists", "--force"]),
        (
            (*SAMPLE, "--strength", "2", "--bridge", "S25=30"),
            ["--strength", "guidance, moments or universal", "or leave out --strength"],
        ),
        (
            ("sample", "digits", "--region", "eyes=8", "--where", "mean(image) <= 1"),
            ["'8' is neither ROWS,COLUMNS nor a picture", "eyes=8:14,4:28"],
        ),
        (("check", "runs.nc"), ["nothing to check DATA by", "--where"]),
        (("check", "none.nc", "--where", "max(I) <= 3"), ["there is no file 'none.nc'"]),
        (("check", "rows.csv", "--where", "c >= 3"), ["'c'", "have: a, b"]),
        (("check", "rows.csv", "--bridge", "S0=3"), ["have no steps", "use --where"]),
        (("check", "rows.csv", "--consistency"), ["'rows.csv'", "with --where"]),
        (("reference", "esirs"), ["state a scenario", "surrogate simulate"]),
        (("reference", "esirs", "--bridge", "S25=30", "--initial", "Q=3"), ["have: S, I, R"]),
        (("reference", "esirs", "--bridge", "S25=30", "-o", "taken.nc"), ["exists", "--force"]),
        (("evaluate", "runs.nc"), ["Missing option '--against'", "surrogate evaluate --help"]),
        (("evaluate", "runs.nc", "--against", "none.nc"), ["there is no file 'none.nc'"]),
        (("evaluate", "runs.nc", "--against", "runs.nc", "--id", "a"), ["leave out --id"]),
        (("evaluate", "rows.csv", "--against", "rows.csv", "--where", "a >"), ["stops here", "^"]),
        (("report", "none.nc"), ["there is no file 'none.nc'"]),
        (("report", "rows.csv", "--where", "a > 3"), ["give one with --against"]),
        (("report", "rows.csv", "-o", "taken.html"), ["'taken.html' exists", "--force"]),
        (("report", "rows.csv", "-o", "page.txt"), ["'page.txt'", ".html or .htm"]),
        (("plot", "none.nc"), ["there is no file 'none.nc'"]),
        (("plot", "runs.nc", "-o", "taken.png"), ["'taken.png' exists", "--force"]),
        (("plot", "runs.nc", "--species", "Q"), ["'Q'", "have: S, I, R"]),
        (("plot", "runs.nc", "--against", "rows.csv"), ["'rows.csv' holds rows", "--against"]),
        (("completion", "bsh"), ["'bsh'", "did you mean 'bash'?", "zsh, fish"]),
    ],
)
def test_a_mistake_is_answered_with_the_value_the_legal_ones_and_a_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], parts: list[str]
) -> None:
    message = refused(folder, monkeypatch, *words)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "esirs", "--points", "1"), "--points must be a whole number from 2 to"),
        (("simulate", "esirs", "--points", "0"), "--points must be a whole number from 2 to"),
        (("simulate", "esirs", "--until", "0"), "--until must be a finite number > 0, not '0'"),
        (("simulate", "esirs", "--until", "nan"), "--until must be a finite number > 0"),
        (("simulate", "esirs", "--until", "inf"), "--until must be a finite number > 0"),
        (("simulate", "esirs", "--samples", "0"), "--samples must be a whole number >= 1, not 0"),
        (("simulate", "esirs", "--samples", "1e3"), "a whole number >= 1, not '1e3'"),
        (("simulate", "esirs", "--threads", "0"), "--threads must be a whole number from 1 to"),
        (("simulate", "esirs", "--population", "-1"), "--population must be a whole number >= 0"),
        (("simulate", "esirs", "--max-events", "0"), "--max-events must be a whole number >= 1"),
        (("simulate", "esirs", "--seed", "-1"), "--seed must be a whole number >= 0, not -1"),
        (("train", "runs.nc", "--iterations", "0"), "--iterations must be a whole number >= 1"),
        ((*SAMPLE, "--samples", "0"), "--samples must be a whole number >= 1, not 0"),
        ((*SAMPLE, "--steps", "1"), "--steps must be a whole number >= 2, not 1"),
        (
            (*SAMPLE, "--particles", "0", "--bridge", "S25=30"),
            "--particles must be a whole number from 8 to 10,000,000, not 0",
        ),
        (
            (*SAMPLE, "--hardness", "nan", "--bridge", "S25=30"),
            "--hardness must be a finite number > 0, not nan",
        ),
        (("reference", "esirs", "--most", "0"), "--most must be a whole number >= 1, not 0"),
        (("plot", "runs.nc", "--trajectories", "-1"), "--trajectories must be a whole number >= 0"),
        (("classifier", "bars.npz", "--epochs", "0"), "--epochs must be a whole number >= 1"),
    ],
)
def test_a_number_out_of_range_is_refused_before_files_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    assert message in refused(folder, monkeypatch, *words)


@pytest.mark.parametrize(
    "words",
    [
        (*SAMPLE, "--bridge", "S25=300"),
        ("check", "runs.nc", "--where", "max(I) <= -1"),
    ],
)
def test_an_impossible_scenario_ends_with_exit_code_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert "no data can satisfy" in refused(folder, monkeypatch, *words, code=3)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that is never writable")
@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "esirs", "-o", "/proc/x.nc"),
        ("train", "rows.csv", "-o", "/proc/x"),
        ("sample", "esirs", "-o", "/proc/x.nc"),
        ("check", "rows.csv", "--where", "a >= 1", "-o", "/proc/x.csv"),
        ("reference", "esirs", "--bridge", "S25=30", "-o", "/proc/x.nc"),
        ("report", "rows.csv", "-o", "/proc/x.html"),
        ("plot", "rows.csv", "-o", "/proc/x.png"),
        ("classifier", "rows.csv", "-o", "/proc/x"),
    ],
)
def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    message = refused(folder, monkeypatch, *words)
    assert "cannot write to the folder '/proc'" in message
    assert "choose another with -o" in message
