"""What the rows of `systems.py` share: options, models that are trained once, figures of a row."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr
from report import Section, Target
from rich.console import Console

from constraints.errors import SurrogateError
from simulators import ReactionNetwork, simulate
from surrogate import fitting
from surrogate.diffusion.presets import preset_named
from surrogate.evaluation.result import Evaluation
from surrogate.guidance.sampler import Answer, sample
from surrogate.model import Surrogate

FIRST = 20_000  # simulated trajectories that the codec and the card see, as in `surrogate train`
TRAINING_SEED, SEED, TRUTH_SEED = 0, 100, 777_001
TRAINING_MINUTES = 15  # on two cores; here of CPU time by thread, so one thread is held to more
TRAININGS, ROWS = "trainings.json", "rows.json"
HEAD = [
    "system",
    "laws obeyed",
    "D median / max over steps, × self-distance",
    "C2ST, trees on values and increments",
    "verdict",
    "else",
    "training, CPU s by thread",
    "targets met",
]


class Absent(Exception):
    """What a row needs is not here."""


@dataclass(frozen=True)
class Training:
    """What a model took; None and no words for one that was not trained here.

    CPU seconds by thread: at least what the run takes on as many idle cores.
    """

    seconds: float | None = None
    words: str = ""  # preset and steps


@dataclass
class Row:
    """The figures of a system; None where there is none."""

    system: str
    laws: float | None = None
    median: float | None = None  # × self-distance
    largest: float | None = None
    c2st: float | None = None
    verdict: str | None = None
    notes: list[str] = field(default_factory=list)
    seconds: float | None = None  # of training
    trained: str = ""  # how
    targets: list[Target] = field(default_factory=list)

    @classmethod
    def of(cls, system: str, found: Evaluation, training: Training) -> Row:
        """From an evaluation; of the variables, the furthest counts."""
        trees = found.values.get("trees")
        return cls(
            system,
            laws=found.values.get("consistent"),
            median=max(each.median.ratio for each in found.variables),
            largest=max(each.max.ratio for each in found.variables),
            c2st=None if trees is None else trees.accuracy,
            verdict=found.verdict.words,
        ).after(training)

    def after(self, training: Training) -> Row:
        """With the training of its model."""
        self.seconds, self.trained = training.seconds, training.words
        if training.seconds is not None:
            minutes = training.seconds / 60
            self.targets.append(
                Target("training", minutes, TRAINING_MINUTES, at_most=True, unit=" min")
            )
        return self

    def aim(
        self,
        laws: float | None = None,
        median: float | None = None,
        largest: float | None = None,
        c2st: float | None = None,
    ) -> Row:
        """With targets for the columns of the table."""
        share = None if self.laws is None else 100 * self.laws
        if laws is not None:
            self.targets.append(Target("laws obeyed", share, 100 * laws, unit=" %"))
        for name, measured, wanted, unit in (
            ("median D", self.median, median, "×"),
            ("max D", self.largest, largest, "×"),
            ("C2ST", self.c2st, c2st, ""),
        ):
            if wanted is not None:
                self.targets.append(Target(name, measured, wanted, at_most=True, unit=unit))
        return self

    def within(self, name: str, measured: float | None, truth: float, bound: float) -> Row:
        """With a target for the relative error of a figure."""
        if measured is not None:
            self.notes.append(f"{name} {measured:.4g} (truth {truth:.4g})")
        off = None if measured is None else 100 * abs(measured / truth - 1)
        self.targets.append(Target(f"{name}, off by", off, 100 * bound, at_most=True, unit=" %"))
        return self

    def at_most(self, name: str, measured: float | None, wanted: float, unit: str = "") -> Row:
        self.targets.append(Target(name, measured, wanted, at_most=True, unit=unit))
        return self

    def scenario(
        self, model: Surrogate, samples: int, where: Any, words: str
    ) -> tuple[Answer | None, float]:
        """Samples of a scenario, None where that fails, and the seconds that it took."""
        began = time.perf_counter()
        try:
            found = sample(model, samples, where, seed=SEED)
        except SurrogateError as problem:
            self.notes.append(f"{words}: {problem}")
            found = None
        return found, time.perf_counter() - began

    def cells(self) -> list[str]:
        met = sum(each.verdict == "met" for each in self.targets)
        known = [f"{each:.2f}" for each in (self.median, self.largest) if each is not None]
        return [
            self.system,
            "–" if self.laws is None else f"{100 * self.laws:.2f} %",
            " / ".join(known) or "–",
            "–" if self.c2st is None else f"{self.c2st:.3f}",
            self.verdict or "–",
            "; ".join(self.notes) or "–",
            "–" if self.seconds is None else f"{self.seconds:,.0f} ({self.trained})",
            f"{met} of {len(self.targets)}",
        ]


class Bench:
    """Options, and a folder of models that later runs find again."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.samples: int = options.samples
        self.folder: Path = options.models
        self.folder.mkdir(parents=True, exist_ok=True)
        self.console = Console(stderr=True)

    def say(self, text: str) -> None:
        self.console.print(f"{time.strftime('%H:%M:%S')}  {text}", highlight=False, markup=False)

    # --- models -----------------------------------------------------------------------------------

    def of_network(
        self, name: str, network: ReactionNetwork, **given: Any
    ) -> tuple[Surrogate, Training]:
        """The model of a network, which learns from fresh simulations."""

        def make(first: int, samples: int) -> xr.Dataset:
            return simulate(
                network, samples=samples, seed=TRAINING_SEED, first=FIRST + first, **given
            )

        return self.model(
            name, lambda: simulate(network, samples=FIRST, seed=TRAINING_SEED, **given), make
        )

    def model(
        self,
        name: str,
        data: Callable[[], xr.Dataset],
        make: Callable[[int, int], xr.Dataset] | None = None,
    ) -> tuple[Surrogate, Training]:
        """A model and its training: that of the folder, or one trained now."""
        options = self.options
        place = self.folder / name
        known = _read(self.folder / TRAININGS)
        if place.exists():
            return Surrogate.load(place), Training(**known.get(name, {}))
        began, spent = time.perf_counter(), time.process_time()
        limit = None if options.minutes is None else began + 60 * options.minutes
        preset = preset_named(options.preset, options.iterations)
        run = fitting.Run(data(), TRAINING_SEED, preset, make)
        self.say(f"{name}: training, preset {options.preset}, {run.preset.settings.steps:,} steps")

        def stopping() -> bool:
            return limit is not None and time.perf_counter() >= limit

        try:
            run.train(stopping=stopping)
        except KeyboardInterrupt:
            if not stopping():  # someone else's
                raise
            self.say(f"{name}: stopped after {options.minutes:g} min, step {run.trainer.step:,}")
        model = run.finish()
        model.save(place, force=True)
        words = f"{options.preset}, {run.trainer.step:,} steps"
        training = Training((time.process_time() - spent) / options.threads, words)
        self.say(f"{name}: trained in {training.seconds:,.0f} CPU s")
        _write(self.folder / TRAININGS, _read(self.folder / TRAININGS) | {name: asdict(training)})
        return model, training

    # --- rows -------------------------------------------------------------------------------------

    def keep(self, name: str, row: Row) -> None:
        """Keep a row for the table of a later run."""
        _write(self.folder / ROWS, _read(self.folder / ROWS) | {name: asdict(row)})

    def kept(self) -> dict[str, Row]:
        """Rows of earlier runs and of this one."""
        found = {}
        for name, values in _read(self.folder / ROWS).items():
            targets = [Target(**each) for each in values.pop("targets")]
            found[name] = Row(**values, targets=targets)
        return found


def table(rows: list[Row]) -> Section:
    return HEAD, [row.cells() for row in rows]


def data_file(options: argparse.Namespace, name: str) -> Path:
    path: Path = options.data / name
    if not path.exists():
        raise Absent(f"there is no {path}; give the folder of {name} with --data")
    return path


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def _write(path: Path, content: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1), "utf-8")
    part.replace(path)
