"""Images in .npz and .npy files: which array is read, and what is refused."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from surrogate.errors import ModelError
from surrogate.kinds.images.files import to_array
from tests.surrogate.kinds.images.image_files import pixels, read


def test_the_array_of_images_is_found(tmp_path: Path) -> None:
    given, place = pixels(6, 8, 8), tmp_path / "a.npz"
    np.savez(place, images=given, masks=pixels(6, 8, 8), labels=np.arange(6), names=["x"] * 6)
    data, said = read(place)
    np.testing.assert_array_equal(to_array(data), given)
    assert data.label.values.tolist() == list(range(6))
    assert said == "left out of a.npz: masks, names"
    np.savez(place, faces=given, ages=np.arange(6))
    data, said = read(place, labels="ages")
    assert data.label.values.tolist() == list(range(6))
    assert "images from the array 'faces'" in said
    np.savez_compressed(place, x_train=given, x_test=given, y_train=np.arange(6) % 2)
    with pytest.raises(ModelError, match=r"x_train \(6, 8, 8\) uint8, x_test .*array='x_train'"):
        read(place)
    data, _ = read(place, array="x_train")
    assert data.label.values.tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(ModelError, match="did you mean 'x_train'"):
        read(place, array="x_trian")
    with pytest.raises(ModelError, match="neither a file nor an array"):
        read(place, "nothing", array="x_train")


def test_npy_files_are_read_and_objects_refused(tmp_path: Path) -> None:
    given, place = pixels(6, 8, 8, 3), tmp_path / "a.npy"
    np.save(place, given)
    np.save(tmp_path / "labels.npy", np.arange(6))
    data, _ = read(place, tmp_path / "labels.npy")
    np.testing.assert_array_equal(to_array(data), given)
    assert "label" in data
    np.save(place, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ModelError, match="Python objects"):
        read(place)
    place.write_bytes(b"not an array")
    with pytest.raises(ModelError, match=r"cannot read .*a.npy"):
        read(place)
    with pytest.raises(ModelError, match=r"only .npz files have arrays"):
        read(place, array="images")


def test_damaged_npz_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.npz"
    place.write_text("some text\n")
    with pytest.raises(ModelError, match="whatever its name says"):
        read(place)
    place.write_bytes(b"")
    with pytest.raises(ModelError, match="whatever its name says"):
        read(place)
    np.savez(place, images=pixels(20, 8, 8))
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"cannot read .*a.npz"):
        read(place)
    at = whole.index(b"NUMPY") + 300
    place.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    with pytest.raises(ModelError, match=r"cannot read .*a.npz.*CRC"):
        read(place)
    np.savez(place, images=np.array([[1], [2, 3]], dtype=object))
    with pytest.raises(ModelError, match="holds Python objects, which are not loaded"):
        read(place)
    np.savez(place, ages=np.arange(3.0), names=np.array(["a"]))
    with pytest.raises(ModelError, match=r"holds no images.*ages \(3,\) float64"):
        read(place)
    with zipfile.ZipFile(place, "w") as packed:
        packed.writestr("readme.txt", "hello")
    with pytest.raises(ModelError, match="holds no arrays"):
        read(place)


def _claims(shape: tuple[int, ...]) -> bytes:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "|u1", "fortran_order": False, "shape": shape}
    )
    return head.getvalue()


def test_decompression_bombs_are_refused_before_unpacking(tmp_path: Path) -> None:
    place = tmp_path / "bomb.npz"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("images.npy", _claims((100_000_000, 512, 512)) + bytes(1_000_000))
    with pytest.raises(ModelError, match=r"would take 26,214 GB"):
        read(place)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("images.npy", _claims((2, 8, 8)) + bytes(30_000_000))
    with pytest.raises(ModelError, match=r"unpacks to 30 MB, where its shape \(2, 8, 8\)"):
        read(place)
    big = tmp_path / "big-images-idx3-ubyte.gz"
    big.write_bytes(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 2**31, 512, 512) + bytes(1000)))
    with pytest.raises(ModelError, match="damaged, or more than can be read"):
        read(big)


def test_forged_descriptions_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.npz"
    for about in ('{"dims": 3}', '{"dims": {"x": ["sample"]}, "order": [], "coords": {}}', "[]"):
        np.savez(place, images=pixels(6, 8, 8), x=np.zeros(5), about=np.array(about))
        if about == "[]":
            assert read(place)[0].sizes["sample"] == 6
            continue
        with pytest.raises(ModelError, match="does not hold what it says"):
            read(place)
