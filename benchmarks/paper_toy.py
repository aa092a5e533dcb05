"""The paper's toy: ½ N(-3, 0.5²) + ½ N(4, 1), given x >= 0, with the exact score.

D is of histograms with ⌊√n⌋ equal bins over the joint range of the samples and of as many exact
draws, against exact probabilities of the bins.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from paper_bench import FLOORS, Bench, Cost, Found, Row, cells, from_law, head, measured, published
from report import Target
from scipy.special import ndtr
from torch import Tensor

from constraints import LogProbabilistic, parse
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import MixtureDenoiser
from surrogate.exact import Exact
from surrogate.guidance.gradient import guided
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.universal import universal
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.random import stream

MEANS, DEVIATIONS = np.array([-3.0, 4.0]), np.array([0.5, 1.0])
GOAL = parse("x(0) >= 0")
K, STEPS, CORRECTORS, FINAL = 50.0, 1_000, 1, 200


def cdf(x: np.ndarray) -> np.ndarray:
    """Of the mixture."""
    found: np.ndarray = ndtr((np.asarray(x)[..., None] - MEANS) / DEVIATIONS).mean(-1)
    return found


ABOVE = float(1 - cdf(np.zeros(())))  # P(x >= 0)


def draws(n: int, seed: int) -> np.ndarray:
    """Exact draws given x >= 0, (n,)."""
    random = np.random.default_rng(seed)
    found = np.empty(0)
    while len(found) < n:
        which = random.integers(2, size=2 * n)
        x = random.normal(MEANS[which], DEVIATIONS[which])
        found = np.concatenate([found, x[x >= 0]])
    return found[:n]


def model() -> Exact:
    """The mixture as a surrogate: one variable, one step."""
    random = np.random.default_rng(0)
    which = random.integers(2, size=20_000)
    made = random.normal(MEANS[which], DEVIATIONS[which])[:, None]
    data = xr.Dataset({"x": (("sample", "time"), made)}, coords={"time": np.zeros(1)})
    codec = TimeSeriesCodec.fit(data)
    means = (torch.from_numpy(MEANS) - codec.mean.flatten()) / codec.scale.flatten()
    variances = (torch.from_numpy(DEVIATIONS) / codec.scale.flatten()) ** 2
    law = MixtureDenoiser(torch.ones(2).double() / 2, means[:, None], variances[:, None, None])
    x = codec.encode(data, slice(None), stream(0), torch.float64)
    return Exact(codec, law, Covariance.of(x), {})  # type: ignore[arg-type]


def distance(x: np.ndarray) -> np.ndarray:
    """D of samples (n,) from the exact law given x >= 0: (1,)."""
    other = draws(len(x), 777_000)
    low, high = min(x.min(), other.min()), max(x.max(), other.max())
    edges = np.linspace(low, high, math.isqrt(len(x)) + 1)
    law = np.diff(np.maximum(cdf(edges) - (1 - ABOVE), 0)) / ABOVE
    return from_law(np.histogram(x, edges)[0] / len(x), law).reshape(1)


def experiment(bench: Bench) -> Found:
    """Ours, the paper's, universal forward and rejection."""
    surrogate = model()
    soft = Scenario(surrogate, GOAL, hardness=K)
    soft.semantics = LogProbabilistic(K)
    floors = {
        n: np.mean([distance(draws(n, 777_001 + k)) for k in range(FLOORS)], 0)
        for n in {bench.samples, bench.slow}
    }

    def row(method: str, x: np.ndarray, cost: Cost, log_p: float | None = None) -> Row:
        met = float((x >= 0).mean())
        return bench.done(
            Row(method, cost, {"x": distance(x)}, {"x": floors[cost.samples]}, met, None, log_p)
        )

    def asked(method: str, name: str) -> Row:
        with measured(Cost(bench.samples, 0)) as cost:
            made = sample(surrogate, bench.samples, GOAL, seed=bench.seed, method=method)
        found = made.diagnostics
        cost.evaluations = found.evaluations / bench.samples
        return row(name, made.dataset.x.values[:, 0], cost, found.log_probability)

    def led(name: str, evaluations: int, run: Callable[[], Tensor]) -> Row:
        with measured(Cost(bench.slow, evaluations)) as cost:
            x = run()
        values = surrogate.codec.finish(soft.shaped(x))["x"][:, 0]
        return row(name, np.asarray(values), cost)

    options = {"steps": STEPS, "correctors": CORRECTORS}
    evaluations = STEPS * (1 + CORRECTORS) + FINAL
    own = asked("twisted", "ours: twisted")
    rows = [
        own,
        led(
            "paper + Langevin",
            evaluations,
            lambda: guided(soft, bench.slow, stream(bench.seed, 50), final=FINAL, **options),
        ),
        led(
            "paper + forward + Langevin",
            evaluations,
            lambda: universal(soft, bench.slow, stream(bench.seed, 51), final=FINAL, **options),
        ),
        asked("rejection", "rejection"),
    ]
    columns = head("x")
    body = [cells(each, own) for each in rows]
    body.append(published("published", columns, x="as rejection, by eye"))
    off = abs((own.log_p or math.nan) - math.log(ABOVE))
    targets = [
        Target("D / floor", float(own.distances["x"][0] / own.floors["x"][0]), 1.2, True),
        Target("log P off by", off, 0.1, True, ""),
        Target("met", 100 * own.met, 100, unit=" %"),
    ]
    notes = [
        "The score is exact. D: one histogram, against exact probabilities; floor: as many exact "
        f"draws, mean of {FLOORS} sets. Exact log P: {math.log(ABOVE):.4f}.",
        f"The paper's settings: k = {K:g}, g by the signal-to-noise ratio, {FINAL} Langevin steps; "
        f"{STEPS:,} Euler-Maruyama steps with a corrector step each, on the sub-VP SDE.",
    ]
    return Found(targets, {"toy, x >= 0": (columns, body)}, notes)
