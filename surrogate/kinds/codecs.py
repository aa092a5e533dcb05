"""Codecs: labelled data <-> normalised tensors, with a differentiable way back."""

from surrogate.kinds.codec import Codec as Codec
from surrogate.kinds.images.codec import ImageCodec as ImageCodec
from surrogate.kinds.tables.codec import TableCodec as TableCodec
from surrogate.kinds.trajectories.codec import TimeSeriesCodec as TimeSeriesCodec

KINDS: dict[str, type[TimeSeriesCodec] | type[TableCodec] | type[ImageCodec]] = {
    each.kind: each for each in (TimeSeriesCodec, TableCodec, ImageCodec)
}

__all__ = ["KINDS", "Codec", "ImageCodec", "TableCodec", "TimeSeriesCodec"]
