"""Values of images: whole, at pixels, folded over the pixels of a region; classes of images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import reduce

import torch
from torch import Tensor

from constraints.ast.lowered import ClassProbability, Pixel, Pixels
from constraints.ast.terms import Apply, Name, Term
from constraints.errors import FormulaError
from constraints.evaluate.classes import Judged, judge, places
from constraints.evaluate.folds import Fold
from constraints.evaluate.frames import Frame, over_pixels
from constraints.layout.image_terms import is_image
from constraints.layout.pixels import mask
from constraints.layout.signals import Layout

TENSOR_FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "pow": torch.pow,
    "*": torch.mul,
    "/": torch.div,
}
VARIADIC_FUNCTIONS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "+": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
}


class ImageValues(ABC):
    """Evaluates the images, pixels and classes of a formula."""

    layout: Layout
    like: Tensor
    _images: dict[tuple[object, ...], Tensor]
    _judged: dict[tuple[object, ...], Judged]

    @abstractmethod
    def own(self, node: Name) -> Tensor:
        """The signal's tensor, of its instance."""

    @abstractmethod
    def term(self, node: Term, frame: Frame) -> Tensor:
        """The value of a term: (B, *sizes)."""

    def image(self, node: Term) -> Tensor:
        """A whole image: (B, C, H, W); of a constant one, (1, C, H, W)."""
        match node:
            case Name(name) if name in self.layout.pictures and self.layout.find(name) is None:
                return self.layout.pictures[name].to(self.like)[None]
            case Name():
                return self.own(node)
            case Apply(function, arguments):
                if node.key not in self._images:
                    if function in TENSOR_FUNCTIONS:
                        value = TENSOR_FUNCTIONS[function](*map(self.spread_out, arguments))
                    elif function in VARIADIC_FUNCTIONS:
                        value = reduce(
                            VARIADIC_FUNCTIONS[function], map(self.spread_out, arguments)
                        )
                    else:
                        value = self.call(node, Frame())
                        if not isinstance(value, Tensor) or value.ndim != 4:
                            shape = tuple(getattr(value, "shape", ()))
                            raise FormulaError(
                                f"{function} returns shape {shape}, not images (B, C, H, W)",
                                value=shape,
                                remedy='return 4 axes, or declare returns="number"',
                            )
                    self._images[node.key] = value
                return self._images[node.key]
        raise TypeError(f"{node!r} is not an image")

    def spread_out(self, node: Term) -> Tensor:
        """An image, or a number for every one of its pixels: (B, C, H, W) or (B, 1, 1, 1)."""
        if is_image(node, self.layout):
            return self.image(node)
        return self.term(node, Frame())[:, None, None, None]

    def call(self, node: Apply, frame: Frame) -> Tensor:
        """A function of the layout on whole signals and numbers."""
        function = self.layout.function(node.function)
        assert function is not None
        arguments = [self.argument(each, frame, function.whole) for each in node.arguments]
        value: Tensor = function.call(*arguments)
        return value

    def argument(self, node: Term, frame: Frame, whole: bool) -> Tensor:
        if isinstance(node, Pixels):
            return self.mask(node)
        if whole and is_image(node, self.layout):
            return self.image(node)
        if whole and isinstance(node, Name):
            return self.own(node)  # a column has one value, entire or not
        return self.term(node, frame)

    # pixels

    def mask(self, domain: Pixels) -> Tensor:
        """The mask (H, W) of the pixels of a domain."""
        return mask(domain, self.layout).to(self.like.device)

    def over_pixels(
        self,
        fold: Fold,
        variable: str,
        domain: Pixels,
        body: Callable[[Frame], Tensor],
        frame: Frame,
    ) -> Tensor:
        """`body` folded over the pixels of a domain."""
        value = body(over_pixels(frame, variable, domain, self.layout))
        return value[..., 0] if value.shape[-1] == 1 else fold.over(value, -1)

    def at_pixels(self, node: Term, variable: str, frame: Frame) -> Tensor:
        """An image at the pixels of a variable: (B, *sizes)."""
        image, domain = self.image(node), frame.pixels[variable]
        flat = (
            image.flatten(1) if domain.region is None else image[:, :, self.mask(domain)].flatten(1)
        )
        return frame.place(flat, frame.variables[variable])

    def pixel(self, node: Pixel, frame: Frame) -> Tensor:
        """One pixel: (B, *sizes), as its row and column may depend on bound variables."""
        image = self.image(node.image)[:, 0]
        row, column = (self.term(each, frame).long() for each in (node.row, node.column))
        return image.flatten(1)[:, (row * image.shape[-1] + column)[0]]

    # classes

    def judged_as(self, node: ClassProbability, frame: Frame) -> Judged:
        """The classifier's result for a class, (B, *sizes); each image is classified once."""
        classifier = self.layout.classifiers[node.classifier]
        key = (node.classifier, node.image.key)
        if key not in self._judged:
            self._judged[key] = judge(classifier, self.image(node.image))
        return self._judged[key].at(places(classifier, self.term(node.label, frame))[0])
