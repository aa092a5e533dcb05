"""Compiled formulas on batches of data; `Evaluator` and `Boolean` load torch when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constraints.evaluate.evaluator import Evaluator as Evaluator
    from constraints.evaluate.semantics import Boolean as Boolean

_HOMES = {"Boolean": "semantics", "Evaluator": "evaluator"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'constraints.evaluate' has no attribute {name!r}")
    return getattr(import_module(f"constraints.evaluate.{_HOMES[name]}"), name)
