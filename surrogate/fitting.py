"""From data to a model: presets, held-out data, checkpoints, and the card at the end."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from surrogate.diffusion import batches as sources
from surrogate.diffusion.checkpoints import Checkpoints
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.losses import Loss, emphasis
from surrogate.diffusion.training import Settings, State, Trainer
from surrogate.errors import ModelError, TrainingError, whole_number
from surrogate.evaluation.held_out import judge, set_apart
from surrogate.kinds.codec import NONE
from surrogate.kinds.codecs import Codec, ImageCodec, TableCodec, TimeSeriesCodec
from surrogate.kinds.images.codec import IMAGE
from surrogate.model import Surrogate
from surrogate.random import Training, stream

FEWEST = 50  # trajectories
SHORTEST = 1_000  # steps that even few trajectories are worth
ROWS = 3  # blocks of a network for rows: more are slower, and no better
JUDGED = 4096  # held-out samples that the loss is measured with
PICTURES = 1024  # or images, of which each costs more
BATCH = 128  # images
DIRECTIONS = 256  # in which images vary, told apart by their covariance
EVERY = 30.0  # seconds between checkpoints, beside those at every look


@dataclass(frozen=True)
class Preset:
    """How much work a run is: settings of the training and of the network.

    `epochs`: times that the data are seen at most; a model that sees few data more often learns
    them by heart, and a shorter run ends with small steps where a longer one is broken off.
    """

    settings: Settings
    depth: int = 4
    epochs: int | None = 300
    images: int = 8_000  # steps with images, each of which is worth many numbers

    def with_steps(self, steps: int) -> Preset:
        """The same with another number of steps."""
        own = self.settings
        warm_up, look = min(own.warm_up, steps // 5), min(own.check_every, steps)
        chosen = replace(own, steps=steps, warm_up=warm_up, check_every=look)
        return replace(self, settings=chosen, images=steps)

    def of(self, codec: Codec) -> Preset:
        """The same as samples of a kind need it."""
        if isinstance(codec, ImageCodec):
            own = self.with_steps(self.images)
            return replace(own, settings=replace(own.settings, batch=BATCH), depth=1)
        return replace(self, depth=min(self.depth, ROWS)) if isinstance(codec, TableCodec) else self

    def endless(self) -> Preset:
        """The same without early stopping."""
        return replace(self, settings=replace(self.settings, patience=self.settings.steps))

    def within(self, count: int) -> Preset:
        """The same with no more steps than so many trajectories are worth."""
        if self.epochs is None:
            return self
        most = max(SHORTEST, self.epochs * count // self.settings.batch)
        return self if self.settings.steps <= most else self.with_steps(most)


PRESETS = {
    "quick": Preset(Settings(steps=1_500, warm_up=100, check_every=150), images=1_000),
    "default": Preset(Settings(steps=12_000)),
    "best": Preset(Settings(steps=30_000, check_every=500), images=24_000),
}


def preset(name: str, steps: int | None = None) -> Preset:
    """A preset by name, with another number of steps if that is given."""
    if name not in PRESETS:
        raise ModelError(f"unknown preset {name!r} (have: {', '.join(PRESETS)})")
    chosen = PRESETS[name]
    if steps is not None:
        steps = whole_number(steps, "iterations", least=1, most=10**9)
    return chosen if steps is None else replace(chosen.with_steps(steps), epochs=None)


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
        transforms: Mapping[str, str] = NONE,
        resume: bool = True,
    ) -> None:
        """`transforms`: see the codec's; "auto" for variables that are not named. `resume`: go on
        from the checkpoint, if there is one.
        """
        seed = whole_number(seed, "seed")
        if not isinstance(data, xr.Dataset):
            raise ModelError(
                f"a run learns from an xarray.Dataset, not {type(data).__name__}; fit takes a "
                "table of rows, and surrogate.kinds.trajectories.from_table one of trajectories"
            )
        self.data, self.seed = data, seed
        if isinstance(checkpoints, Path):
            checkpoints = Checkpoints(checkpoints)
        self.checkpoints = checkpoints
        if "sample" not in data.sizes:
            raise ModelError(
                "trajectories have the dimensions (sample, time), tables (sample,), images "
                "(sample, [channel,] y, x); these have "
                f"({', '.join(str(name) for name in data.sizes)}): rename them"
            )
        count = data.sizes["sample"]
        if count < FEWEST:
            images = IMAGE in data and data[IMAGE].ndim > 1
            noun = "trajectories" if "time" in data.sizes else "images" if images else "rows"
            raise ModelError(f"{count} {noun} are too few to learn from; give {FEWEST} or more")
        self.apart = set_apart(data, seed)
        self.learned = count - len(self.apart.unseen)
        codec = _codec(data, self.apart.unseen, transforms)
        preset = (chosen or PRESETS["default"]).of(codec)
        # fresh trajectories cannot be learned by heart: no reason to stop early
        self.preset = preset.endless() if simulate else preset.within(self.learned)
        self.model = Surrogate.untrained(codec, seed, depth=self.preset.depth)
        self.model.denoiser.to(device)
        self.fresh = simulate is not None
        if simulate is None:
            self.source = sources.from_dataset(codec, data, self.apart.unseen, seed)
        else:
            self.source = sources.from_simulator(codec, simulate, seed)
        most = PICTURES if isinstance(codec, ImageCodec) else JUDGED
        judges = self.apart.judges[:: math.ceil(len(self.apart.judges) / most)]
        state = None
        if resume and checkpoints is not None and checkpoints.exists():
            state = checkpoints.last(self.identity())
        held_out = codec.encode(data, judges, stream(seed, Training.HELD_OUT_DEQUANTISATION))
        noise = torch.randn(held_out.shape, generator=stream(seed, Training.EDGE_NOISE))
        self.trainer = Trainer(
            self.model.denoiser,
            _OnDevice(self.source, device),
            held_out.to(device),
            Loss(weights=_emphasis(codec, held_out, noise, device)),
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
        """The model of the best weights (of fresh data: the last), with its card."""
        chosen = self.trainer.averages if self.fresh else self.trainer.best
        images = isinstance(self.model.codec, ImageCodec)
        with torch.no_grad():
            for name, weight in self.model.denoiser.named_parameters():
                # pixels have 256 values: more precision than half only makes folders larger
                weight.copy_(chosen[name].half() if images else chosen[name])
        self.model.denoiser.to("cpu").eval()
        block = self.source.batch(0, min(20_000, self.source.size))
        self.model.covariance = covariance_of(block, images)
        self.model.about = {
            "seed": self.seed,
            "trajectories": int(self.data.sizes["sample"]),
            "learned": self.learned,
            "fresh": self.fresh,
            "command": shlex.join(self.checkpoints.command) if self.checkpoints else "",
            "settings": asdict(self.preset.settings),
            "looks": [asdict(look) for look in self.trainer.looks],
        }
        try:
            self.model.about["card"] = judge(self.model, self.data, self.apart, self.seed)
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


def covariance_of(block: Tensor, images: bool) -> Covariance:
    """That of encoded samples; of images the directions that matter, in single precision."""
    if not images:
        return Covariance.of(block)
    found = Covariance.of(block, DIRECTIONS, whole=0)
    return Covariance.restore(found.values.float(), found.vectors.float())


def _codec(data: xr.Dataset, unseen: np.ndarray, transforms: Mapping[str, str]) -> Codec:
    """What leads from the data to tensors; quantiles of a table are those of what is learned."""
    if "time" not in data.sizes:
        if transforms:
            raise ModelError(
                f"a table's columns are learned by their quantiles, and images as they are; there "
                f"is no transform of {next(iter(transforms))!r} to choose"
            )
        learned = np.setdiff1d(np.arange(data.sizes["sample"]), unseen)
        return (ImageCodec if IMAGE in data and data[IMAGE].ndim > 1 else TableCodec).fit(
            data, learned
        )
    with np.errstate(over="ignore", invalid="ignore"):  # which is told below
        codec = TimeSeriesCodec.fit(data, transforms={"*": "auto", **transforms})
    if not (codec.scale.isfinite() & codec.mean.isfinite() & (codec.scale > 0)).all():
        raise ModelError(
            "the values are too large or too small to be told apart (their variance is no "
            "number); tell them in another unit"
        )
    return codec


def _emphasis(codec: Codec, held_out: Tensor, noise: Tensor, device: str) -> Tensor | None:
    """Rows have no edges to speak of: a normal law has none, and all words are at theirs. Nor have
    images: most of their pixels are at one."""
    if not isinstance(codec, TimeSeriesCodec):
        return None
    return emphasis(held_out, codec.within, noise).to(device)


@dataclass(frozen=True)
class _OnDevice:
    source: sources.Blocks
    device: str

    def batch(self, step: int, size: int) -> Tensor:
        return self.source.batch(step, size).to(self.device)


def fit(
    data: xr.Dataset | pd.DataFrame | np.ndarray,
    seed: int = 0,
    preset_name: str = "default",
    *,
    iterations: int | None = None,
    transforms: Mapping[str, str] = NONE,
    types: Mapping[str, str] = NONE,
    missing: str = "model",
    progress: Callable[[Trainer], None] = lambda trainer: None,
) -> Surrogate:
    """A surrogate of trajectories (a Dataset), of rows (a DataFrame) or of images (a Dataset, or an
    array (N, H, W) or (N, H, W, 3)), trained with a preset: "quick", "default" or "best".

    `transforms`, of trajectories: variable -> "identity", "log", "logit(LOW, HIGH)"; others are
    chosen by the data. `types` and `missing`, of rows: see
    `surrogate.kinds.tables.schema.understand`.
    """
    chosen = preset(preset_name, iterations)
    if isinstance(data, pd.DataFrame):
        from surrogate.kinds.tables.schema import understand

        data = understand(data, types, missing).data
    elif types:
        raise ModelError("types are for tables of rows; a dataset says itself what it holds")
    elif isinstance(data, np.ndarray):
        from surrogate.kinds.images.files import from_array

        data = from_array(data)
    return Run(data, seed, chosen, transforms=transforms).fit(progress)
