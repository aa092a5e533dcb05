"""Kinds of data: trajectories, tables, images, and what a user registers.

A `Kind` answers every question whose answer depends on what data are. The rest of the package asks
the object and never looks at the data itself, so that a new kind is one class and one call of
`register`. Inside the package samples are datasets over the dimension `sample`; `from_python` and
`to_python` lead from and to what users hold (a DataFrame for tables, an array for images).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pandas as pd
import xarray as xr

from surrogate.errors import ModelError

Data = xr.Dataset | pd.DataFrame


class Kind(ABC):
    """What data of one kind are, and how everything is done with them."""

    name: ClassVar[str]  # in sentences and in the registry: "trajectories"
    stored: ClassVar[str]  # in the description of a model folder
    singular: ClassVar[str]  # of one sample: "trajectory"
    dimensions: ClassVar[str]  # of its data, in sentences: "(sample, time)"

    # --- recognising ------------------------------------------------------------------------------

    @abstractmethod
    def holds(self, data: object) -> bool:
        """Whether data in memory are of this kind."""

    @abstractmethod
    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        """What a user holds as a dataset over (sample, ...)."""

    def to_python(self, data: xr.Dataset) -> Any:
        """Samples as users hold them."""
        return data

    def count(self, samples: int) -> str:
        """So many of them, in words: "1 trajectory", "5,000 trajectories"."""
        return f"{samples:,} {self.singular if samples == 1 else self.name}"

    # --- learning and sampling --------------------------------------------------------------------

    default_samples: ClassVar[int] = 10_000  # that `surrogate sample` draws
    preferred_method: ClassVar[str] = "auto"  # of guidance, where the user chooses none
    pilot_samples: ClassVar[int] = 2_000  # unconditional ones that estimate a probability
    bridges: ClassVar[bool] = False  # whether `bridge("S0=95,S25=30")` can be asked of samples

    # --- comparing --------------------------------------------------------------------------------

    # --- plotting and reporting -------------------------------------------------------------------

    # --- files ------------------------------------------------------------------------------------


_KINDS: list[Kind] = []


def register(kind: Kind) -> None:
    """Make a kind known; the one registered last is asked first whether it holds data."""
    _KINDS.insert(0, kind)


def unregister(kind: Kind) -> None:
    """Forget a kind."""
    _KINDS.remove(kind)


def kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which they are asked."""
    return tuple(_KINDS)


def kind_of(data: object) -> Kind:
    """The kind that holds these data; ModelError if none does."""
    for kind in _KINDS:
        if kind.holds(data):
            return kind
    known = ", ".join(f"{kind.name} {kind.dimensions}" for kind in reversed(_KINDS))
    if not isinstance(data, xr.Dataset):
        raise ModelError(
            f"no kind of data is a {type(data).__name__}",
            value=data,
            allowed=[kind.name for kind in _KINDS],
        )
    found = ", ".join(str(name) for name in data.sizes)
    raise ModelError(
        f"the dimensions of kinds of data are: {known}; these have ({found})",
        value=data,
        remedy="rename them",
    )


def kind_named(stored: str) -> Kind:
    """The kind that model folders call by this name."""
    for kind in _KINDS:
        if kind.stored == stored:
            return kind
    raise ModelError(
        f"unknown kind of model {stored!r}",
        value=stored,
        allowed=[kind.stored for kind in _KINDS],
    )
