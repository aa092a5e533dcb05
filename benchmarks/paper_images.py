"""What the paper's experiments on images share: judging digits, contact sheets, rows of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
import xarray as xr
from paper_bench import NOTHING, Absent, Bench, Cost, measured
from torch import Tensor

from surrogate.guidance.sampler import sample
from surrogate.kinds.images.classifier import Classifier, fit_classifier
from surrogate.kinds.images.files import read_images
from surrogate.kinds.images.plot import contact_sheet
from surrogate.model import Surrogate

matplotlib.use("Agg")

DATA = Path(__file__).parents[2] / "shared" / "data"
SHEETS = Path(__file__).parent / "results" / "images"
SURE = 0.6  # confidence of the judge below which an image shows no digit
JUDGE = 7  # seed of the judge, which is no other's


def data_file(bench: Bench, name: str) -> Path:
    """A file of the data's folder."""
    path = Path(bench.options.data or DATA) / name
    if not path.exists():
        raise Absent(f"there is no {path}; give the folder of {name} with --data")
    return path


def judge(bench: Bench) -> Classifier:
    """The judge: --judge, or one that is trained now, on clean images and apart from any guide."""

    def make() -> Classifier:
        if bench.options.judge:
            return Classifier.load(bench.options.judge)
        bench.say("training the judge; --judge FOLDER takes one that is there")
        digits = read_images(data_file(bench, "train-images-idx3-ubyte.gz"))
        return fit_classifier(digits, seed=JUDGE)

    return bench.once("judge", make)


@dataclass
class Judged:
    """What the judge says of images (N, ...): the class of each, and how sure it is."""

    classes: np.ndarray
    confidence: np.ndarray

    @property
    def invalid(self) -> float:
        """Share that shows no digit."""
        return float((self.confidence < SURE).mean())


def pixels(data: xr.Dataset) -> Tensor:
    """The images of a dataset, (N · instances, C, H, W) from 0 to 1."""
    array = data["image"]
    full = array if "channel" in array.dims else array.expand_dims("channel")
    order = [dim for dim in ("sample", "instance", "channel", "y", "x") if dim in full.dims]
    values = np.ascontiguousarray(full.transpose(*order).values, np.float32)
    scale = 255 if array.dtype == np.uint8 else 1
    return torch.from_numpy(values.reshape(-1, *values.shape[-3:]) / scale)


@torch.no_grad()
def judged(classifier: Classifier, images: Tensor) -> Judged:
    shares = torch.cat([classifier(part).exp() for part in images.split(256)])
    confidence, classes = shares.max(1)
    return Judged(classes.numpy(), confidence.numpy())


@dataclass
class Made:
    """Samples of a method and what they cost."""

    method: str
    data: xr.Dataset
    cost: Cost

    @property
    def met(self) -> float:
        return float(self.data["satisfied"].mean())

    @property
    def log_p(self) -> str:
        found = self.data.attrs.get("surrogate_log_probability")
        return NOTHING if found is None else f"{found:.2f}"


def made(
    bench: Bench,
    method: str,
    model: Surrogate,
    samples: int,
    where: str,
    settings: dict[str, Any],
    seed: int | None = None,
) -> Made:
    """Samples of a scenario, with a message when they are complete."""
    cost = Cost(samples, 0.0)
    with measured(cost):
        own = bench.seed if seed is None else seed
        data = sample(model, samples, where, seed=own, **settings).dataset
    cost.evaluations = data.attrs["surrogate_evaluations"] / samples
    found = Made(method, data, cost)
    bench.say(f"{method}: {found.met:.1%} met, {cost.wall:.0f} s")
    return found


def sheet(bench: Bench, name: str, data: Any, **how: Any) -> str:
    """Write a contact sheet; a note that says where it is."""
    SHEETS.mkdir(parents=True, exist_ok=True)
    path = SHEETS / f"{name}.png"
    image = data if hasattr(data, "save") else contact_sheet(data, **how)
    image.save(path)
    bench.say(f"wrote {path}")
    return f"Contact sheet: `benchmarks/results/images/{path.name}`."


def asymmetry(images: Tensor) -> float:
    """Mean |image - its mirror image|."""
    return float((images - images.flip(-1)).abs().mean())


def surprise(model: Surrogate, images: Tensor, seed: int = 0) -> float:
    """Mean squared error of denoising images, with the weights of training: how unlike the data
    a model finds them. It is to be compared with that of held-out images."""
    generator = torch.Generator().manual_seed(seed)
    x = model.codec.encode(  # through the codec's own scale
        xr.Dataset({"image": (("sample", "channel", "y", "x")[-images.ndim :], images.numpy())})
        if images.shape[1] > 1
        else xr.Dataset({"image": (("sample", "y", "x"), images[:, 0].numpy())}),
        slice(None),
        generator,
    )
    total, levels = 0.0, np.exp(np.linspace(math.log(0.1), math.log(3.0), 8))
    with torch.no_grad():
        for level in levels.tolist():
            noisy = x + level * torch.randn(x.shape, generator=generator)
            error = model.denoiser(noisy, torch.tensor(level)) - x
            total += float(error.square().mean()) * (level**2 + 1) / level**2
    return total / len(levels)


def trade_off(name: str, points: dict[str, tuple[float, float]], realism: str) -> str:
    """Plot what a constraint costs; a note that says where it is."""
    SHEETS.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    ours = [point for key, point in points.items() if key.startswith("ours")]
    axes.plot(*zip(*ours, strict=True), color="#1f77b4", lw=1)
    for key, (x, y) in points.items():
        colour = "#1f77b4" if key.startswith("ours") else "#c62828"
        axes.scatter([x], [y], color=colour, zorder=3)
        axes.annotate(key, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set(xlabel="mean absolute asymmetry", ylabel=realism, title=name)
    axes.spines[["top", "right"]].set_visible(False)
    path = SHEETS / f"{name}-trade-off.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return f"Trade-off: `benchmarks/results/images/{path.name}`."
