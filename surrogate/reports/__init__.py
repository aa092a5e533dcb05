"""Reports: one self-contained HTML page about samples; modules are loaded when first used."""

from surrogate.lazy import submodules

__getattr__ = submodules(__name__)
