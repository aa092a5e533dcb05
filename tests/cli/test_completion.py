"""What the shell offers on Tab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from cli.main import COMMANDS, main


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(*words: str) -> list[str]:
    """What completes the last word; files and folders are left to the shell: "file", "dir"."""
    *before, incomplete = words
    found = ShellComplete(main, {}, "surrogate", "_SURROGATE_COMPLETE").get_completions(
        before, incomplete
    )
    return [item.value if item.type == "plain" else item.type for item in found]


def test_tab_offers_commands_and_options() -> None:
    assert offered("sa") == ["sample"]
    assert offered("") == list(COMMANDS)
    assert offered("sample", "--sa") == ["--samples"]


@pytest.mark.parametrize("command", ["simulate", "reference", "models"])
def test_tab_offers_the_built_in_simulators(command: str) -> None:
    assert "esirs" in offered(command, "")
    assert offered(command, "esi") == ["esirs"]
    assert offered(command, "./my") == ["file"]
    assert offered("train", "--simulate", "esi") == ["esirs"]


def test_bundled_models_and_model_folders(empty: Path) -> None:
    assert offered("sample", "") == ["digits", "esirs", "sir"]
    for name in ("model", "other"):
        (empty / name).mkdir()
    (empty / "model" / "config.json").write_text("{}")
    assert offered("sample", "") == ["model", "digits", "esirs", "sir"]
    assert offered("sample", "mo") == ["model"]
    assert offered("sample", "oth") == ["dir"]
    assert offered("classifier", "images", "--model", "dig") == ["digits"]


@pytest.mark.parametrize(
    "words",
    [
        ("train", "wi"),
        ("check", "wi"),
        ("plot", "a.nc", "--against", ""),
        ("report", "wi"),
        ("evaluate", "wi"),
        ("classifier", "wi"),
        ("sample", "--out", ""),
    ],
)
def test_tab_leaves_files_to_the_shell(words: tuple[str, ...]) -> None:
    assert offered(*words) == ["file"]


def test_tab_offers_the_choices_of_an_option() -> None:
    assert offered("simulate", "esirs", "--method", "d") == ["direct"]
    assert "twisted" in offered("sample", "--method", "")
    assert offered("train", "--preset", "q") == ["quick"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0, done.output
    assert f"_SURROGATE_COMPLETE={shell}_complete" in done.stdout


def test_a_shell_without_a_script_is_refused() -> None:
    assert CliRunner().invoke(main, ["completion", "cmd"]).exit_code == 2


def test_the_console_script_completes_without_torch() -> None:
    code = (
        "import os, sys\n"
        "os.environ.update(COMP_WORDS='surrogate sample es', COMP_CWORD='2',"
        " _SURROGATE_COMPLETE='bash_complete')\n"
        "from cli.main import main\n"
        "try:\n    main(prog_name='surrogate')\n"
        "finally:\n    print('torch' in sys.modules, 'pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["plain,esirs", "False", "False"], done.stderr
