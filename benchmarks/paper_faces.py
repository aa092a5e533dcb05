"""The paper's experiments on faces: mean colour, symmetry, restoration.

Faces of 32 x 32 pixels, of which the last ones are not learned from: they are what is restored.
"Unlike the data" is the error of denoising samples over that of held-out faces: 1 is as alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from paper_bench import NOTHING, Bench, Found, share
from paper_images import asymmetry, data_file, made, pixels, sheet, surprise, trade_off
from report import Target
from torch import Tensor

from constraints.layout.image_operators import OPERATORS
from surrogate import fitting
from surrogate.kinds.images.files import from_array
from surrogate.kinds.images.plot import before_after
from surrogate.model import Surrogate

FILE = "faces_utk_32x32_rgb.npz"
UNSEEN = 780  # faces at the end of the file
RESTORED = 8  # of them that are restored
RESTORATIONS = 6  # samples of each
MAX_SAMPLES, MAX_SAMPLES_SLOW = 16, 16  # samples of a scenario, and of the slow methods
COLOURS = ("red", "green", "blue")
MIRRORED = "forall p: image(p) = mirror(image)(p)"
WIDTHS = (0.0, 0.05, 0.1)  # how far pixels may lie apart
DEBLUR, UPSAMPLE = "blur(image, 1.5)", "downsample(image, 4)"


@dataclass
class Subject:
    """A model of faces, and faces (N, 3, 32, 32) from 0 to 1 that it never saw."""

    model: Surrogate
    unseen: Tensor


def subject(bench: Bench) -> Subject:
    """That of --model, or trained now."""

    def make() -> Subject:
        values = np.load(data_file(bench, FILE), allow_pickle=False)["images"]
        unseen = torch.from_numpy(values[-UNSEEN:].transpose(0, 3, 1, 2).copy()).float() / 255
        if bench.options.model:
            return Subject(Surrogate.load(bench.options.model), unseen)
        bench.say("training a model of faces; --model FOLDER takes one that is there")
        return Subject(fitting.fit(from_array(values[:-UNSEEN]), seed=0), unseen)

    return bench.once("faces", make)


def counts(bench: Bench) -> tuple[int, int]:
    return min(bench.samples, MAX_SAMPLES), min(bench.slow, MAX_SAMPLES_SLOW)


def unlike(own: Subject, images: Tensor) -> float:
    return surprise(own.model, images) / surprise(own.model, own.unseen[: len(images)])


def colour(bench: Bench) -> Found:
    """Faces of a mean colour: that of the darkest and of the lightest tenth of held-out faces."""
    own, (count, few) = subject(bench), counts(bench)
    shades = own.unseen.mean((2, 3))
    order = shades.sum(1).argsort()
    rows, targets, notes = [], [], []
    for name, place in (("dark", 0.1), ("light", 0.9)):
        target = shades[order[int(place * len(order))]].tolist()
        where = " and ".join(
            f"mean({c}(image)) = {v:.4f}" for c, v in zip(COLOURS, target, strict=True)
        )
        ways = [
            ("ours: moments", count, {"method": "moments"}),
            ("paper: forward", few, {"method": "universal", "hardness": 30.0}),
            ("paper", few, {"method": "guidance", "hardness": 30.0, "langevin": 0}),
        ]
        for method, number, settings in ways:
            run = made(bench, f"{method}, {name}", own.model, number, where, settings)
            images = pixels(run.data)
            off = (images.mean((2, 3)) - torch.tensor(target)).abs()
            rows.append(
                [
                    name,
                    method,
                    f"{number}",
                    f"{off.mean():.4f} / {off.max():.4f}",
                    f"{unlike(own, images):.2f}",
                    f"{run.cost.cpu:,.0f}",
                    f"{run.cost.wall:,.0f}",
                ]
            )
            if method.startswith("ours"):
                largest = float(off.max())
                targets.append(
                    Target(f"{name}: mean colour off by, at most", largest, 0.02, True, "")
                )
                notes.append(sheet(bench, f"faces-colour-{name}", run.data))
        rows.append([name, "published", NOTHING, "pictures", NOTHING, NOTHING, NOTHING])
    head = ["target", "method", "samples", "colour off by, mean / max", "unlike the data"]
    return Found(targets, {"faces of a colour": ([*head, "CPU s", "wall s"], rows)}, notes)


def symmetry(bench: Bench) -> Found:
    """Faces that are their own mirror images, more or less, and what that costs."""
    own, (count, few) = subject(bench), counts(bench)
    rows, points, notes = [], {}, []
    runs = [
        (
            f"ours: moments, +- {width:g}",
            count,
            f"{MIRRORED} +- {width:g}" if width else MIRRORED,
            {"method": "moments"},
        )
        for width in WIDTHS
    ]
    runs.append(("paper: forward", few, MIRRORED, {"method": "universal", "hardness": 5.0}))
    for name, number, where, settings in runs:
        run = made(bench, name, own.model, number, where, settings)
        images = pixels(run.data)
        points[name] = asymmetry(images), unlike(own, images)
        rows.append(
            [
                name,
                f"{number}",
                f"{points[name][0]:.4f}",
                f"{points[name][1]:.2f}",
                share(run.met),
                f"{run.cost.cpu:,.0f}",
                f"{run.cost.wall:,.0f}",
            ]
        )
        if name.startswith("ours"):
            notes.append(sheet(bench, f"faces-symmetry-{name.split()[-1]}", run.data))
    points["held-out faces"] = asymmetry(own.unseen), 1.0
    rows.append(
        ["held-out faces", f"{UNSEEN}", f"{asymmetry(own.unseen):.4f}", "1", *[NOTHING] * 3]
    )
    rows.append(["published", NOTHING, "pictures", *[NOTHING] * 4])
    notes.append(trade_off("faces-symmetry", points, "unlike the data"))
    head = ["method", "samples", "asymmetry", "unlike the data", "met", "CPU s", "wall s"]
    targets = [Target("asymmetry of the exact", points["ours: moments, +- 0"][0], 0.05, True, "")]
    return Found(targets, {"faces that are their own mirror images": (head, rows)}, notes)


# --- restoration ----------------------------------------------------------------------------------


def psnr(images: Tensor, truth: Tensor) -> float:
    """Mean peak signal-to-noise ratio in decibels, image by image."""
    error = (images - truth).square().mean((-3, -2, -1))
    return float((-10 * torch.log10(error)).mean())


def corrupted(term: str, images: Tensor) -> Tensor:
    """What an operator of the language, written as OPERATOR(image, NUMBER), makes of images."""
    name, number = term.removesuffix(")").split("(image, ")
    return OPERATORS[name].call(images, float(number))


def plain(term: str, seen: Tensor) -> Tensor:
    """What one would have without a model: bicubic interpolation, or the blurred image itself."""
    if seen.shape[-1] == 32:
        return seen
    scaled = torch.nn.functional.interpolate(seen, (32, 32), mode="bicubic", antialias=False)
    return scaled.clamp(0, 1)


def restore(bench: Bench) -> Found:
    """Held-out faces from blurred, small and covered images of them."""
    own = subject(bench)
    truth = own.unseen[:RESTORED]
    rows, targets, notes = [], [], []
    known = torch.ones(32, 32, dtype=torch.bool)
    known[10:20, 8:24] = False  # the eyes
    tasks = {"deblur": DEBLUR, "upsample": UPSAMPLE, "inpaint": "image"}
    for task, term in tasks.items():
        seen = truth if task == "inpaint" else corrupted(term, truth)
        samples, errors, wall = [], [], 0.0
        within = " in known" if task == "inpaint" else ""
        where = f"forall p{within}: {term}(p) = target(p)"
        for i in range(RESTORED):
            model = own.model.knowing(pictures={"target": seen[i]}, regions={"known": known})
            run = made(bench, f"{task} {i}", model, RESTORATIONS, where, {"method": "moments"}, i)
            found, wall = pixels(run.data), wall + run.cost.wall
            again = found * known if task == "inpaint" else corrupted(term, found)
            wanted = seen[i] * known if task == "inpaint" else seen[i]
            errors.append(float((again - wanted).abs().mean()))
            samples.append(found)
        every = torch.stack(samples)  # (faces, RESTORATIONS, 3, 32, 32)
        simple = plain(term, seen) if task != "inpaint" else seen * known
        figures = {
            "samples": psnr(every, truth[:, None]),
            "mean of samples": psnr(every.mean(1), truth),
            "without a model": psnr(simple, truth),
        }
        error = float(np.mean(errors))
        shown = [f"{value:.2f}" for value in figures.values()]
        rows.append([task, f"{RESTORED}", f"{error:.4f}", *shown, f"{wall / RESTORED:.1f}"])
        if task != "inpaint":
            gain = figures["samples"] - figures["without a model"]
            better = figures["mean of samples"] - figures["without a model"]
            name = "the blurred image" if task == "deblur" else "bicubic"
            targets += [
                Target(f"{task}: measurement error a channel", error, 0.015, True, ""),
                Target(f"{task}: PSNR of samples above {name}", gain, 0.0, unit=" dB"),
                Target(f"{task}: PSNR of their mean above {name}", better, 0.0, unit=" dB"),
            ]
        notes.append(_sheet(bench, task, truth, simple, every))
    rows.append(["published, deblur and upsample", NOTHING, "< 0.015", *[NOTHING] * 4])
    head = ["task", "faces", "measurement error"]
    head += [f"PSNR, {name}" for name in figures] + [f"wall s for {RESTORATIONS} samples"]
    return Found(targets, {"faces restored": (head, rows)}, notes)


def _sheet(bench: Bench, task: str, truth: Tensor, seen: Tensor, every: Tensor) -> str:
    def shown(images: Tensor) -> np.ndarray:
        return (images.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()

    columns = {"truth": shown(truth), "given": shown(seen)}
    columns |= {f"sample {k + 1}": shown(every[:, k]) for k in range(every.shape[1])}
    columns["mean"] = shown(every.mean(1))
    return sheet(bench, f"faces-{task}", before_after(columns))


EXPERIMENTS = {"faces-colour": colour, "faces-symmetry": symmetry, "faces-restore": restore}
