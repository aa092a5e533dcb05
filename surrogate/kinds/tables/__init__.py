"""Modules of the kind `tables`, loaded when first used (see `surrogate.lazy`)."""

from typing import TYPE_CHECKING

from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.kinds.tables import codec as codec
    from surrogate.kinds.tables import layout as layout

__getattr__ = submodules(__name__)
