"""Images through the console script: train, sample, check, evaluate, report, plot."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from surrogate.kinds.images.files import read_images, write_images
from tests.cli.small import run

SHORT = ("--iterations", "3", "--threads", "1")
N = 60
SHARED = Path(__file__).parents[3] / "shared" / "data"


def pixels(count: int = N) -> np.ndarray:
    """Bright blocks on dark ground, (count, 8, 8)."""
    random = np.random.default_rng(0)
    made = random.integers(0, 30, (count, 8, 8), dtype=np.uint8)
    for each, (row, column) in zip(made, random.integers(0, 6, (count, 2)), strict=True):
        each[row : row + 3, column : column + 3] = 220
    return made


@pytest.fixture
def digits(small: Path) -> Path:
    np.savez("digits.npz", images=pixels(), labels=np.arange(N) % 10)
    return small


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of grey images of 8x8, barely trained."""
    from tests.cli.small import shrink

    with pytest.MonkeyPatch.context() as patch:
        shrink(patch.setattr, seconds=1e9)
        folder = tmp_path_factory.mktemp("images")
        np.savez(folder / "digits.npz", images=pixels())
        run("train", str(folder / "digits.npz"), *SHORT, "-o", str(folder / "digits"))
    return folder / "digits"


def test_train_says_what_it_understood(digits: Path) -> None:
    said = run("train", "digits.npz", *SHORT, "-o", "digits").stderr
    assert "60 grey images of 8x8, 0..255, labels 0-9 not learned" in said
    assert "60 grey images of 8x8 pixels; a network of" in said
    assert "next: surrogate sample digits" in said


