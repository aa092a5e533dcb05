"""Lazy submodules: the one place where imports wait until they are needed.

torch takes seconds to load and matplotlib one, which `surrogate --help` and `surrogate plot` need
not pay. A package whose `__init__` says

    __getattr__ = submodules(__name__)

gives `package.module` when it is first used. Imports at the top of modules stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def submodules(package: str) -> Callable[[str], Any]:
    """A module-level `__getattr__` that imports the submodules of a package on first use."""

    def load(name: str) -> Any:
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return load
