"""Expectations of formulas under Gaussians; names here load torch when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constraints.gaussian.linear import affine_rows as affine_rows

_HOMES = {"affine_rows": "linear"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'constraints.gaussian' has no attribute {name!r}")
    return getattr(import_module(f"constraints.gaussian.{_HOMES[name]}"), name)
