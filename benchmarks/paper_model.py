"""The score model of Scassola et al. 2023 for eSIRS, trained and sampled with its own settings.

"Conditioning score-based generative models by neuro-symbolic constraints": a perceptron of 200, 100
and 100 units behind a batch norm, as a `ScoreDenoiser` with cap 1 on the sub-VP SDE; 10,000
trajectories, normalised, all of them trained on; the denoising loss |σ_t s + n|² with ten draws of
n and t ~ U(10⁻⁵, 1) for each trajectory; RAdam at 0.005, batches of 1,000, 2,000 epochs. Its
sampler is Euler-Maruyama in 1,000 steps. What the paper leaves open is as its public configuration
has it. Two things differ: the prior score is -x_t/(α² + σ_t²), not -x_t, with the network's input
scaled alike, and sampling ends at a noise of 0.01, not at t = 10⁻⁴.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import fidelity
import numpy as np
import report
import torch
import xarray as xr
from torch import Tensor, nn

from simulators import ReactionNetwork, simulate
from surrogate.diffusion.denoise import Denoiser, ScoreDenoiser, expand
from surrogate.diffusion.schedule import Schedule, SubVP, karras
from surrogate.sampling import dpm_solver, predictor_corrector

TRAJECTORIES, BATCH, DRAWS, EPOCHS, RATE = 10_000, 1_000, 10, 2_000, 5e-3
EARLIEST = 1e-5  # time of the least noise in training
SIGMA_END = 0.01  # noise at which sampling ends, in normalised units
STEPS = 1_000
BATCH_SIZE = 5_000  # samples drawn at a time
WAVES = 10


class Perceptron(nn.Module):
    """(B, C, T) at times (B,) to (B, C, T); sines and cosines of the time are further inputs."""

    def __init__(self, channels: int, steps: int) -> None:
        super().__init__()
        size = channels * steps
        self.norm = nn.BatchNorm1d(size + 2 * WAVES)
        self.first = nn.Linear(size + 2 * WAVES, 200)
        self.second = nn.Linear(200, 100)
        self.third = nn.Linear(100, 100)
        self.leave = nn.Linear(100, size, bias=False)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        frequencies = 1_000 * torch.exp(-math.log(1e4) * torch.arange(WAVES) / (WAVES - 1))
        angles = t[:, None] * frequencies
        hidden = self.norm(torch.cat([x.flatten(1), angles.sin(), angles.cos()], 1))
        hidden = nn.functional.silu(self.first(hidden))
        hidden = nn.functional.silu(self.second(hidden))
        hidden = hidden + nn.functional.silu(self.third(hidden))
        return self.leave(hidden).reshape(x.shape)


def loss(denoiser: ScoreDenoiser, clean: Tensor, generator: torch.Generator) -> Tensor:
    """mean |σ_t s + n|² = mean |D - x_0|²/σ², with σ the noise relative to the data: ()."""
    clean = clean.repeat(DRAWS, 1, 1)
    t = EARLIEST + (1 - EARLIEST) * torch.rand(len(clean), generator=generator)
    sigma = denoiser.schedule.ratio(t)
    noise = torch.randn(clean.shape, generator=generator)
    noisy = clean + expand(sigma, clean) * noise
    return ((denoiser(noisy, sigma) - clean) / expand(sigma, clean)).square().mean()


@dataclass(frozen=True)
class PaperModel:
    """The trained score model, and `early`, what it was after the epochs that the paper names (None
    before that)."""

    names: tuple[str, ...]
    mean: Tensor  # (C, T)
    scale: Tensor
    denoiser: ScoreDenoiser
    early: ScoreDenoiser | None
    epochs: int
    cpu: float

    def sample(self, sampler: Sampler, n: int, seed: int, early: bool = False) -> xr.Dataset:
        """Rounded trajectories over (sample, time)."""
        generator = torch.Generator().manual_seed(seed)
        denoiser = self.early if early and self.early is not None else self.denoiser
        parts = []
        for start in range(0, n, BATCH_SIZE):
            shape = (min(BATCH_SIZE, n - start), *self.mean.shape)
            noise = torch.randn(shape, generator=generator)
            parts.append(sampler(denoiser, SubVP(), noise, generator))
        counts = torch.round(torch.cat(parts) * self.scale + self.mean).numpy().astype(np.int64)
        return xr.Dataset(
            {name: (("sample", "time"), counts[:, c]) for c, name in enumerate(self.names)}
        )


def fit(
    network: ReactionNetwork,
    names: tuple[str, ...],
    cpu: float,
    say: Callable[[str], None] = lambda text: None,
    seed: int = 0,
) -> PaperModel:
    """Train on one thread, which suits so small a network, for the given CPU seconds."""
    data = simulate(network, samples=TRAJECTORIES, seed=seed)
    counts = torch.from_numpy(np.stack([data[name].values for name in names], 1)).float()
    mean, scale = counts.mean(0), counts.std(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        trained = _trained((counts - mean) / scale, cpu, say, seed)
    finally:
        torch.set_num_threads(threads)
    return PaperModel(names, mean, scale, *trained)


def _trained(
    clean: Tensor, cpu: float, say: Callable[[str], None], seed: int
) -> tuple[ScoreDenoiser, ScoreDenoiser | None, int, float]:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        denoiser = ScoreDenoiser(Perceptron(*clean.shape[1:]), SubVP(), cap=1.0, prior=True)
    optimizer = torch.optim.RAdam(denoiser.parameters(), lr=RATE)
    early, epochs, began = None, 0, time.process_time()
    while (spent := time.process_time() - began) < cpu:
        order = torch.randperm(len(clean), generator=generator)
        for rows in order.split(BATCH):
            value = loss(denoiser, clean[rows], generator)
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            optimizer.step()
        epochs += 1
        if epochs == EPOCHS:
            early = copy.deepcopy(denoiser).eval()
        if epochs % 50 == 0:
            say(
                f"the paper's model: epoch {epochs:,}, loss {value:.4f}, {spent:.0f} of {cpu:.0f} s"
            )
    return denoiser.eval(), early, epochs, time.process_time() - began


# --- samplers -------------------------------------------------------------------------------------

# a denoiser, its schedule, white noise (B, C, T) to begin with, and a source of more
Sampler = Callable[[Denoiser, Schedule, Tensor, torch.Generator], Tensor]


def euler(correctors: int, steps: int = STEPS) -> Sampler:
    """The paper's: Euler-Maruyama, with Langevin steps before each step."""

    def sample(
        denoiser: Denoiser, schedule: Schedule, noise: Tensor, generator: torch.Generator
    ) -> Tensor:
        x = float(schedule.ratio(torch.ones(()))) * noise
        return predictor_corrector(
            denoiser, x, schedule, generator, steps=steps, correctors=correctors, least=SIGMA_END
        )

    return sample


