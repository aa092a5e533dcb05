"""TimeGAN's scores of generated time series: discriminative and predictive.

Yoon, Jarrett & van der Schaar, "Time-series generative adversarial networks", NeurIPS 2019, and the
authors' public code (metrics/, data_loading.py), which published figures were measured with. Real
series (n, T, d) are scaled to [0, 1] by the range of the data's columns; sines are in [0, 1] by
themselves, and are not: their values lie in [0.5, 1], so that a scale of their own would double the
predictive error.

- Discriminative: |accuracy - ½| on a fifth of both sets of a GRU with d/2 hidden units (one layer,
  as in the code; the paper says two) that learned from the rest to tell data from samples; STEPS
  updates with batches of BATCH. Of two sets of 10,000 from one distribution it is .006 on average.
- Predictive: a GRU with d/2 hidden units learns from the samples to predict the last column one
  step ahead from the others; the mean absolute error on the data.

Both are means of RUNS runs. Weights start as in the code: Glorot's, biases of gates at 1.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

STEPS = 2_000  # updates of the discriminative score
PREDICTIVE_STEPS = 5_000
BATCH = 128
TEST_SHARE = 0.2
RUNS = 3  # with seeds of their own


class Recurrent(nn.Module):
    """A GRU with a linear map of its states to one number: (B, T, d) to (B, T)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.states = nn.GRU(inputs, hidden, batch_first=True)
        self.last = nn.Linear(hidden, 1)
        nn.init.xavier_uniform_(self.last.weight)
        gates, candidate = (
            torch.empty(2 * hidden, inputs + hidden),
            torch.empty(hidden, inputs + hidden),
        )
        kernel = torch.cat([nn.init.xavier_uniform_(each) for each in (gates, candidate)])
        with torch.no_grad():
            self.states.weight_ih_l0.copy_(kernel[:, :inputs])
            self.states.weight_hh_l0.copy_(kernel[:, inputs:])
            for bias in (self.states.bias_ih_l0, self.states.bias_hh_l0, self.last.bias):
                bias.zero_()
            self.states.bias_ih_l0[: 2 * hidden] = 1.0

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
    return float(np.mean([_told_apart(data, samples, RUNS * seed + k, steps) for k in range(RUNS)]))


def _told_apart(data: np.ndarray, samples: np.ndarray, seed: int, steps: int) -> float:
    sides = [_split(each, seed + k) for k, each in enumerate((data, samples))]
    train, test = (torch.cat([side[part] for side in sides]) for part in (0, 1))
    labels, truth = (
        torch.cat([torch.full((len(side[part]),), float(k)) for k, side in enumerate(sides)])
        for part in (0, 1)
    )
    model, generator = _model(data.shape[2], data.shape[2], seed)
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
    return float(np.mean([_error(data, samples, RUNS * seed + k, steps) for k in range(RUNS)]))


def _error(data: np.ndarray, samples: np.ndarray, seed: int, steps: int) -> float:
    x, y = (torch.from_numpy(each).float() for each in (samples, data))
    known = slice(None, -1) if data.shape[2] > 1 else slice(None)
    inputs = x[..., known].shape[2]
    model, generator = _model(inputs, data.shape[2], seed)
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


def _model(inputs: int, columns: int, seed: int) -> tuple[Recurrent, torch.Generator]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Recurrent(inputs, max(1, columns // 2)), torch.Generator().manual_seed(seed)


def _split(series: np.ndarray, seed: int) -> tuple[Tensor, Tensor]:
    """Four fifths to learn from, at random, and the rest."""
    order = np.random.default_rng(seed).permutation(len(series))
    cut = int(len(series) * (1 - TEST_SHARE))
    found = torch.from_numpy(series[order]).float()
    return found[:cut], found[cut:]
