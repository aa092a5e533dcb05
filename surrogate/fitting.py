"""From data to a model: a training run with held-out data, checkpoints, and the card at the end."""

from __future__ import annotations

import json
import math
import shlex
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
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
from surrogate.diffusion.denoise import Whitened
from surrogate.diffusion.losses import LogNormal, Loss
from surrogate.diffusion.presets import PRESETS, Preset, preset_named
from surrogate.diffusion.split import split
from surrogate.diffusion.training import State, Trainer
from surrogate.errors import ModelError, TrainingError, suggesting, whole_number
from surrogate.kinds import kind_of
from surrogate.kinds.codec import NONE
from surrogate.kinds.rule_options import RuleOptions, Where
from surrogate.model import Surrogate
from surrogate.random import Training, stream
from surrogate.validation import plain_solver, validate

MIN_SAMPLES = 50  # to learn from
CHECKPOINT_SECONDS = 30.0  # between checkpoints, beside those at every validation
ABOVE_HANDOVER = LogNormal(mean=0.0, spread=1.2)  # noise levels, where a decoder does the rest
WIDE = LogNormal(mean=-1.5, spread=2.0)  # of smooth data, which hardly vary in many directions
DECODER_SHARE = 0.25  # of a batch, for a decoder that plain samples may do without
COVARIANCE_SAMPLES = 20_000  # that the covariance of the data is estimated from


class Run:
    """One training run, which may be resumed: `fit` runs it to its model."""

    def __init__(
        self,
        data: xr.Dataset,
        seed: int = 0,
        preset: Preset | None = None,
        simulate: Callable[[int, int], xr.Dataset] | None = None,
        checkpoints: Checkpoints | Path | None = None,
        device: str = "cpu",
        *,
        transforms: Mapping[str, str] = NONE,
        rules: RuleOptions = RuleOptions(),  # noqa: B008
        resume: bool = True,
    ) -> None:
        """`transforms`: see the codec's; "auto" for variables that are not named. `rules`: what
        is declared of the data, and whether rules are searched for. `resume`: go on
        from the checkpoint, if there is one.
        """
        seed = whole_number(seed, "seed")
        if not isinstance(data, xr.Dataset):
            raise ModelError(
                f"a run learns from an xarray.Dataset, not {type(data).__name__}",
                value=data,
                remedy="fit takes a table of rows or an array of images",
            )
        self.data, self.seed, self.kind = data, seed, kind_of(data)
        if isinstance(checkpoints, Path):
            checkpoints = Checkpoints(checkpoints)
        self.checkpoints = checkpoints
        count = data.sizes["sample"]
        if count < MIN_SAMPLES:
            raise ModelError(
                f"{self.kind.count(count)} are too few to learn from",
                value=count,
                remedy=self.kind.more_samples(MIN_SAMPLES),
            )
        data, self.rules = self.kind.with_rules(data, rules)
        self.data = data
        self.split = split(count, seed, self.kind.overlap(data))
        self.learned = count - len(self.split.excluded)
        codec = self.kind.fit_codec(data, self.split.learned, transforms)
        tuned = self.kind.tuned(preset or PRESETS["default"])
        # fresh samples cannot be memorised: no reason to stop early
        self.preset = tuned.endless() if simulate else tuned.within(self.learned)
        self.fresh = simulate is not None
        if simulate is None:
            self.source = sources.from_dataset(codec, data, self.split.excluded, seed)
        else:
            self.source = sources.from_simulator(codec, simulate, seed)
        self.model = Surrogate.untrained(
            codec, seed, depth=self.preset.depth, covariance=self._covariance
        )
        self.model.denoiser.to(device)
        rows = self.split.held_out
        rows = rows[:: math.ceil(len(rows) / self.kind.validation_samples)]
        state = None
        if resume and checkpoints is not None and checkpoints.exists():
            state = checkpoints.last(self.identity())
        held_out = codec.encode(data, rows, stream(seed, Training.HELD_OUT_DEQUANTISATION))
        noise = torch.randn(held_out.shape, generator=stream(seed, Training.EDGE_NOISE))
        denoiser, decoder = self.model.denoiser, self.model.decoder
        weights = self.kind.loss_weights(codec, held_out, noise)
        loss = Loss(weights=None if weights is None else weights.to(device))
        if isinstance(denoiser, Whitened):
            loss = Loss(WIDE, units=denoiser.standardised)
        if decoder is not None:
            decoder.measure(self._block())
            if decoder.early:  # what is below, the decoder learns
                loss = Loss(levels=ABOVE_HANDOVER)
        self.trainer = Trainer(
            self.model.denoiser,
            _OnDevice(self.source, device),
            held_out.to(device),
            loss,
            settings=self.preset.settings,
            seed=seed,
            state=state,
            decoder=decoder,
            decoder_share=DECODER_SHARE if isinstance(denoiser, Whitened) else 1.0,
        )

    def _block(self) -> Tensor:
        """Encoded samples that constants are measured on."""
        return self.source.batch(0, min(COVARIANCE_SAMPLES, self.source.size))

    def _covariance(self) -> Covariance:
        return self.kind.covariance(self._block())

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
            if stop or time.monotonic() - kept >= CHECKPOINT_SECONDS:
                keep(trainer.state())
            if stop:
                raise KeyboardInterrupt

        try:
            self.trainer.run(after, keep)
        except TrainingError as problem:
            if self.checkpoints is None:
                raise
            raise TrainingError(
                f"{problem.problem} ({self.checkpoints.kept()})",
                value=problem.value,
                allowed=problem.allowed,
                remedy=problem.remedy,
            ) from None

    def finish(self) -> Surrogate:
        """The model of the best weights (of fresh data: the last), with its card."""
        chosen = self.trainer.averages if self.fresh else self.trainer.best
        with torch.no_grad():
            for name, weight in self.trainer.weights.items():
                best = chosen[name]
                weight.copy_(best.half() if self.kind.half_precision else best)
        self.model.denoiser.to("cpu").eval()
        if self.model.decoder is not None:
            self.model.decoder.eval()
        self.model.covariance = self._covariance()
        self.model.about = {
            "seed": self.seed,
            "trajectories": int(self.data.sizes["sample"]),
            "learned": self.learned,
            "fresh": self.fresh,
            "command": shlex.join(self.checkpoints.command) if self.checkpoints else "",
            "settings": asdict(self.preset.settings),
            "looks": [asdict(look) for look in self.trainer.looks],
        }
        if (choice := plain_solver(self.model, self.data, self.split, self.seed)) is not None:
            self.model.about |= {"solver": choice[0], "solver_accuracies": choice[1]}
        try:
            self.model.about["card"] = validate(self.model, self.data, self.split, self.seed)
        except (ModelError, ValueError, ArithmeticError, LookupError) as problem:
            # samples that cannot be compared are no reason to lose a run
            self.model.about |= {"card": None, "problem": str(problem)}
        return self.model

    def identity(self) -> dict[str, Any]:
        """The settings that must be equal for a run to be resumed."""
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


