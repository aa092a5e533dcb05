"""Images from arrays and files, and back: what is understood, what is refused, in which words."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from surrogate.errors import ModelError
from surrogate.kinds.images.files import (
    channels_of,
    from_array,
    is_images,
    is_picture_folder,
    read_images,
    size_of,
    summary,
    to_array,
    write_images,
)

RANDOM = np.random.default_rng(0)


def pixels(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def png(place: Path, values: np.ndarray) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(place)


def read(*words: Any, **settings: Any) -> tuple[xr.Dataset, str]:
    """What was read, and what was said."""
    said: list[str] = []
    return read_images(*words, say=said.append, **settings), "; ".join(said)


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "channels", "size"),
    [
        ((5, 8, 6), 1, (6, 8)),
        ((5, 8, 6, 1), 1, (6, 8)),
        ((5, 1, 8, 6), 1, (6, 8)),
        ((5, 8, 6, 3), 3, (6, 8)),
        ((5, 3, 8, 6), 3, (6, 8)),
        ((5, 3, 8, 4), 3, (4, 8)),
        ((5, 4, 8, 3), 3, (8, 4)),
        ((5, 8, 6, 4), 3, (6, 8)),
    ],
)
def test_shapes_of_arrays(shape: tuple[int, ...], channels: int, size: tuple[int, int]) -> None:
    data = from_array(pixels(*shape))
    assert is_images(data)
    assert channels_of(data) == channels
    assert size_of(data) == size
    assert data.sizes["sample"] == 5
    assert data.image.dtype == np.uint8
    assert data.image.dims[-2:] == ("y", "x")


def test_channels_first_are_the_same_colours() -> None:
    given = pixels(5, 8, 6, 3)
    xr.testing.assert_identical(from_array(given), from_array(np.moveaxis(given, 3, 1)))
    np.testing.assert_array_equal(to_array(from_array(given)), given)


def test_what_may_mean_two_things_is_said() -> None:
    said: list[str] = []
    data = from_array(pixels(5, 4, 9, 4), say=said.append)
    assert size_of(data) == (9, 4)
    assert "channels last" in said[0]


def test_transparent_pixels_are_put_on_white() -> None:
    given = np.zeros((2, 5, 6, 4), np.uint8)
    given[0, ..., 3] = 255
    said: list[str] = []
    made = to_array(from_array(given, say=said.append))
    assert (made[0] == 0).all()
    assert (made[1] == 255).all()
    assert said == ["transparent pixels were put on white"]


@pytest.mark.parametrize(
    ("values", "dtype", "low", "high", "says"),
    [
        (np.array([True, False]), "uint8", 0, 255, ""),
        (np.array([0, 1]), "uint8", 0, 255, "black and white"),
        (np.array([0, 200], np.int64), "uint8", 0, 200, ""),
        (np.array([0, 65535], np.uint16), "float32", 0, 1, "16 bits"),
        (np.array([0.25, 0.5]), "float32", 0.25, 0.5, ""),
        (np.array([-1.0, 1.0]), "float32", 0, 1, "-1 to 1"),
        (np.array([0.0, 255.0]), "uint8", 0, 255, ""),
        (np.array([0.0, 127.5]), "float32", 0, 0.5, "0 to 255"),
    ],
)
def test_values_of_arrays(
    values: np.ndarray, dtype: str, low: float, high: float, says: str
) -> None:
    said: list[str] = []
    data = from_array(np.resize(values, (3, 4, 4)), say=said.append)
    assert data.image.dtype == dtype
    assert (float(data.image.min()), float(data.image.max())) == pytest.approx((low, high))
    assert says in "; ".join(said)
    assert bool(says) == bool(said)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.full((2, 4, 4), np.nan), "2 of 2 images have pixels that are missing"),
        (np.full((2, 4, 4), np.inf), "infinite"),
        (np.full((2, 4, 4), 7.5e6), "rescale"),
        (np.full((2, 4, 4), -3), "0..255"),
        (np.zeros((0, 4, 4)), "no images"),
        (np.zeros((2, 3, 8)), "4 to 512 pixels"),
        (np.zeros((2, 513, 8)), "4 to 512 pixels"),
        (np.zeros((28, 28, 3)), r"array\[None\]"),
        (np.zeros((9, 784)), r"reshape\(-1, 28, 28\)"),
        (np.zeros((28, 28)), r"array\[None\]"),
        (np.zeros((2, 8, 8, 7)), "channels"),
        (np.zeros((2, 2, 2, 8, 8)), "holds no images"),
        (np.array(3.0), "holds no images"),
        (np.array([["a"]]), "no grey levels"),
        (np.array([None, 1], dtype=object), r"numpy\.stack"),
        (np.zeros((2, 4, 4), complex), "complex"),
    ],
)
def test_what_is_no_images(array: np.ndarray, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        from_array(array)


def test_labels_of_arrays() -> None:
    data = from_array(pixels(3, 4, 4), [4, 2, 9])
    assert data.label.values.tolist() == [4, 2, 9]
    assert summary(data) == "3 grey images of 4x4, 0..255, labels 2-9 not learned"
    words = from_array(pixels(3, 5, 4), np.array(["cat", "dog", "cat"]))
    assert summary(words).endswith("of 4x5, 0..255, labels cat, dog not learned")
    with pytest.raises(ModelError, match="one for each"):
        from_array(pixels(3, 4, 4), [1, 2])
    with pytest.raises(ModelError, match="whole numbers or words"):
        from_array(pixels(3, 4, 4), [0.5, 1, 2])


# --- .npz and .npy --------------------------------------------------------------------------------


def test_npz_finds_the_images(tmp_path: Path) -> None:
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


def test_npy(tmp_path: Path) -> None:
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


def test_npz_that_is_none(tmp_path: Path) -> None:
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


def test_bombs_are_refused_before_they_unpack(tmp_path: Path) -> None:
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


# --- IDX ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_idx_with_labels_beside(tmp_path: Path, packed: bool) -> None:
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


def test_idx_that_is_damaged(tmp_path: Path) -> None:
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


# --- folders --------------------------------------------------------------------------------------


def test_folder_of_pictures(tmp_path: Path) -> None:
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


def test_sizes_must_agree(tmp_path: Path) -> None:
    for name, shape in (("a", (8, 8)), ("b", (8, 8)), ("c", (10, 14))):
        png(tmp_path / f"{name}.png", pixels(*shape))
    with pytest.raises(ModelError, match=r"c\.png is 14x10 where 2 of 3 are 8x8.*\(size=8\)"):
        read(tmp_path)
    data, said = read(tmp_path, size=6)
    assert size_of(data) == (6, 6)
    assert "scaled and cut around their middle to 6x6" in said
    assert size_of(read(tmp_path, size=(8, 5))[0]) == (8, 5)
    with pytest.raises(ModelError, match="4 to 512"):
        read(tmp_path, size=3)


def test_resizing_covers_and_cuts_the_middle(tmp_path: Path) -> None:
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 200
    png(tmp_path / "a.png", wide)
    np.testing.assert_array_equal(to_array(read(tmp_path, size=8)[0])[0], 200)
    real = from_array(np.stack([wide, wide]).astype(np.float32) / 255)
    from surrogate.kinds.images.values import resized

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


def test_folders_without_pictures(tmp_path: Path) -> None:
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


def test_pictures_of_other_kinds(tmp_path: Path) -> None:
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
    import zlib

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


# --- writing --------------------------------------------------------------------------------------


def labelled(pairs: bool = False, colour: bool = False) -> xr.Dataset:
    data = from_array(pixels(6, 8, 7, 3) if colour else pixels(6, 8, 7))
    if pairs:
        dims = ("sample", "instance", "y", "x")
        data = xr.Dataset({"image": (dims, pixels(6, 2, 8, 7))})
    return (
        data.assign(
            satisfied=("sample", np.arange(6) % 2 > 0),
            robustness=("sample", np.linspace(-1, 1, 6).astype(np.float32)),
            log_weight=("sample", np.linspace(-2, 0, 6)),
            rule_satisfied=(("sample", "rule"), np.ones((6, 1), bool)),
        )
        .assign_coords(rule=["mean(image) > 0.1"])
        .assign_attrs(surrogate_constraint="mean(image) > 0")
    )


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("name", ["a.npz", "a.nc", "folder"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str, colour: bool) -> None:
    data = labelled(colour=colour)
    write_images(data, tmp_path / name)
    again, _ = read(tmp_path / name)
    np.testing.assert_array_equal(again.image.values, data.image.values)
    assert again.image.dims == data.image.dims
    for label in ("satisfied", "robustness", "log_weight"):
        np.testing.assert_array_equal(again[label].values, data[label].values)
        assert again[label].dtype == data[label].dtype
    if name != "folder":
        assert again.attrs["surrogate_constraint"] == "mean(image) > 0"
        assert list(again["rule"].values) == list(data["rule"].values)
        assert again.rule_satisfied.dims == ("sample", "rule")
    write_images(data.isel(sample=slice(3)), tmp_path / name)  # in place of the other
    assert read(tmp_path / name)[0].sizes["sample"] == 3
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("name", ["a.npz", "a.nc"])
def test_pairs_and_real_numbers_are_read_again(tmp_path: Path, name: str) -> None:
    data = labelled(pairs=True)
    write_images(data, tmp_path / name)
    again, _ = read(tmp_path / name)
    np.testing.assert_array_equal(again.image.values, data.image.values)
    assert again.image.dims == data.image.dims
    assert summary(again) == "6 times 2 grey images of 7x8, 0..255"
    real = from_array(RANDOM.random((3, 5, 6, 3)), ["a", "b", "a"])
    write_images(real, tmp_path / name)
    again, _ = read(tmp_path / name)
    np.testing.assert_array_equal(again.image.values, real.image.values)
    assert again.label.values.tolist() == ["a", "b", "a"]


def test_dark_images_stay_dark(tmp_path: Path) -> None:
    dark = labelled().assign(image=lambda d: d.image.clip(max=1))
    for name in ("a.npz", "a.nc", "folder"):
        write_images(dark, tmp_path / name)
        assert int(read(tmp_path / name)[0].image.max()) == 1


def test_a_folder_of_pairs_and_a_sheet(tmp_path: Path) -> None:
    write_images(labelled(pairs=True), tmp_path / "out")
    names = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert names[:3] == ["0000-1.png", "0000-2.png", "0001-1.png"]
    table = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert table[0] == "file,satisfied,robustness,log_weight"
    assert len(table) == 13
    write_images(labelled(), tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 200


def test_what_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"must end in \.npz or \.png or / or \.nc or \.zarr"):
        write_images(labelled(), tmp_path / "a.csv")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match=r"'thesis.txt': it is left alone"):
        write_images(labelled(), tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="is a file"):
        write_images(labelled(), tmp_path / "file")
    with pytest.raises(ModelError, match="no images"):
        write_images(xr.Dataset({"S": ("sample", [1.0])}), tmp_path / "a.npz")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "mine"]


def test_npz_that_pretends_to_be_ours(tmp_path: Path) -> None:
    place = tmp_path / "a.npz"
    for about in ('{"dims": 3}', '{"dims": {"x": ["sample"]}, "order": [], "coords": {}}', "[]"):
        np.savez(place, images=pixels(6, 8, 8), x=np.zeros(5), about=np.array(about))
        if about == "[]":
            assert read(place)[0].sizes["sample"] == 6
            continue
        with pytest.raises(ModelError, match="does not hold what it says"):
            read(place)
