"""Compiled kernels: kept between runs, in a folder of the user's own, and never trusted blindly."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulators.kernels.codegen import build

SOURCE = """
@njit(cache=True)
def run(x):
    return x + 1.0
"""

PROGRAM = """
from simulators.kernels.codegen.build import compile_kernel
run = compile_kernel({source!r})
assert run(1.0) == 2.0
print(sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values()))
"""


def _hits_and_misses(folder: Path) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(source=SOURCE)],
        env={"SURROGATE_CACHE": str(folder), "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(number) for number in done.stdout.split()]


def test_only_the_first_run_on_a_machine_compiles(tmp_path: Path) -> None:
    assert _hits_and_misses(tmp_path) == [0, 1]
    assert _hits_and_misses(tmp_path) == [1, 0]


def test_a_kernel_file_that_was_changed_is_written_again(tmp_path: Path) -> None:
    _hits_and_misses(tmp_path)
    [kernel] = (tmp_path / "kernels").glob("*.py")
    honest = kernel.read_text()
    kernel.write_text("raise SystemExit('not ours')")
    _hits_and_misses(tmp_path)
    assert kernel.read_text() == honest


SIMULATE = """
from simulators import models, simulate
print(int(simulate(models.birth_death(), 20, threads=1).X.sum()))
"""


def _simulated(cache: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", SIMULATE],
        env={"SURROGATE_CACHE": str(cache), "PATH": "", "HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A cache with a compiled kernel, and what the kernel simulates."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, _simulated(cache)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_cache_files_are_made_again(
    compiled: tuple[Path, str], tmp_path: Path, ending: str
) -> None:
    cache = shutil.copytree(compiled[0], tmp_path / "cache")
    [kept] = (cache / "kernels" / "__pycache__").glob(f"*.{ending}")
    kept.write_bytes(kept.read_bytes()[:40])
    assert _simulated(cache) == compiled[1]
    assert kept.stat().st_size > 40


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("SURROGATE_CACHE", str(blocked))
    build._folder.cache_clear()
    try:
        folder = build._folder()
        assert folder.is_dir()
        assert tmp_path not in folder.parents
    finally:
        build._folder.cache_clear()
