"""From data to a model: presets, held-out data, checkpoints, and the card at the end."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate import sources
from surrogate.checkpoints import Checkpoints
from surrogate.codecs import TimeSeriesCodec
from surrogate.covariance import Covariance
from surrogate.errors import ModelError, TrainingError
from surrogate.evaluation import evaluate
from surrogate.model import Surrogate
from surrogate.training import Settings, State, Trainer, seeded

FEWEST = 50  # trajectories
JUDGED = 4096  # held-out samples that the loss is measured with
COMPARED = 2_000_000  # numbers in the samples that the card compares
EVERY = 30.0  # seconds between checkpoints, beside those at every look


@dataclass(frozen=True)
class Preset:
    """How much work a run is: settings of the training and of the network."""

    settings: Settings
    depth: int = 4


PRESETS = {
    "quick": Preset(Settings(steps=1_500, warm_up=100, check_every=150)),
    "default": Preset(Settings(steps=12_000)),
    "best": Preset(Settings(steps=30_000, check_every=500)),
}


def preset(name: str, steps: int | None = None) -> Preset:
    """A preset by name, with another number of steps if that is given."""
    if name not in PRESETS:
        raise ModelError(f"unknown preset {name!r} (have: {', '.join(PRESETS)})")
    chosen = PRESETS[name]
    if steps is None:
        return chosen
    own = chosen.settings
    shorter = {"warm_up": min(own.warm_up, steps // 5), "check_every": min(own.check_every, steps)}
    return replace(chosen, settings=replace(own, steps=steps, **shorter))


class Run:
    """One training run, which may be resumed: `fit` runs it to its model."""

    def __init__(
        self,
        data: xr.Dataset,
        seed: int = 0,
        chosen: Preset | None = None,
        simulate: Callable[[int, int], xr.Dataset] | None = None,
        checkpoints: Checkpoints | Path | None = None,
        device: str = "cpu",
        *,
        resume: bool = True,
    ) -> None:
        """`resume`: go on from the checkpoint, if there is one."""
        self.data, self.seed = data, seed
        self.preset = chosen or PRESETS["default"]
        if isinstance(checkpoints, Path):
            checkpoints = Checkpoints(checkpoints)
        self.checkpoints = checkpoints
        count = data.sizes.get("sample", 0)
        if not 0 <= seed < 2**63:
            raise ModelError(f"seed must be a whole number from 0 to 2^63 - 1, not {seed}")
        if count < FEWEST:
            raise ModelError(
                f"{count} trajectories are too few to learn from; give {FEWEST} or more"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # which is told below
            codec = TimeSeriesCodec.fit(data, transforms={"*": "auto"})
        if not (codec.scale.isfinite() & codec.mean.isfinite() & (codec.scale > 0)).all():
            raise ModelError(
                "the values are too large or too small to be told apart (their variance is no "
                "number); tell them in another unit"
            )
        self.model = Surrogate.untrained(codec, seed, depth=self.preset.depth)
        self.model.denoiser.to(device)
        self.held_out = held_out(count, seed)
        self.fresh = simulate is not None
        if simulate is None:
            self.source = sources.from_dataset(codec, data, self.held_out, seed)
        else:
            self.source = sources.from_simulator(codec, simulate, seed)
        judges = self.held_out[:: math.ceil(len(self.held_out) / JUDGED)]
        state = None
        if resume and checkpoints is not None and checkpoints.exists():
            state = checkpoints.last(self.identity())
        self.trainer = Trainer(
            self.model.denoiser,
            _OnDevice(self.source, device),
            codec.encode(data, judges, seeded(seed, 10)).to(device),
            settings=self.preset.settings,
            seed=seed,
            state=state,
        )

    def fit(self, progress: Callable[[Trainer], None] = lambda trainer: None) -> Surrogate:
        """Train to the end, or from the last checkpoint to the end, and write the card."""
        self.train(progress)
        return self.finish()

    def train(
        self,
        progress: Callable[[Trainer], None] = lambda trainer: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """All steps that are left, with checkpoints at every look and twice a minute.

        As soon as `stopping()` is true the state is kept and KeyboardInterrupt raised; one that is
        raised within a step leaves weights that are half changed, and the last checkpoint.
        """
        kept = time.monotonic()

        def keep(state: State) -> None:
            nonlocal kept
            if self.checkpoints is not None:
                self.checkpoints.keep(state, self.identity())
            kept = time.monotonic()

        def after(trainer: Trainer) -> None:
            progress(trainer)
            stop = stopping()
            if stop or time.monotonic() - kept >= EVERY:
                keep(trainer.state())
            if stop:
                raise KeyboardInterrupt

        try:
            self.trainer.run(after, keep)
        except TrainingError as problem:
            if self.checkpoints is None:
                raise
            raise TrainingError(f"{problem} ({self.checkpoints.kept()})") from None

    def finish(self) -> Surrogate:
        """The model of the best weights, with its card."""
        with torch.no_grad():
            for name, weight in self.model.denoiser.named_parameters():
                weight.copy_(self.trainer.best[name])
        self.model.denoiser.to("cpu")
        block = self.source.batch(0, min(20_000, self.source.size))
        self.model.covariance = Covariance.of(block)
        self.model.about = {
            "seed": self.seed,
            "trajectories": int(self.data.sizes["sample"]),
            "fresh": self.fresh,
            "command": shlex.join(self.checkpoints.command) if self.checkpoints else "",
            "settings": asdict(self.preset.settings),
            "looks": [asdict(look) for look in self.trainer.looks],
        }
        try:
            self.model.about["card"] = card(self.model, self.data, self.held_out, self.seed)
        except ModelError as problem:  # samples that cannot be judged are no reason to lose a run
            self.model.about |= {"card": None, "problem": str(problem)}
        return self.model

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        return {
            "seed": self.seed,
            "source": "simulator" if self.fresh else "data",
            "trajectories": int(self.data.sizes["sample"]),
            "settings": asdict(self.preset.settings),
            "network": dict(self.model.network),
            "codec": json.loads(json.dumps(self.model.codec.to_config())),
        }

    def discard(self) -> None:
        """Remove the checkpoints."""
        if self.checkpoints is not None:
            self.checkpoints.discard()


@dataclass(frozen=True)
class _OnDevice:
    source: sources.Blocks
    device: str

    def batch(self, step: int, size: int) -> Tensor:
        return self.source.batch(step, size).to(self.device)


def held_out(count: int, seed: int) -> np.ndarray:
    """The samples that are never trained on: a tenth, at most 10,000, in order."""
    chosen = torch.randperm(count, generator=seeded(seed, 11))[: max(1, min(count // 10, 10_000))]
    return np.sort(chosen.numpy())


def card(model: Surrogate, data: xr.Dataset, rows: np.ndarray, seed: int) -> dict[str, Any]:
    """How far unconditional samples are from held-out data, beside data from data."""
    most = max(1000, COMPARED // (model.shape[0] * model.shape[1]))
    rows = rows[:: math.ceil(len(rows) / most)]
    reference = data.isel(sample=rows).load()
    samples = model.sample(len(rows), seed=seed)
    return evaluate(samples, reference, seed=seed).to_dict()


def fit(
    data: xr.Dataset,
    seed: int = 0,
    preset_name: str = "default",
    *,
    iterations: int | None = None,
    progress: Callable[[Trainer], None] = lambda trainer: None,
) -> Surrogate:
    """A surrogate of trajectories, trained with a preset: "quick", "default" or "best"."""
    return Run(data, seed, preset(preset_name, iterations)).fit(progress)
