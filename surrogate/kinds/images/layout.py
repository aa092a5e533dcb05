"""The layout of images for formulas: the signal `image` (N, C, H, W), 0 to 1, and columns."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import DataError, Layout, Signal
from surrogate.kinds import signals
from surrogate.kinds.images.values import IMAGE, channels_of, size_of
from surrogate.kinds.kind import Data


def layout(data: xr.Dataset, instances: int | None = None) -> Layout:
    """The image, and columns such as its label."""

    def signal(name: str, bounds: tuple[float, float]) -> Signal | None:
        if name == IMAGE:
            width, height = size_of(data)
            shape = (channels_of(data), height, width)
            return Signal(name, "image", shape, low=0.0, high=1.0, span=1.0)
        dims = tuple(dim for dim in data[name].dims if dim != "instance")
        return signals.column(data, name, bounds) if dims == ("sample",) else None

    found = signals.signals_in(data, signal)
    parameters = signals.parameters_in(data, [each.name for each in found])
    return Layout(found, parameters=parameters, instances=signals.instances_in(data, instances))


def tensor(data: Data, signal: Signal, rows: slice) -> Tensor:
    """The values of a signal; images are (B, [instances,] C, H, W), from 0 to 1."""
    if signal.kind != "image" or not isinstance(data, xr.Dataset):
        return signals.tensor(data, signal, rows)
    array = data[signal.name].isel(sample=rows)
    full = array if "channel" in array.dims else array.expand_dims("channel")
    order = [dim for dim in ("sample", "instance", "channel", "y", "x") if dim in full.dims]
    values = np.array(signals.read(full.transpose(*order)), np.float64, order="C")
    if array.dtype.kind in "iu":
        values /= 255
    if not np.isfinite(values).all():
        raise DataError(
            "image has pixels that are missing (NaN) or infinite", remedy="drop or repair them"
        )
    return torch.from_numpy(values)


def tensors(
    data: Data, layout: Layout, samples: slice, names: set[str] | None
) -> dict[str, Tensor]:
    """The signals (of `names` only) of some samples; DataError where a value is missing."""
    return signals.tensors(data, layout, samples, names, tensor)
