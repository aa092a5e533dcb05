"""Resolution of images in formulas: their shapes, the pixels of a variable, classes.

The shape of an image that a function returns is found by calling the function on blank images, so
that its errors are raised when a formula is compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from constraints import evaluate
from constraints.ast.lowered import ClassProbability, Pixel, Pixels
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.walk import free
from constraints.ast.words import ARITHMETIC, NOW
from constraints.compile.comparisons import with_instance
from constraints.compile.scope import Scope, values
from constraints.errors import Action, FormulaError, quoted, unknown
from constraints.evaluate.frames import Frame
from constraints.layout.image_operators import OPERATORS
from constraints.layout.image_terms import is_image
from constraints.layout.signals import Layout
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

Shape = tuple[int, ...]


class ImageResolver(ABC):
    """Resolves the images, pixels and classes of a formula."""

    layout: Layout

    @abstractmethod
    def term(self, node: Term, scope: Scope) -> Term:
        """A resolved term whose value is a number."""

    # images

    def image(self, node: Term, scope: Scope) -> Term:
        """A whole image: a signal, a picture, or a function or arithmetic of images."""
        if not is_image(node, self.layout):
            known = [*(signal.name for signal in self.layout.images), *self.layout.pictures]
            raise FormulaError(
                f"{node} is not an image",
                value=str(node),
                allowed=[quoted(each) for each in known],
                remedy=self.picture_remedy(node),
            )
        if isinstance(node, Name):
            return self.named_image(node)
        assert isinstance(node, Apply)
        if node.function in ARITHMETIC:
            return Apply(node.function, tuple(self.whole(each, scope) for each in node.arguments))
        return self.call(node, scope)

    def named_image(self, node: Name) -> Name:
        """An image signal or a picture by name."""
        if self.layout.find(node.name) is not None:
            return with_instance(node, self.layout)
        if node.instance is not None:
            raise FormulaError(
                f"{node}: a picture has no instances",
                value=node.instance,
                remedy=f"write {node.name}",
            )
        return Name(node.name)

    def whole(self, node: Term, scope: Scope) -> Term:
        """An argument of a function that takes whole signals."""
        if is_image(node, self.layout):
            return self.image(node, scope)
        if isinstance(node, Name) and self.layout.find(node.name) is not None:
            return with_instance(node, self.layout)
        return self.term(node, scope)

    def call(self, node: Apply, scope: Scope) -> Term:
        """A function of the layout on its arguments."""
        function = self.layout.function(node.function)
        assert function is not None
        function.check(node.function, len(node.arguments))
        if function is OPERATORS.get(node.function):
            self.image(node.arguments[0], scope)  # raises if it is not an image
        if not function.whole:
            return Apply(node.function, tuple(self.term(each, scope) for each in node.arguments))
        sizes = [
            self.shape(self.image(each, scope))
            for each in node.arguments
            if is_image(each, self.layout)
        ]
        arguments = tuple(
            self.region_pixels(each.name, sizes[0])
            if sizes and isinstance(each, Name) and self.names_region(each)
            else self.whole(each, scope)
            for each in node.arguments
        )
        found = Apply(node.function, arguments)
        if function.returns != "number" and free(found):
            raise FormulaError(
                f"{node}: a bound variable cannot be an argument of {node.function}, which "
                f"returns a whole {function.returns}",
                remedy="give a number, a parameter or a signal",
            )
        if function.returns == "number" and self.layout.images and not free(found):
            self.on_blank_images(found, lambda: self.blank.call(found, Frame()))
        return found

    def returns_whole_signal(self, function: str) -> bool:
        """Whether a function's result is a series or an image, not one number."""
        known = self.layout.function(function)
        return known is not None and known.returns != "number"

    def picture_remedy(self, node: Node) -> tuple[str | Action, ...]:
        """How to give a picture, if an unknown name may be that of one."""
        if not self.layout.images or not isinstance(node, Name):
            return ()
        if node.name in self.layout.names or node.name in self.layout.parameters:
            return ()
        given = Action(f"pictures={{{node.name!r}: image}}", f"--picture {node.name}=FILE")
        return ("a picture is given by its name, ", given)

    @cached_property
    def blank(self) -> evaluate.Evaluator:
        """An evaluator of two blank samples; two, to tell a value per sample from a constant."""
        points = torch.zeros(2, self.layout.size)
        return evaluate.Evaluator(self.layout, self.layout.split(points), evaluate.Boolean())

    def shape(self, image: Term) -> Shape:
        """(C, H, W) of a resolved image."""
        return tuple(self.on_blank_images(image, lambda: self.blank.image(image)).shape[1:])

    def on_blank_images(self, node: Term, call: Callable[[], Tensor]) -> Tensor:
        """The result of `call`, which evaluates the node on blank images; errors name the node."""
        try:
            return call()
        except FormulaError as problem:
            raise problem.at(str(node)) from None
        except Exception as problem:  # of a function that a user wrote
            raise FormulaError(
                f"{node} fails on a blank image: {problem}",
                remedy="a function of images must accept any image (B, C, H, W)",
            ) from problem

    # pixels

    def names_region(self, node: Name) -> bool:
        known = node.name in self.layout.names or node.name in self.layout.pictures
        return not known and self.layout.is_region(node.name)

    def region_pixels(self, region: str | None, shape: Shape) -> Pixels:
        """The pixels of a region, which must exist, in images of a shape."""
        if region is not None:
            self.layout.region(region, (shape[1], shape[2]))
        return Pixels(region, shape)

    def domain(self, body: Node, variable: str, region: str | None) -> Pixels:
        """The pixels that a variable ranges over: those of the images that are read at it."""
        found: dict[Shape, Term] = {}
        for image in _read_at(body, variable):
            found.setdefault(self.shape(image), image)
        if len(found) > 1:
            (one, first), (other, second), *_ = found.items()
            remedy = "compare images of one shape"
            for image, size in ((first, other), (second, one)):
                if isinstance(image, Name) and image.name in self.layout.pictures:
                    remedy = f"give a {image} of {_by(size)} pixels"
            raise FormulaError(
                f"{first} has {_by(one)} pixels, {second} {_by(other)}",
                value=(one, other),
                remedy=remedy,
            )
        shapes = [*found, *(signal.shape for signal in self.layout.images)]
        if not shapes:
            raise unknown("region", str(region), self.layout.regions)
        return self.region_pixels(region, shapes[0])

    def pixel_variable(self, when: Step, series: Node, scope: Scope) -> Step:
        """The renamed variable at which an image is read, which must range over pixels."""
        renamed = scope.here.base if when.base == NOW else scope.variables.get(when.base or "")
        if renamed not in scope.pixels or when.offset:
            raise FormulaError(
                f"{series}({when}): a pixel is a variable bound by forall or exists, or a row "
                f"and a column, not {when}",
                value=str(when),
                remedy=f"write forall p: {series}(p) >= 0, or {series}(3, 4)",
            )
        return Step(renamed)

    def pixel(self, node: Apply, image: Term, places: tuple[Term, ...], scope: Scope) -> Term:
        """`image(3, 4)`: a row and a column."""
        found = self.image(image, scope)
        shape = self.shape(found)
        if len(places) != 2:
            raise FormulaError(
                f"{node}: a pixel is a row and a column, not {len(places)} numbers",
                value=len(places),
                remedy=f"write {image}(3, 4)",
            )
        if shape[0] != 1:
            raise FormulaError(
                f"{node}: {image} has {shape[0]} channels",
                value=shape[0],
                remedy=f"read one, as in red({image})(3, 4) or grey({image})(3, 4)",
            )
        row, column = (self.term(each, scope) for each in places)
        for what, side, place, size in (
            ("rows", "top", row, shape[1]),
            ("columns", "left", column, shape[2]),
        ):
            for value in values(place, scope, f"{node}: a {what[:-1]}"):
                if value not in range(size):
                    raise FormulaError(
                        f"{node}: there is no {what[:-1]} {value:g}",
                        value=value,
                        remedy=f"{what} are 0 to {size - 1}, counted from the {side}",
                    )
        return Pixel(found, row, column)

    # classes

    def class_probability(self, node: Apply, scope: Scope) -> ClassProbability:
        """`class(image, 3)`, `class(image, "trouser")`, `class(image, 10 - i)`."""
        classifier = self.layout.classifiers[node.function]
        legal = classifier.classes
        if len(node.arguments) != 2:
            example = legal[0] if legal[0].isdigit() else f'"{legal[0]}"'
            raise FormulaError(
                f"{node}: {node.function} takes an image and a class, not "
                f"{len(node.arguments)} argument(s)",
                value=len(node.arguments),
                allowed=[quoted(each) for each in legal],
                remedy=f"write {node.function}(image, {example})",
            )
        image, label = node.arguments
        found = self.image(image, scope)
        self.shape(found)  # raises if the image cannot be computed
        labels = tuple(zip(classifier.numbers, legal, strict=True))
        if isinstance(label, Name) and label.name in legal:
            number = Const(classifier.numbers[legal.index(label.name)])
            return ClassProbability(node.function, found, number, labels)
        if isinstance(label, Name) and label.name not in self.layout.parameters:
            raise unknown("class", label.name, legal, where=f" in {node}")
        which = self.term(label, scope)
        for value in values(which, scope, f"{node}: a class"):
            if value not in classifier.numbers:
                raise FormulaError(
                    f"{node}: there is no class {value:g}", value=value, allowed=_classes(labels)
                )
        return ClassProbability(node.function, found, which, labels)


def _read_at(body: Node, variable: str) -> Iterable[Term]:
    """The images read at a variable; an aggregate has a `now` of its own."""
    if isinstance(body, At) and body.step.base == variable:
        yield body.series
    for child in body.children():
        if variable != NOW or not isinstance(child, (Aggregate, Count)):
            yield from _read_at(child, variable)


def _by(shape: Shape) -> str:
    return "x".join(str(size) for size in shape)


def _classes(labels: tuple[tuple[int, str], ...]) -> list[str]:
    """The classes as an error lists them: their numbers, with labels that differ."""
    return [label if str(number) == label else f"{number} {label}" for number, label in labels]
