"""Mistakes are answered before torch is imported: syntax, missing files, existing output.

Each command runs in a process of its own that fails if it imports torch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
sys.modules["torch"] = None  # importing it raises ImportError
from cli.main import main
main(prog_name="surrogate")
"""


def answered(here: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], cwd=here, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sample", "--where", "max(I <= 20"), "--where: the formula stops here"),
        (("sample", "--where", "@missing.txt"), "there is no file 'missing.txt' of rules"),
        (("sample", "nowhere"), "there is no model folder 'nowhere'"),
        (("sample", "--device", "meta"), "unknown --device 'meta' (have: cpu, cuda, mps"),
        (("sample", "-n", "0"), "--samples must be a whole number >= 1, not 0"),
        (("sample", "-o", "taken.nc"), "--force"),
        (("sample", "--bridge", "S25="), "--bridge: "),
        (("sample", "--where", "Q(3) >= 2"), "unknown signal or function 'Q'"),
        (("train", "nothing.csv"), "there is no file 'nothing.csv'"),
        (("train", "nothing.nc"), "there is no file 'nothing.nc'"),
        (("train", "trajectories.nc", "-o", "full"), "'full' is a folder with other things"),
        (("check", "nothing.nc", "--where", "x > 1"), "there is no file 'nothing.nc'"),
        (("check", "taken.nc", "--where", "x > "), "--where: the formula stops here"),
        (("evaluate", "nothing.nc", "--against", "taken.nc"), "there is no file 'nothing.nc'"),
        (("plot", "nothing.nc"), "there is no file 'nothing.nc'"),
        (("report", "nothing.nc"), "there is no file 'nothing.nc'"),
        (("reference", "esirs", "--where", "max(I <= 20"), "--where: the formula stops here"),
        (("reference", "esirs"), "state a scenario with --bridge or --where"),
        (("simulate", "esirs", "-o", "taken.nc"), "--force"),
        (("simulate", "esris"), "did you mean 'esirs'"),
    ],
)
def test_mistakes_are_reported_without_torch(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "taken.nc").write_bytes(b"")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    code, said = answered(tmp_path, *words)
    assert says in said
    assert code == 2
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--bridge", "S25=300"), "S(25) is at most 100, and must be 300 or more"),
        (("--bridge", "S0=95,I0=6"), "S(0) + I(0) + R(0) is at least 101"),
        (("esirs", "--where", "S(3) >= 60 and S(3) <= 50"), "no data can satisfy"),
    ],
)
def test_an_impossible_scenario_is_refused_without_torch(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    code, said = answered(tmp_path, "sample", *words)
    assert code == 3, said
    assert says in said


@pytest.mark.parametrize("command", ["sample", "train", "check", "evaluate", "report", "reference"])
def test_help_is_shown_without_torch(tmp_path: Path, command: str) -> None:
    assert answered(tmp_path, command, "--help") == (0, "")
