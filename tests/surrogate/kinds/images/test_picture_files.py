"""Folders of PNG and JPEG files: labels, sizes, damaged files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surrogate.errors import ModelError
from surrogate.kinds.images.files import (
    channels_of,
    from_array,
    is_picture_folder,
    size_of,
    to_array,
)
from surrogate.kinds.images.values import resized
from tests.surrogate.kinds.images.image_files import pixels, png, read


def test_a_folder_of_pictures_is_read(tmp_path: Path) -> None:
    given = pixels(3, 8, 6)
    for k, each in enumerate(given):
        png(tmp_path / f"{k}.png", each)
    (tmp_path / "._0.png").write_text("of a Mac")
    (tmp_path / "notes.txt").write_text("hello")
    data, said = read(tmp_path)
    np.testing.assert_array_equal(to_array(data), given)
    assert said == ""
    assert is_picture_folder(tmp_path)
    png(tmp_path / "3.png", pixels(8, 6, 3))
    data, said = read(tmp_path)
    assert channels_of(data) == 3
    assert "grey pictures among colour" in said
    np.testing.assert_array_equal(to_array(data)[0], np.repeat(given[0][..., None], 3, -1))
    data, said = read(tmp_path, grey=True)
    assert channels_of(data) == 1
    assert said == ""


def test_subfolders_are_labels(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/2.jpg", "dog/1.PNG"):
        png(tmp_path / name, pixels(8, 8))
    data, _ = read(tmp_path)
    assert data.label.values.tolist() == ["cat", "cat", "dog"]
    png(tmp_path / "top.png", pixels(8, 8))
    data, said = read(tmp_path)
    assert "label" not in data
    assert "folders are no labels" in said


def test_different_sizes_are_refused_or_resized(tmp_path: Path) -> None:
    for name, shape in (("a", (8, 8)), ("b", (8, 8)), ("c", (10, 14))):
        png(tmp_path / f"{name}.png", pixels(*shape))
    with pytest.raises(ModelError, match=r"c\.png is 14x10 where 2 of 3 are 8x8.*\(size=8\)"):
        read(tmp_path)
    data, said = read(tmp_path, size=6)
    assert size_of(data) == (6, 6)
    assert "scaled and cropped around the middle to 6x6" in said
    assert size_of(read(tmp_path, size=(8, 5))[0]) == (8, 5)
    with pytest.raises(ModelError, match="4 to 512"):
        read(tmp_path, size=3)


def test_resizing_crops_around_the_centre(tmp_path: Path) -> None:
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 200
    png(tmp_path / "a.png", wide)
    np.testing.assert_array_equal(to_array(read(tmp_path, size=8)[0])[0], 200)
    real = from_array(np.stack([wide, wide]).astype(np.float32) / 255)
    assert resized(real, (4, 4)).image.dtype == np.float32
    np.testing.assert_allclose(resized(real, (8, 8)).image, 200 / 255, rtol=1e-6)


def test_damaged_pictures_are_named_or_skipped(tmp_path: Path) -> None:
    for k in range(3):
        png(tmp_path / f"{k}.png", pixels(8, 8))
    whole = (tmp_path / "1.png").read_bytes()
    (tmp_path / "1.png").write_bytes(whole[:60])
    (tmp_path / "2.png").write_text("text")
    with pytest.raises(ModelError, match=r"[12]\.png.*damaged.*\(skip_damaged=True\)"):
        read(tmp_path)
    data, said = read(tmp_path, skip_damaged=True)
    assert data.sizes["sample"] == 1
    assert said == "skipped 2 damaged of 3 pictures: 1.png, 2.png"
    (tmp_path / "0.png").unlink()
    with pytest.raises(ModelError, match=r"every picture in .* is damaged"):
        read(tmp_path, skip_damaged=True)


def test_folders_without_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there are no pictures"):
        read(tmp_path)
    (tmp_path / "a.bmp").write_bytes(b"BM")
    with pytest.raises(ModelError, match=r"it has files \.bmp"):
        read(tmp_path)
    with pytest.raises(ModelError, match="no file or folder"):
        read(tmp_path / "absent")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "weights.safetensors").write_text("")
    with pytest.raises(ModelError, match="folder of a model"):
        read(tmp_path)


def test_palettes_16_bits_transparency_and_black_and_white_are_converted(tmp_path: Path) -> None:
    """Palettes, 16 bits, transparency and black and white."""
    grey = pixels(8, 8)
    Image.fromarray(grey).convert("P").save(tmp_path / "a.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "b.png")
    Image.fromarray(grey > 127).save(tmp_path / "c.png")
    clear = np.zeros((8, 8, 4), np.uint8)
    Image.fromarray(clear).save(tmp_path / "d.png")
    made = to_array(read(tmp_path, grey=True)[0])
    np.testing.assert_array_equal(made[0], grey)
    np.testing.assert_array_equal(made[1], grey)
    np.testing.assert_array_equal(made[2], 255 * (grey > 127))
    np.testing.assert_array_equal(made[3], 255)


def test_huge_pictures_are_refused_by_their_header(tmp_path: Path) -> None:
    def chunk(name: bytes, content: bytes) -> bytes:
        sum_ = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", sum_)

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    content = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    )
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(ModelError, match=r"a\.png.*(pixels)"):
        read(tmp_path, size=32)
