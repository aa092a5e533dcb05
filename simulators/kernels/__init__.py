"""Simulation algorithms, one a file: importing this package registers every module in it.

A new algorithm is a new file here that calls `register`. What the algorithms share, from the
network's rates to compiled code, is in `codegen`.
"""

from importlib import import_module
from pkgutil import iter_modules

from simulators.kernels.codegen.code import Code as Code
from simulators.kernels.codegen.code import Job as Job
from simulators.kernels.registry import Kernel as Kernel
from simulators.kernels.registry import choose as choose
from simulators.kernels.registry import facts as facts
from simulators.kernels.registry import kernels as kernels
from simulators.kernels.registry import methods as methods
from simulators.kernels.registry import register as register
from simulators.kernels.registry import unregister as unregister

for _module in iter_modules(__path__):
    if not _module.ispkg:
        import_module(f"{__name__}.{_module.name}")
