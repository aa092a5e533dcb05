"""Classification of images in batches: log-probabilities of the classes, and the verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from constraints.errors import FormulaError
from constraints.evaluate.log_probability import NEVER
from constraints.layout.functions import Classifier


@dataclass(frozen=True)
class Judged:
    """The result of a classifier for each sample and class k, (B, K).

    own: log p_k. others: log(1 - p_k). rival: the value that log p_k must exceed for k to be the
    verdict. likeliest: whether k is the verdict.
    """

    own: Tensor
    others: Tensor
    rival: Tensor
    likeliest: Tensor

    @classmethod
    def of(cls, scores: Tensor, sure: float = 0.0) -> Judged:
        """From log-probabilities (B, K), which are normalised. The verdict is the likeliest class,
        if its probability is at least `sure`."""
        own = scores.log_softmax(-1)
        best, second = own.topk(2, -1).values.T[..., None]
        likeliest = torch.nn.functional.one_hot(own.argmax(-1), own.shape[-1]).bool()
        rest = own.masked_fill(likeliest, -torch.inf)
        # 1 - p is a sum of others where p is near one, else exact by itself
        others = torch.where(likeliest, rest.logsumexp(-1, keepdim=True), torch.log1p(-rest.exp()))
        rival = torch.where(likeliest, second, best)
        if sure > 0:
            rival, likeliest = rival.clamp(min=math.log(sure)), likeliest & (own >= math.log(sure))
        return cls(own.clamp(min=NEVER), others.clamp(min=NEVER), rival, likeliest)

    def at(self, places: Tensor) -> Judged:
        """The result for the classes at positions `places` (*sizes): (B, *sizes)."""
        parts = (self.own, self.others, self.rival, self.likeliest)
        return Judged(*(part[:, places] for part in parts))


def places(classifier: Classifier, numbers: Tensor) -> Tensor:
    """The positions of the classes with these numbers (any shape) among all classes."""
    known = torch.tensor(classifier.numbers, device=numbers.device)
    return (numbers.round()[..., None] == known).long().argmax(-1)


def judge(classifier: Classifier, images: Tensor) -> Judged:
    """The result of the classifier for images (B, C, H, W)."""
    found = classifier.call(images)
    expected = (len(images), len(classifier.classes))
    if not isinstance(found, Tensor) or tuple(found.shape) != expected:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise FormulaError(
            f"a classifier of {expected[1]} classes returns log-probabilities {expected} of "
            f"{expected[0]} images, not {shape}",
            value=shape,
            remedy="give a callable from (B, C, H, W) to (B, K)",
        )
    return Judged.of(found, classifier.sure)
