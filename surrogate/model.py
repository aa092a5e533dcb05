"""A surrogate: a codec, a denoiser and the covariance of the data. Sample it, save it, load it.

model = sg.load("model")
draws = model.sample(5_000, seed=1)     # a dataset like the training data
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints.errors import Setting
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Bounded, Denoiser, Preconditioned, Whitened
from surrogate.diffusion.schedule import karras
from surrogate.diffusion.training import DECODER
from surrogate.errors import ModelError, unknown_keyword, whole_number
from surrogate.guidance import sampler
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files
from surrogate.io.model_folder import CARD, CONFIG, CURVE, WEIGHTS, bundled
from surrogate.kinds import Kind, kind_named
from surrogate.kinds import stored_networks as networks
from surrogate.kinds.codec import Codec
from surrogate.kinds.decoder import NO_SIGNAL, Decoder
from surrogate.kinds.given import with_given
from surrogate.random import Evaluation, Sampling, stream
from surrogate.reports.card import curve
from surrogate.sampling import log_likelihood
from surrogate.sampling.solvers import AUTOREGRESSIVE, MAX_STEPS, solve, solver_named, steps_of
from surrogate.sampling.steps import SIGMA_MAX, SIGMA_MIN

COVARIANCE_PARTS = ("values", "vectors")
LISTED_CHARACTERS = 60  # of the names of variables, in a short description
MAX_NUMBERS = 10**9  # numbers in all samples of a draw
BATCH_SAMPLES = 5_000  # samples drawn at a time, or fewer if they are long
BATCH_NUMBERS = 2_000_000  # numbers drawn at a time, if samples are long


@dataclass(eq=False, repr=False)
class Surrogate:
    """The result of a training run: `about` holds its settings, losses and card."""

    codec: Codec
    denoiser: Preconditioned
    covariance: Covariance  # of the normalised data, flattened
    network: Mapping[str, Any]  # settings of the network
    about: dict[str, Any] = field(default_factory=dict)
    digest: str = ""  # of its weights, once it is saved or loaded
    decoder: Decoder | None = None  # draws data from the last noise level, where there is one

    @classmethod
    def untrained(
        cls,
        codec: Codec,
        seed: int,
        width: int | None = None,
        depth: int = 4,
        covariance: Callable[[], Covariance] | None = None,
    ) -> Surrogate:
        """A model of the codec's shape with random weights; with the `covariance` of smooth data
        its denoiser is preconditioned, where plain samples may do without a decoder."""
        made, decoder, network = networks.untrained(codec, seed, width, depth, covariance)
        white = Covariance.white(math.prod(codec.shape))
        spread = made.covariance if isinstance(made, Whitened) else white
        return cls(codec, made, spread, network, decoder=decoder)

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
        """Where its weights are."""
        return next(self.denoiser.parameters()).device

    def to(self, device: str | torch.device) -> Self:
        """Move the weights to a device; the model itself, for chaining."""
        self.denoiser.to(device)
        return self

    def __repr__(self) -> str:
        facts = [
            f"{name} {value}" if name not in ("variables", "weights") else value
            for name, value in self._facts().items()
            if name != "kind"
        ]
        return f"<Surrogate of {self.kind.name}: {'; '.join(facts)}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>Surrogate</caption>{rows}</table>"

    def _facts(self) -> dict[str, str]:
        """A short description of the model, by name."""
        variables = self.codec.learned
        short = variables if len(variables) <= LISTED_CHARACTERS else variables[:57] + "..."
        weights = sum(weight.numel() for weight in self.denoiser.parameters())
        found = {
            "kind": self.kind.name,
            "variables": short,
            "shape": str(self.shape),
            "weights": f"{weights:,} weights",
        }
        if learned := self.about.get("learned"):
            found["trained on"] = self.kind.count(int(learned))
        card = self.about.get("card") or {}
        if median := (card.get("overall") or {}).get("median"):
            found["distance"] = f"{median['value']:.4f} (noise floor {median['floor']:.4f})"
        return found

    def draw(
        self,
        samples: int,
        seed: int = 0,
        *,
        solver: str | None = None,
        steps: int | None = None,
        bounded: bool = True,
        progress: Callable[[int], None] = lambda count: None,
    ) -> Tensor:
        """Normalised samples (samples, *shape).

        `bounded`: denoised estimates are kept within the ranges of the variables.
        """
        samples = whole_number(samples, "samples", least=1)
        seed = whole_number(seed, "seed")
        if samples * math.prod(self.shape) > MAX_NUMBERS:
            most = MAX_NUMBERS // math.prod(self.shape)
            raise ModelError(
                f"{samples:,} samples do not fit in memory together",
                value=samples,
                remedy=f"draw up to {most:,} at a time, with other seeds",
            )
        solver = solver_named(solver or self.default_solver, self.decoder is not None)
        steps = steps_of(solver, steps)
        handover = None if self.decoder is None else self.decoder.plain_handover
        denoiser = self.bounded if bounded else self.denoiser
        parts = []
        batch = max(1, min(BATCH_SAMPLES, BATCH_NUMBERS // math.prod(self.shape)))
        for j, start in enumerate(range(0, samples, batch)):
            count = min(batch, samples - start)
            generator = stream(seed, Sampling.PLAIN, j)
            # the noise of a whole batch is drawn even if fewer are kept: with the ODE solvers a
            # sample does not depend on the number requested
            noise = torch.randn((batch, *self.shape), generator=generator)[:count]
            if self.decoder is not None and solver == AUTOREGRESSIVE:
                made = self.decoder.draw(0 * noise, NO_SIGNAL, generator, total=batch).x
            else:
                x = SIGMA_MAX * noise.to(self.device)
                made = solve(solver, denoiser, x, steps, self.covariance, generator, handover).cpu()
                if self.decoder is not None and handover is not None:
                    made = self.decoder.draw(made, handover, generator, total=batch).x
                elif bounded:
                    made = self.codec.within(made)
            parts.append(made)
            progress(count)
        return torch.cat(parts)

    @property
    def default_solver(self) -> str:
        """The solver of plain samples, unless another is requested: the one that held-out data
        have chosen, if they have."""
        if self.decoder is None:
            return "ode"
        return str(self.about.get("solver", AUTOREGRESSIVE))

    @property
    def bounded(self) -> Denoiser:
        """The denoiser, its estimates kept within ranges; a cut would roughen whitened ones."""
        own = self.denoiser
        return own if isinstance(own, Whitened) else Bounded(own, self.codec.within)

    def sample(
        self,
        samples: int,
        *,
        where: sampler.Where | None = None,
        given: Any = None,
        method: str = "auto",
        seed: int = 0,
        steps: int | None = None,
        particles: int | None = None,
        solver: str | None = None,
        bounded: bool = True,
        progress: Callable[[int], None] = lambda count: None,
        **settings: Any,
    ) -> Any:
        """Samples as users hold them: an xarray.Dataset of trajectories or images, a DataFrame of
        rows.

        Without `where` they are plain samples; `solver`, `steps`, `bounded` and `progress` as in
        `draw`. With `where` (a formula, its text, or a list or dict of either) they are samples
        given the scenario, labelled with verdicts; `attrs` carry the diagnostics. `method`: "auto",
        or a method of `surrogate.guidance`, whose own settings are further keywords. Formulas about
        images may name `pictures`, `regions`, `classifiers` and `functions`, given by name.
        `start`: the date of the first step of trajectories, which puts dates on their time axis and
        makes `cases@"1948-03-01" >= 100` a formula about them (`unit` of their times: "day").

        `given`: observed data, a DataFrame, Series or Dataset of series, or a row of a table. With
        `noise`, such as "poisson(0.9*I)", samples are from the posterior p(x | data), else values
        are met exactly; `columns`, `time`, `upto`, `every` and `nearest` say how they are read
        (`surrogate.io.reading.ObservationOptions`).
        """
        made = self.dataset(
            samples,
            where=where,
            given=given,
            method=method,
            seed=seed,
            steps=steps,
            particles=particles,
            solver=solver,
            bounded=bounded,
            progress=progress,
            **settings,
        )
        return self.kind.to_python(made)

    def dataset(
        self, samples: int, *, where: sampler.Where | None = None, **arguments: Any
    ) -> xr.Dataset:
        """An xarray.Dataset, whatever the kind, of the samples of `sample` with these arguments."""
        where, arguments, record = with_given(self.kind, self.codec, where, arguments)
        names = self.kind.formula_names
        more = {name: arguments.pop(name) for name in names if name in arguments}
        model = self.knowing(**more) if more else self
        if where is not None:
            return model._guided(samples, where, **arguments).assign_attrs(record)
        return model._plain(samples, **arguments)

    def _guided(
        self,
        samples: int,
        where: sampler.Where,
        *,
        solver: str | None = None,
        bounded: bool = True,
        progress: object = None,  # counts plain samples
        **settings: Any,
    ) -> xr.Dataset:
        """Samples given a scenario; `settings` of the method that are None are its defaults."""
        if solver is not None or not bounded:
            name = "solver" if solver is not None else "bounded"
            raise ModelError(
                f"{name} applies to plain samples",
                value=solver if name == "solver" else bounded,
                remedy=("leave out ", Setting(name), " or ", Setting("where")),
            )
        for name in ("steps", "particles"):
            if settings.get(name) is None:
                settings.pop(name, None)
        return sampler.sample(self, samples, where, **settings).dataset

    def _plain(
        self,
        samples: int,
        *,
        seed: int = 0,
        solver: str | None = None,
        method: str = "auto",
        particles: int | None = None,
        **settings: Any,
    ) -> xr.Dataset:
        """Unconditional samples; `settings` are those of `draw`."""
        if particles is not None or method != "auto":
            name = "method" if particles is None else "particles"
            raise ModelError(
                f"{name} applies to a scenario",
                value=method if particles is None else particles,
                remedy=("state one with ", Setting("where")),
            )
        known = ("where", "solver", "steps", "bounded", *self.kind.formula_names)
        for name in settings:
            if name not in (*known, "progress"):
                raise unknown_keyword(name, known, "sample")
        solver = solver or self.default_solver
        if solver != AUTOREGRESSIVE and self.codec.conditions():
            raise ModelError(f"{solver} knows no dates", remedy=("leave out ", Setting("solver")))
        x = self.draw(samples, seed, solver=solver, **settings)
        return self.codec.to_dataset(x).assign_attrs(
            surrogate_seed=seed, surrogate_solver=solver, surrogate_model=self.digest
        )

    def knowing(self, **named: Any) -> Self:
        """The same model, for formulas that name more: see `ImageCodec.knowing`; of trajectories,
        with the date of the first step, `start`."""
        codec = self.codec.knowing(**named)
        decoder = self.decoder and self.decoder.knowing(codec)
        return replace(self, codec=codec, decoder=decoder)

    def log_likelihood(
        self, data: xr.Dataset | pd.DataFrame, seed: int = 0, levels: int = 60
    ) -> np.ndarray:
        """log p of each sample, per the probability-flow ODE, in normalised units: (N,)."""
        data = self.codec.read(data)
        self.codec.matches(data)
        levels = whole_number(levels, "levels", least=10, most=MAX_STEPS)
        seed = whole_number(seed, "seed")
        x = self.codec.encode(
            data, slice(None), stream(seed, Evaluation.LIKELIHOOD_DEQUANTISATION)
        ).to(self.device)
        sigmas = karras(levels, SIGMA_MIN, SIGMA_MAX).to(self.device, torch.float32)
        found: np.ndarray = log_likelihood(self.denoiser, x, sigmas).cpu().numpy()
        return found

    # --- keeping ----------------------------------------------------------------------------------

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the model's folder, whole or not at all; `force` replaces one that is there."""
        place = Path(folder)
        if not force and place.is_dir() and any(place.iterdir()):
            raise ModelError(f"{str(folder)!r} exists", value=place, remedy=Setting("force", True))
        weights = {f"network.{k}": v for k, v in self.denoiser.network.state_dict().items()}
        spread = {f"covariance.{k}": getattr(self.covariance, k) for k in COVARIANCE_PARTS}
        if self.decoder is not None:
            weights |= {DECODER + k: v for k, v in self.decoder.state_dict().items()}
        with store.model_folder(Path(folder)) as part:
            kept = {
                name: tensor_files.narrowest(value) for name, value in (weights | spread).items()
            }
            self.digest = tensor_files.write_tensors(part / WEIGHTS, kept)
            config = {
                "version": store.FORMAT_VERSION,
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
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Surrogate:
        """The model in a folder; ModelError says what is wrong with it."""
        place = Path(folder)
        config = store.read_config(place)
        try:
            kind = kind_named(config.get("kind"))
        except ModelError as problem:
            raise problem.at(f"{place} cannot be used") from None
        digest = str(config.get("weights"))
        tensors = tensor_files.read_tensors(place / WEIGHTS, digest)
        try:
            codec = kind.codec_from_config(config["codec"])
            spread = Covariance.restore(*(tensors.pop(f"covariance.{k}") for k in COVARIANCE_PARTS))
            if spread.size != math.prod(codec.shape):
                raise ModelError(f"{place / WEIGHTS} does not fit its description")
            weights = {
                name.removeprefix("network."): value
                for name, value in tensors.items()
                if not name.startswith(DECODER)
            }
            network = dict(config["network"])
            denoiser = networks.restored_denoiser(kind, codec, network, weights, spread)
            decoder = networks.restored_decoder(kind, codec, network, tensors)
            made = cls(codec, denoiser, spread, network, dict(config["about"]), digest, decoder)
        except ModelError as problem:
            raise problem.at(f"{place} cannot be used") from None
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as problem:
            raise ModelError(f"{place} is damaged: {problem}", value=place) from None
        return kind.loaded(made, place).to(device)


def load(folder: str | Path, device: str | torch.device = "cpu") -> Surrogate:
    """The model in a folder."""
    return Surrogate.load(folder, device)


def pretrained(name: str, device: str | torch.device = "cpu") -> Surrogate:
    """A model that comes with the package."""
    if name not in bundled():
        raise ModelError(
            f"no model named {name!r} comes with the package", value=name, allowed=bundled()
        )
    return Surrogate.load(bundled()[name], device)
