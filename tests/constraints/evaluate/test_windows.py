"""Sliding windows against naive loops, in values and gradients."""

from __future__ import annotations

import pytest
import torch

from constraints.evaluate.windows import LogOrSums, SlidingMax, SlidingSum, window_sums

WIDTHS = [1, 2, 3, 5, 6, 8, 11, 16, 17]


def signal(low: float = -2.0, high: float = -0.01) -> torch.Tensor:
    draw = torch.Generator().manual_seed(3)
    return low + (high - low) * torch.rand(2, 17, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("width", WIDTHS)
def test_sliding_folds_equal_unfolded_windows(width: int) -> None:
    x = signal().requires_grad_()
    windows = x.unfold(-1, width, 1)
    naive = {
        SlidingSum: windows.sum(-1),
        SlidingMax: windows.max(-1).values,
        LogOrSums: torch.log1p(-(1 - windows.exp()).prod(-1)),
    }
    for function, expected in naive.items():
        value = function.apply(x, width)
        torch.testing.assert_close(value, expected)
        along = torch.linspace(-1, 2, value.numel(), dtype=x.dtype).reshape(value.shape)
        (slope,) = torch.autograd.grad((value * along).sum(), x)
        (wanted,) = torch.autograd.grad((expected * along).sum(), x, retain_graph=True)
        torch.testing.assert_close(slope, wanted)


def test_log_or_over_the_whole_axis_equals_the_definition() -> None:
    x = signal().requires_grad_()
    value = LogOrSums.apply(x, 0)
    torch.testing.assert_close(value, torch.log1p(-(1 - x.exp()).prod(-1)))
    assert torch.autograd.gradcheck(lambda y: LogOrSums.apply(y, 0), (x,))


def test_window_sums_do_not_cancel() -> None:
    """A running total would lose the small entries behind the large one."""
    x = torch.tensor([[1e8, 1.0, 2.0, 3.0, 4.0]], dtype=torch.float32)
    assert window_sums(x, 2)[0, 1:].tolist() == [3.0, 5.0, 7.0]


def test_ties_send_the_gradient_to_the_first() -> None:
    x = torch.zeros(1, 5, requires_grad=True)
    (slope,) = torch.autograd.grad(SlidingMax.apply(x, 3).sum(), x)
    assert slope.tolist() == [[1.0, 1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_certain_and_impossible_entries_keep_gradients_finite(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, 0.0, -1e4], [0.0, -5.0, -1e4], [-70.0, -79.0, -1e4]], dtype=dtype)
    x.requires_grad_()
    value = LogOrSums.apply(x, 0)
    (slope,) = torch.autograd.grad(value.sum(), x)
    assert torch.isfinite(value).all()
    assert torch.isfinite(slope).all()
    assert (value <= 0).all()
