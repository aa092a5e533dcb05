"""Classifiers of MNIST: one that guides the model of digits, one that judges its samples.

surrogate classifier train-images-idx3-ubyte.gz --width 40 --depth 2 --epochs 8 --seed 1 -o judge
surrogate classifier train-images-idx3-ubyte.gz --model digits -o guide
python benchmarks/recipes/classifiers.py DATA digits guide judge

The script measures both on the 10,000 images that neither saw: as they are, as the model's denoised
estimates of them by noise level, and on what is no digit, of which a judge should not be sure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from surrogate.evaluation.calibration import UNSURE, Measured
from surrogate.kinds.images.classifier import Classifier
from surrogate.kinds.images.classifier_data import (
    ESTIMATE_SIGMAS,
    Pixels,
    class_indices,
    estimates,
    labels_of,
)
from surrogate.kinds.images.files import read_images
from surrogate.model import Surrogate

TEST = "t10k-images-idx3-ubyte.gz"
BANDS = (ESTIMATE_SIGMAS, (0.05, 0.2), (0.2, 1.0), (1.0, 5.0), (5.0, 20.0))
COUNT = 2_000  # estimates in a band, and images of each kind that is no digit


def not_digits(images: Tensor, truth: Tensor) -> dict[str, Tensor]:
    """Images (B, 1, 28, 28) that show no digit, of several kinds."""
    other = torch.roll(torch.arange(len(images)), 1)
    differ = truth != truth[other]
    first, second = images[differ], images[other][differ]
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(0))
    halves = torch.cat([first[..., :14], second[..., 14:]], -1)
    return {"noise": noise, "two digits blended": (first + second) / 2, "halves of two": halves}


@torch.no_grad()
def log_p(classifier: Classifier, images: Tensor) -> Tensor:
    parts = [classifier(images[k : k + 256]) for k in range(0, len(images), 256)]
    return torch.cat(parts)


def told(found: Measured) -> str:
    return (
        f"{found.accuracy:7.2%} right  calibration error {found.calibration_error:.4f}  "
        f"log loss {found.log_loss:.4f}  unsure {found.unsure:.2%}"
    )


def main(data: str, digits: str, *folders: str) -> None:
    test = read_images(Path(data) / TEST)
    model = Surrogate.load(digits)
    some = np.arange(COUNT)
    blurred = {band: estimates(model, test, some, 5, levels=band).float() for band in BANDS}
    for folder in folders:
        classifier = Classifier.load(folder)
        size = sum(each.stat().st_size for each in Path(folder).iterdir())
        about = classifier.about
        print(f"{folder}: {classifier.parameters:,} weights, {size / 1e6:.2f} MB, ", end="")
        print(f"{about['updates']:,} updates in {about['seconds']:.0f} s")
        print(f"  {'test images':28}{told(classifier.measure(test))}")
        truth = class_indices(labels_of(test, None), classifier.classes)[:COUNT]
        for (low, high), images in blurred.items():
            found = Measured.of(log_p(classifier, images), truth)
            print(f"  {f'estimates, sigma {low:g} to {high:g}':28}{told(found)}")
        for name, images in not_digits(Pixels(test)(some), truth).items():
            confidence = log_p(classifier, images).exp().max(1).values
            share = (confidence < UNSURE).double().mean().item()
            print(f"  {name:28}unsure {share:.1%}, mean confidence {confidence.mean():.2f}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    main(*sys.argv[1:])
