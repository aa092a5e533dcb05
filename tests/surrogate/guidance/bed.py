"""A test-bed with an exact score: a mixture of Gaussian series, whose conditional law is known."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import MixtureDenoiser
from surrogate.exact import Exact
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.random import stream


def mixture(channels: int, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (K,), means (K, D) and covariances (K, D, D) of rough series that drift apart."""
    size = channels * steps
    time = torch.arange(steps, dtype=torch.float64)
    rough = torch.exp(-(time[:, None] - time[None]).abs() / 6)
    across = torch.full((channels, channels), 0.4, dtype=torch.float64).fill_diagonal_(1)
    base = torch.kron(across, rough)
    slopes = torch.tensor([-2.0, 0.0, 2.5], dtype=torch.float64)
    signs = torch.tensor([1.0 if c % 2 == 0 else -1.0 for c in range(channels)]).double()
    ramp = (time / max(1, steps - 1))[None]
    means = torch.stack([(s * signs[:, None] * ramp).reshape(size) for s in slopes])
    spreads = torch.tensor([0.6, 1.0, 0.4], dtype=torch.float64)
    return torch.tensor([0.3, 0.5, 0.2]).double(), means, spreads[:, None, None] * base


class Bed:
    """`names` over `steps`; data are real numbers."""

    def __init__(self, names: str = "a b", steps: int = 30) -> None:
        self.names, self.steps = names.split(), steps
        self.parts = mixture(len(self.names), steps)
        self.law = MixtureDenoiser(*self.parts)
        data = self.dataset(self.draw(20_000, 0))
        codec = TimeSeriesCodec.fit(data)
        mean, scale = codec.mean.flatten(), codec.scale.flatten()
        weights, means, covariances = self.parts
        normal = MixtureDenoiser(
            weights, (means - mean) / scale, covariances / (scale[:, None] * scale[None])
        )
        x = codec.encode(data, slice(None), stream(0), torch.float64)
        self.model = Exact(codec, normal, Covariance.of(x), {})  # type: ignore[arg-type]
        self.decoding = self.model  # with a decoder, where a test gives it one

    def draw(self, n: int, seed: int) -> Tensor:
        """Exact draws (n, D)."""
        return self.law.sample(n, stream(seed, 77))

    def signals(self, flat: Tensor) -> dict[str, Tensor]:
        """Draws as formulas see them."""
        each = flat.reshape(len(flat), len(self.names), self.steps)
        return {name: each[:, i] for i, name in enumerate(self.names)}

    def dataset(self, flat: Tensor) -> xr.Dataset:
        each = flat.reshape(len(flat), len(self.names), self.steps).numpy()
        made = {name: (("sample", "time"), each[:, i]) for i, name in enumerate(self.names)}
        return xr.Dataset(made, coords={"time": np.arange(self.steps, dtype=float)})
