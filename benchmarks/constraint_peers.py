"""Others on the same formulas: torch written by hand, STLCG++ and RTAMT.

A program is prepared for a case and then run without arguments: `run()` returns its values, shape
(B,) at step 0 or (B, F) at the F steps where the formula's windows fit, and the gradients of their
sum, one of shape (B, T) for each signal. Preparation (parsing, lists instead of tensors) is not
timed. RTAMT has no gradients and takes one trace after the other.
"""

from __future__ import annotations

import math
import re
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, max_pool1d

Result = tuple[Tensor, tuple[Tensor, ...]]  # values, gradients (none without a gradient)
Run = Callable[[], Result]

# --- torch by hand: what differentiates by itself, without autograd functions of one's own --------


def log1mexp(x: Tensor) -> Tensor:
    """log(1 - exp(x)) for x <= 0; without the clamps the branch not taken makes nan gradients."""
    half = -math.log(2)
    near = torch.log(-torch.expm1(x.clamp(min=half)))
    return torch.where(x > half, near, torch.log1p(-torch.exp(x.clamp(max=half))))


def window_sum(x: Tensor, width: int) -> Tensor:
    """Sums of `width` neighbours, (B, T) to (B, T - width + 1), from sums of 1, 2, 4, ... of them.

    Differences of cumulative sums would lose the small terms; pools and convolutions are slower.
    """
    steps, size = x.shape[1] - width + 1, 1
    while not width & size:
        x, size = x[:, :-size] + x[:, size:], 2 * size
    total, at = x[:, :steps], size
    while at < width:
        x, size = x[:, :-size] + x[:, size:], 2 * size
        if width & size:
            total, at = total + x[:, at : at + steps], at + size
    return total


def outbreak_robustness(S: Tensor, I: Tensor) -> Tensor:
    return torch.minimum(20 - I.max(1).values, 30 - S[:, 5:11].min(1).values)


def outbreak_log_probability(S: Tensor, I: Tensor) -> Tensor:
    nowhere = logsigmoid(S[:, 5:11] - 30).sum(1)
    return logsigmoid(20 - I).sum(1) + log1mexp(nowhere)


def recurrence_robustness(x: Tensor) -> Tensor:
    return -max_pool1d(-max_pool1d(x, 6, stride=1), 11, stride=1)


def recurrence_log_probability(x: Tensor) -> Tensor:
    return window_sum(log1mexp(window_sum(logsigmoid(-x), 6)), 11)


# --- the formulas ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A formula, its signals (B, T), and the same formula in torch and in STLCG++.

    `stlcgpp(module, always, eventually)` takes the signals in the order of `signals`.
    """

    label: str
    formula: str
    signals: dict[str, Tensor]
    trace: bool  # all steps where the windows fit, instead of step 0
    horizon: int  # steps that the windows reach ahead
    by_hand: dict[str, Callable[..., Tensor]]  # by semantics
    stlcgpp: Callable[[Any, Any, Any], Any]
    chunk: int  # traces at a time that suit STLCG++'s masks best

    @property
    def batch(self) -> int:
        return len(next(iter(self.signals.values())))

    @property
    def steps(self) -> int:
        return next(iter(self.signals.values())).shape[1]

    def selected(self, trace: Tensor) -> Tensor:
        """Of values at every step, (B, T), those that the case compares."""
        return trace[:, : self.steps - self.horizon] if self.trace else trace[:, 0]


def outbreak(batch: int = 5000, steps: int = 30) -> Case:
    noise = torch.randn(2, batch, steps, generator=torch.Generator().manual_seed(1))
    return Case(
        "A",
        "always[0,29](I <= 20) and eventually[5,10](S <= 30)",
        {"S": 50 + 15 * noise[0], "I": 12 + 4 * noise[1]},
        trace=False,
        horizon=29,
        by_hand={
            "robustness": outbreak_robustness,
            "log-probabilistic": outbreak_log_probability,
        },
        stlcgpp=lambda module, always, eventually: module.And(
            eventually(module.Expression("S", None) <= 30, [5, 10]),
            always(module.Expression("I", None) <= 20, [0, 29]),
        ),
        chunk=500,
    )


def recurrence(batch: int = 100, steps: int = 1000) -> Case:
    return Case(
        "B",
        "always[0,10](eventually[0,5](x > 0))",
        {"x": torch.randn(batch, steps, generator=torch.Generator().manual_seed(2))},
        trace=True,
        horizon=15,
        by_hand={
            "robustness": recurrence_robustness,
            "log-probabilistic": recurrence_log_probability,
        },
        stlcgpp=lambda module, always, eventually: always(
            eventually(module.Expression("x", None) > 0, [0, 5]), [0, 10]
        ),
        chunk=5,
    )


# --- the programs ---------------------------------------------------------------------------------


def with_gradient(case: Case, value: Callable[..., Tensor]) -> Run:
    """Value and gradient of a differentiable function of the case's signals."""
    signals = [signal.clone().requires_grad_() for signal in case.signals.values()]

    def run() -> Result:
        values = value(*signals)
        return values.detach(), torch.autograd.grad(values.sum(), signals)

    return run


