"""Classifiers: they learn what differs, know how sure to be, and come back from files as they were.

Images are of 8 x 8 pixels: bars across, bars down, and crosses of both, somewhere, in noise.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn

from constraints.evaluate.classes import judge
from surrogate.diffusion.denoise import Preconditioned
from surrogate.errors import ModelError
from surrogate.evaluation.calibration import Measured
from surrogate.io import model_folder as store
from surrogate.kinds.codec import Codec
from surrogate.kinds.images.classifier import Classifier, classifier_of, fit_classifier
from surrogate.kinds.images.classifier_data import Progress, estimates, shifted
from surrogate.kinds.images.codec import ImageCodec
from surrogate.model import Surrogate

SHAPES = ("across", "down", "cross")


def shapes(count: int, seed: int = 0) -> xr.Dataset:
    """Labelled images, as many of each shape."""
    random = np.random.default_rng(seed)
    kind = np.arange(count) % 3
    images = random.integers(0, 60, (count, 8, 8))
    for k, (i, j) in enumerate(random.integers(1, 7, (count, 2))):
        if kind[k] != 1:
            images[k, i] += 150
        if kind[k] != 0:
            images[k, :, j] += 150
    return xr.Dataset(
        {
            "image": (("sample", "y", "x"), images.clip(0, 255).astype(np.uint8)),
            "label": ("sample", np.array(SHAPES, object)[kind]),
        }
    )


@pytest.fixture(scope="module")
def learned() -> Classifier:
    return fit_classifier(shapes(900), seed=1, epochs=30, width=16)


def test_shapes_are_classified(learned: Classifier) -> None:
    found = learned.measure(shapes(300, seed=5))
    assert learned.classes == ("across", "cross", "down")
    assert found.accuracy > 0.97
    assert found.calibration_error < 0.1
    assert learned.about["held_out"]["images"]["images"] == 90
    assert learned.about["learned"] == 810


def test_log_probabilities_add_up_to_one(learned: Classifier) -> None:
    log_p = learned(torch.rand(4, 1, 8, 8))
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_step_along_the_gradient_makes_a_class_likelier(
    learned: Classifier, dtype: torch.dtype
) -> None:
    images = torch.full((2, 1, 8, 8), 0.3, dtype=dtype, requires_grad=True)
    before = learned(images)
    (slope,) = torch.autograd.grad(before[:, 1].sum(), images)
    assert before.dtype == slope.dtype == dtype
    after = learned(images + 0.01 * slope / slope.norm())
    assert (after[:, 1] > before[:, 1]).all()


def test_training_is_a_function_of_its_seed() -> None:
    data = shapes(60)
    one, same, other = (fit_classifier(data, seed=s, epochs=2, width=8) for s in (3, 3, 4))
    x = torch.rand(2, 1, 8, 8)
    assert torch.equal(one(x), same(x))
    assert not torch.equal(one(x), other(x))


def test_progress_counts_every_update() -> None:
    seen: list[Progress] = []
    made = fit_classifier(shapes(60), epochs=2, width=8, progress=seen.append)
    assert [each.done for each in seen] == list(range(1, made.about["updates"] + 1))
    assert all(math.isfinite(each.loss) for each in seen)


def test_integer_classes_are_in_numerical_order() -> None:
    data = shapes(60).drop_vars("label")
    made = fit_classifier(data, np.arange(60) % 12, epochs=1, width=8)
    assert made.classes == tuple(str(k) for k in range(12))


def test_shifted_images_replicate_their_edges() -> None:
    images = torch.arange(64.0).reshape(1, 1, 8, 8).expand(200, 1, 8, 8)
    moved = shifted(images, torch.Generator().manual_seed(0))
    kinds = {tuple(each.flatten().tolist()) for each in moved}
    assert len(kinds) == 9  # by -1, 0 or 1 down and to the right
    assert tuple(range(64)) in kinds
    up = torch.cat([images[0, 0, 1:], images[0, 0, -1:]])
    assert tuple(up.flatten().tolist()) in kinds


def test_formulas_evaluate_the_classifier(learned: Classifier) -> None:
    atom = learned.as_atom()
    x = torch.rand(2, 1, 8, 8)
    assert atom.classes == learned.classes
    torch.testing.assert_close(judge(atom, x).own, learned(x))


# --- how sure to be -------------------------------------------------------------------------------


def test_calibration_equals_its_definition() -> None:
    p = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.45, 0.55]], dtype=torch.float64)
    found = Measured.of(p.log(), torch.tensor([0, 1, 1, 1]))
    assert found.accuracy == 0.75
    # of two at 0.9 one is right; one at 0.7 and one at 0.55 are right
    assert found.calibration_error == pytest.approx((2 * 0.4 + 0.3 + 0.45) / 4)
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.1, 0.7, 0.55]).mean())
    assert found.unsure == 0.25


class Blurring(nn.Module):
    """As a network: its denoiser is D = x/(1 + σ²), a clean image and what is left of the noise."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.weight * x


def blurring(data: xr.Dataset) -> Surrogate:
    codec: Codec = ImageCodec.fit(data)
    model = Surrogate.untrained(codec, 0, width=8, depth=1)
    model.denoiser = Preconditioned(Blurring())
    return model


def test_estimates_are_denoised_images() -> None:
    data = shapes(600)
    model = blurring(data)
    rows = np.arange(600)
    found = estimates(model, data, rows, 0).float()
    clean = torch.from_numpy(data["image"].values[:, None] / 255).float()
    assert found.shape == clean.shape
    assert 0 <= found.min() <= found.max() <= 1
    mean = clean.mean()
    likeness = ((found - mean) * (clean - mean)).mean((1, 2, 3)) / clean.var()
    # log-uniform from 0.05 to 20: half are below 1, where more than half of an image is left
    assert (likeness > 0.5).float().mean() == pytest.approx(0.5, abs=0.1)
    assert likeness.min() < 0.1