def ode(steps: int = 200) -> Sampler:
    """Not the paper's: the probability-flow ODE, solved finely."""

    def sample(
        denoiser: Denoiser, schedule: Schedule, noise: Tensor, generator: torch.Generator
    ) -> Tensor:
        most = float(schedule.ratio(torch.ones(())))
        return dpm_solver(denoiser, most * noise, karras(steps, SIGMA_END, most).float())

    return sample


SAMPLERS: dict[str, Sampler] = {
    "Euler-Maruyama, 1,000 steps": euler(0),
    "the same with a corrector step each": euler(1),
    "ODE, 200 steps": ode(),
}


def best_sampler(
    model: PaperModel, truth: fidelity.Truth, n: int, say: Callable[[str], None]
) -> tuple[report.Section, Callable[[int, int], xr.Dataset]]:
    """Ways to sample the model, judged by sets of n, and the best of them: (n, seed) -> samples."""
    found = {}
    for early in (False, True) if model.early is not None else (False,):
        for name, sampler in SAMPLERS.items():
            label = f"{name}, after {EPOCHS if early else model.epochs:,} epochs"
            say(f"sampling the paper's model: {label}")
            histograms = truth.histograms([model.sample(sampler, n, 1, early)])
            found[label] = [each.ratio() for each in histograms], sampler, early
    body = [[label, *(f"{ratio:.3f}" for ratio in each[0])] for label, each in found.items()]
    _, sampler, early = min(found.values(), key=lambda each: sum(each[0]))
    return (["", *model.names], body), lambda n, seed: model.sample(sampler, n, seed, early)
