"""torch, loaded when it is first used: the one place that defers its import.

Formula text, layouts, resolution of names and proofs of contradiction run without torch, whose
import takes longer than all of them. Modules that need it only inside functions write

    from constraints.lazy import torch
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
else:

    class _Deferred:
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("torch"), name)

    torch = _Deferred()
