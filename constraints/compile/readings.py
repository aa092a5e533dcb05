"""Which numbers of a flat sample a resolved term reads: those on which its value may depend.

Series at steps and in windows of steps are told apart; of a signal that is read as a whole, by a
function or as an image, all numbers count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from constraints.ast import formulas as f
from constraints.ast.lowered import BoundUntil, CategoryWeight
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Count, Name, Step
from constraints.ast.words import NOW
from constraints.layout.signals import Layout

Window = tuple[int, int]  # the first and the last step that a variable takes


def places(node: Node, layout: Layout) -> list[int]:
    """Positions in a flat sample (of all instances), ascending."""
    found = set(_Readings(layout).of(node, {}))
    return sorted(found)


class _Readings:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.every = (0, max(layout.steps - 1, 0))
        self.starts, place = dict[tuple[str, int], int](), 0
        for instance in range(1, layout.instances + 1):
            for signal in layout.signals:
                self.starts[signal.name, instance] = place
                place += signal.size

    def of(self, node: Node, windows: Mapping[str, Window]) -> Iterator[int]:
        match node:
            case Name(name, instance):
                signal = self.layout.find(name)
                if signal is not None:
                    start = self.starts[name, instance or 1]
                    yield from range(start, start + signal.size)
            case CategoryWeight(signal):
                yield from self.of(signal, windows)
            case At(Name(name, instance), step):
                if (name, instance or 1) in self.starts:
                    start = self.starts[name, instance or 1]
                    first, last = self.steps(step, windows)
                    yield from range(start + first, start + last + 1)
            case At(Apply("delta" | "cumsum" as function, (body,)), step):
                first, last = self.steps(step, windows)
                first = max(first - 1, 0) if function == "delta" else 0
                yield from self.of(body, {**windows, NOW: (first, last)})
            case Aggregate(body=body, first=Step() as first, last=Step() as last) | Count(
                body, Step() as first, Step() as last
            ):
                window = self.steps(first, windows)[0], self.steps(last, windows)[1]
                yield from self.of(body, {**windows, NOW: window})
            case f.Quantifier(_, variable, Step() as first, Step() as last, body):
                window = self.steps(first, windows)[0], self.steps(last, windows)[1]
                yield from self.of(body, {**windows, variable: window})
            case BoundUntil(variable=variable):
                for part in (node.left, node.right):
                    yield from self.of(part, {**windows, variable: self.every})
            case _:
                for child in node.children():
                    yield from self.of(child, windows)

    def steps(self, step: Step, windows: Mapping[str, Window]) -> Window:
        """The steps, on the grid, that an index takes."""
        low, high = (0, 0) if step.base is None else windows.get(step.base, self.every)
        ends = (min(max(each + step.offset, 0), self.every[1]) for each in (low, high))
        first, last = ends
        return first, last
