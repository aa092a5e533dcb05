"""surrogate classifier: from labelled images in a file to a folder that guides or judges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from surrogate.kinds.images.classifier import Classifier
from surrogate.kinds.images.codec import ImageCodec
from surrogate.kinds.images.files import from_array
from surrogate.model import Surrogate
from tests.cli.small import run

SHORT = ("--epochs", "2", "--width", "8", "--threads", "1")


def bars(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of 8 x 8 with a bar across (0) or down (7), and these labels."""
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 60, (count, 8, 8), np.uint8), np.arange(count) % 2 * 7
    for k, place in enumerate(random.integers(1, 7, count)):
        images[k][(place, slice(None)) if labels[k] == 0 else (slice(None), place)] = 220
    return images, labels


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    images, labels = bars(120)
    np.savez("bars.npz", images=images, labels=labels)
    np.savez("bare.npz", images=images)
    return tmp_path


def save_model(images: np.ndarray, folder: str = "digits") -> None:
    codec = ImageCodec.fit(from_array(images))
    Surrogate.untrained(codec, 0, width=8, depth=1).save(folder)


def test_a_classifier_is_trained_from_a_file(here: Path) -> None:
    done = run("classifier", "bars.npz", "-o", "judge", "--json", *SHORT)
    told = json.loads(done.stdout)
    assert told["path"] == "judge"
    assert told["classes"] == ["0", "7"]
    assert told["held_out"]["images"]["images"] == 12
    assert told["command"] == "surrogate classifier bars.npz --out judge --epochs 2 --width 8 " + (
        "--threads 1"
    )
    assert "held-out images: " in done.stderr
    assert "calibration error" in done.stderr
    assert "surrogate sample MODEL --classifier judge --where 'class(image, 0)'" in done.stderr
    judge = Classifier.load("judge")
    assert judge(torch.rand(2, 1, 8, 8)).shape == (2, 2)


def test_a_classifier_is_trained_to_guide_a_model(here: Path) -> None:
    images, labels = bars(120)
    save_model(images)
    np.save("words.npy", np.array(["a", "b"])[labels // 7])
    done = run(
        *("classifier", "bare.npz", "--labels", "words.npy", "--model", "digits", "-o", "guide"),
        *("--estimates", "200", *SHORT),
    )
    assert "denoised estimates: " in done.stderr
    assert "surrogate sample digits --classifier guide --where 'class(image, \"a\")'" in done.stderr
    guide = Classifier.load("guide")
    assert guide.classes == ("a", "b")
    assert guide.about["pool"] == 200
    assert guide.about["model"] == Surrogate.load("digits").digest


def test_a_classifier_or_model_is_not_overwritten(here: Path) -> None:
    save_model(bars(60)[0])
    run("classifier", "bars.npz", "-o", "judge", "-q", *SHORT)
    again = run("classifier", "bars.npz", "-o", "judge", *SHORT, code=2)
    assert "replace it with --force" in again.stderr
    run("classifier", "bars.npz", "-o", "judge", "--force", "-q", *SHORT)
    model = run("classifier", "bars.npz", "-o", "digits", "--force", *SHORT, code=2)
    assert "holds a model, not a classifier" in model.stderr
    Surrogate.load("digits")


def test_data_that_cannot_be_learned_are_refused(here: Path) -> None:
    images, labels = bars(120)
    save_model(images[:, :, :6])
    np.savez("one.npz", images=images, labels=np.zeros(120, int))
    np.savez("few.npz", images=images[:20], labels=labels[:20])
    np.save("short.npy", labels[:100])
    for words, reason in (
        (("none.npz",), "there is no file 'none.npz'"),
        (("bare.npz",), "the images have no labels"),
        (("one.npz",), "all images have the label '0'"),
        (("few.npz",), "20 images are too few"),
        (("bare.npz", "--labels", "short.npy"), "120 images"),
        (("bars.npz", "--model", "digits"), "6x8 pixels, and the data are grey images of 8x8"),
        (("bars.npz", "--model", "esirs"), "cannot guide a model of"),
        (("bars.npz", "--model", "nowhere"), "there is no model folder 'nowhere'"),
        (("bars.npz", "--estimates", "10"), "add --model"),
        (("bars.npz", "--epochs", "0"), "--epochs must be a whole number >= 1, not 0"),
        (("bars.npz", "--width", "0"), "--width must be a whole number >= 1, not 0"),
        (("bars.npz", "-o", "no/guide"), "there is no folder 'no'"),
    ):
        said = run("classifier", *words, code=2).stderr
        assert reason in " ".join(said.split()), words
    assert not (here / "classifier").exists()
