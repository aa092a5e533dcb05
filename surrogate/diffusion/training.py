"""Fitting a denoiser: θ minimises the expected loss (`losses`) over data, noise levels and noise.

AdamW with warm-up and cosine decay (Loshchilov & Hutter 2019, arXiv:1711.05101), an exponential
moving average of the weights, and early stopping: the result is the average with the smallest loss
on held-out data. A run is a function of its seed and settings. Every step draws its batch and its
noise from a generator seeded by (seed, step), so an interrupted run continues from its last
checkpoint bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from surrogate.diffusion.denoise import Denoiser, expand
from surrogate.diffusion.losses import Loss
from surrogate.errors import ModelError, TrainingError
from surrogate.random import Training, stream

DECODER = "decoder."  # before the names of a decoder's weights
DECODER_STREAMS = (  # of the networks in a decoder: for steps, and for held-out data
    (Training.DECODER, Training.DECODER_VALIDATION),
    (Training.ANY_ORDER, Training.ANY_ORDER_VALIDATION),
)
MOMENTS = "exp_avg", "exp_avg_sq"  # what AdamW keeps of the gradients, beside the number of steps


class Learner(Protocol):
    """A network that learns from the same batches."""

    def loss(self, clean: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of each clean sample, (B,)."""


class Decoder(Protocol):
    """A second network, or several; see `surrogate.kinds.decoder`."""

    @property
    def learners(self) -> Mapping[str, Learner]:
        """Its networks by the prefix of their weights; "" has those of no other prefix."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Its weights by name."""


class Source(Protocol):
    """A source of batches."""

    def batch(self, step: int, size: int) -> Tensor:
        """The clean samples of a step: (size, *shape); a function of the step alone."""
        ...


@dataclass(frozen=True)
class Settings:
    """Settings of the optimiser; the defaults suit about 1e5 trajectories of about 1e2 numbers."""

    steps: int = 8_000
    batch: int = 512
    rate: float = 1e-3
    warm_up: int = 300
    decay: float = 1e-4  # of the weights
    average: float = 0.999  # of the moving average
    clip: float = 1.0  # largest gradient norm
    check_every: int = 250  # steps between looks at the held-out loss
    patience: int = 12  # looks without improvement before the run stops

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "check_every", "patience"):
            if not getattr(self, name) >= 1:
                raise _out_of_bounds(name, ">= 1", getattr(self, name))
        for name in ("rate", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise _out_of_bounds(name, "a number > 0", getattr(self, name))
        for name in ("warm_up", "decay"):
            if not 0 <= getattr(self, name) < math.inf:
                raise _out_of_bounds(name, "a number >= 0", getattr(self, name))
        if not 0 <= self.average < 1:
            raise _out_of_bounds("average", "in [0, 1)", self.average)

    def rate_at(self, step: int) -> float:
        """The learning rate at a step: linear warm-up, then a cosine down to a hundredth."""
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))


def _out_of_bounds(name: str, bounds: str, value: object) -> ModelError:
    return ModelError(f"{name} must be {bounds}, not {value}", value=value)


@dataclass(frozen=True)
class Look:
    """An evaluation: the training loss since the last one, and the losses on held-out data."""

    step: int
    loss: float
    held_out: float
    decoder: float | None = None  # held-out loss of the decoder, if there is one
    others: dict[str, float] = field(default_factory=dict)  # of other networks in it, by prefix


@dataclass
class State:
    """All that a run needs to continue: the content of a checkpoint."""

    step: int
    tensors: dict[str, Tensor]
    looks: list[Look] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)  # least held-out loss of each network

    def to_config(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "best": self.best,
            "looks": [asdict(look) for look in self.looks],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], tensors: dict[str, Tensor]) -> State:
        try:
            looks = [
                Look(
                    int(look["step"]),
                    float(look["loss"]),
                    float(look["held_out"]),
                    None if look.get("decoder") is None else float(look["decoder"]),
                    {str(k): float(v) for k, v in (look.get("others") or {}).items()},
                )
                for look in config["looks"]
            ]
            best = {str(name): float(value) for name, value in config["best"].items()}
            if any(name not in best for look in looks for name in _losses(look)):
                raise ValueError("a network was evaluated and has no best loss")
            return cls(int(config["step"]), tensors, looks, best)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as problem:
            raise ModelError(f"the checkpoint is damaged: {problem!r}") from None


