"""Labelled images, and the batches that a classifier is trained on.

Images are shifted at random by a pixel or two (augmentation). With a model, half of a batch are its
denoised estimates D(x_0 + σ n, σ), at which a guided sampler evaluates the classifier; a pool of
them is computed once, since an estimate costs as much as several training steps on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from torch.nn.functional import pad

from constraints.errors import Action
from surrogate.diffusion.denoise import Denoiser
from surrogate.errors import ModelError
from surrogate.kinds.codec import Codec
from surrogate.kinds.images.codec import ImageCodec, described
from surrogate.kinds.images.values import IMAGE, LABEL
from surrogate.random import ClassifierTraining, stream

MIN_IMAGES, MIN_CLASS_IMAGES = 50, 5  # in all and of each class
MAX_CLASSES = 1000
DEFAULT_EPOCHS, MIN_UPDATES = 10, 1_000  # steps that even few images are worth
CLASSIFIER_BATCH = 128
MAX_SHIFT = 2  # pixels by which images are moved at most
ESTIMATE_SIGMAS = 0.05, 20.0  # of the noise of estimates, in normalised units
MIN_ESTIMATES, MAX_ESTIMATES = 10_000, 60_000  # denoised estimates to learn from
MAX_ESTIMATE_PIXELS = 200_000_000  # of all estimates, channels counted
MAX_HELD_OUT = 5_000  # images that are set aside
INFERENCE_BATCH = 256  # images of a pass without gradients


@dataclass(frozen=True)
class Progress:
    """Progress of the stage `what`, "estimates" or "training": `done` of `total`."""

    what: str
    done: int
    total: int
    loss: float = math.nan


Watch = Callable[[Progress], None]


# --- data -----------------------------------------------------------------------------------------


class Pixels:
    """Images of a dataset by index: (B, C, H, W), 0 to 1."""

    def __init__(self, data: xr.Dataset) -> None:
        size, whole = described(data)
        self.data = data[[IMAGE]].load()
        # a codec that normalises nothing, and checks what it reads
        self.codec = ImageCodec(size, (0.0,) * size[0], (1.0,) * size[0], whole)

    def __len__(self) -> int:
        return int(self.data.sizes["sample"])

    def __call__(self, rows: np.ndarray) -> Tensor:
        return self.codec.encode(self.data, rows, torch.Generator())


def labels_of(data: xr.Dataset, labels: Any) -> list[str]:
    """The label of each image, as text."""
    if labels is None:
        if LABEL not in data:
            raise ModelError(
                "the images have no labels to learn from",
                remedy=(
                    "give a label for each, whole numbers or words: a variable 'label', or ",
                    Action("labels=...", "a file with --labels"),
                ),
            )
        labels = data[LABEL].values
    given = np.asarray(labels)
    count = int(data.sizes["sample"])
    if given.shape != (count,):
        many = f"{len(given):,} labels" if given.ndim == 1 else f"labels of shape {given.shape}"
        raise ModelError(
            f"{many} for {count:,} images", value=given.shape, remedy="give one for each"
        )
    if given.dtype.kind == "f" and np.isfinite(given).all() and (given % 1 == 0).all():
        given = given.astype(np.int64)
    if given.dtype.kind == "b":
        given = given.astype(np.int64)
    if given.dtype.kind not in "iuUO" or not all(
        isinstance(each, (str, int)) for each in given.tolist()
    ):
        raise ModelError(
            f"labels are whole numbers or words, not {given.dtype}", value=str(given.dtype)
        )
    return [str(each) for each in given.tolist()]


def _sorted(words: list[str]) -> tuple[str, ...]:
    """Classes in order: numerical if all are integers, else alphabetical."""
    known = {*words}
    if all(word.isascii() and word.removeprefix("-").isdigit() for word in known):
        return tuple(sorted(known, key=int))
    return tuple(sorted(known))


def _checked(words: list[str]) -> tuple[str, ...]:
    """The classes of labels; ModelError if there are too few images."""
    if len(words) < MIN_IMAGES:
        raise ModelError(
            f"{len(words)} images are too few to learn from",
            value=len(words),
            remedy=f"give {MIN_IMAGES} or more",
        )
    classes = _sorted(words)
    if len(classes) < 2:
        raise ModelError(
            f"all images have the label {classes[0]!r}: there is nothing to tell apart",
            remedy="give images of two classes or more",
        )
    if len(classes) > MAX_CLASSES:
        raise ModelError(
            f"{len(classes):,} different labels are too many classes",
            value=len(classes),
            remedy=f"give at most {MAX_CLASSES:,}",
        )
    names, counts = np.unique(np.array(words), return_counts=True)
    rare = counts.argmin()
    if counts[rare] < MIN_CLASS_IMAGES:
        raise ModelError(
            f"the class {str(names[rare])!r} has {counts[rare]} of {len(words):,} images",
            remedy=f"give {MIN_CLASS_IMAGES} or more of each, or leave it out",
        )
    return classes


@dataclass(frozen=True)
class Labelled:
    """Images with their classes (N,), split into training and held-out ones."""

    pixels: Pixels
    classes: tuple[str, ...]
    truth: Tensor
    learned: np.ndarray
    held_out: np.ndarray

    @classmethod
    def of(cls, data: xr.Dataset, labels: Any, seed: int) -> Labelled:
        """Labelled images; ModelError if they cannot be learned from."""
        pixels, words = Pixels(data), labels_of(data, labels)
        classes = _checked(words)
        truth = class_indices(words, classes)
        return cls(pixels, classes, truth, *_held_out_split(truth, seed))


def class_indices(words: list[str], classes: tuple[str, ...]) -> Tensor:
    """The index of each label among the classes, (N,)."""
    known = {word: k for k, word in enumerate(classes)}
    return torch.tensor([known[word] for word in words])


def _held_out_split(truth: Tensor, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of training images, and of held-out ones: a tenth of each class."""
    order = torch.randperm(len(truth), generator=stream(seed, ClassifierTraining.HELD_OUT_CHOICE))
    share = min(0.1, MAX_HELD_OUT / len(truth))
    judges = []
    for own in range(int(truth.max()) + 1):
        members = order[truth[order] == own]
        judges.append(members[: max(1, int(share * len(members)))])
    held_out = np.sort(torch.cat(judges).numpy())
    return np.setdiff1d(np.arange(len(truth)), held_out), held_out


