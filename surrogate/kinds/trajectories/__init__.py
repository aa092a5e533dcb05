"""Modules of the kind `trajectories`, loaded when first used (see `surrogate.lazy`)."""

from typing import TYPE_CHECKING

from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.kinds.trajectories import chosen_codec as chosen_codec
    from surrogate.kinds.trajectories import codec as codec
    from surrogate.kinds.trajectories import config_layout as config_layout
    from surrogate.kinds.trajectories import decoder as decoder
    from surrogate.kinds.trajectories import layout as layout

__getattr__ = submodules(__name__)