def test_training_on_estimates_calibrates_a_classifier_on_them() -> None:
    data = shapes(900)
    model = blurring(data)
    guide = fit_classifier(data, seed=1, epochs=40, width=16, model=model, pool=3_000)
    judge = fit_classifier(data, seed=1, epochs=30, width=16)
    fresh = shapes(600, seed=9)
    blurred = estimates(model, fresh, np.arange(600), 7).float()
    truth = torch.tensor([guide.classes.index(word) for word in fresh["label"].values])
    with torch.no_grad():
        guided, judged = (Measured.of(each(blurred), truth) for each in (guide, judge))
    assert guided.calibration_error < 0.5 * judged.calibration_error
    assert guided.log_loss < judged.log_loss
    assert guided.accuracy >= judged.accuracy - 0.02
    assert guide.about["pool"] == 3_000
    assert set(guide.about["held_out"]) == {"images", "estimates"}


# --- refusals -------------------------------------------------------------------------------------


def test_unusable_labels_are_refused() -> None:
    data = shapes(60)
    bare = data.drop_vars("label")
    for labels, reason in (
        (None, "no labels to learn from"),
        (np.zeros(60, int), "all images have the label '0'"),
        (np.zeros(59, int), "59 labels for 60 images"),
        (np.linspace(0, 1, 60), "whole numbers or words"),
        ([*[0] * 30, *[1] * 28, 2, 2], "the class '2' has 2 of 60 images"),
    ):
        with pytest.raises(ModelError, match=reason):
            fit_classifier(bare, labels)
    with pytest.raises(ModelError, match="40 images are too few"):
        fit_classifier(data.isel(sample=slice(40)))


def test_a_model_of_another_size_is_refused_with_both() -> None:
    model = blurring(shapes(60).isel(x=slice(6)))
    with pytest.raises(ModelError, match=r"6x8 pixels.*8x8 pixels"):
        fit_classifier(shapes(60), model=model)


def test_images_of_another_size_are_refused_with_both(learned: Classifier) -> None:
    with pytest.raises(ModelError, match=r"8x8 pixels.*\(2, 1, 9, 8\)"):
        learned(torch.zeros(2, 1, 9, 8))
    with pytest.raises(ModelError, match=r"8x8 pixels.*7x8 pixels"):
        learned.measure(shapes(9).isel(x=slice(7)))
    with pytest.raises(ModelError, match="does not know the class 'dot'"):
        learned.measure(shapes(3), ["dot", "down", "down"])


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def saved(learned: Classifier, tmp_path: Path) -> Path:
    learned.save(tmp_path / "guide")
    return tmp_path / "guide"


def test_a_saved_classifier_is_loaded_bit_for_bit(learned: Classifier, saved: Path) -> None:
    again = Classifier.load(saved)
    x = torch.rand(5, 1, 8, 8)
    assert torch.equal(again(x), learned(x))
    assert (again.classes, again.size, again.digest) == (learned.classes, (1, 8, 8), learned.digest)
    assert again.about == json.loads(json.dumps(learned.about))
    assert {each.name for each in saved.iterdir()} == {"config.json", "weights.safetensors"}


def test_a_model_may_carry_a_classifier(learned: Classifier, tmp_path: Path) -> None:
    assert classifier_of(tmp_path) is None
    learned.save(tmp_path / "classifier")
    found = classifier_of(tmp_path)
    assert found is not None
    assert found.classes == learned.classes


def test_damaged_files_are_named(saved: Path) -> None:
    weights = saved / "weights.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"weights\.safetensors.*hash differs"):
        Classifier.load(saved)
    weights.unlink()
    with pytest.raises(ModelError, match=r"there is no .*weights\.safetensors"):
        Classifier.load(saved)
    config = saved / "config.json"
    config.write_text(config.read_text().replace("cross", "dross"))
    with pytest.raises(ModelError, match=r"config\.json was changed"):
        Classifier.load(saved)
    config.write_text("{")
    with pytest.raises(ModelError, match=r"config\.json is damaged"):
        Classifier.load(saved)
    config.unlink()
    with pytest.raises(ModelError, match=r"no folder of a classifier"):
        Classifier.load(saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes", ["a", "a", "b"]),
        ("classes", ["a", "b"]),
        ("classes", "abc"),
        ("size", [1, 8]),
        ("size", [2, 8, 8]),
        ("size", [1, 10**9, 8]),
        ("network", {"width": 10**9, "depth": 1}),
        ("network", {"width": 8, "depth": 10**9}),
        ("network", {"width": None, "depth": 1}),
        ("network", []),
        ("about", 3),
    ],
)
def test_a_description_that_does_not_fit_is_refused(saved: Path, name: str, value: object) -> None:
    """Sealed again, as a stranger can: it fails, and takes no memory."""
    config = store.read_json(saved / "config.json") | {name: value}
    config.pop(store.SEAL)
    store.write_json(saved / "config.json", store.sealed(config))
    with pytest.raises(ModelError, match="guide"):
        Classifier.load(saved)


def test_a_model_is_not_overwritten_by_a_classifier(learned: Classifier, tmp_path: Path) -> None:
    model = Surrogate.untrained(ImageCodec.fit(shapes(60)), 0, width=8, depth=1)
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="a model of 'images', not a classifier"):
        Classifier.load(tmp_path / "model")
    with pytest.raises(ModelError, match="left alone"):
        learned.save(tmp_path / "model")
    Surrogate.load(tmp_path / "model")
