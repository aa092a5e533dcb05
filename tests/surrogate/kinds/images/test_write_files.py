"""Images are written without loss, and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from surrogate.errors import ModelError
from surrogate.kinds.images.files import from_array, summary, write_images
from tests.surrogate.kinds.images.image_files import RANDOM, pixels, read


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
def test_written_images_are_restored(tmp_path: Path, name: str, colour: bool) -> None:
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
def test_instances_and_real_numbers_are_restored(tmp_path: Path, name: str) -> None:
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


def test_bytes_0_and_1_are_not_rescaled(tmp_path: Path) -> None:
    dark = labelled().assign(image=lambda d: d.image.clip(max=1))
    for name in ("a.npz", "a.nc", "folder"):
        write_images(dark, tmp_path / name)
        assert int(read(tmp_path / name)[0].image.max()) == 1


def test_names_in_a_folder_of_instances_and_a_contact_sheet(tmp_path: Path) -> None:
    write_images(labelled(pairs=True), tmp_path / "out")
    names = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert names[:3] == ["0000-1.png", "0000-2.png", "0001-1.png"]
    table = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert table[0] == "file,satisfied,robustness,log_weight"
    assert len(table) == 13
    write_images(labelled(), tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 200


def test_unknown_suffixes_and_foreign_folders_are_refused(tmp_path: Path) -> None:
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