def test_train_from_idx_and_folders(small: Path) -> None:
    given = pixels()
    head = struct.pack(">HBB3I", 0, 8, 3, *given.shape)
    Path("a-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + given.tobytes()))
    said = run("train", "a-images-idx3-ubyte.gz", *SHORT, "-o", "a").stderr
    assert "60 grey images of 8x8, 0..255" in said
    Path("faces").mkdir()
    for k, each in enumerate(given):
        size = (8, 8) if k else (12, 9)
        Image.fromarray(each).resize(size).convert("RGB").save(f"faces/{k:02}.png")
    said = run("train", "faces", *SHORT, "-o", "b", code=2).stderr
    assert "00.png is 12x9 where 59 of 60 are 8x8" in said
    assert "(--size 8)" in said
    Path("faces/01.png").write_bytes(b"\x89PNG\r\n")
    said = run("train", "faces", "--size", "8", *SHORT, "-o", "b", code=2).stderr
    assert "01.png" in said
    assert "(--skip-damaged)" in said
    words = ("--size", "8", "--grey", "--skip-damaged")
    said = run("train", "faces/", *words, *SHORT, "-o", "b").stderr
    assert "skipped 1 damaged of 60 pictures: 01.png" in said
    assert "59 grey images of 8x8, 0..255" in said


def test_sample_writes_a_sheet_and_an_array(small: Path, model: Path) -> None:
    done = run("sample", str(model), "--steps", "3", "--json")
    told = json.loads(done.stdout)
    assert (told["path"], told["sheet"], told["samples"]) == ("samples.npz", "samples.png", 64)
    assert "samples.png and samples.npz  64 grey images of 8x8, 0..255" in done.stderr
    assert "next: surrogate evaluate samples.npz --against /" in done.stderr
    found = read_images("samples.npz")
    assert found.image.shape == (64, 8, 8)
    assert found.attrs["history"]
    with Image.open("samples.png") as sheet:
        assert sheet.width > 500
    assert "exists" in run("sample", str(model), "--steps", "3", code=2).stderr


@pytest.mark.parametrize("name", ["a.npz", "a.nc", "out/", "grid.png"])
def test_sample_to_each_format(small: Path, model: Path, name: str) -> None:
    words = ("sample", str(model), "-n", "5", "--steps", "3", "-o", name)
    run(*words)
    assert "exists" in run(*words, code=2).stderr
    run(*words, "--force")
    if name != "grid.png":
        assert read_images(name).sizes["sample"] == 5


def test_sample_refuses_other_formats(small: Path, model: Path) -> None:
    said = run("sample", str(model), "-o", "rows.csv", code=2).stderr
    assert "must end in .npz or .png or / or .nc" in said
    said = run("sample", str(model), "--bridge", "S0=1", code=2).stderr
    assert "--bridge states values at steps" in said
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("years of work")
    assert "left alone" in run("sample", str(model), "-o", "mine/", "--force", code=2).stderr


def test_plot_is_a_sheet(digits: Path) -> None:
    assert "60 images" in run("plot", "digits.npz").stderr
    with Image.open("digits.png") as sheet:
        assert sheet.width > 500
    assert "not for images" in run("plot", "digits.npz", "--species", "S", code=2).stderr
    run("plot", "digits.npz", "-o", "digits.pdf", "--title", "ten digits")
    assert Path("digits.pdf").read_bytes().startswith(b"%PDF")


def test_evaluate_images(digits: Path) -> None:
    np.savez("others.npz", images=pixels(200)[N:])
    done = run("evaluate", "digits.npz", "--against", "others.npz")
    assert "D(brightness)" in done.stdout
    assert "D(projection), median" in done.stdout
    np.savez("dark.npz", images=pixels(200) // 3)
    told = json.loads(run("evaluate", "dark.npz", "--against", "others.npz", "--json").stdout)
    assert told["overall"]["median"]["ratio"] > 3
    np.savez("large.npz", images=np.zeros((20, 9, 9), np.uint8) + np.arange(9, dtype=np.uint8))
    said = run("evaluate", "large.npz", "--against", "others.npz", code=2).stderr
    assert "images of 9x9, the reference of 8x8" in said
    said = run("evaluate", "digits.npz", "--against", "trajectories.nc", code=2).stderr
    assert "the samples are images, the reference are trajectories" in said
    said = run("evaluate", "digits.npz", "--against", "others.npz", "--target", "x", code=2).stderr
    assert "target is for rows, and these are images" in said


def test_report_on_images(digits: Path) -> None:
    data = read_images("digits.npz").drop_vars("label")
    labelled = data.assign(satisfied=("sample", np.arange(N) % 3 > 0))
    write_images(labelled, "labelled.npz")
    done = run("report", "labelled.npz", "--against", "digits.npz", "--json")
    told = json.loads(done.stdout)
    assert told["satisfied"] == pytest.approx(2 / 3)
    page = Path("labelled.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "In a red frame" in page
    assert "60 images of 8x8 pixels" in page
    run("report", "labelled.npz", "-o", "alone.html")


def test_check_labels_images(digits: Path) -> None:
    done = run("check", "digits.npz", "--where", "mean(image) >= 0.1", "-o", "judged.npz")
    assert "of 60 samples satisfy the rule" in done.stderr
    found = read_images("judged.npz")
    bright = found.image.values.reshape(N, -1).mean(1) / 255
    np.testing.assert_array_equal(found.satisfied.values, bright >= 0.1)
    run("check", "digits.npz", "--where", "mean(image) >= 0.1", "-o", "judged.png")
    run("check", "judged.npz", "--region", "top=0:2,0:8", "--where", "mean(image, top) >= 0.1")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("text.npz", b"some text", "whatever its name says"),
        ("cut-images-idx3-ubyte", b"\0\0\x08\x03\0\0", "cut short in its header"),
        ("a.npy", b"no array", "cannot read 'a.npy'"),
    ],
)
def test_files_that_are_none(small: Path, name: str, content: bytes, says: str) -> None:
    Path(name).write_bytes(content)
    for words in (("train", name), ("plot", name), ("check", name, "--where", "mean(image) > 0")):
        assert says in run(*words, code=2).stderr


def test_data_that_are_no_images(small: Path, digits: Path) -> None:
    np.savez("objects.npz", images=np.array([None, 1], dtype=object))
    assert "Python objects" in run("train", "objects.npz", code=2).stderr
    np.savez("two.npz", a=pixels(), b=pixels())
    said = run("train", "two.npz", code=2).stderr
    assert "a (60, 8, 8) uint8, b (60, 8, 8) uint8; choose one (--array a)" in said
    np.savez("huge.npz", images=np.zeros((3, 600, 8), np.uint8))
    assert (
        "4 to 512 pixels; give them another size (--size 32)"
        in run("train", "huge.npz", code=2).stderr
    )
    Path("empty").mkdir()
    assert "nor a folder with pictures (.png, .jpg)" in run("train", "empty", code=2).stderr
    said = run("train", "trajectories.nc", "--grey", code=2).stderr
    assert "'trajectories.nc' holds trajectories; leave out --grey, which is for images" in said
    said = run("train", "digits.npz", "--window", "3", code=2).stderr
    assert "'digits.npz' holds images; leave out --window, which is for trajectories" in said
    said = run("train", "digits.npz", "--size", "big", code=2).stderr
    assert "--size: 'big' is no size; give a side, 32, or a width and a height, 32x24" in said
    assert "there is no file" in run("train", "absent.npz", code=2).stderr


def test_pictures_and_regions_are_checked(small: Path, model: Path) -> None:
    def refused(*words: str) -> str:
        return run("sample", str(model), "--where", "mean(image) > 0", *words, code=2).stderr

    grey = pixels(1)[0]
    Image.fromarray(grey).save("face.png")
    Image.fromarray(np.stack([grey, grey // 2, grey], -1)).save("colour.png")
    Image.fromarray(np.zeros((5, 8), np.uint8)).save("small.png")
    Image.fromarray(np.zeros((8, 8), np.uint8)).save("black.png")
    Path("bad.png").write_text("text")
    assert "'face.png' is no picture; give a name and" in refused("--picture", "face.png")
    assert "there is no file 'none.png'" in refused("--picture", "x=none.png")
    assert "no PNG or JPEG" in refused("--picture", "x=bad.png")
    assert "is 8x5, and the images are 8x8" in refused("--picture", "x=small.png")
    assert "is in colour, and the images are grey" in refused("--picture", "x=colour.png")
    assert "given twice" in refused("--picture", "x=face.png", "--picture", "x=face.png")
    assert "rows 2:20 are not in the image" in refused("--region", "eyes=2:20,0:8")
    assert "a mask is as large as they are" in refused("--region", "eyes=small.png")
    assert "black all over" in refused("--region", "eyes=black.png")
    assert "is no folder of a classifier" in refused("--classifier", "nowhere")
    said = run("sample", "esirs", "--where", "S0 > 3", "--picture", "x=face.png", code=2).stderr
    assert "pictures can be named for images, and the data are S" in said
    said = run("sample", str(model), "--picture", "x=face.png", code=2).stderr
    assert "add --where" in said


def test_sample_as_images_are_by_default(small: Path, model: Path) -> None:
    """The method of images has no pilot, and so cannot tell what rejection would take."""
    rule = "mean(image, upper) <= 0.9"
    done = run("sample", str(model), "--where", rule, "-n", "4", "--steps", "4", "-o", "a.npz")
    assert "scenario satisfied by" in done.stderr
    assert "next: surrogate report a.npz --against" in done.stderr
    assert read_images("a.npz").sizes["sample"] == 4


def test_a_classifier_is_known_to_rules(digits: Path) -> None:
    from surrogate.kinds.images.classifier import Classifier

    Classifier.untrained((1, 8, 8), ("3", "5")).save("guide")
    for name, words in (("class", "guide"), ("kind", "kind=guide")):
        rule = ("--where", f"{name}(image, 3)")
        assert "of 60 samples" in run("check", "digits.npz", "--classifier", words, *rule).stderr
    Classifier.untrained((1, 9, 9), ("3", "5")).save("other")
    said = run("check", "digits.npz", "--classifier", "other", *rule, code=2).stderr
    assert "is of grey images of 9x9 pixels, and these are grey images of 8x8 pixels" in said


def test_sample_a_scenario(small: Path, model: Path) -> None:
    """A picture and a region of the command's are known to the formula."""
    Image.fromarray(pixels(1)[0]).save("face.png")
    rule = "forall p in top: abs(image(p) - target(p)) <= 0.5"
    named = ("--picture", "target=face.png", "--region", "top=0:2,0:8")
    words = ("--where", rule, *named, "-n", "4", "--steps", "4", "-o", "a.npz")
    done = run("sample", str(model), *words, "--method", "universal")
    assert "scenario satisfied by" in done.stderr
    assert "next: surrogate report a.npz" in done.stderr
    found = read_images("a.npz")
    assert found.satisfied.shape == (4,)
    assert "target" in found.attrs["surrogate_constraint"]
    run("report", "a.npz")
    run("check", "a.npz", "--where", rule, *named, "-o", "b.npz")
    np.testing.assert_array_equal(read_images("b.npz").satisfied, found.satisfied)


def test_scenery_reaches_formulas(digits: Path) -> None:
    """A picture, a smaller one and a mask have the numbers of the files."""
    from cli.pictures import read_scenery
    from constraints import Layout

    grey = pixels(1)[0]
    Image.fromarray(grey).save("face.png")
    np.save("half.npy", grey[::2, ::2])
    Image.fromarray((grey > 100).astype(np.uint8) * 255).save("mask.png")
    named = {
        "pictures": ("target=face.png", "reduced=half.npy"),
        "regions": ("block=mask.png", "eyes=2:4,1:7"),
        "classifiers": (),
    }
    found = read_scenery(named, Layout.image((1, 8, 8)))
    np.testing.assert_allclose(found.pictures["target"][0], grey / 255, rtol=1e-6)
    assert found.pictures["reduced"].shape == (1, 4, 4)
    np.testing.assert_array_equal(found.regions["block"], grey > 100)
    assert int(found.regions["eyes"].sum()) == 12
    assert set(found.extended(Layout.image((1, 8, 8))).pictures) == {"target", "reduced"}


def test_reading_images_loads_no_torch() -> None:
    """Reading images needs no torch."""
    import subprocess
    import sys

    code = "import sys, surrogate.kinds.images.files, surrogate.kinds.images.plot, cli.pictures; "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not SHARED.is_dir(), reason="there is no ../shared")
def test_mnist_and_faces(small: Path) -> None:
    said = run("plot", str(SHARED / "t10k-images-idx3-ubyte.gz"), "-o", "mnist.png").stderr
    assert "10,000 grey images of 28x28, 0..255, labels 0-9 not learned" in said
    said = run("plot", str(SHARED / "faces_utk_32x32_rgb.npz"), "-o", "faces.png").stderr
    assert "9,780 colour images of 32x32, 0..255" in said


def test_netcdf_of_images_is_read(digits: Path) -> None:
    write_images(read_images("digits.npz"), "digits.nc")
    assert isinstance(xr.open_dataset("digits.nc"), xr.Dataset)
    assert "60 grey images of 8x8" in run("plot", "digits.nc").stderr
    assert "60 grey images of 8x8" in run("train", "digits.nc", *SHORT, "-o", "m").stderr
