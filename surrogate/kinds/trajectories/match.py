"""Whether a dataset has the variables and the grid of a codec."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.kinds.trajectories.conservation import Relation
from surrogate.kinds.trajectories.cycles import completed
from surrogate.kinds.trajectories.layout import same_grid
from surrogate.kinds.trajectories.variables import Variable, survey

REGRID = "interpolate, or train a model on this grid"


def check_match(
    variables: Sequence[Variable],
    relations: Sequence[Relation],
    times: tuple[float, ...],
    data: xr.Dataset,
) -> None:
    """ModelError unless the dataset has these variables and this grid."""
    data = completed(data, [v.cycle for v in variables if v.cycle is not None])
    signals, found, _ = survey(data)
    own = {v.name: v for v in variables if not v.total}
    found = tuple(v for v in found if v.cycle is None or v.name in own)
    others = {v.name: v for v in found}
    _same_names(list(own), list(others))
    totals = {relation.total for relation in relations}
    for name, variable in own.items():
        _same_type(variable, others[name], total=name in totals)
    same_grid(times, signals.times)


def _same_names(own: list[str], others: list[str]) -> None:
    missing = [name for name in own if name not in others]
    extra = [name for name in others if name not in own]
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] if missing else []
        parts += [f"has {', '.join(extra)} besides"] if extra else []
        raise ModelError(
            f"the dataset {' and '.join(parts)}",
            value=[*missing, *extra],
            remedy=f"give the variables of the model: {', '.join(own)}",
        )


def _same_type(own: Variable, other: Variable, total: bool) -> None:
    """`total`: a real static is read as a count because it is a total of counts."""
    alike = other.kind == own.kind or (total and other.kind == "real")
    if not alike or other.static != own.static:
        raise ModelError(
            f"{own.name} is {_type_of(other)} in the data, {_type_of(own)} in the model",
            value=other.kind,
            remedy=Action("make it whole: .astype(int)", "store it as whole numbers")
            if own.kind == "integer"
            else (),
        )


def _type_of(variable: Variable) -> str:
    return f"{variable.kind} {'for each sample' if variable.static else 'for each step'}"
