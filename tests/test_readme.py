"""The README's commands and programs run as they are printed.

A block of commands is one test, in an empty folder. Files that it reads and an earlier block
simulated are made first, by the earlier block's own command; a block that reads what an earlier
block sampled or trained runs in the same test, after it. Commands run in this process, through the
entry point of the console script, because importing torch for each would take most of the time;
the first block runs the script itself. They are run short: fewer samples than the default of
10,000, fewer particles and noise levels for a scenario, fewer training steps.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAMPLES = ["--samples", "300"]
SCENARIO = ["--particles", "600", "--steps", "12"]
ITERATIONS = "20"
SHORTER = {  # in programs
    "iterations=100": f"iterations={ITERATIONS}",
    "2_000, seed": "300, seed",
    "samples=2_000": "samples=300",
    "where=goal": "where=goal, particles=600, steps=12",
    'alcohol >= 13"), seed': 'alcohol >= 13"), particles=600, steps=12, seed',
}
DEFAULT_OUTPUTS = {"simulate": "trajectories.nc", "reference": "reference.nc"}


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """The words of each command, without the name of the program."""
    lines = [shlex.split(line) for line in block.splitlines() if line]
    assert all(words[0] == "surrogate" for words in lines), block
    return [words[1:] for words in lines]


def output(words: list[str]) -> str | None:
    """The file or folder that a command writes."""
    if "-o" in words:
        return words[words.index("-o") + 1]
    return DEFAULT_OUTPUTS.get(words[0])


BLOCKS = [commands(block) for block in fenced("sh")]
SIMULATED = {output(words): words for block in BLOCKS for words in block if words[0] == "simulate"}


def chained(blocks: list[list[list[str]]]) -> list[list[list[str]]]:
    """The blocks, each with those that read what it sampled or trained appended."""
    chains: list[list[list[str]]] = []
    for block in blocks:
        read = {word for words in block for word in words} - {output(words) for words in block}
        made_by = [
            chain
            for chain in chains
            if read & {output(words) for words in chain if words[0] in ("sample", "train")}
        ]
        if made_by:
            made_by[0].extend(block)
        else:
            chains.append(list(block))
    return chains


def shorter(words: list[str]) -> list[str]:
    """The command with fewer samples, particles, noise levels or training steps."""
    if "--iterations" in words:
        place = words.index("--iterations") + 1
        words = [*words[:place], ITERATIONS, *words[place + 1 :]]
    if words[0] == "sample" and "--samples" not in words:
        words = [*words, *SAMPLES]
    if {"--where", "--bridge"} & {*words} and words[0] == "sample" and "--steps" not in words:
        words = [*words, *SCENARIO]
    return words


def run(words: list[str]) -> None:
    done = CliRunner().invoke(main, shorter(words))
    assert done.exit_code == 0, f"surrogate {shlex.join(words)}\n{done.output}"


def prepare(chain: list[list[str]]) -> None:
    """Make the files that these commands read and none of them writes."""
    made = {output(words) for words in chain}
    made |= {words[words.index("--summary") + 1] for words in chain if "--summary" in words}
    for name in sorted({word for words in chain for word in words} - made):
        if name in SIMULATED:
            run(SIMULATED[name])
        elif name.endswith(".csv"):
            (program,) = (each for each in fenced("python") if f'to_csv("{name}"' in each)
            execute(program)


def execute(program: str) -> None:
    for printed, short in SHORTER.items():
        program = program.replace(printed, short)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})


def test_there_are_enough_commands() -> None:
    assert sum(len(block) for block in BLOCKS) >= 8


def test_first_block_by_the_console_script(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("surrogate")
    for words in BLOCKS[0]:
        done = subprocess.run([script, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"surrogate {shlex.join(words)}\n{done.stderr}"
    assert (tmp_path / "trajectories.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "chain", chained(BLOCKS[1:]), ids=lambda chain: " ".join(chain[0])[:60].replace("/", "_")
)
def test_commands(chain: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(chain)
    for words in chain:
        run(words)
        name = output(words)
        assert name is None or (tmp_path / name).exists(), words


@pytest.mark.parametrize("program", fenced("python"), ids=lambda text: text.splitlines()[0])
def test_programs(
    program: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    execute(program)
    printed = capsys.readouterr().out.split()
    for number in re.findall(r"^print\(.*\)\s*# ([\d.]+)$", program, re.MULTILINE):
        assert any(each.startswith(number) for each in printed), (number, printed)


def test_what_is_shortened_is_in_a_program() -> None:
    programs = "\n".join(fenced("python"))
    assert [printed for printed in SHORTER if printed not in programs] == []


def test_make_targets_and_links_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^)make ([a-z]+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link
