"""The README's commands and programs run, in order, in an empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_commands(folder: Path) -> None:
    for program in fenced("python"):
        if ".to_csv(" in program:  # a table that commands read
            subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    commands = [line for block in fenced("sh") for line in block.splitlines() if line]
    assert len(commands) >= 8
    for command in commands:
        name, *words = shlex.split(command)
        assert name == "surrogate", command
        script = Path(sys.executable).with_name(name)
        done = subprocess.run([script, *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (folder / "trajectories.png").stat().st_size > 10_000


@pytest.mark.parametrize("program", fenced("python"), ids=lambda text: text.splitlines()[0])
def test_programs(folder: Path, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"^print\(.*\)\s*# ([\d.]+)$", program, re.MULTILINE)
    printed = done.stdout.split()
    for number in promised:
        assert any(said.startswith(number) for said in printed), (number, printed)


def test_make_targets_and_links_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^)make ([a-z]+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link
