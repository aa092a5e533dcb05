"""A classifier of images: log p(class | image), smooth in the image.

It has two uses. To label finished images, it is trained on clean images. To guide a sampler, it is
evaluated at denoised estimates D(x_0 + σ n, σ), posterior means over images, where a classifier of
clean images is overconfident. With `model`, half of each batch are such estimates, at noise levels
log-uniform in σ. Cross entropy is a proper scoring rule, so the trained probabilities are those of
a class given an estimate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from constraints.errors import Action
from constraints.layout.functions import Classifier as Atom
from surrogate.diffusion.training import Settings
from surrogate.errors import ModelError, TrainingError, whole_number
from surrogate.evaluation.calibration import Measured
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files
from surrogate.io.model_folder import CONFIG, WEIGHTS
from surrogate.kinds.images.classifier_data import (
    MAX_CLASSES,
    Batches,
    Guided,
    Labelled,
    Pixels,
    Progress,
    Watch,
    check_model,
    class_indices,
    estimate_pool,
    estimates,
    labels_of,
    split,
)
from surrogate.kinds.images.codec import check_size, images_of_size
from surrogate.kinds.kind import M
from surrogate.networks.convolutional import Convolutional
from surrogate.networks.unet import FORMAT
from surrogate.random import ClassifierTraining, stream

CLASSIFIER_KIND = "classifier"  # and the name of its folder within that of a model
SURE_PROBABILITY = 0.98  # the probability at which an image counts as of a class, in formulas
LEARNING_RATE, WEIGHT_DECAY = 3e-3, 1e-2
MAKE_ONE = "make one: ", Action("fit_classifier(images)", "surrogate classifier DATA")


@dataclass(eq=False)
class Classifier:
    """A trained classifier: maps images (B, C, H, W), 0 to 1, to log-probabilities (B, K). Made by
    `fit_classifier`."""

    network: Convolutional
    classes: tuple[str, ...]
    size: tuple[int, int, int]  # channels, height, width
    settings: Mapping[str, Any]  # of the network
    about: dict[str, Any] = field(default_factory=dict)
    digest: str = ""  # of its weights, where it was saved or loaded

    @classmethod
    def untrained(
        cls,
        size: tuple[int, int, int],
        classes: tuple[str, ...],
        seed: int = 0,
        width: int = 32,
        depth: int = 1,
    ) -> Classifier:
        """A classifier before training: all classes are equally likely."""
        settings = {"width": width, "depth": depth}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(stream(seed, ClassifierTraining.INITIAL_WEIGHTS).initial_seed()))
            network = _network(size, classes, settings)
        return cls(network, classes, size, settings)

    def __call__(self, images: Tensor) -> Tensor:
        if images.ndim != 4 or tuple(images.shape[1:]) != self.size:
            sizes = ", ".join(map(str, self.size))
            raise ModelError(
                f"the classifier is of {images_of_size(self.size)}, (B, {sizes}), and these have "
                f"shape {tuple(images.shape)}",
                value=tuple(images.shape),
            )
        scores = self.network(images.to(self.network.leave.weight))
        return log_softmax(scores, 1).to(images.dtype)

    def as_atom(self, sure: float = SURE_PROBABILITY) -> Atom:
        """The classifier in formulas, class(image, 3); see `constraints.Classifier` for `sure`."""
        return Atom(call=self, classes=self.classes, sure=sure)

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.network.parameters())

    @torch.no_grad()
    def log_probabilities(self, data: xr.Dataset) -> Tensor:
        """Log-probabilities of all images of a dataset, (N, K)."""
        read = Pixels(data)
        if read.codec.size != self.size:
            raise ModelError(
                f"the classifier is of {images_of_size(self.size)}, and the data are "
                f"{images_of_size(read.codec.size)}",
                value=read.codec.size,
            )
        parts = [self(read(rows)) for rows in split(np.arange(len(read)))]
        return torch.cat(parts) if parts else torch.zeros(0, len(self.classes))

    def measure(self, data: xr.Dataset, labels: Any = None) -> Measured:
        """Accuracy and calibration on labelled images."""
        words = labels_of(data, labels)
        unknown = sorted({*words} - {*self.classes})
        if unknown:
            raise ModelError(
                f"the classifier does not know the class {unknown[0]!r}",
                value=unknown[0],
                allowed=self.classes,
            )
        if not words:
            raise ModelError(
                "there are no images to measure a classifier with", remedy="give labelled images"
            )
        return Measured.of(self.log_probabilities(data), class_indices(words, self.classes))

    # --- storage ----------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the classifier's folder atomically; an existing classifier is replaced."""
        check_place(folder)
        with store.model_folder(Path(folder)) as part:
            self.digest = tensor_files.write_tensors(part / WEIGHTS, self.network.state_dict())
            config = {
                "version": store.FORMAT_VERSION,
                "kind": CLASSIFIER_KIND,
                "made_by": f"surrogate-toolkit {version('surrogate-toolkit')}",
                "weights": self.digest,
                "network": dict(self.settings),
                "size": list(self.size),
                "classes": list(self.classes),
                "about": self.about,
            }
            store.write_json(part / CONFIG, store.sealed(config))

    @classmethod
    def load(cls, folder: str | Path) -> Classifier:
        """The classifier in a folder; ModelError says what is wrong with it."""
        place = Path(folder)
        if not place.is_dir():  # it may have been about to be replaced
            store.settle(place)
        if not (place / CONFIG).exists():
            raise ModelError(
                f"{str(folder)!r} is no folder of a classifier: it has no {CONFIG}",
                remedy=MAKE_ONE,
            )
        config = store.read_json(place / CONFIG)
        store.check_version(config, place / CONFIG)
        store.check_seal(config, place / CONFIG)
        if config.get("kind") != CLASSIFIER_KIND:
            raise ModelError(
                f"{str(folder)!r} holds a model of {config.get('kind')!r}, not a classifier",
                remedy=MAKE_ONE,
            )
        digest = str(config.get("weights"))
        weights = tensor_files.read_tensors(place / WEIGHTS, digest)
        try:
            size, classes = _size(config["size"]), _classes(config["classes"])
            settings = dict(config["network"])
            network = _restored(size, classes, settings, weights)
            return cls(network, classes, size, settings, dict(config["about"]), digest)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as problem:
            what = "cannot be used" if isinstance(problem, ModelError) else "is damaged"
            raise ModelError(f"{place} {what}: {problem}") from None


