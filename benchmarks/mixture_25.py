"""Noisy linear observations of a mixture of 25 Gaussians, whose posterior and evidence are known.

After Cardoso et al. 2023 (MCGdiff), arXiv:2308.07983: means (-8i, -8j) repeated over d coordinates,
i, j = -2..2, unit covariance, random weights; y = A x + s e with d_y rows. The noise e stands in
further coordinates of the model, so that the observation is a linear equation, each within ±δ: Z is
the mass of Σ_k w_k N(A m_k, A Aᵀ + s² I) in that box.

    python -m benchmarks.mixture_25 --runs 100
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.exact import Exact
from surrogate.guidance.sampler import sample
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.model import Surrogate
from surrogate.random import stream

SETTINGS = {"method": "twisted", "pilot_samples": 100, "keep_degenerate": True}
TOLERANCE = 0.02  # δ, small beside every noise


class DiagonalMixture(Denoiser):
    """Exact for Σ_k w_k N(m_k, diag v): log-weights (K,), means (K, D), variances (D,)."""

    def __init__(self, log_weights: Tensor, means: Tensor, variances: Tensor) -> None:
        self.log_weights, self.means, self.variances = log_weights, means, variances

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        flat = x.reshape(len(x), -1).double()
        total = self.variances + torch.as_tensor(sigma).double() ** 2
        scaled = self.means / total
        joint = flat @ scaled.mT - 0.5 * (self.means * scaled).sum(1) + self.log_weights
        mean = torch.softmax(joint, 1) @ self.means
        return (mean + self.variances / total * (flat - mean)).reshape(x.shape).to(x)


@dataclass(frozen=True)
class Problem:
    """A prior in d coordinates, and an observation y = A x + s e of it."""

    log_weights: Tensor
    means: Tensor
    matrix: Tensor
    noise: float
    y: Tensor

    @classmethod
    def random(cls, d: int, d_y: int, seed: int) -> Problem:
        rng = np.random.default_rng(seed)
        centres = [(-8.0 * i, -8.0 * j) for i in range(-2, 3) for j in range(-2, 3)]
        means = torch.tensor([list(c) * (d // 2) for c in centres]).double()
        weights = torch.tensor(rng.standard_normal(25) ** 2)
        u, _, v = np.linalg.svd(rng.standard_normal((d_y, d)), full_matrices=False)
        diagonal = np.sort(rng.random(d_y))
        matrix = torch.tensor(u @ np.diag(diagonal) @ v)
        noise = float(rng.random() * diagonal.max())
        weights = weights / weights.sum()
        chosen = rng.choice(25, p=weights.numpy())
        x = means[chosen] + torch.tensor(rng.standard_normal(d))
        y = matrix @ x + noise * torch.tensor(rng.standard_normal(d_y))
        return cls(weights.log(), means, matrix, noise, y)

    @property
    def rows(self) -> Tensor:
        """(A, sI): the observation as equations of (x, e)."""
        return torch.cat([self.matrix, self.noise * torch.eye(len(self.y)).double()], 1)

    @property
    def log_z(self) -> float:
        """log P(A x + s e within ±δ of y): the density, averaged over the box."""
        spread = self.rows @ self.rows.mT
        law = torch.distributions.MultivariateNormal(self.means @ self.matrix.mT, spread)
        grid = torch.quasirandom.SobolEngine(len(self.y), seed=0).draw(4096).double()
        at = self.y + TOLERANCE * (2 * grid - 1)
        density = torch.logsumexp(self.log_weights + law.log_prob(at[:, None]), 1)
        mean = torch.logsumexp(density, 0) - math.log(len(grid))
        return float(mean) + len(self.y) * math.log(2 * TOLERANCE)

    def posterior(self, n: int, seed: int) -> Tensor:
        """Exact draws of x given y, (n, d)."""
        generator = stream(seed, 99)
        spread = self.rows @ self.rows.mT
        law = torch.distributions.MultivariateNormal(self.means @ self.matrix.mT, spread)
        shares = torch.softmax(self.log_weights + law.log_prob(self.y), 0)
        chosen = torch.multinomial(shares, n, replacement=True, generator=generator)
        x, e = (
            torch.randn(n, k, generator=generator, dtype=torch.float64)
            for k in (self.means.shape[1], len(self.y))
        )
        x = x + self.means[chosen]
        gap = self.y - x @ self.matrix.mT - self.noise * e
        gain = torch.linalg.solve(spread, self.matrix)
        return x + gap @ gain

    def model(self) -> Surrogate:
        """The exact model of (x, e), a series of d + d_y steps."""
        extra = len(self.y)
        means = torch.cat([self.means, torch.zeros(25, extra).double()], 1)
        generator = stream(0, 77)
        chosen = torch.multinomial(self.log_weights.exp(), 20_000, True, generator=generator)
        noise = torch.randn(20_000, means.shape[1], generator=generator, dtype=torch.float64)
        draws = (means[chosen] + noise).numpy()
        axis = {"time": np.arange(means.shape[1], dtype=float)}
        data = xr.Dataset({"x": (("sample", "time"), draws)}, coords=axis)
        codec = TimeSeriesCodec.fit(data)
        mean, scale = codec.mean.flatten(), codec.scale.flatten()
        law = DiagonalMixture(self.log_weights, (means - mean) / scale, 1 / scale**2)
        shares = self.log_weights.exp()
        apart = (means - shares @ means) / scale
        spread = torch.diag(1 / scale**2) + apart.mT @ (shares[:, None] * apart)
        return Exact(codec, law, Covariance(spread), {})  # type: ignore[arg-type]

    def where(self) -> list[str]:
        """The observation as formulas."""
        return [
            " + ".join(f"({float(a)!r}) * x({t})" for t, a in enumerate(row))
            + f" = {float(value)!r} +- {TOLERANCE}"
            for row, value in zip(self.rows, self.y, strict=True)
        ]


def sliced_wasserstein(a: Tensor, b: Tensor, projections: int = 1_000, seed: int = 0) -> float:
    """Mean over directions of the Wasserstein-1 distance of projections: (n, d) each."""
    generator = stream(seed, 98)
    directions = torch.randn(a.shape[1], projections, generator=generator, dtype=torch.float64)
    directions = directions / directions.norm(dim=0)
    first, second = ((each @ directions).sort(0).values for each in (a, b))
    return float((first - second).abs().mean())


def run(d: int, d_y: int, seed: int, samples: int, **settings: object) -> dict[str, float]:
    """One run: log P with its error, the closed form, distances from exact draws."""
    problem = Problem.random(d, d_y, seed)
    began = time.process_time()
    answer = sample(problem.model(), samples, problem.where(), seed=seed, **settings)  # type: ignore[arg-type]
    found = answer.diagnostics
    x = torch.tensor(answer.dataset["x"].values[:, :d]).double()
    exact = problem.posterior(2 * len(x), seed)
    return {
        "d_y": d_y,
        "seed": seed,
        "truth": problem.log_z,
        "log_p": found.log_probability or math.nan,
        "error": found.log_probability_error or math.nan,
        "ess": found.ess,
        "distance": sliced_wasserstein(x, exact[: len(x)]),
        "floor": sliced_wasserstein(exact[len(x) :], exact[: len(x)]),
        "seconds": time.process_time() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="The seed of the first problem.")
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--dimensions", type=int, default=8)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for d_y in (1, 2, 4):
        found = [
            run(given.dimensions, d_y, seed, given.samples, **SETTINGS)
            for seed in range(given.first, given.first + given.runs)
        ]
        apart = np.array([each["log_p"] - each["truth"] for each in found])
        errors = np.array([each["error"] for each in found])
        summary = {
            "d_y": d_y,
            "runs": given.runs,
            "interval holds the closed form": float(np.mean(np.abs(apart) <= 1.96 * errors)),
            "median |log P - truth|": float(np.median(np.abs(apart))),
            "mean log P - truth": float(apart.mean()),
            "median error": float(np.median(errors)),
            "distance": float(np.mean([each["distance"] for each in found])),
            "floor": float(np.mean([each["floor"] for each in found])),
            "seconds": float(np.mean([each["seconds"] for each in found])),
        }
        print(json.dumps(summary))


if __name__ == "__main__":
    main()
