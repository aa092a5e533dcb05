"""A surrogate: a codec, a denoiser and what was learned beside them. Sample it, save it, load it.

model = sg.load("model")
draws = model.sample(5_000, seed=1)     # a dataset like the training data
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Bounded, Denoiser, Preconditioned
from surrogate.diffusion.schedule import VE, karras
from surrogate.errors import ModelError, whole_number
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files
from surrogate.io.model_folder import CARD, CONFIG, CURVE, WEIGHTS, bundled
from surrogate.kinds import Kind, kind_named
from surrogate.kinds.codec import Codec
from surrogate.random import Evaluation, Sampling, Training, stream
from surrogate.reports.card import curve
from surrogate.sampling import dpm_solver, heun, log_likelihood, predictor_corrector, reverse_sde

SPREAD = ("values", "vectors")
SOLVERS = {
    "ode": "DPM-Solver++, few steps",
    "heun": "Heun, two evaluations a step",
    "sde": "the reverse SDE, with the data's covariance",
    "predictor-corrector": "Euler-Maruyama and Langevin, many steps",
}
MOST_STEPS = 100_000
STEPS = {"predictor-corrector": 1000}  # others: 40
LEAST, MOST = 0.005, 80.0  # noise levels that samplers go through, in normalised units
LARGEST = 10**9  # numbers in all samples of a draw
TOGETHER = 5_000  # samples drawn at a time, or fewer if they are long
NUMBERS = 2_000_000  # in them


@dataclass(eq=False)
class Surrogate:
    """What a training run leaves: `about` holds its settings, losses and card."""

    codec: Codec
    denoiser: Preconditioned
    covariance: Covariance  # of the normalised data, flattened
    network: Mapping[str, Any]  # settings of the network
    about: dict[str, Any] = field(default_factory=dict)
    digest: str = ""  # of its weights, where it was saved or loaded

    @classmethod
    def untrained(
        cls, codec: Codec, seed: int, width: int | None = None, depth: int = 4
    ) -> Surrogate:
        """A model of the codec's shape with random weights."""
        network = {"width": width, "depth": depth}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream(seed, Training.INITIAL_WEIGHTS).initial_seed()))
            made = Preconditioned(kind_named(codec.kind).network(codec, width, depth))
        return cls(codec, made, Covariance.white(math.prod(codec.shape)), network)

    @property
    def kind(self) -> Kind:
        """What it is a surrogate of: trajectories, rows or images."""
        return kind_named(self.codec.kind)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a normalised sample: (C, T) of a trajectory, (D,) of a row, (C, H, W) of an image."""
        return self.codec.shape

    @property
    def device(self) -> torch.device:
        return next(self.denoiser.parameters()).device

    def draw(
        self,
        samples: int,
        seed: int = 0,
        *,
        solver: str = "ode",
        steps: int | None = None,
        bounded: bool = True,
        progress: Callable[[int], None] = lambda count: None,
    ) -> Tensor:
        """Normalised samples (samples, *shape).

        `bounded`: estimates are kept within the ranges of the variables. Without it they are what
        the network says.
        """
        samples = whole_number(samples, "samples", least=1)
        seed = whole_number(seed, "seed")
        if samples * math.prod(self.shape) > LARGEST:
            most = LARGEST // math.prod(self.shape)
            raise ModelError(
                f"{samples:,} samples do not fit in memory together; draw up to {most:,} at a "
                "time, with other seeds"
            )
        if solver not in tuple(SOLVERS):
            raise ModelError(f"unknown solver {solver!r} (have: {', '.join(SOLVERS)})")
        steps = STEPS.get(solver, 40) if steps is None else steps
        steps = whole_number(steps, "steps", least=2, most=MOST_STEPS)
        denoiser = self.bounded if bounded else self.denoiser
        parts = []
        together = max(1, min(TOGETHER, NUMBERS // math.prod(self.shape)))
        for j, start in enumerate(range(0, samples, together)):
            count = min(together, samples - start)
            generator = stream(seed, Sampling.PLAIN, j)
            # a full part's noise is drawn even where fewer are kept: with the ODE's solvers a
            # sample does not change with the number asked for
            noise = torch.randn((together, *self.shape), generator=generator)[:count]
            x = MOST * noise.to(self.device)
            with torch.no_grad():
                made = self._solve(denoiser, x, solver, steps, generator).cpu()
            parts.append(self.codec.within(made) if bounded else made)
            progress(count)
        return torch.cat(parts)

    @property
    def bounded(self) -> Denoiser:
        """The denoiser with its estimates kept within the ranges of the variables."""
        return Bounded(self.denoiser, self.codec.within)

    def _solve(
        self, denoiser: Denoiser, x: Tensor, solver: str, steps: int, generator: torch.Generator
    ) -> Tensor:
        if solver == "predictor-corrector":
            made = predictor_corrector(
                denoiser, x, VE(sigma_max=MOST), generator, steps=steps, correctors=1
            )
            return denoiser(made, torch.tensor(VE().sigma_min))  # without the noise that is left
        levels = karras(steps, LEAST, MOST).to(self.device, torch.float32)
        if solver == "sde":
            return reverse_sde(denoiser, x, levels, self.covariance, generator)
        return (heun if solver == "heun" else dpm_solver)(denoiser, x, levels)

    def sample(
        self, samples: int, seed: int = 0, where: Formula | None = None, **settings: Any
    ) -> Any:
        """Samples as the training data have them: an xarray.Dataset of trajectories, a DataFrame
        of rows; settings as in `draw`.

        With `where` they are those of a scenario, labelled; settings are then those of
        `surrogate.guidance.sampler.Settings`, and `attrs` carry how it went.
        """
        return self.kind.to_python(self.dataset(samples, seed, where, **settings))

    def dataset(
        self, samples: int, seed: int = 0, where: Formula | None = None, **settings: Any
    ) -> xr.Dataset:
        """The same as an xarray.Dataset, rows too."""
        more = {name: settings.pop(name) for name in self.kind.formula_names if name in settings}
        if more:
            return self.knowing(**more).dataset(samples, seed, where, **settings)
        if where is not None:
            from surrogate.guidance import sampler  # which needs models itself

            return sampler.sample(self, samples, where, seed, sampler.Settings(**settings))
        made = self.codec.to_dataset(self.draw(samples, seed, **settings))
        return made.assign_attrs(
            surrogate_seed=seed,
            surrogate_solver=settings.get("solver", "ode"),
            surrogate_model=self.digest,
        )

    def knowing(self, **named: Mapping[str, Any]) -> Self:
        """The same model, for formulas that name more: see `ImageCodec.knowing`."""
        return replace(self, codec=self.codec.knowing(**named))

    def log_likelihood(
        self, data: xr.Dataset | pd.DataFrame, seed: int = 0, levels: int = 60
    ) -> np.ndarray:
        """log p of each sample, per the probability-flow ODE, in normalised units: (N,)."""
        data = self.codec.read(data)
        self.codec.matches(data)
        levels = whole_number(levels, "levels", least=10, most=MOST_STEPS)
        seed = whole_number(seed, "seed")
        x = self.codec.encode(
            data, slice(None), stream(seed, Evaluation.LIKELIHOOD_DEQUANTISATION)
        ).to(self.device)
        sigmas = karras(levels, LEAST, MOST).to(self.device, torch.float32)
        found: np.ndarray = log_likelihood(self.denoiser, x, sigmas).cpu().numpy()
        return found

    # --- keeping ----------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model's folder, whole or not at all; one that was there is replaced."""
        weights = {f"network.{k}": v for k, v in self.denoiser.network.state_dict().items()}
        spread = {f"covariance.{k}": getattr(self.covariance, k) for k in SPREAD}
        with store.whole_folder(Path(folder)) as part:
            kept = {name: narrowest(value) for name, value in (weights | spread).items()}
            self.digest = tensor_files.write_tensors(part / WEIGHTS, kept)
            config = {
                "version": store.VERSION,
                "kind": self.kind.stored,
                "made_by": f"surrogate-toolkit {version('surrogate-toolkit')}",
                "weights": self.digest,
                "network": dict(self.network),
                "codec": self.codec.to_config(),
                "about": self.about,
            }
            store.write_json(part / CONFIG, store.sealed(config))
            store.write_bytes(part / CARD, self.kind.card(self.codec, self.about).encode())
            store.write_bytes(part / CURVE, curve(self.about.get("looks", [])).encode())

    @classmethod
    def load(cls, folder: str | Path) -> Surrogate:
        """The model in a folder; ModelError says what is wrong with it."""
        place = Path(folder)
        config = store.read_config(place)
        try:
            kind = kind_named(config.get("kind"))
        except ModelError as problem:
            raise ModelError(f"{place} cannot be used: {problem}") from None
        digest = str(config.get("weights"))
        tensors = tensor_files.read_tensors(place / WEIGHTS, digest)
        try:
            codec = kind.codec_from_config(config["codec"])
            spread = Covariance.restore(*(tensors.pop(f"covariance.{k}") for k in SPREAD))
            if spread.size != math.prod(codec.shape):
                raise ModelError(f"{place / WEIGHTS} does not fit its description")
            weights = {name.removeprefix("network."): value for name, value in tensors.items()}
            network = dict(config["network"])
            denoiser = _denoiser(kind, codec, network, weights)
            made = cls(codec, denoiser, spread, network, dict(config["about"]), digest)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as problem:
            what = "cannot be used" if isinstance(problem, ModelError) else "is damaged"
            raise ModelError(f"{place} {what}: {problem}") from None
        return kind.loaded(made, place)


def narrowest(value: Tensor) -> Tensor:
    """The same numbers in the type of least precision that has them all."""
    for kind in (torch.float16, torch.float32):
        if torch.equal(value.to(kind).to(value.dtype), value):
            return value.to(kind)
    return value


def _denoiser(
    kind: Kind, codec: Codec, network: Mapping[str, Any], weights: Mapping[str, Tensor]
) -> Preconditioned:
    """A network of this description with these weights, if they fit it."""
    width, depth = network["width"], network["depth"]
    made = tensor_files.restored(lambda: kind.network(codec, width, depth), depth, weights)
    return Preconditioned(made.requires_grad_()).eval()


def load(folder: str | Path) -> Surrogate:
    """The model in a folder."""
    return Surrogate.load(folder)


def pretrained(name: str) -> Surrogate:
    """A model that comes with the package."""
    if name not in bundled():
        have = ", ".join(bundled()) or "none"
        raise ModelError(f"no model named {name!r} comes with the package (have: {have})")
    return Surrogate.load(bundled()[name])
