"""Modules of the kind `images`, loaded when first used (see `surrogate.lazy`)."""

from typing import TYPE_CHECKING

from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.kinds.images import classifier as classifier
    from surrogate.kinds.images import codec as codec
    from surrogate.kinds.images import layout as layout

__getattr__ = submodules(__name__)
