"""Training runs as a person starts them: `surrogate train` in a process of its own, measured."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import report
from rich.console import Console

from surrogate.diffusion.presets import PRESETS

ROOT = Path(__file__).parents[1]
COMMAND = "from cli.main import main; main()"


@dataclass(frozen=True)
class Run:
    """A model's folder, and what it took to train it, where that is known."""

    folder: Path
    wall: float | None = None  # seconds
    cpu: float | None = None
    peak: float | None = None  # resident memory, MB

    @property
    def minutes(self) -> float | None:
        return None if self.wall is None else self.wall / 60

    def took(self, preset: str, threads: int) -> str:
        if self.wall is None or self.cpu is None:
            return "A model folder that was given; nothing was trained."
        return (
            f"`surrogate train`, preset {preset}, {threads} threads, from start to card: "
            f"{self.wall:,.0f} s of wall time, {self.cpu:,.0f} s of CPU time."
        )


def train(arguments: Sequence[str], folder: Path) -> Run:
    """Run the command; its messages go to the standard error."""
    command = [sys.executable, "-c", COMMAND, "train", *arguments, "-o", str(folder), "--force"]
    before, began, peak = _children(), time.perf_counter(), None
    with subprocess.Popen(command, cwd=ROOT, stdout=sys.stderr) as process:
        while process.poll() is None:
            peak = _high_water(process.pid) or peak
            time.sleep(0.05)
    wall = time.perf_counter() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(folder, wall, _children() - before, peak)


def _children() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _high_water(pid: int) -> float | None:
    """The peak of a running process so far, MB; its ru_maxrss would begin with ours."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith("VmHWM:")), None)
    return None if found is None else int(found.split()[1]) * 1024 / 1e6


# --- a benchmark made of such runs ----------------------------------------------------------------


@dataclass
class Found:
    """What a part brought."""

    targets: list[report.Target]
    tables: dict[str, report.Section] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Bench:
    """Options, and what was trained in this run."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.samples: int = options.samples
        self.console = Console(stderr=True)
        self._esirs: dict[str, Run] = {}

    def say(self, text: str) -> None:
        self.console.print(f"{time.strftime('%H:%M:%S')}  {text}", highlight=False, markup=False)

    def scaled(self, number: int, least: int = 1) -> int:
        return max(least, round(self.options.scale * number))

    def train(self, name: str, preset: str, *data: str, iterations: int | None = None) -> Run:
        """`surrogate train` into a folder of that name."""
        arguments = [*data, "--preset", preset, "--threads", str(self.options.threads)]
        if iterations is None and self.options.scale != 1:
            iterations = self.scaled(PRESETS[preset].settings.steps, 20)
        arguments += [] if iterations is None else ["--iterations", str(iterations)]
        self.say(f"surrogate train {' '.join(arguments)}")
        return train(arguments, self.folder / name)

    def esirs(self, preset: str) -> Run:
        """The eSIRS model of a preset: given, trained before in this run, or trained now."""
        if self.options.model is not None:
            return Run(self.options.model)
        if preset not in self._esirs:
            self._esirs[preset] = self.train(f"esirs-{preset}", preset, "--simulate", "esirs")
        return self._esirs[preset]

    def any_esirs(self) -> Run:
        """Some eSIRS model, however little it has learned."""
        if self.options.model is None and not self._esirs:
            return self.train("esirs-any", "default", "--simulate", "esirs", iterations=20)
        return self.esirs(next(iter(self._esirs), "default"))
