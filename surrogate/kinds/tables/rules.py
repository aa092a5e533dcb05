"""Rules of tables: declared ones, and orders and identities that columns of numbers show."""

from __future__ import annotations

import numpy as np
import xarray as xr

from surrogate.io.rules import attribute
from surrogate.kinds.found_rules import FoundRule, Quantity, Search
from surrogate.kinds.rule_options import RuleOptions, StatedRules
from surrogate.kinds.rules import stated_rules
from surrogate.kinds.tables.codec import kinds
from surrogate.kinds.tables.column_values import as_numbers
from surrogate.kinds.tables.sums import NUMBERS


def with_rules(data: xr.Dataset, options: RuleOptions) -> tuple[xr.Dataset, StatedRules]:
    """The dataset with its rules in an attribute, and these rules."""
    if options.search:
        search = _search(data)
        rules = stated_rules(data, options, search.find(), search.find_unproved())
    else:
        rules = stated_rules(data, options, [])
    made = data.copy(deep=False)
    made.attrs = {k: v for k, v in data.attrs.items() if k not in attribute({"": ""})}
    made.attrs |= attribute(rules.texts)
    return made, rules


def found_rules(data: xr.Dataset) -> list[FoundRule]:
    """Rules between columns of numbers that are never missing."""
    return _search(data).find()


def _search(data: xr.Dataset) -> Search:
    chosen: dict[str, Quantity] = {}
    values: dict[str, np.ndarray] = {}
    for name, kind in kinds(data).items():
        if kind not in NUMBERS or not name.isprintable() or '"' in name or not name:
            continue
        column = as_numbers(name, kind, np.asarray(data[name].values))
        if np.isfinite(column).all():
            stored = data[name].dtype
            precise = stored if stored.kind == "f" else np.dtype(np.float64)
            chosen[name] = Quantity(name, kind == "integer", float(np.finfo(precise).eps))
            values[name] = column[:, None]
    return Search(list(chosen.values()), values, lambda: [values], series=False)
