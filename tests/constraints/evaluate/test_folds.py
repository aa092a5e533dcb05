"""Folds over axes, windows and prefixes, against loops over lists of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from constraints.evaluate.folds import (
    All,
    Any,
    Fold,
    LogMeanExp,
    LogOr,
    Max,
    Mean,
    Min,
    PowerMean,
    PowerOr,
    Sum,
)
from constraints.evaluate.log_probability import NEVER
from tests.constraints.reference_evaluator import log_or

Naive = Callable[[list[float]], float]


def log_mean_exp(values: list[float]) -> float:
    high = max(values)
    return high + math.log(sum(math.exp(2 * (v - high)) for v in values) / len(values)) / 2


def power_mean(values: list[float]) -> float:
    return -(sum((-v) ** 3 for v in values) ** (1 / 3))


def power_or(values: list[float]) -> float:
    return math.log(-math.expm1(power_mean([math.log1p(-math.exp(v)) for v in values])))


FOLDS: dict[str, tuple[Fold, Naive]] = {
    "sum": (Sum(), sum),
    "min": (Min(), min),
    "max": (Max(), max),
    "mean": (Mean(), lambda values: sum(values) / len(values)),
    "log_or": (LogOr(), log_or),
    "log_mean_exp": (LogMeanExp(2.0), log_mean_exp),
    "power_mean": (PowerMean(3.0), power_mean),
    "power_or": (PowerOr(3.0), power_or),
}
# PowerOr takes -log(1 - p) for p below e^-8, an error of at most e^-8 / 2
ERROR = {"power_or": 2e-4}
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 12, 13]
N = 13


def values(seed: int, *shape: int, low: float = -6.0) -> Tensor:
    """Log-probabilities in [low, 0)."""
    generator = torch.Generator().manual_seed(seed)
    return low * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1e-3


def rows(x: Tensor, naive: Naive, windows: list[tuple[int, int]]) -> Tensor:
    """`naive` over entries first..last-1 of each row: (B, len(windows))."""
    return torch.tensor(
        [[naive(row[a:b]) for a, b in windows] for row in x.tolist()], dtype=torch.float64
    )


def sliding(width: int, n: int = N) -> list[tuple[int, int]]:
    return [(a, a + width) for a in range(n - width + 1)]


PREFIXES = [(0, i + 1) for i in range(N)]


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("low", [-6.0, -300.0])
def test_folds_over_axes_windows_and_prefixes_equal_their_definition(name: str, low: float) -> None:
    fold, naive = FOLDS[name]
    x = values(0, 3, N, low=max(low, -50.0) if name == "power_or" else low)
    near = {"rtol": 1e-9, "atol": 1e-9 + ERROR.get(name, 0.0)}
    whole = rows(x, naive, [(0, N)])[:, 0]
    torch.testing.assert_close(fold.over(x, 1), whole, **near)
    torch.testing.assert_close(fold.over(x.T, 0), whole, **near)
    for width in WIDTHS:
        wanted = rows(x, naive, sliding(width))
        torch.testing.assert_close(fold.slide(x, width), wanted, **near)
    torch.testing.assert_close(fold.scan(x), rows(x, naive, PREFIXES), **near)


@pytest.mark.parametrize("fold", [All(), Any()])
def test_boolean_folds_equal_all_and_any(fold: Fold) -> None:
    naive = all if isinstance(fold, All) else any
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(6, N, generator=generator) < (0.8 if isinstance(fold, All) else 0.2)
    assert fold.over(x, 1).tolist() == [naive(row) for row in x.tolist()]
    for width in WIDTHS:
        wanted = [[naive(row[a:b]) for a, b in sliding(width)] for row in x.tolist()]
        assert fold.slide(x, width).tolist() == wanted
    assert fold.scan(x).tolist() == [[naive(row[a:b]) for a, b in PREFIXES] for row in x.tolist()]


@pytest.mark.parametrize("name", [name for name in FOLDS if name != "mean"])
def test_join_folds_across_tensors_that_broadcast(name: str) -> None:
    fold, naive = FOLDS[name]
    parts = [values(1, 3, 1), values(2, 1, 4), values(3, 3, 4)]
    full = torch.stack(torch.broadcast_tensors(*parts), -1)
    wanted = rows(full.reshape(-1, 3), naive, [(0, 3)]).reshape(3, 4)
    near = {"rtol": 1e-9, "atol": 1e-9 + 2 * ERROR.get(name, 0.0)}
    torch.testing.assert_close(fold.join(parts), wanted, **near)


@pytest.mark.parametrize("name", [name for name in FOLDS if not FOLDS[name][0].averages])
def test_neutral_entries_change_nothing(name: str) -> None:
    fold, _ = FOLDS[name]
    x = values(4, 2, 5)
    padded = torch.nn.functional.pad(x, (2, 3), value=float(fold.neutral))
    torch.testing.assert_close(fold.over(padded, 1), fold.over(x, 1))
    torch.testing.assert_close(fold.slide(padded, 8)[:, 2], fold.over(x, 1))
    torch.testing.assert_close(fold.scan(padded)[:, -1], fold.over(x, 1))


@pytest.mark.parametrize("name", ["mean", "log_mean_exp"])
def test_averages_are_recounted(name: str) -> None:
    fold, naive = FOLDS[name]
    x = values(5, 2, 5)
    padded = torch.nn.functional.pad(x, (2, 3), value=float(fold.neutral))
    ten, five = torch.tensor([10.0]).double(), torch.tensor([5.0]).double()
    wanted = rows(x, naive, [(0, 5)])[:, 0]
    torch.testing.assert_close(fold.recount(fold.over(padded, 1), ten, five), wanted)


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("low", [-6.0, -200.0])
def test_gradients_of_folds_equal_finite_differences(name: str, low: float) -> None:
    if name == "power_or" and low < -6:
        low = -50.0  # still on both sides of the switch at -8
    fold, _ = FOLDS[name]
    x = values(6, 2, 6, low=low).requires_grad_()
    eps, near = 1e-6, {"atol": 1e-5, "rtol": 1e-4}
    for apply in (
        lambda y: fold.over(y, 1),
        lambda y: fold.slide(y, 1),
        lambda y: fold.slide(y, 3),
        lambda y: fold.slide(y, 6),
        fold.scan,
    ):
        assert torch.autograd.gradcheck(apply, (x,), eps=eps, **near)


@pytest.mark.parametrize("name", FOLDS)
def test_gradients_can_be_taken_twice(name: str) -> None:
    fold, _ = FOLDS[name]
    x = values(7, 2, 6).requires_grad_()
    for value in (fold.over(x, 1), fold.slide(x, 3), fold.scan(x)):
        first, second = (
            torch.autograd.grad(value.sum(), x, retain_graph=True)[0] for _ in range(2)
        )
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("fold", [LogOr(), LogMeanExp(1.0), PowerOr(4.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_disjunctions_stay_finite_from_certain_to_impossible(
    fold: Fold, dtype: torch.dtype
) -> None:
    scale = torch.tensor([0.0, -1e-30, -1e-8, -1e-3, -0.7, -20, -41, -90, -200, -1e4, NEVER])
    scale = scale.to(dtype)
    pairs = torch.cartesian_prod(scale, scale)  # (121, 2)
    triples = torch.cartesian_prod(scale, scale, scale)
    for x in (pairs, triples, scale[:, None].repeat(1, 40)):
        x = x.clone().requires_grad_()
        for value in (fold.over(x, 1), fold.slide(x, 2), fold.scan(x), fold.join([*x.unbind(1)])):
            assert bool((value <= 4 * torch.finfo(dtype).eps).all())
            assert isinstance(fold, LogMeanExp) or bool((value <= 0).all())
            grad = torch.autograd.grad(value.sum(), x)[0]
            assert bool(torch.isfinite(value).all())
            assert bool(torch.isfinite(grad).all())
            assert bool((grad >= -1e-6).all())


@settings(max_examples=200, derandomize=True)
@given(st.lists(st.floats(-1e4, 0), min_size=1, max_size=9))
def test_log_or_is_exact_at_any_depth(entries: list[float]) -> None:
    x = torch.tensor(entries, dtype=torch.float64)
    wanted = log_or(entries)
    for value in (LogOr().over(x, 0), LogOr().slide(x, len(x))[0], LogOr().scan(x)[-1]):
        assert value.item() <= 0
        assert value.item() == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_log_or_of_many_rare_events_adds_their_probabilities() -> None:
    x = torch.full((1, 1000), -500.0)
    wanted = torch.tensor([-500.0 + math.log(1000.0)])
    torch.testing.assert_close(LogOr().over(x, 1), wanted)


def test_ties_share_or_choose_but_never_lose_their_gradient() -> None:
    for fold in (Min(), Max(), LogOr(), LogMeanExp(1.0)):
        x = torch.full((1, 6), -0.5, dtype=torch.float64, requires_grad=True)
        total = torch.autograd.grad(fold.over(x, 1).sum(), x)[0].sum()
        assert total.item() > 0.0
        if isinstance(fold, (Min, Max)):
            assert total.item() == pytest.approx(1.0)
            windows = torch.autograd.grad(fold.slide(x, 4).sum(), x)[0].sum()
            assert windows.item() == pytest.approx(3.0)
