"""Kinds of data. Those of the package are registered here; `register` adds others.

Modules that load torch are loaded when first used (see `surrogate.lazy`).
"""

from typing import TYPE_CHECKING

from surrogate.kinds.images.kind import Images as Images
from surrogate.kinds.kind import Kind as Kind
from surrogate.kinds.kind import kind_named as kind_named
from surrogate.kinds.kind import kind_of as kind_of
from surrogate.kinds.kind import kinds as kinds
from surrogate.kinds.kind import register as register
from surrogate.kinds.kind import unregister as unregister
from surrogate.kinds.tables.kind import Tables as Tables
from surrogate.kinds.trajectories.kind import Trajectories as Trajectories
from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.kinds import scenario_share as scenario_share

for _kind in (Trajectories(), Tables(), Images()):
    register(_kind)

__getattr__ = submodules(__name__)