class Trainer:
    """One run: `advance` it step by step, or `run` it to its end."""

    def __init__(
        self,
        denoiser: Denoiser,
        source: Source,
        held_out: Tensor,
        loss: Loss | None = None,
        settings: Settings | None = None,
        seed: int = 0,
        state: State | None = None,
        decoder: Decoder | None = None,
        decoder_share: float = 1.0,
    ) -> None:
        """`decoder_share`: of each batch, that the decoder learns from."""
        if not isinstance(denoiser, nn.Module) or not any(
            weight.requires_grad for weight in denoiser.parameters()
        ):
            raise ModelError(
                "only a denoiser with parameters can be trained", value=type(denoiser).__name__
            )
        if not len(held_out):
            raise ModelError("a run needs held-out samples to be judged by", remedy="hold some out")
        self.denoiser, self.source, self.held_out = denoiser, source, held_out
        self.loss, self.settings, self.seed = loss or Loss(), settings or Settings(), seed
        self.decoder, self.decoder_share = decoder, decoder_share
        self.weights = {name: w for name, w in denoiser.named_parameters() if w.requires_grad}
        if decoder is not None:
            self.weights |= {DECODER + name: w for name, w in decoder.named_parameters()}
        own = decoder.learners if decoder is not None else {}
        self.learners = {DECODER + prefix: learner for prefix, learner in own.items()}
        self.averages = {name: value.detach().clone() for name, value in self.weights.items()}
        self.best = {name: value.clone() for name, value in self.averages.items()}
        # fused: one pass over the weights instead of a dozen, 1.7 ms a step instead of 11
        self.optimizer = torch.optim.AdamW(
            self.weights.values(),
            lr=self.settings.rate,
            weight_decay=self.settings.decay,
            fused=True,
        )
        self.step, self.looks, self.least = 0, list[Look](), dict[str, float]()
        self._since = list[Tensor]()
        if state is not None:
            self.restore(state)

    def run(
        self,
        progress: Callable[[Trainer], None] = lambda trainer: None,
        keep: Callable[[State], None] = lambda state: None,
    ) -> dict[str, Tensor]:
        """Run to the end and return the best averaged weights; `keep` gets each state.

        An interrupted step leaves partly updated weights: continue from the last kept state.
        """
        while not self.done:
            self.advance()
            if self.looks and self.looks[-1].step == self.step:
                keep(self.state())
            progress(self)
        return self.best

    @property
    def done(self) -> bool:
        """Whether all steps are done, or the last `patience` evaluations brought no improvement."""
        if self.step >= self.settings.steps:
            return True
        recent = self.looks[-self.settings.patience :]
        return len(recent) == self.settings.patience and all(
            value > self.least[name] for look in recent for name, value in _losses(look).items()
        )

    def advance(self) -> None:
        """One step of the optimiser."""
        generator = stream(self.seed, Training.NOISE, self.step)
        clean = self.source.batch(self.step, self.settings.batch)
        loss = self.loss(self.denoiser, clean, generator).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        size = self._clip("")
        for number, (part, learner) in enumerate(self.learners.items()):
            own = stream(self.seed, DECODER_STREAMS[number][0], self.step)
            rows = clean[: max(1, round(self.decoder_share * len(clean)))]
            other = learner.loss(rows, own).mean()
            other.backward()  # type: ignore[no-untyped-call]
            size = size + self._clip(part) + other.item()
        if not math.isfinite(size + loss.item()):
            raise self._diverged(loss.item())
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate_at(self.step)
        self.optimizer.step()
        self.step += 1
        self._average()
        self._since.append(loss.detach())
        if self.step % self.settings.check_every == 0 or self.step == self.settings.steps:
            self.look()

    def _clip(self, part: str) -> float:
        """Clip the gradients of one network; their norm before."""
        own = [w for name, w in self.weights.items() if self._part(name) == part]
        return float(nn.utils.clip_grad_norm_(own, self.settings.clip))

    def _part(self, name: str) -> str:
        """The prefix of the network that a weight belongs to."""
        return max((part for part in self.learners if name.startswith(part)), key=len, default="")

    def _average(self) -> None:
        # the average starts short, so that the first weights are soon forgotten
        keep = min(self.settings.average, (1 + self.step) / (10 + self.step))
        averages = list(self.averages.values())
        weights: list[Tensor] = list(self.weights.values())
        with torch.no_grad():
            torch._foreach_lerp_(averages, weights, 1 - keep)

    @property
    def recent(self) -> float:
        """The loss since the last look; NaN right after it."""
        return torch.stack(self._since).mean().item() if self._since else math.nan

    def look(self) -> None:
        """Measure the held-out loss of the averaged weights, and keep them if they are best."""
        recent = torch.stack(self._since).mean().item()
        look = self.measure(recent)
        worst = max(look.held_out, recent)
        if not worst < self.hopeless or not all(map(math.isfinite, _losses(look).values())):
            raise self._diverged(worst)
        self._since = []
        if look.others and not self.looks:
            self._keep_initial(look)
        self.looks.append(look)
        for part, loss in _losses(look).items():
            if loss < self.least.get(part, math.inf):
                self.least[part] = loss
                self.best |= {
                    name: value.clone()
                    for name, value in self.averages.items()
                    if self._part(name) == part
                }

    def _keep_initial(self, look: Look) -> None:
        """Let networks in the decoder that begin as a regression stay one, where that is better."""
        current = {name: value.detach().clone() for name, value in self.weights.items()}
        self._load(self.best)
        first = self._decoder_losses()
        self._load(current)
        self.least |= {part: first[part] for part in look.others}

    def measure(self, recent: float = math.nan) -> Look:
        """The mean held-out losses of the averaged weights, with the same noise every time."""
        current = {name: value.detach().clone() for name, value in self.weights.items()}
        self._load(self.averages)
        try:
            held_out, others = self._held_out_loss(self.denoiser), self._decoder_losses()
            return Look(self.step, recent, held_out, others.pop(DECODER, None), others)
        finally:
            self._load(current)

    @torch.no_grad()
    def _decoder_losses(self) -> dict[str, float]:
        found = {}
        for number, (part, learner) in enumerate(self.learners.items()):
            generator, total = stream(self.seed, DECODER_STREAMS[number][1]), 0.0
            for rows in torch.split(self.held_out, 2048):
                total += float(learner.loss(rows, generator).sum())
            found[part] = total / len(self.held_out)
        return found

    @cached_property
    def hopeless(self) -> float:
        """The loss that counts as divergence: far above that of a denoiser for white noise."""
        nothing = 1.0  # in units in which errors of a Gaussian's denoiser have the mean square 1
        if self.loss.units is None:
            nothing = self._held_out_loss(_Shrinking(self.loss.scale))
        return nothing + 1000 * (1 + abs(nothing))

    @torch.no_grad()
    def _held_out_loss(self, denoiser: Denoiser) -> float:
        generator, total = stream(self.seed, Training.VALIDATION_NOISE), 0.0
        for start in range(0, len(self.held_out), 2048):
            part = self.held_out[start : start + 2048]
            total += self.loss(denoiser, part, generator).mean().item() * len(part)
        return total / len(self.held_out)

    def _load(self, values: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(values[name])

    def _diverged(self, loss: float) -> TrainingError:
        return TrainingError(
            f"the loss diverged at step {self.step} (it is {loss:g})",
            value=loss,
            remedy="look for extreme values in the data",
        )

    # checkpoints

    def state(self) -> State:
        """A copy of all that the run needs to continue."""
        tensors: dict[str, Tensor] = {}
        for name, weight in self.weights.items():
            tensors[f"weights.{name}"] = weight.detach().clone()
            tensors[f"averages.{name}"] = self.averages[name].clone()
            tensors[f"best.{name}"] = self.best[name].clone()
            for moment in MOMENTS if self.step else ():
                tensors[f"{moment}.{name}"] = self.optimizer.state[weight][moment].clone()
        if self._since:
            tensors["since"] = torch.stack(self._since)
        return State(self.step, tensors, list(self.looks), dict(self.least))

    def restore(self, state: State) -> None:
        """Continue from a state; one of another model is refused, and nothing changes."""
        moments = MOMENTS if state.step else ()
        found: dict[str, dict[str, Tensor]] = {}
        for group in ("weights", "averages", "best", *moments):
            found[group] = {}
            for name, weight in self.weights.items():
                value = state.tensors.get(f"{group}.{name}")
                if value is None or value.shape != weight.shape:
                    raise ModelError(
                        f"the checkpoint belongs to another model: its {group}.{name} has shape "
                        f"{None if value is None else tuple(value.shape)}, not "
                        f"{tuple(weight.shape)}",
                        value=f"{group}.{name}",
                        remedy="start the run again",
                    )
                found[group][name] = value.detach().to(weight, copy=True)
        self._load(found["weights"])
        self.averages, self.best = found["averages"], found["best"]
        self.optimizer.state.clear()
        if state.step:
            for name, weight in self.weights.items():
                self.optimizer.state[weight] = {
                    "step": torch.tensor(float(state.step), device=weight.device),
                    **{moment: found[moment][name] for moment in moments},
                }
        self.step, self.looks, self.least = state.step, list(state.looks), dict(state.best)
        self._since = list(state.tensors.get("since", torch.zeros(0)))


def _losses(look: Look) -> dict[str, float]:
    """Held-out losses by the prefix of a network's weights."""
    found = {"": look.held_out, **look.others}
    return found if look.decoder is None else {**found, DECODER: look.decoder}


class _Shrinking(Denoiser):
    """The exact denoiser of data N(0, scale² I)."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        return self.scale**2 / (self.scale**2 + expand(sigma, x) ** 2) * x