@suggesting
def fit(
    data: xr.Dataset | pd.DataFrame | np.ndarray,
    *,
    preset: str = "default",
    seed: int = 0,
    iterations: int | None = None,
    device: str = "cpu",
    transforms: Mapping[str, str] = NONE,
    rules: Where | None = None,
    rules_found: bool = True,
    rules_refused: Sequence[str] = (),
    types: Mapping[str, str] = NONE,
    missing: str | None = None,
    progress: Callable[[Trainer], None] = lambda trainer: None,
) -> Surrogate:
    """A surrogate of trajectories (a Dataset), of rows (a DataFrame) or of images (a Dataset, or an
    array (N, H, W) or (N, H, W, 3)).

    `preset`: "quick", "default" or "best"; `iterations`: another number of training steps.
    `transforms`, of trajectories: variable -> "identity", "log", "logit(LOW, HIGH)"; others are
    chosen by the data. `types`, of tables: column -> "number", "integer", "category", "boolean",
    "date" or "ignore"; `missing`, of tables: "model" (the default), "refuse" or "drop".
    `rules`: formulas that all data obey, such as "Low <= Close" (at every step), and so samples
    shall; a text, a formula, or a list or dict of them. `rules_found`: search the data for others,
    orders and linear identities; `rules_refused`: names of found rules that are not to be kept. A
    warning names rules that hold in all data, too few to take them as rules.
    `progress` is called with the trainer after every step.
    """
    chosen = preset_named(preset, iterations)
    given = {"types": types, "missing": missing}
    options = {name: value for name, value in given.items() if value}
    samples = kind_of(data).from_python(data, **options)
    stated = RuleOptions(rules, rules_found, rules_refused)
    run = Run(samples, seed, chosen, device=device, transforms=transforms, rules=stated)
    if hint := run.rules.hint():
        warnings.warn(hint, stacklevel=3)
    return run.fit(progress)
