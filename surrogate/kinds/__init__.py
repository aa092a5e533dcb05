"""Kinds of data. Those of the package are registered here; `register` adds others."""

from surrogate.kinds.images.kind import Images as Images
from surrogate.kinds.kind import Kind as Kind
from surrogate.kinds.kind import kind_named as kind_named
from surrogate.kinds.kind import kind_of as kind_of
from surrogate.kinds.kind import kinds as kinds
from surrogate.kinds.kind import register as register
from surrogate.kinds.kind import unregister as unregister
from surrogate.kinds.tables.kind import Tables as Tables
from surrogate.kinds.trajectories.kind import Trajectories as Trajectories

for _kind in (Trajectories(), Tables(), Images()):
    register(_kind)
