"""A classifier of images: log p(class | image), smooth in the image.

It has two uses. A judge says what a finished image shows: it learns from clean images. A guide is
asked on the way of a sampler about denoised estimates D(x_0 + σ n, σ), means of all images that may
have been meant: one that learned from clean images alone is too sure of itself there. With `model`,
half of each batch are such estimates, at noise levels spread evenly over log σ. The cross entropy
is least for p(class | what is seen), whatever is seen, so the guide's probabilities are those of a
class given an estimate.

How far confidence can be trusted is measured on images that were set aside: the expected
calibration error, the mean of |confidence - accuracy| over bins of confidence (Guo et al. 2017, "On
calibration of modern neural networks").
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, pad

from surrogate import store
from surrogate.codecs.images import IMAGE, ImageCodec, check_size, described, told
from surrogate.errors import ModelError, TrainingError, whole_number
from surrogate.model import Surrogate
from surrogate.networks.convolutional import Convolutional
from surrogate.networks.unet import FORMAT
from surrogate.pixels import LABEL
from surrogate.store import CONFIG, WEIGHTS
from surrogate.training import Settings, seeded

if TYPE_CHECKING:
    from constraints.signals import Classifier as Atom

KIND = "classifier"  # and the name of its folder within that of a model
FEWEST, EACH = 50, 5  # images in all and of a class
CLASSES = 1000
EPOCHS, SHORTEST = 10, 1_000  # steps that even few images are worth
BATCH = 128
RATE, DECAY = 3e-3, 1e-2
SHIFT = 2  # pixels by which images are moved at most, in training
LEAST, MOST = 0.05, 20.0  # noise levels of estimates, in normalised units
FEW, MANY = 10_000, 60_000  # estimates that are learned from
NUMBERS = 200_000_000  # in them
JUDGED = 5_000  # images that are set aside, and estimates of them
TOGETHER = 256  # images in a pass without gradients
BINS = 15  # of confidence
UNSURE = 0.6  # a confidence below it


@dataclass(frozen=True)
class Measured:
    """How good probabilities are: `unsure` is the share with a confidence below UNSURE."""

    accuracy: float
    calibration_error: float
    log_loss: float
    unsure: float
    images: int

    @classmethod
    def of(cls, log_p: Tensor, truth: Tensor) -> Measured:
        """Of log-probabilities (N, K) where the classes (N,) are true."""
        confidence, said = log_p.double().exp().max(1)
        right = (said == truth).double()
        where = (confidence * BINS).long().clamp_max(BINS - 1)
        gaps = torch.zeros(BINS, dtype=torch.float64).index_add_(0, where, confidence - right)
        return cls(
            accuracy=right.mean().item(),
            calibration_error=gaps.abs().sum().item() / len(truth),
            log_loss=-log_p.double().gather(1, truth[:, None]).mean().item(),
            unsure=(confidence < UNSURE).double().mean().item(),
            images=len(truth),
        )


@dataclass(frozen=True)
class Progress:
    """A moment of a run: so many of `total` are done of "estimates" or "training"."""

    what: str
    done: int
    total: int
    loss: float = math.nan


Watch = Callable[[Progress], None]


@dataclass(eq=False)
class Classifier:
    """What `fit_classifier` leaves; called on images (B, C, H, W), 0 to 1: log-probabilities (B, K)
    of its classes."""

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
        """One to which all classes are as likely."""
        settings = {"width": width, "depth": depth}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeded(seed, 20).initial_seed()))
            network = _network(size, classes, settings)
        return cls(network, classes, size, settings)

    def __call__(self, images: Tensor) -> Tensor:
        if images.ndim != 4 or tuple(images.shape[1:]) != self.size:
            sizes = ", ".join(map(str, self.size))
            raise ModelError(
                f"the classifier is of {told(self.size)}, (B, {sizes}), and these have shape "
                f"{tuple(images.shape)}"
            )
        scores = self.network(images.to(self.network.leave.weight))
        return log_softmax(scores, 1).to(images.dtype)

    def as_atom(self) -> Atom:
        """What formulas call: class(image, 3)."""
        from constraints.signals import Classifier as Atom

        return Atom(call=self, classes=self.classes)

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.network.parameters())

    @torch.no_grad()
    def log_probabilities(self, data: xr.Dataset) -> Tensor:
        """Of all images of a dataset: (N, K)."""
        read = _Pixels(data)
        if read.codec.size != self.size:
            raise ModelError(
                f"the classifier is of {told(self.size)}, and the data are {told(read.codec.size)}"
            )
        parts = [self(read(rows)) for rows in _split(np.arange(len(read)))]
        return torch.cat(parts) if parts else torch.zeros(0, len(self.classes))

    def measure(self, data: xr.Dataset, labels: Any = None) -> Measured:
        """How good it is on labelled images."""
        words = _labels(data, labels)
        unknown = sorted({*words} - {*self.classes})
        if unknown:
            raise ModelError(
                f"the classifier does not know the class {unknown[0]!r} (have: "
                f"{', '.join(self.classes)})"
            )
        if not words:
            raise ModelError("there are no images to measure a classifier with")
        places = {word: k for k, word in enumerate(self.classes)}
        truth = torch.tensor([places[word] for word in words])
        return Measured.of(self.log_probabilities(data), truth)

    # --- keeping ----------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the classifier's folder, whole or not at all; one that was there is replaced."""
        check_place(folder)
        with store.whole_folder(Path(folder)) as part:
            self.digest = store.write_tensors(part / WEIGHTS, self.network.state_dict())
            config = {
                "version": store.VERSION,
                "kind": KIND,
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
                f"{str(folder)!r} is no folder of a classifier: it has no {CONFIG}; make one: "
                "surrogate classifier DATA"
            )
        config = store.read_json(place / CONFIG)
        store.check_version(config, place / CONFIG)
        store.check_seal(config, place / CONFIG)
        if config.get("kind") != KIND:
            raise ModelError(
                f"{str(folder)!r} holds a model of {config.get('kind')!r}, not a classifier; make "
                "one: surrogate classifier DATA"
            )
        digest = str(config.get("weights"))
        weights = store.read_tensors(place / WEIGHTS, digest)
        try:
            size, classes = _size(config["size"]), _classes(config["classes"])
            settings = dict(config["network"])
            network = _restored(size, classes, settings, weights)
            return cls(network, classes, size, settings, dict(config["about"]), digest)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as problem:
            what = "cannot be used" if isinstance(problem, ModelError) else "is damaged"
            raise ModelError(f"{place} {what}: {problem}") from None