def split(rows: np.ndarray, size: int = INFERENCE_BATCH) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


# --- denoised estimates ---------------------------------------------------------------------------


class Guided(Protocol):
    """A model whose sampling a classifier guides: `surrogate.model.Surrogate` is one."""

    codec: Codec
    digest: str

    @property
    def device(self) -> torch.device:
        """Where its weights are."""

    @property
    def bounded(self) -> Denoiser:
        """The denoiser with its estimates kept within the ranges of the variables."""


def check_model(model: Guided, data: xr.Dataset) -> None:
    """Refuse a model that is not of images like these."""
    if model.codec.kind != ImageCodec.kind:
        raise ModelError(f"a classifier of images cannot guide a model of {model.codec.noun}")
    model.codec.matches(data)


@torch.no_grad()
def estimates(
    model: Guided,
    data: xr.Dataset,
    rows: np.ndarray,
    seed: int,
    watch: Watch = lambda moment: None,
    levels: tuple[float, float] = ESTIMATE_SIGMAS,
) -> Tensor:
    """Denoised estimates E[image | image + σ n] (N, C, H, W), 0 to 1, in half precision; each has
    its own σ, log-uniform between `levels`."""
    least, most = levels
    parts, done = [], 0
    for j, part in enumerate(split(rows)):
        generator = stream(seed, ClassifierTraining.DENOISED, j)
        clean = model.codec.encode(data, part, generator).to(model.device)
        spread = torch.rand(len(part), generator=generator)
        sigma = (least * (most / least) ** spread).to(clean)
        noise = torch.randn(clean.shape, generator=generator).to(clean)
        found = model.bounded(clean + sigma[:, None, None, None] * noise, sigma)
        parts.append(model.codec.decode(found)[IMAGE].clamp(0, 1).cpu().half())
        done += len(part)
        watch(Progress("estimates", done, len(rows)))
    return torch.cat(parts)


def estimate_pool(
    model: Guided, images: Labelled, asked: int | None, seed: int, watch: Watch
) -> tuple[Tensor, Tensor]:
    """Estimates of training images, and their classes."""
    count, size = len(images.learned), images.pixels.codec.size
    wanted = min(max(count, MIN_ESTIMATES), MAX_ESTIMATES) if asked is None else asked
    wanted = max(1, min(wanted, MAX_ESTIMATE_PIXELS // math.prod(size)))
    order = torch.randperm(count, generator=stream(seed, ClassifierTraining.BALANCE)).numpy()
    rows = images.learned[order[np.arange(wanted) % count]]
    return estimates(model, images.pixels.data, rows, seed, watch), images.truth[rows]


# --- batches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batches:
    """The batch of each step: images and classes; with estimates, these are its second half."""

    images: Labelled
    blurred: tuple[Tensor, Tensor] | None
    seed: int

    @property
    def size(self) -> int:
        return min(CLASSIFIER_BATCH, len(self.images.learned))

    def updates(self, epochs: int | None) -> int:
        each = math.ceil(len(self.images.learned) / self.size)
        return max(MIN_UPDATES, DEFAULT_EPOCHS * each) if epochs is None else epochs * each

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        generator = stream(self.seed, ClassifierTraining.AUGMENTATION, step)
        clean = self.size if self.blurred is None else (self.size + 1) // 2
        rows = self._rows(step, clean)
        images, truth = self.images.pixels(rows), self.images.truth[rows]
        if self.blurred is not None:
            pool, theirs = self.blurred
            drawn = torch.randint(len(pool), (self.size - clean,), generator=generator)
            images = torch.cat([images, pool[drawn].float()])
            truth = torch.cat([truth, theirs[drawn]])
        return shifted(images, generator), truth

    def _rows(self, step: int, count: int) -> np.ndarray:
        """Indices of a batch: epochs over all images, each in a new order."""
        total = len(self.images.learned)
        first, rows = step * count, np.zeros(0, np.int64)
        while len(rows) < count:
            turn, start = divmod(first + len(rows), total)
            order = torch.randperm(
                total, generator=stream(self.seed, ClassifierTraining.SHUFFLE, turn)
            ).numpy()
            rows = np.concatenate([rows, order[start : start + count - len(rows)]])
        return self.images.learned[rows]


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Augmentation: images (B, C, H, W) shifted at random by up to MAX_SHIFT pixels, fewer if they
    are small; edges are replicated."""
    count, _, height, width = images.shape
    most = min(MAX_SHIFT, min(height, width) // 8)
    if not most:
        return images
    wide = pad(images, (most,) * 4, mode="replicate")
    down, right = torch.randint(0, 2 * most + 1, (2, count), generator=generator)
    rows = (down[:, None] + torch.arange(height))[:, None, :, None]
    columns = (right[:, None] + torch.arange(width))[:, None, None, :]
    each = torch.arange(count)[:, None, None, None]
    return wide[each, torch.arange(images.shape[1])[:, None, None], rows, columns]
