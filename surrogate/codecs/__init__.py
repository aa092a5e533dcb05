"""Codecs: labelled data <-> normalised tensors, with a differentiable way back."""

from surrogate.codecs.timeseries import TimeSeriesCodec as TimeSeriesCodec

__all__ = ["TimeSeriesCodec"]
