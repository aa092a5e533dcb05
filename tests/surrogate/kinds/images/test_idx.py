"""Images and labels in IDX files, as MNIST has them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from surrogate.errors import ModelError
from surrogate.kinds.images.files import summary, to_array
from tests.surrogate.kinds.images.image_files import idx, pixels, read


@pytest.mark.parametrize("packed", [True, False])
def test_labels_beside_images_are_read(tmp_path: Path, packed: bool) -> None:
    ending, write = (".gz", gzip.compress) if packed else ("", bytes)
    given = pixels(6, 8, 7)
    place = tmp_path / f"train-images-idx3-ubyte{ending}"
    place.write_bytes(write(idx(given)))
    data, _ = read(place)
    np.testing.assert_array_equal(to_array(data), given)
    assert "label" not in data
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(idx(np.arange(6, dtype=np.uint8))))
    assert summary(read(place)[0]) == "6 grey images of 7x8, 0..255, labels 0-5 not learned"
    with pytest.raises(ModelError, match="holds labels, not images"):
        read(labels)
    with pytest.raises(ModelError, match="holds images, not labels"):
        read(place, place)
    labels.write_bytes(gzip.compress(idx(np.arange(5, dtype=np.uint8))))
    data, said = read(place)
    assert "label" not in data
    assert "5 labels for 6 images" in said
    with pytest.raises(ModelError, match="one for each"):
        read(place, labels)


def test_damaged_idx_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "a-images-idx3-ubyte"
    whole = idx(pixels(6, 8, 8))
    for content, says in (
        (b"", "begins with nothing"),
        (b"hello there", "begins with 68 65 6c 6c"),
        (whole[:10], "cut short in its header"),
        (whole[:-3], "cut short: it says 384 bytes of values and has 381"),
        (whole + b"x", "more than the 384 bytes"),
        (whole[:2] + b"\x0d" + whole[3:], "type 0xd"),
        (gzip.compress(whole)[:-20], "cannot read"),
        (b"\x1f\x8b" + whole, "cannot read"),
    ):
        place.write_bytes(content)
        with pytest.raises(ModelError, match=says) as problem:
            read(place)
        assert "a-images-idx3-ubyte" in str(problem.value)