def classifier_of(folder: str | Path) -> Classifier | None:
    """The classifier in the folder of a model, if there is one."""
    place = Path(folder) / CLASSIFIER_KIND
    return Classifier.load(place) if place.is_dir() else None


def with_classifier(model: M, folder: Path) -> M:
    """The model that knows the classifier in its folder as `class`, if there is one."""
    found = classifier_of(folder)
    if found is None:
        return model
    if found.size != model.shape:
        raise ModelError(
            f"the classifier in {folder} is of {images_of_size(found.size)}, and the model is of "
            f"{images_of_size(model.shape)}",
            value=found.size,
            remedy=MAKE_ONE,
        )
    return model.knowing(classifiers={"class": found.as_atom()})


def check_place(folder: str | Path) -> None:
    """Refuse to write over anything but a classifier."""
    place = Path(folder)
    store.check_replaceable(place)
    if (place / CONFIG).exists():
        try:
            kind = store.read_json(place / CONFIG).get("kind")
        except ModelError:  # damaged: its kind is unknown
            kind = None
        if kind != CLASSIFIER_KIND:
            raise ModelError(
                f"{str(folder)!r} holds a model, not a classifier: it is left alone",
                remedy="choose another",
            )


def _network(
    size: tuple[int, int, int], classes: tuple[str, ...], settings: Mapping[str, Any]
) -> Convolutional:
    return Convolutional(size[0], max(size[1:]), len(classes), settings["width"], settings["depth"])


def _restored(
    size: tuple[int, int, int],
    classes: tuple[str, ...],
    settings: Mapping[str, Any],
    weights: Mapping[str, Tensor],
) -> Convolutional:
    """A network of this description with these weights, if they fit it."""
    if not all(w.is_floating_point() and bool(w.isfinite().all()) for w in weights.values()):
        raise ModelError("the weights are not real numbers")
    network = tensor_files.restored(
        lambda: _network(size, classes, settings), settings["depth"], weights
    )
    network.to(memory_format=FORMAT)  # type: ignore[call-overload] # sums in the same order
    return network.requires_grad_(False)


