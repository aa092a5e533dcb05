"""Codecs: labelled data <-> normalised tensors, with a differentiable way back."""

from surrogate.codecs.codec import Codec as Codec
from surrogate.codecs.images import ImageCodec as ImageCodec
from surrogate.codecs.tabular import TableCodec as TableCodec
from surrogate.codecs.timeseries import TimeSeriesCodec as TimeSeriesCodec

KINDS: dict[str, type[TimeSeriesCodec] | type[TableCodec] | type[ImageCodec]] = {
    each.kind: each for each in (TimeSeriesCodec, TableCodec, ImageCodec)
}

__all__ = ["KINDS", "Codec", "ImageCodec", "TableCodec", "TimeSeriesCodec"]
