"""Pixels, IDX and PNG files for the tests of images."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from PIL import Image

from surrogate.kinds.images.files import read_images

RANDOM = np.random.default_rng(0)


def pixels(*shape: int) -> np.ndarray:
    """Random bytes."""
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def idx(values: np.ndarray) -> bytes:
    """The content of an IDX file."""
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def png(place: Path, values: np.ndarray) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(place)


def read(*words: Any, **settings: Any) -> tuple[xr.Dataset, str]:
    """What was read, and the messages about it."""
    said: list[str] = []
    return read_images(*words, say=said.append, **settings), "; ".join(said)