def classifier_of(folder: str | Path) -> Classifier | None:
    """The classifier that lies in the folder of a model, if there is one."""
    place = Path(folder) / KIND
    return Classifier.load(place) if place.is_dir() else None


def check_place(folder: str | Path) -> None:
    """Refuse to write over anything but a classifier."""
    place = Path(folder)
    store.check_replaceable(place)
    if (place / CONFIG).exists():
        try:
            kind = store.read_json(place / CONFIG).get("kind")
        except ModelError:  # damaged: whose it was cannot be told
            kind = None
        if kind != KIND:
            raise ModelError(
                f"{str(folder)!r} holds a model, not a classifier: it is left alone; choose another"
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
    depth = settings["depth"]
    if type(depth) is not int or not 1 <= depth <= len(weights):
        raise ModelError(f"a network of depth {depth!r} does not have {len(weights)} weights")
    with torch.device("meta"):  # its sizes, before any memory is taken
        network = _network(size, classes, settings)
    wanted = {name: value.shape for name, value in network.state_dict().items()}
    found = {name: value.shape for name, value in weights.items()}
    if wanted != found:
        name = next(iter({*wanted.items()} ^ {*found.items()}))[0]
        raise ModelError(f"the weights do not fit the network: {name} differs")
    if not all(w.is_floating_point() and bool(w.isfinite().all()) for w in weights.values()):
        raise ModelError("the weights are no real numbers")
    network.load_state_dict({k: v.float() for k, v in weights.items()}, assign=True)
    network.to(memory_format=FORMAT)  # type: ignore[call-overload] # sums in the same order
    return network.requires_grad_(False).eval()


def _size(given: Any) -> tuple[int, int, int]:
    if not (isinstance(given, list) and len(given) == 3 and all(type(n) is int for n in given)):
        raise ModelError(f"size is three whole numbers, not {given!r}")
    check_size(tuple(given))
    return given[0], given[1], given[2]


def _classes(given: Any) -> tuple[str, ...]:
    if not (isinstance(given, list) and all(isinstance(each, str) for each in given)):
        raise ModelError("the classes are words")
    if not 2 <= len(given) == len({*given}) <= CLASSES:
        raise ModelError(f"the classes are two or more that differ, not {', '.join(given)!r}")
    return tuple(given)


# --- data -----------------------------------------------------------------------------------------


class _Pixels:
    """Images of a dataset by number: (B, C, H, W), 0 to 1."""

    def __init__(self, data: xr.Dataset) -> None:
        size, whole = described(data)
        self.data = data[[IMAGE]].load()
        # a codec that normalises nothing, and checks what it reads
        self.codec = ImageCodec(size, (0.0,) * size[0], (1.0,) * size[0], whole)

    def __len__(self) -> int:
        return int(self.data.sizes["sample"])

    def __call__(self, rows: np.ndarray) -> Tensor:
        return self.codec.encode(self.data, rows, torch.Generator())


def _labels(data: xr.Dataset, labels: Any) -> list[str]:
    """One word for each image."""
    if labels is None:
        if LABEL not in data:
            raise ModelError(
                "the images have no labels to learn from: give a label for each, whole numbers or "
                "words (a variable 'label', or a file with --labels)"
            )
        labels = data[LABEL].values
    given = np.asarray(labels)
    count = int(data.sizes["sample"])
    if given.shape != (count,):
        many = f"{len(given):,} labels" if given.ndim == 1 else f"labels of shape {given.shape}"
        raise ModelError(f"{many} for {count:,} images; give one for each")
    if given.dtype.kind == "f" and np.isfinite(given).all() and (given % 1 == 0).all():
        given = given.astype(np.int64)
    if given.dtype.kind == "b":
        given = given.astype(np.int64)
    if given.dtype.kind not in "iuUO" or not all(
        isinstance(each, (str, int)) for each in given.tolist()
    ):
        raise ModelError(f"labels are whole numbers or words, not {given.dtype}")
    return [str(each) for each in given.tolist()]


def _sorted(words: list[str]) -> tuple[str, ...]:
    """Classes in order: that of numbers if all are whole ones."""
    known = {*words}
    if all(word.isascii() and word.removeprefix("-").isdigit() for word in known):
        return tuple(sorted(known, key=int))
    return tuple(sorted(known))


def _checked(words: list[str]) -> tuple[str, ...]:
    """Their classes, if they are enough to learn from."""
    if len(words) < FEWEST:
        raise ModelError(f"{len(words)} images are too few to learn from; give {FEWEST} or more")
    classes = _sorted(words)
    if len(classes) < 2:
        raise ModelError(
            f"all images have the label {classes[0]!r}: there is nothing to tell apart; give "
            "images of two classes or more"
        )
    if len(classes) > CLASSES:
        raise ModelError(
            f"{len(classes):,} labels that differ are no classes; up to {CLASSES:,} are learned"
        )
    names, counts = np.unique(np.array(words), return_counts=True)
    rare = counts.argmin()
    if counts[rare] < EACH:
        raise ModelError(
            f"the class {str(names[rare])!r} has {counts[rare]} of {len(words):,} images; give "
            f"{EACH} or more of each, or leave it out"
        )
    return classes


def _apart(truth: Tensor, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of images to learn from, and of a tenth of each class to judge by."""
    order = torch.randperm(len(truth), generator=seeded(seed, 21))
    share = min(0.1, JUDGED / len(truth))
    judges = []
    for own in range(int(truth.max()) + 1):
        members = order[truth[order] == own]
        judges.append(members[: max(1, int(share * len(members)))])
    held_out = np.sort(torch.cat(judges).numpy())
    return np.setdiff1d(np.arange(len(truth)), held_out), held_out


def _split(rows: np.ndarray, size: int = TOGETHER) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


# --- denoised estimates ---------------------------------------------------------------------------


@torch.no_grad()
def estimates(
    model: Surrogate, data: xr.Dataset, rows: np.ndarray, seed: int, watch: Watch
) -> Tensor:
    """What the model makes of noisy images: E[image | image + σ n] (N, C, H, W), 0 to 1, in half
    precision; each at a level of its own."""
    parts, done = [], 0
    for j, part in enumerate(_split(rows)):
        generator = seeded(seed, 22, j)
        clean = model.codec.encode(data, part, generator).to(model.device)
        spread = torch.rand(len(part), generator=generator)
        sigma = (LEAST * (MOST / LEAST) ** spread).to(clean)
        noise = torch.randn(clean.shape, generator=generator).to(clean)
        found = model.bounded(clean + sigma[:, None, None, None] * noise, sigma)
        parts.append(model.codec.decode(found)[IMAGE].clamp(0, 1).cpu().half())
        done += len(part)
        watch(Progress("estimates", done, len(rows)))
    return torch.cat(parts)


# --- learning -------------------------------------------------------------------------------------


def fit_classifier(
    data: xr.Dataset,
    labels: Any = None,
    seed: int = 0,
    *,
    epochs: int | None = None,
    width: int = 32,
    depth: int = 1,
    model: Surrogate | None = None,
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
    read = _Pixels(data)
    words = _labels(data, labels)
    classes = _checked(words)
    if model is not None:
        check_model(model, data)
    places = {word: k for k, word in enumerate(classes)}
    truth = torch.tensor([places[word] for word in words])
    learned, held_out = _apart(truth, seed)
    made = Classifier.untrained(read.codec.size, classes, seed, width, depth)
    blurred = None
    if model is not None:
        count = _pool(len(learned), read.codec.size, pool)
        order = torch.randperm(len(learned), generator=seeded(seed, 23)).numpy()
        rows = learned[order[np.arange(count) % len(learned)]]
        blurred = estimates(model, read.data, rows, seed, progress), truth[rows]
    batches = _Batches(read, truth, learned, blurred, seed)
    updates = batches.updates(epochs)
    _train(made.network, batches, updates, progress)
    judges = truth[held_out]
    measured = {"images": asdict(made.measure(data.isel(sample=held_out), [*_at(words, held_out)]))}
    if model is not None:
        found = estimates(model, read.data, held_out, seed + 1, lambda moment: None)
        log_p = torch.cat([_log_p(made, found[rows]) for rows in _split(np.arange(len(found)))])
        measured["estimates"] = asdict(Measured.of(log_p, judges))
    made.about = {
        "seed": seed,
        "images": len(words),
        "learned": len(learned),
        "updates": updates,
        "model": None if model is None else model.digest,
        "pool": 0 if blurred is None else len(blurred[0]),
        "held_out": measured,
        "seconds": time.perf_counter() - begun,
    }
    return made


def check_model(model: Surrogate, data: xr.Dataset) -> None:
    """Refuse a model that is not of images like these."""
    if not isinstance(model.codec, ImageCodec):
        raise ModelError(f"a classifier of images cannot guide a model of a {model.kind}")
    model.codec.matches(data)


def _at(words: list[str], rows: np.ndarray) -> list[str]:
    return [words[k] for k in rows.tolist()]


@torch.no_grad()
def _log_p(made: Classifier, images: Tensor) -> Tensor:
    return made(images.float())


def _pool(count: int, size: tuple[int, int, int], asked: int | None) -> int:
    """How many estimates to learn from."""
    wanted = min(max(count, FEW), MANY) if asked is None else asked
    return max(1, min(wanted, NUMBERS // math.prod(size)))


@dataclass(frozen=True)
class _Batches:
    """Images and their classes by step; with estimates, these are the second half."""

    read: _Pixels
    truth: Tensor
    learned: np.ndarray
    blurred: tuple[Tensor, Tensor] | None
    seed: int

    @property
    def size(self) -> int:
        return min(BATCH, len(self.learned))

    def updates(self, epochs: int | None) -> int:
        each = math.ceil(len(self.learned) / self.size)
        return max(SHORTEST, EPOCHS * each) if epochs is None else epochs * each

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        generator = seeded(self.seed, 24, step)
        clean = self.size if self.blurred is None else (self.size + 1) // 2
        rows = self._rows(step, clean)
        images, truth = self.read(rows), self.truth[rows]
        if self.blurred is not None:
            pool, theirs = self.blurred
            drawn = torch.randint(len(pool), (self.size - clean,), generator=generator)
            images = torch.cat([images, pool[drawn].float()])
            truth = torch.cat([truth, theirs[drawn]])
        return shifted(images, generator), truth

    def _rows(self, step: int, count: int) -> np.ndarray:
        """Every image once, then all again in another order."""
        total = len(self.learned)
        first, rows = step * count, np.zeros(0, np.int64)
        while len(rows) < count:
            turn, start = divmod(first + len(rows), total)
            order = torch.randperm(total, generator=seeded(self.seed, 25, turn)).numpy()
            rows = np.concatenate([rows, order[start : start + count - len(rows)]])
        return self.learned[rows]


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image (B, C, H, W) moved by up to SHIFT pixels, fewer if it is small; what comes in is
    like its edge."""
    count, _, height, width = images.shape
    most = min(SHIFT, min(height, width) // 8)
    if not most:
        return images
    wide = pad(images, (most,) * 4, mode="replicate")
    down, right = torch.randint(0, 2 * most + 1, (2, count), generator=generator)
    rows = (down[:, None] + torch.arange(height))[:, None, :, None]
    columns = (right[:, None] + torch.arange(width))[:, None, None, :]
    each = torch.arange(count)[:, None, None, None]
    return wide[each, torch.arange(images.shape[1])[:, None, None], rows, columns]


def _train(network: Convolutional, batches: _Batches, updates: int, watch: Watch) -> None:
    """AdamW with warm-up and cosine decay."""
    plan = Settings(steps=updates, batch=batches.size, rate=RATE, warm_up=updates // 20)
    # biases and norms are left free: only what multiplies pixels is held small
    heavy = [w for w in network.parameters() if w.ndim > 1]
    light = [w for w in network.parameters() if w.ndim == 1]
    groups = [{"params": heavy, "weight_decay": DECAY}, {"params": light, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
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
