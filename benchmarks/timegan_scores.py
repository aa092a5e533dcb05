"""TimeGAN's scores of generated time series: discriminative and predictive.

Yoon, Jarrett & van der Schaar, "Time-series generative adversarial networks", NeurIPS 2019. Series
(n, T, d) are scaled to [0, 1] by the range of the data's columns.

- Discriminative: |accuracy - ½| on a fifth of both sets of a two-layer GRU with d/2 hidden units
  that learned from the rest to tell data from samples; STEPS updates with batches of BATCH.
- Predictive: a GRU with d/2 hidden units learns from the samples to predict the last column one
  step ahead from the others; the mean absolute error on the data.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

STEPS = 2_000  # updates of the discriminative score
PREDICTIVE_STEPS = 5_000
BATCH = 128
TEST_SHARE = 0.2


class Recurrent(nn.Module):
    """A GRU with a linear map of its states to one number: (B, T, d) to (B, T)."""

    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.states = nn.GRU(inputs, hidden, layers, batch_first=True)
        self.last = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.states(x)[0])[..., 0]
        return found


def scaled(data: np.ndarray, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both sets (n, T, d) scaled by the range of the data's columns."""
    low, high = data.min((0, 1)), data.max((0, 1))
    width = np.where(high > low, high - low, 1.0)
    return (data - low) / width, (samples - low) / width


def discriminative(
    data: np.ndarray, samples: np.ndarray, seed: int = 0, steps: int = STEPS
) -> float:
    """|accuracy - ½| of telling data (n, T, d) from samples (m, T, d)."""
    sides = [_split(each, seed + k) for k, each in enumerate((data, samples))]
    train, test = (torch.cat([side[part] for side in sides]) for part in (0, 1))
    labels, truth = (
        torch.cat([torch.full((len(side[part]),), float(k)) for k, side in enumerate(sides)])
        for part in (0, 1)
    )
    model, generator = _model(data.shape[2], data.shape[2], 2, seed)
    optimiser = torch.optim.Adam(model.parameters())
    counts = [len(side[0]) for side in sides]
    for _ in range(steps):
        rows = torch.cat(  # as many of each
            [
                torch.randint(count, (BATCH,), generator=generator) + k * counts[0]
                for k, count in enumerate(counts)
            ]
        )
        logits = model(train[rows])[:, -1]
        loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        logits = model(test)[:, -1]
    # balanced, so that sets of different sizes do not make a constant answer right
    right = ((logits > 0) == (truth == 1)).double()
    accuracy = (right[truth == 1].mean() + right[truth == 0].mean()) / 2
    return abs(float(accuracy) - 0.5)


def predictive(
    data: np.ndarray, samples: np.ndarray, seed: int = 0, steps: int = PREDICTIVE_STEPS
) -> float:
    """Mean absolute error on data (n, T, d) of what learned from samples (m, T, d)."""
    x, y = (torch.from_numpy(each).float() for each in (samples, data))
    known = slice(None, -1) if data.shape[2] > 1 else slice(None)
    inputs = x[..., known].shape[2]
    model, generator = _model(inputs, data.shape[2], 1, seed)
    optimiser = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        batch = x[torch.randint(len(x), (BATCH,), generator=generator)]
        guess = model(batch[:, :-1, known]).sigmoid()
        loss = (guess - batch[:, 1:, -1]).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        guess = model(y[:, :-1, known]).sigmoid()
        return float((guess - y[:, 1:, -1]).abs().mean())


def _model(inputs: int, columns: int, layers: int, seed: int) -> tuple[Recurrent, torch.Generator]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Recurrent(inputs, max(1, columns // 2), layers), torch.Generator().manual_seed(seed)


def _split(series: np.ndarray, seed: int) -> tuple[Tensor, Tensor]:
    """Four fifths to learn from, at random, and the rest."""
    order = np.random.default_rng(seed).permutation(len(series))
    cut = int(len(series) * (1 - TEST_SHARE))
    found = torch.from_numpy(series[order]).float()
    return found[:cut], found[cut:]
