"""Linear predictions of the values of a step, and what heads remember of changes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from surrogate.kinds.trajectories.features import Memory, memory
from surrogate.kinds.trajectories.prediction import LAGS, LinearPrediction, stacks
from tests.surrogate.analytic import generator


def walk(samples: int = 300, steps: int = 7) -> Tensor:
    """A second-order recursion of two series, the second a function of the first: (N, T, 2)."""
    noise = torch.randn((samples, steps), generator=generator(1), dtype=torch.float64)
    z = torch.zeros(samples, steps, 2, dtype=torch.float64)
    z[:, 0, 0] = 5 + noise[:, 0]
    for t in range(1, steps):
        before = z[:, t - 2, 0] if t > 1 else 0.0
        z[:, t, 0] = 1.5 * z[:, t - 1, 0] - 0.6 * before + 0.1 * noise[:, t]
    z[..., 1] = 2 * z[..., 0] - 3
    z[:, 1:, 1] += 0.5 * z[:, :-1, 0]
    return z


def predicted(z: Tensor, j: int) -> Tensor:
    own = LinearPrediction(z.shape[2], z.shape[1])
    own.fit(z)
    t = torch.arange(z.shape[1]).expand(z.shape[:2])
    return own(j, stacks(z), t)


def test_a_linear_function_of_what_is_known_is_predicted_exactly() -> None:
    z = walk()
    torch.testing.assert_close(predicted(z, 1), z[..., 1], atol=1e-6, rtol=0)


def test_what_remains_of_a_recursion_is_its_noise() -> None:
    z = walk(2_000)
    rest = z[..., 0] - predicted(z, 0)
    assert rest[:, LAGS:].std().item() == pytest.approx(0.1, rel=0.05)
    assert rest[:, 0].std().item() == pytest.approx(1.0, rel=0.1)  # nothing is known of the first


def test_later_values_of_a_step_are_not_read() -> None:
    z = walk()
    own = LinearPrediction(2, z.shape[1])
    own.fit(z)
    stack = stacks(z)[:, 4]
    changed = stack.clone()
    changed[:, 1] += 100  # the second series at this step
    torch.testing.assert_close(own(0, stack, 4), own(0, changed, 4))


def test_copies_of_a_series_share_its_weight() -> None:
    z = walk()
    twice = torch.cat([z[..., :1], z[..., :1], z], -1)
    torch.testing.assert_close(predicted(twice, 3), z[..., 1], atol=1e-6, rtol=0)


def test_memory_is_the_same_while_changes_are_drawn() -> None:
    change = torch.randn((4, 9), generator=generator(2))
    every = memory(change)
    own = Memory(4)
    for t in range(9):
        for now, known in zip(own.features, every, strict=True):
            torch.testing.assert_close(now, known[:, t])
        own.add(change[:, t])
    own.select(torch.tensor([2, 2]))
    assert all(len(each) == 2 for each in own.features)