def by_hand(case: Case, semantics: str) -> Run:
    return with_gradient(case, case.by_hand[semantics])


def stlcgpp(case: Case, form: str) -> Run:
    """Exact minima and maxima (its approximations are slower), traces batched by vmap.

    `form`: "masking", a T x T matrix for each trace and operator, or "recurrent", a loop over the
    steps that wants time reversed.
    """
    from stlcgpp import formula as module

    recurrent = form == "recurrent"
    suffix = "Recurrent" if recurrent else ""
    operators = (getattr(module, name + suffix) for name in ("Always", "Eventually"))
    formula = case.stlcgpp(module, *operators)
    batched = torch.vmap(
        lambda *signals: formula(signals if len(signals) > 1 else signals[0]),
        chunk_size=None if recurrent else case.chunk,
    )

    def value(*signals: Tensor) -> Tensor:
        if recurrent:
            return case.selected(batched(*(signal.flip(1) for signal in signals)).flip(1))
        return case.selected(batched(*signals))

    return with_gradient(case, value)


def rtamt(case: Case, traces: int) -> Run:
    """Offline, discrete time, the first `traces` traces; its package has no C++ for this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its parser imports typing.io
        import rtamt as module

    specification = module.StlDiscreteTimeOfflineSpecification()
    formula, columns = case.formula, {}
    for name, signal in case.signals.items():  # S is its word for since
        formula = re.sub(rf"\b{name}\b", f"signal_{name}", formula)
        specification.declare_var(f"signal_{name}", "float")
        columns[f"signal_{name}"] = signal[:traces].tolist()
    specification.spec = formula
    specification.parse()
    times = list(range(case.steps))
    data = [
        {"time": times} | {name: column[i] for name, column in columns.items()}
        for i in range(traces)
    ]

    def run() -> Result:
        values = [[value for _, value in specification.evaluate(trace)] for trace in data]
        return case.selected(torch.tensor(values)), ()

    return run


# --- timing ---------------------------------------------------------------------------------------


def race(runs: dict[str, Run], seconds: float, rounds: int = 5) -> dict[str, float]:
    """Median CPU seconds of each, taken in turn so that all meet the same disturbances.

    In one round each runs for about 20 ms, at least once; there are at least `rounds` of them.
    """

    def timed(run: Run) -> float:
        before = time.process_time()
        run()
        return time.process_time() - before

    calls = {}
    for name, run in runs.items():
        timed(run)
        calls[name] = max(1, int(0.02 / timed(run)))
    spent: dict[str, list[float]] = {name: [] for name in runs}
    until, done = time.perf_counter() + seconds, 0
    while done < rounds or time.perf_counter() < until:
        for name, run in runs.items():
            spent[name] += [timed(run) for _ in range(calls[name])]
        done += 1
    return {name: statistics.median(times) for name, times in spent.items()}
