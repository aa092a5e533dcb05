"""Expectations of soft and hard atoms under a Gaussian, in closed form.

The atom "low <= y <= high" of sharpness k has the value

    c(y) = log sigmoid(k (y - low)) + log sigmoid(k (high - y)),

where the part of an infinite bound is absent, and k = inf is the indicator. For y ~ N(mean,
variance), `average` is log E exp(c(y)).

sigmoid is the distribution function of the logistic law, so its average is P(z), the distribution
function of "logistic noise + N(0, k^2 variance)" at z = k (mean - low). Monahan and Stefanski 1992
approximate the logistic law by a scale mixture of normals; here the mixture is N(0, TAU) plus
Laplace noise of rate 1, of rate 1.973, or none, where one weight is negative. Laplace noise plus
Gaussian noise has a closed form, and the tail exp(-|z|) is exact. The density of the mixture is
within 1.7e-4 (relative) of the logistic density everywhere. Averaging keeps a relative bound, and
sigmoid(k (y - low)) sigmoid(k (high - y)) is an integral of logistic densities, so every soft
log-average has an error below 1.7e-4 (plus 7e-5 where an interval is narrow):

    y >= low          log P(z)
    y == low          log P'(z)
    low <= y <= high  log (P(z_low) - P(z_high)) - log (1 - exp(-k (high - low)))

A hard atom is the same with no noise besides the Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid

from constraints.errors import FormulaError
from constraints.evaluate.log_probability import log1mexp

Noise = tuple[tuple[float, float], ...]
Rule = Callable[[Tensor, Tensor, Noise], tuple[Tensor, Tensor, Tensor]]

# (weight, rate) of the Laplace noises; the rest of the weight is Gaussian alone. The first weight
# makes the tail exact; TAU, the second weight and its rate are the minimax fit to the log density,
# by benchmarks/fit_logistic_mixture.py.
TAU = 0.806
LOGISTIC: Noise = ((2.0 * math.exp(-TAU / 2.0), 1.0), (-0.36865, 1.973))

# erfcx(x) = exp(x^2) erfc(x) = t Q(t) at t = 2.5 / (2.5 + x), x >= 0: relative error 1.5e-7, none
# at x = 0, in a tenth of the time of torch.special.erfcx. Fitted by benchmarks/fit_erfcx.py.
Q = (
    0.22567583103327,
    0.22567158902439,
    0.20780781069288,
    0.16880710155687,
    0.1403879675352,
    -0.00331972070423,
    0.16627037143575,
    -0.1810859689973,
    0.04978501842317,
)

# An interval narrower than this, in units of the scale of log P there, is its density times width.
NARROW_INTERVAL = 0.02
# A law of larger spread is Gaussian near its centre, to about 1e-4 of its derivatives.
GAUSSIAN_SPREAD = 300.0
# The largest |z| / std and derivative: a hard atom stays inside float32 when the variance is tiny.
MAX_DEVIATIONS, MAX_SLOPE = 1e15, 1e30
BLOCK_SIZE = 32768


def average_gaussian(mean: Tensor, variance: Tensor, scale: float | Tensor) -> Tensor:
    """log E exp(-scale y^2) for y ~ N(mean, variance), elementwise."""
    spread = 1.0 + 2.0 * scale * variance
    return -0.5 * torch.log(spread) - scale * mean.square() / spread


def average(mean: Tensor, variance: Tensor, low: float, high: float, k: float | Tensor) -> Tensor:
    """log E exp(c(y)) <= 0 for y ~ N(mean, variance), elementwise on tensors that broadcast.

    Zero variance gives c(mean) itself (-inf where a hard atom fails), with no gradient for the
    variance. Gradients are first order only.
    """
    sharpness = k.item() if isinstance(k, Tensor) else k
    _check(low, high, sharpness)
    if variance.numel() > 1 or not math.isinf(sharpness):  # else a single one does for all
        mean, variance = torch.broadcast_tensors(mean, variance)  # type: ignore[no-untyped-call]
    noise: Noise
    if math.isinf(sharpness):
        k, noise, spread = 1.0, (), variance.clamp(min=torch.finfo(variance.dtype).tiny)
    else:
        noise, spread = LOGISTIC, k * k * variance + TAU
    if math.isinf(low) and math.isinf(high):
        return torch.zeros_like(mean)
    if math.isinf(high):
        value = _apply(_log_cdf, k * (mean - low), spread, noise)
    elif math.isinf(low):
        value = _apply(_log_cdf, k * (high - mean), spread, noise)
    elif low == high:
        value = _apply(_log_pdf, -k * (mean - low).abs(), spread, noise)
    else:
        middle = -k * (mean - 0.5 * (low + high)).abs()
        if noise:
            value = _interval(middle, 0.5 * k * (high - low), spread, noise)
        else:
            value = _apply(partial(_log_between, 0.5 * (high - low)), middle, spread, noise)
    certain = variance == 0
    if not certain.any():
        return value
    if noise:
        exact = _soft(mean, low, high, k)
    else:
        exact = torch.zeros_like(mean).masked_fill((mean < low) | (mean > high), -math.inf)
    return torch.where(certain, exact, value)


def _check(low: float, high: float, k: float) -> None:
    if not low <= high or low == math.inf or high == -math.inf:
        raise FormulaError(
            f"the bounds [{low}, {high}] are empty",
            value=(low, high),
            remedy="give low <= high, of which low may be -inf and high inf",
        )
    if not k > 0:
        raise FormulaError(
            f"the sharpness k is {k}",
            value=k,
            remedy="give a positive number, or inf for a hard atom",
        )
    if low == high and math.isinf(k):
        raise FormulaError(
            f"a hard equality (k = inf, low == high == {low}) has probability zero",
            value=low,
            remedy="give a finite k, or an interval of positive width",
        )


def _soft(y: Tensor, low: float, high: float, k: float | Tensor) -> Tensor:
    """c(y) of a soft atom."""
    value = torch.zeros_like(y)
    if not math.isinf(low):
        value = value + logsigmoid(k * (y - low))
    if not math.isinf(high):
        value = value + logsigmoid(k * (high - y))
    return value


def _interval(middle: Tensor, half: float | Tensor, spread: Tensor, noise: Noise) -> Tensor:
    """Log-average of a soft atom over z in [middle - half, middle + half].

    The middle is at or below zero (the law is symmetric), so the two P are subtracted where they
    are small.
    """
    half = torch.as_tensor(half, dtype=middle.dtype, device=middle.device)
    upper = _apply(_log_cdf, middle + half, spread, noise)
    lower = _apply(_log_cdf, middle - half, spread, noise)
    with torch.no_grad():  # the slope of log P at the middle, within a factor of about 2
        slope = (-middle / spread).clamp(max=1.0) + spread.rsqrt()
    # rounding of two large logarithms must not turn their difference around
    gap = torch.maximum(upper - lower, 0.25 * half.detach() * slope)
    value = upper + log1mexp(-gap)
    narrow = half * slope < NARROW_INTERVAL
    if narrow.any():
        density = _apply(_log_pdf, middle, spread, noise)
        value = torch.where(narrow, density + torch.log(2.0 * half), value)
    return (value - log1mexp(-2.0 * half)).clamp(max=0.0)


def _erfcx(x: Tensor) -> Tensor:
    """erfcx for x >= 0."""
    t = 2.5 / (x + 2.5)
    value = torch.full_like(t, Q[-1])
    for q in Q[-2::-1]:
        value.mul_(t).add_(q)
    return value.mul_(t)


class _Law(NamedTuple):
    """The law "noise + N(0, spread)" at -|z|; `cdf` and `pdf` lack the factor exp(lead)."""

    lead: Tensor
    cdf: Tensor
    pdf: Tensor
    slope: Tensor  # pdf' / pdf
    bend: Tensor  # pdf'' / pdf


def _law(z: Tensor, spread: Tensor, noise: Noise) -> _Law:
    """z and spread (B,)."""
    std = spread.sqrt()
    h = std * math.sqrt(0.5)
    x = (z.abs() / std).mul_(math.sqrt(0.5)).clamp_(max=MAX_DEVIATIONS)
    slope = x / h
    bend = slope.square() - 1.0 / spread
    normal = math.sqrt(0.5 / math.pi) / std
    if not noise:
        return _Law(-x.square(), 0.5 * _erfcx(x), normal, slope, bend)

    # up to x = h the leading factor is Gaussian, beyond it is the exponential tail of rate 1
    near = torch.minimum(x, h)
    lead = near * (near - 2.0 * x)
    beyond = torch.exp((x - near).square_().neg_())
    normal *= beyond
    # E exp(-rate |y|) on the two sides of zero, (2, B); erfcx(-x) = 2 exp(x^2) - erfcx(x)
    weights, rates = z.new_tensor(noise).T
    rate = rates.unsqueeze(-1)
    far = rate * h + x
    close = rate * h - x
    sign = close.sign()
    power = ((rate + 1.0) * h - 2.0 * x).mul_((rate - 1.0) * h).clamp_(max=0.0)
    parts = _erfcx(torch.cat([x.unsqueeze(0), far, close.abs_()])).mul_(beyond)
    gauss, far, close = parts[0], parts[1 : 1 + len(noise)], parts[1 + len(noise) :]
    close.mul_(sign).addcmul_(1.0 - sign, power.exp_())
    odd = torch.stack([weights, weights * rates**2]).mul_(0.25) @ (close - far)
    even = torch.stack([weights * rates, weights * rates**3]).mul_(0.25) @ (close + far)
    rest = normal * (1.0 - weights.sum())
    cdf = odd[0].add_(gauss, alpha=0.5)
    pdf = even[0].add_(rest)
    first = odd[1].addcmul_(rest, slope)
    second = even[1].addcmul_(rest, bend).sub_(normal * (weights * rates**2).sum())
    # first and second cancel near the centre of a wide law, which is Gaussian there
    wide = (spread > GAUSSIAN_SPREAD) & (slope < 0.3)
    total = spread + (2.0 * weights / rates**2).sum()
    tilt = slope * spread / total
    slope = torch.where(wide, tilt, first / pdf)
    bend = torch.where(wide, tilt.square_() - 1.0 / total, second / pdf)
    return _Law(lead, cdf, pdf, slope, bend)


def _log_cdf(z: Tensor, spread: Tensor, noise: Noise) -> tuple[Tensor, Tensor, Tensor]:
    """log P(z) and its derivatives; P obeys the heat equation dP/dspread = P''/2."""
    law = _law(z, spread, noise)
    lead, sign = torch.exp(law.lead), z.sign()
    tail = lead * law.cdf
    # weights instead of a choice: faster, and right at z = 0, where the two sides agree
    above, below = 0.5 + 0.5 * sign, 0.5 - 0.5 * sign
    value = below * (law.lead + torch.log(law.cdf)) + above * torch.log1p(-tail)
    dz = law.pdf * (below / law.cdf + above * lead / (1.0 - tail))
    return value, dz, -0.5 * sign * dz * law.slope


def _log_pdf(z: Tensor, spread: Tensor, noise: Noise) -> tuple[Tensor, Tensor, Tensor]:
    """log P'(z) and its derivatives, for z <= 0; P' obeys the heat equation too."""
    law = _law(z, spread, noise)
    return law.lead + torch.log(law.pdf), law.slope, 0.5 * law.bend


def _log_between(
    half: float, z: Tensor, spread: Tensor, noise: Noise
) -> tuple[Tensor, Tensor, Tensor]:
    """log P(z - half <= y <= z + half) of y ~ N(0, spread) and its derivatives, for z <= 0.

    With the leading factor exp(-near²) apart, where near is the end that is closer to zero.
    """
    h = (2.0 * spread).sqrt()
    near, far = (z + half) / h, ((half - z) / h).clamp_(max=MAX_DEVIATIONS)
    inside = near.sign()  # whether zero lies within
    ratio = (2.0 * half * z / spread).exp_()  # of the densities at the far end and at the near one
    near = near.abs_().clamp_(max=MAX_DEVIATIONS)
    lead = -near.square()
    close, beyond = _erfcx(near), _erfcx(far).mul_(ratio)
    above, below = 0.5 + 0.5 * inside, 0.5 - 0.5 * inside
    tails = 0.5 * lead.exp() * (close + beyond)
    ends = (0.5 * (close - beyond)).clamp_(min=torch.finfo(z.dtype).tiny)
    value = below * (lead + ends.log()) + above * torch.log1p(-tails)
    # the densities at the two ends over P
    first = (below / ends + above * lead.exp() / (1.0 - tails)).mul_(math.sqrt(1 / math.pi) / h)
    last = first * ratio
    dz = first - last
    bend = (first * (z + half) + last * (half - z)) * (-0.5 / spread)
    slope = -z / spread
    narrow = half * (slope + spread.rsqrt()) < NARROW_INTERVAL
    if narrow.any():
        density = torch.log(2.0 * half * math.sqrt(0.5 / math.pi) * spread.rsqrt())
        value = torch.where(narrow, density + 0.5 * slope * z, value)
        dz = torch.where(narrow, slope, dz)
        bend = torch.where(narrow, 0.5 * (slope.square() - 1.0 / spread), bend)
    return value.clamp_(max=0.0), dz, bend


def _apply(rule: Rule, z: Tensor, spread: Tensor, noise: Noise) -> Tensor:
    value: Tensor = _Blockwise.apply(rule, z, spread, noise)  # type: ignore[no-untyped-call]
    return value


class _Blockwise(torch.autograd.Function):
    """A rule (z, spread, noise) -> (value, dz, dspread) applied in blocks that fit in the cache."""

    @staticmethod
    def forward(ctx: Any, rule: Rule, z: Tensor, spread: Tensor, noise: Noise) -> Tensor:
        results = [torch.empty(z.shape, dtype=z.dtype, device=z.device) for _ in range(3)]
        flat = [tensor.reshape(-1) for tensor in (z, *results)]
        spreads = spread.reshape(-1)
        for start in range(0, z.numel(), BLOCK_SIZE):
            block = slice(start, start + BLOCK_SIZE)
            z_part, *outs = (tensor[block] for tensor in flat)
            spread_part = spreads[block] if len(spreads) > 1 else spreads
            for out, result in zip(outs, rule(z_part, spread_part, noise), strict=True):
                out.copy_(result)
        value, dz, dspread = results
        ctx.spread = spread.shape
        ctx.save_for_backward(
            dz.clamp_(-MAX_SLOPE, MAX_SLOPE), dspread.clamp_(-MAX_SLOPE, MAX_SLOPE)
        )
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor | None, None]:
        dz, dspread = ctx.saved_tensors
        by_spread = None
        if ctx.needs_input_grad[2]:
            by_spread = (grad * dspread).sum_to_size(ctx.spread)
        return None, grad * dz, by_spread, None