def _size(given: Any) -> tuple[int, int, int]:
    if not (isinstance(given, list) and len(given) == 3 and all(type(n) is int for n in given)):
        raise ModelError(f"size is three whole numbers, not {given!r}")
    check_size(tuple(given))
    return given[0], given[1], given[2]


def _classes(given: Any) -> tuple[str, ...]:
    if not (isinstance(given, list) and all(isinstance(each, str) for each in given)):
        raise ModelError("the classes are words")
    if not 2 <= len(given) == len({*given}) <= MAX_CLASSES:
        raise ModelError(f"the classes are two or more that differ, not {', '.join(given)!r}")
    return tuple(given)


# --- training -------------------------------------------------------------------------------------


def fit_classifier(
    data: xr.Dataset,
    labels: Any = None,
    seed: int = 0,
    *,
    epochs: int | None = None,
    width: int = 32,
    depth: int = 1,
    model: Guided | None = None,
    pool: int | None = None,
    progress: Watch = lambda moment: None,
) -> Classifier:
    """A classifier of the images `image(sample, [channel,] y, x)` by `labels` (N,), else by the
    variable `label`.

    `epochs`: times that so many images are seen. `model`: the surrogate that the classifier is to
    guide; `pool` of its estimates are learned from.
    """
    seed = whole_number(seed, "seed")
    if epochs is not None:
        epochs = whole_number(epochs, "epochs", least=1, most=100_000)
    if pool is not None:
        pool = whole_number(pool, "estimates", least=1, most=10**9)
    begun = time.perf_counter()
    images = Labelled.of(data, labels, seed)
    if model is not None:
        check_model(model, data)
    made = Classifier.untrained(images.pixels.codec.size, images.classes, seed, width, depth)
    blurred = None if model is None else estimate_pool(model, images, pool, seed, progress)
    batches = Batches(images, blurred, seed)
    updates = batches.updates(epochs)
    _train(made.network, batches, updates, progress)
    made.about = {
        "seed": seed,
        "images": len(images.truth),
        "learned": len(images.learned),
        "updates": updates,
        "model": None if model is None else model.digest,
        "pool": 0 if blurred is None else len(blurred[0]),
        "held_out": _held_out_scores(made, images, model, seed),
        "seconds": time.perf_counter() - begun,
    }
    return made


@torch.no_grad()
def _held_out_scores(
    made: Classifier, images: Labelled, model: Guided | None, seed: int
) -> dict[str, Any]:
    """Accuracy and calibration on held-out images, and on the model's estimates of them."""
    truth = images.truth[images.held_out]
    log_p = [made(images.pixels(rows)) for rows in split(images.held_out)]
    found = {"images": asdict(Measured.of(torch.cat(log_p), truth))}
    if model is not None:
        # other noise than that of the pool
        theirs = estimates(model, images.pixels.data, images.held_out, seed + 1)
        log_p = [made(theirs[rows].float()) for rows in split(np.arange(len(theirs)))]
        found["estimates"] = asdict(Measured.of(torch.cat(log_p), truth))
    return found


def _train(network: Convolutional, batches: Batches, updates: int, watch: Watch) -> None:
    """AdamW with warm-up and cosine decay."""
    plan = Settings(steps=updates, batch=batches.size, rate=LEARNING_RATE, warm_up=updates // 20)
    # no weight decay for biases and norms
    heavy = [w for w in network.parameters() if w.ndim > 1]
    light = [w for w in network.parameters() if w.ndim == 1]
    groups = [
        {"params": heavy, "weight_decay": WEIGHT_DECAY},
        {"params": light, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE)
    network.train()
    for step in range(updates):
        images, truth = batches(step)
        loss = cross_entropy(network(images), truth)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        size = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        if not math.isfinite(size.item() + loss.item()):
            raise TrainingError(f"the loss diverged at step {step} (it is {loss.item():g})")
        for group in optimizer.param_groups:
            group["lr"] = plan.rate_at(step)
        optimizer.step()
        watch(Progress("training", step + 1, updates, loss.item()))
    network.requires_grad_(False).eval()
