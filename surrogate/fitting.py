"""From data to a model: presets, held-out data, checkpoints, and the card at the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate import sources, store
from surrogate.codecs import TimeSeriesCodec
from surrogate.errors import ModelError, TrainingError
from surrogate.evaluation import evaluate
from surrogate.model import Surrogate
from surrogate.training import Settings, State, Trainer, seeded

FEWEST = 50  # trajectories
STATE, TENSORS = "state.json", "state-{step}.safetensors"


@dataclass(frozen=True)
class Preset:
    """How much work a run is: settings of the training and of the network."""

    settings: Settings
    depth: int = 4


PRESETS = {
    "quick": Preset(Settings(steps=1_500, warm_up=100, check_every=150)),
    "default": Preset(Settings(steps=8_000)),
    "best": Preset(Settings(steps=30_000, check_every=500), depth=6),
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
        checkpoints: Path | None = None,
        device: str = "cpu",
    ) -> None:
        self.data, self.seed = data, seed
        self.preset = chosen or PRESETS["default"]
        self.checkpoints = checkpoints
        count = data.sizes.get("sample", 0)
        if count < FEWEST:
            raise ModelError(
                f"{count} trajectories are too few to learn from; give {FEWEST} or more"
            )
        codec = TimeSeriesCodec.fit(data, transforms={"*": "auto"})
        self.model = Surrogate.untrained(codec, seed, depth=self.preset.depth)
        self.model.denoiser.to(device)
        self.held_out = held_out(count, seed)
        if simulate is None:
            self.source = sources.from_dataset(codec, data, self.held_out, seed)
        else:
            self.source = sources.from_simulator(codec, simulate, seed)
        judged = codec.encode(data, self.held_out[:4096], seeded(seed, 10)).to(device)
        state = self._last_state()
        self.trainer = Trainer(
            self.model.denoiser,
            _OnDevice(self.source, device),
            judged,
            settings=self.preset.settings,
            seed=seed,
            state=state,
        )

    def fit(self, progress: Callable[[Trainer], None] = lambda trainer: None) -> Surrogate:
        """Train to the end, or from the last checkpoint to the end, and write the card."""
        best = self.trainer.run(progress, self._keep)
        with torch.no_grad():
            for name, weight in self.model.denoiser.named_parameters():
                weight.copy_(best[name])
        self.model.denoiser.to("cpu")
        block = self.source.batch(0, min(20_000, self.source.size))
        self.model.covariance = torch.cov(block.flatten(1).double().T).float()
        self.model.about = {
            "seed": self.seed,
            "trajectories": int(self.data.sizes["sample"]),
            "settings": asdict(self.preset.settings),
            "looks": [asdict(look) for look in self.trainer.looks],
            "card": card(self.model, self.data, self.held_out, self.seed),
        }
        return self.model

    # --- checkpoints ------------------------------------------------------------------------------

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        return {
            "seed": self.seed,
            "settings": asdict(self.preset.settings),
            "network": dict(self.model.network),
            "codec": json.loads(json.dumps(self.model.codec.to_config())),
        }

    def _keep(self, state: State) -> None:
        if self.checkpoints is None:
            return
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            name = TENSORS.format(step=state.step)
            digest = store.write_tensors(self.checkpoints / name, state.tensors)
            config = {"version": store.VERSION, "tensors": name, "digest": digest}
            config |= {"state": state.to_config(), "run": self.identity()}
            store.write_json(self.checkpoints / STATE, config)
            for old in self.checkpoints.glob("state-*.safetensors"):
                if old.name != name:
                    old.unlink(missing_ok=True)
        except OSError as problem:
            raise TrainingError(
                f"cannot write a checkpoint to {self.checkpoints}: {problem.strerror}; free some "
                "room and go on with --resume"
            ) from None

    def _last_state(self) -> State | None:
        if self.checkpoints is None or not (self.checkpoints / STATE).exists():
            return None
        config = store.read_json(self.checkpoints / STATE)
        store.check_version(config, self.checkpoints / STATE)
        if config.get("run") != self.identity():
            raise ModelError(
                f"the checkpoint in {self.checkpoints} is of another run (other data, seed or "
                "preset); give what it was started with, or start anew with --force"
            )
        tensors = store.read_tensors(
            self.checkpoints / str(config.get("tensors")), str(config.get("digest"))
        )
        return State.from_config(config.get("state", {}), tensors)

    def discard(self) -> None:
        """Remove the checkpoints."""
        if self.checkpoints is not None:
            shutil.rmtree(self.checkpoints, ignore_errors=True)


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
