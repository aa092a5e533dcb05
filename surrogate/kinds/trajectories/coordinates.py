"""The choice of a variable's coordinate: by a rule where one decides, else by a trial.

A parameter that the simulator draws from a range is learned as its logit between the ends: uniform
values are then exactly one logistic component of the decoder's mixture.

Other variables are learned as levels or logarithms, by a trial on held-out samples. Under the
transform f, z = f(y) moves by increments whose law is the same for all samples: a Laplace density
at each step, with the median and the mean absolute deviation of training samples. Held-out samples
then have the log-likelihood

    log p(y) = Σ_t [log Laplace(z_t - z_{t-1}; m_t, b_t) + log f'(y_t)],    z_{-1} = 0,

and the coordinate with the larger mean wins: levels for what moves by amounts, logarithms (log
returns) for what moves by percentages. Levels stay where the gain is small, because conditions on
them are linear: counts, whose decoder sees their size anyway, need a larger gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Layout
from surrogate.kinds.trajectories.transforms import Identity, Log, Logit, Transform, for_counts
from surrogate.kinds.trajectories.variables import Variable, read

MIN_GAIN = 0.05  # nats a value by which logarithms of a series of real numbers must be better
MIN_COUNT_GAIN = 0.2  # the same for counts and statics
MAX_SAMPLES = 2_000  # to fit on, and as many to score
MIN_SAMPLES = 20  # below which levels stay
END_MARGIN = 1e-6  # of a range, by which its logit reaches beyond the ends: these can be drawn


@dataclass(frozen=True)
class Trial:
    """The coordinate that won, and its gain over levels in nats a value (0 for levels)."""

    transform: Transform
    gain: float = 0.0


def choose(
    data: xr.Dataset, variables: Sequence[Variable], learned: np.ndarray | None = None
) -> Mapping[str, Trial]:
    """A trial for each of these variables of numbers; `learned`: samples to fit on, the others are
    held out (if not given, every other one)."""
    count = data.sizes["sample"]
    known = np.arange(0, count, 2) if learned is None else np.asarray(learned)
    held_out = np.setdiff1d(np.arange(count), known)
    if min(len(known), len(held_out)) < MIN_SAMPLES:
        return {v.name: Trial(Identity()) for v in variables}
    rows = _thinned(known), _thinned(held_out)
    return {v.name: _trial(v, *(read(data, v, some) for some in rows)) for v in variables}


def by_range(variables: Sequence[Variable], signals: Layout) -> Mapping[str, Transform]:
    """The logit of each real static that is known to lie in a bounded range."""
    found: dict[str, Transform] = {}
    for v in variables:
        signal = signals.find(v.name)
        if v.static and v.kind == "real" and signal is not None:
            margin = END_MARGIN * (signal.high - signal.low)
            if np.isfinite(margin):
                found[v.name] = Logit(signal.low - margin, signal.high + margin)
    return found


def notes(variables: Sequence[Variable], gains: Mapping[str, float]) -> list[str]:
    """Which variables are not learned as levels, and why; `gains`: of the logarithms that won."""
    bounded = [v.name for v in variables if v.static and v.transform.kind == "logit"]
    found = [f"logit of {', '.join(bounded)} between known ends"] if bounded else []
    cycles = [v.name for v in variables if v.cycle is not None]
    logs = [name for name in gains if name not in cycles]
    found += [f"logarithms of {', '.join(logs)}{_won(logs, gains)}"] if logs else []
    found += [f"{', '.join(cycles)} beside them{_won(cycles, gains)}"] if cycles else []
    return found


def _won(names: Sequence[str], gains: Mapping[str, float]) -> str:
    """By which trial, if there was one."""
    won = [
        f"{name} +{gains[name]:.{2 if gains[name] >= 0.1 else 3}f}"
        for name in names
        if name in gains
    ]
    return f", by a trial on held-out samples: {', '.join(won)} nats a value" if won else ""


def _thinned(rows: np.ndarray) -> np.ndarray:
    """At most MAX_SAMPLES of these, evenly spaced, in order."""
    return np.sort(rows)[:: max(1, -(-len(rows) // MAX_SAMPLES))]


def _trial(variable: Variable, known: Tensor, held_out: Tensor) -> Trial:
    counts = variable.kind == "integer"
    log: Transform = for_counts(Log(0.0)) if counts else Log(0.0)
    low = 0.0 if counts else log.low
    every = torch.cat([known.flatten(), held_out.flatten()])
    positive = bool((every >= low).all() if counts else (every > low).all())
    if not positive or not bool(every.isfinite().all()):
        return Trial(Identity())
    gain = log_likelihood(log, known, held_out) - log_likelihood(Identity(), known, held_out)
    needed = MIN_COUNT_GAIN if counts or variable.static else MIN_GAIN
    return Trial(log, gain) if gain > needed else Trial(Identity())


def log_likelihood(transform: Transform, known: Tensor, held_out: Tensor) -> float:
    """Mean log p of a held-out value (n, T), by increments fitted to known samples (m, T)."""
    before, after = _increments(transform, known), _increments(transform, held_out)
    middle = before.median(0).values
    spread = (before - middle).abs().mean(0)
    varying = spread > 0
    if not bool(varying.any()):
        return 0.0
    log_p = -torch.log(2 * spread) - (after - middle).abs() / spread
    return float((log_p + _log_slope(transform, held_out))[:, varying].mean())


def _increments(transform: Transform, values: Tensor) -> Tensor:
    z = transform.forward(values.double())
    return torch.cat([z[:, :1], z.diff(dim=1)], 1)


def _log_slope(transform: Transform, values: Tensor) -> Tensor:
    """log f'(y)."""
    if isinstance(transform, Log):
        return -torch.log(values.double() - transform.low)
    return torch.zeros_like(values, dtype=torch.float64)
