"""Modules of the kind `images`, loaded when first used (see `surrogate.lazy`)."""

from surrogate.lazy import submodules

__getattr__ = submodules(__name__)
