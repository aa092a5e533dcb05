"""Rules of trajectories besides those of their network: declared, found, and as relations.

An identity such as `count = casual + registered` at every step, whether declared or found, is a
conservation law with one total for all trajectories: the codec restores its dependent variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
import xarray as xr

from constraints import Layout
from constraints.physics.linear_laws import equalities, linear_laws
from surrogate.io.attributes import OVERLAP, simulation
from surrogate.io.rules import attribute, parsed, stated_in
from surrogate.kinds.found_rules import FoundRule, Quantity, Search, thinned
from surrogate.kinds.rule_options import RuleOptions, StatedRules
from surrogate.kinds.rules import stated_rules
from surrogate.kinds.signals import slices
from surrogate.kinds.trajectories.statistics import SUM_TOLERANCE
from surrogate.kinds.trajectories.variables import NUMBER_KINDS, Variable, read, survey

CHUNK_VALUES = 1_000_000  # of one variable that are looked at together


def with_rules(data: xr.Dataset, options: RuleOptions) -> tuple[xr.Dataset, StatedRules]:
    """The dataset with its rules in an attribute, and these rules."""
    if options.search:
        search = _search(data)
        rules = stated_rules(data, options, search.find(), search.find_unproved())
    else:
        rules = stated_rules(data, options, [])
    free = {name: value for name, value in data.attrs.items() if name not in attribute({"": ""})}
    made = data.copy(deep=False)
    made.attrs = {**free, **attribute(rules.texts)}
    return made, rules


def found_rules(data: xr.Dataset) -> list[FoundRule]:
    """Rules that series show; those of a described network are proved, not searched for."""
    return _search(data).find()


def _search(data: xr.Dataset) -> Search:
    network = simulation(data.attrs).get("network") or {}
    species = network.get("species")
    proved = set(species) if isinstance(species, Mapping) else set()
    _, variables, _ = survey(data)
    chosen = [v for v in variables if v.kind in NUMBER_KINDS and not v.static]
    chosen = [v for v in chosen if v.name not in proved]
    if not chosen:
        return Search((), {}, tuple, series=True)
    samples, steps = data.sizes["sample"], data.sizes["time"]
    overlap = data.attrs.get(OVERLAP, 0)
    rows = thinned(samples, steps, int(overlap))

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for some in slices(samples, max(1, CHUNK_VALUES // steps)):
            yield {v.name: read(data, v, some).numpy() for v in chosen}

    evidence = {v.name: read(data, v, rows).numpy() for v in chosen}
    return Search([_quantity(v) for v in chosen], evidence, batches, series=True)


def _quantity(variable: Variable) -> Quantity:
    kind = np.dtype(variable.dtype)
    precise = kind if kind.kind == "f" else np.dtype(np.float64)
    return Quantity(variable.name, variable.kind == "integer", float(np.finfo(precise).eps))


def laws_in_rules(
    data: xr.Dataset, variables: Sequence[Variable], layout: Layout, rows: Sequence[slice]
) -> list[dict[str, float]]:
    """Conserved sums, name -> weight, that stated identities between series are.

    One that real data keep only nearly is left to be a rule.
    """
    series = {v.name: v for v in variables if v.kind in NUMBER_KINDS and not v.static}
    found = []
    for rule in parsed(stated_in(data.attrs)).values():
        for law in equalities(linear_laws(rule, layout) or ()):
            if not law.before and not law.conditional and set(law.now) <= set(series):
                found.append(_in_order(law.now, list(series)))
    return [law for law in found if _exact(data, series, law, rows)]


def _in_order(weights: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """The sum of the others last, for the last one of a law is restored from the others."""
    positive = [name for name in weights if weights[name] > 0]
    few = min(positive, [name for name in weights if weights[name] < 0], key=len)
    alone = few if len(few) == 1 and len(weights) > 2 else []
    order = sorted(weights, key=lambda name: (name in alone, names.index(name)))
    return {name: weights[name] for name in order}


def _exact(
    data: xr.Dataset,
    series: Mapping[str, Variable],
    law: Mapping[str, float],
    rows: Sequence[slice],
) -> bool:
    """Whether a sum is the same everywhere, up to the rounding of real numbers."""
    whole = all(series[name].kind == "integer" for name in law)
    low, high, size = torch.inf, -torch.inf, 0.0
    for some in rows:
        parts = [weight * read(data, series[name], some) for name, weight in law.items()]
        sums = torch.stack(parts).sum(0)
        low, high = min(low, float(sums.min())), max(high, float(sums.max()))
        size = max(size, *(float(part.abs().max()) for part in parts))
    return high - low <= (0.0 if whole else SUM_TOLERANCE * size)
