"""How far samples are from reference data, beside how far such data are from themselves.

For each variable and step, D = ½ Σ|p - q| between histograms; for whole samples the errors of
correlations and autocorrelations, the energy distance and a classifier's accuracy. Each comes with
its noise floor (see `distances`): a ratio of 1 is as close as these numbers of samples can tell.
What tables are compared by is in `quality`, and images in `pictured`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import FormulaError, Program, compiled
from constraints.explanation import chunk_size
from constraints.physics.rules import from_network
from surrogate.errors import ModelError, whole_number
from surrogate.evaluation import distances
from surrogate.evaluation.distances import Array
from surrogate.evaluation.result import HEADER as HEADER
from surrogate.evaluation.result import Evaluation as Evaluation
from surrogate.evaluation.result import Histograms as Histograms
from surrogate.evaluation.result import Measured as Measured
from surrogate.evaluation.result import histograms, measured
from surrogate.kinds.images.compare import compare_images
from surrogate.kinds.images.values import is_images
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.signals import Data, described, samples_of
from surrogate.kinds.tables.align import is_table
from surrogate.kinds.tables.compare import compare
from surrogate.kinds.trajectories.align import Side, alike, columns, values

CORRELATED = 256  # columns whose correlations are compared; of more, as many evenly spaced ones
CLASSIFIED = 128  # columns that the classifier sees
MOST = 50_000  # samples of each side that are compared as a whole; histograms see all
EVERY = "all variables"
TABLE = "a table"


def evaluate(
    data: Data,
    against: Data,
    seed: int = 0,
    *,
    target: str | None = None,
    train: Data | None = None,
) -> Evaluation:
    """Compare samples with reference data of the same kind: trajectories, tables or images.

    `log_weight` of either side is honoured: histograms and moments are weighted, and the floor is
    that of as many samples as they are effectively worth. Of tables, `target` names a column to be
    predicted on real rows by what learns from samples, and `train` are the rows that the model
    learned from, if they are not those of the reference: whether samples repeat them is told.
    """
    seed = whole_number(seed, "seed")
    kind = _kind(data, against, train)
    if kind == TABLE:
        return compare(data, against, seed, target, train)
    if target is not None or train is not None:
        what = "target" if train is None else "train"
        raise ModelError(f"{what} is for tables, and these are {kind}; leave it out")
    if is_images(data) and is_images(against):
        return compare_images(data, against, seed)
    x = Side(cast(xr.Dataset, data), "the samples")
    y = Side(cast(xr.Dataset, against), "the reference")
    alike(x, y)
    names = y.order()
    parts = []
    for name in names:
        left, right, whole = values(x, y, name)
        measure = distances.Histogram.of(left, right, whole=whole)
        parts.append(_compared(measure, left, right, x, y, seed))
    found, floors = (np.concatenate(each, -1) for each in zip(*parts, strict=True))
    v, w = x.some(MOST, seed), y.some(MOST, seed)
    left, right = distances.standardise(*columns(v, w))
    some, few = _spaced(left.shape[1], CORRELATED), _spaced(left.shape[1], CLASSIFIED)
    energy, null = distances.energy_distance(left, right, v.weights, w.weights, seed=seed)
    consistent, rules = _consistent(x, described(data) or described(against))
    return Evaluation(
        samples=samples_of(data),
        effective=distances.effective(x.weights),
        reference=samples_of(against),
        times=y.layout.times,
        variables=tuple(histograms(k, *part) for k, part in zip(names, parts, strict=True)),
        overall=histograms(EVERY, found, floors),
        correlation=_correlation(left[:, some], right[:, some], v, w, seed),
        autocorrelation=_autocorrelation(v, w, seed),
        energy=measured(energy, null),
        classifier=distances.classifier_test(
            left[:, few], right[:, few], v.weights, w.weights, seed=seed
        ),
        consistent=consistent,
        rules=rules,
        satisfied=x.share(x.satisfied()),
        unjudged=_unjudged(against, names),
    )


def _kind(data: Data, against: Data, train: Data | None) -> str:
    """What all are: a table, images or trajectories; data of two kinds are refused."""
    sides = {"the samples": data, "the reference": against}
    sides |= {} if train is None else {"the training rows": train}
    for who, each in sides.items():
        if not isinstance(each, (xr.Dataset, pd.DataFrame)):
            raise ModelError(f"{who} must be an xarray.Dataset or a pandas.DataFrame")
    kinds = {who: kind_of(each) for who, each in sides.items()}
    if len(set(kinds.values())) > 1:
        told = ", ".join(f"{who} are {kind}" for who, kind in kinds.items())
        raise ModelError(f"{told}: give data of one kind")
    return kinds["the samples"]


def kind_of(data: Data) -> str:
    return TABLE if is_table(data) else "images" if is_images(data) else "trajectories"


def _unjudged(data: Data, names: Iterable[str]) -> tuple[str, ...]:
    """Variables over (sample, time) that are none of the signals."""
    if not isinstance(data, xr.Dataset):
        return ()
    known = {*names, *LABELS}
    return tuple(
        str(name)
        for name, array in data.data_vars.items()
        if name not in known and set(array.dims) == {"sample", "time"}
    )


# --- measures -------------------------------------------------------------------------------------


def _spaced(count: int, most: int) -> np.ndarray:
    """Some of `count` columns, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _compared(
    measure: distances.Measure, left: Array, right: Array, x: Side, y: Side, seed: int
) -> tuple[Array, Array]:
    """The distances (...) and those among splits of the reference, (splits, ...)."""
    found = measure(left, right, x.weights, y.weights)
    n = distances.effective(x.weights)
    return found, distances.floor(measure, right, y.weights, n, seed=seed)


def _correlation(left: Array, right: Array, x: Side, y: Side, seed: int) -> Measured | None:
    if left.shape[1] < 2:
        return None
    found, floors = _compared(distances.Correlation(), left, right, x, y, seed)
    return measured(float(found), floors)


def _autocorrelation(x: Side, y: Side, seed: int) -> Measured | None:
    """The mean over the variables."""
    names = [name for name in y.order() if y.signal(name).kind == "series"]
    if not names or len(y.layout.times) < 3:
        return None
    measure = distances.Autocorrelation.of(len(y.layout.times))
    left, right = (
        np.concatenate([measure.products(side.values(name)[:, None]) for name in names], 1)
        for side in (x, y)
    )
    found, floors = _compared(measure, left, right, x, y, seed)
    return measured(found.mean(), floors.mean(1))


def _consistent(x: Side, about: dict[str, Any]) -> tuple[float | None, int]:
    """The share of samples that obey what their network implies, and how many rules that is."""
    programs: list[Program] = []
    for rule in from_network(about).values() if about else ():
        try:
            programs.append(compiled(rule, x.layout))
        except FormulaError:  # about a species that the data leave out
            continue
    if not programs:
        return None, 0
    verdicts: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(x.weights), size := chunk_size(programs)):
            batch = {name: value[start : start + size] for name, value in x.tensors.items()}
            verdicts.append(torch.stack([each.verdict(batch) for each in programs]).all(0))
    return x.share(torch.cat(verdicts).double().numpy()), len(programs)
