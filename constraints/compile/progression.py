"""Progression of formulas over grid steps: what is left of one after the steps so far.

Progression (Bacchus & Kabanza 2000) rewrites a formula over the steps k, k + 1, ... by what the
state at step k shows, into one over k + 1, .... What is left after the last step is true or false.
Sums and counts become what is missing to their bounds, and `max` and `min` remember the extreme so
far. Equal remainders are one object, so that they can be counted and compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


class Remainder:
    """What is left of a formula: a node of a graph in which equal nodes are one object.

    kind "leaf": a condition `payload` on the state at `step`; "value": a term of it; "passage": a
    first passage by number; "not": the opposite of one; "and", "or": of `parts`; "atom": bounds
    `payload` on a sum of `parts` with coefficients and a constant; "max", "min": of `parts` and a
    constant; "truth": 1 where its part holds.
    """

    __slots__ = ("kind", "parts", "payload", "reads")

    def __init__(self, kind: str, payload: Any, parts: tuple[Any, ...], reads: frozenset[Any]):
        self.kind, self.payload, self.parts, self.reads = kind, payload, parts, reads


class Remainders:
    """All remainders of one formula: the graph, and its simplification."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Remainder] = {}

    def progressed(
        self, node: Any, found: Mapping[Any, Any], done: dict[int, Any] | None = None
    ) -> Any:
        """A node with the values found for some of what it reads put in; `done` by id of node."""
        done = {} if done is None else done
        if not isinstance(node, Remainder) or found.keys().isdisjoint(node.reads):
            return node
        if id(node) in done:
            return done[id(node)]
        if node.kind in ("leaf", "value", "passage"):
            (key,) = node.reads
            return found[key]
        parts = [self.progressed(each, found, done) for each in node.parts]
        result: Any
        match node.kind:
            case "not":
                result = not parts[0]
            case "and" | "or":
                result = self.joined(node.kind, parts)
            case "truth":
                result = self.truth(parts[0])
            case "max" | "min":
                result = self.extreme(node.kind, [*parts, node.payload])
            case _:
                bounds, coefficients, constant = node.payload
                result = self.atom(bounds, coefficients, parts, constant)
        done[id(node)] = result
        return result

    def node(self, kind: str, payload: Any, parts: tuple[Any, ...], reads: Any = None) -> Remainder:
        key = (kind, payload, tuple(id(each) for each in parts))
        if key not in self._nodes:
            below = [each.reads for each in parts]
            reads = frozenset().union(*below) if reads is None else reads
            self._nodes[key] = Remainder(kind, payload, parts, reads)
        return self._nodes[key]

    def joined(self, kind: str, parts: Sequence[Any]) -> Any:
        neutral = kind == "and"
        flat: dict[int, Any] = {}
        for part in parts:
            if isinstance(part, bool):
                if part != neutral:
                    return part
                continue
            for each in part.parts if part.kind == kind else (part,):
                flat[id(each)] = each
        if not flat:
            return neutral
        kept = self._absorbed(kind, list(flat.values()))
        kept.sort(key=id)
        return kept[0] if len(kept) == 1 else self.node(kind, None, tuple(kept))

    def _absorbed(self, kind: str, parts: list[Any]) -> list[Any]:
        """Without parts that follow from others: a and (a or b) is a."""
        other = "or" if kind == "and" else "and"
        sets = [{id(e) for e in p.parts} if p.kind == other else {id(p)} for p in parts]
        order = sorted(range(len(parts)), key=lambda i: len(sets[i]))
        kept: list[int] = []
        for i in order:
            if not any(sets[j] <= sets[i] for j in kept):
                kept.append(i)
        return [parts[i] for i in kept]

    def truth(self, part: Any) -> Any:
        return float(part) if isinstance(part, bool) else self.node("truth", None, (part,))

    def extreme(self, kind: str, parts: Sequence[Any]) -> Any:
        choose = max if kind == "max" else min
        known = [each for each in parts if isinstance(each, float)]
        open_ = {id(each): each for each in parts if isinstance(each, Remainder)}
        best = choose(known, default=None)
        if not open_:
            return best
        return self.node(kind, best, tuple(sorted(open_.values(), key=id)))

    def atom(
        self, bounds: Any, coefficients: Sequence[float], parts: Sequence[Any], constant: float
    ) -> Any:
        kept = []
        for coefficient, part in zip(coefficients, parts, strict=True):
            if isinstance(part, float):
                constant += coefficient * part
            else:
                kept.append((coefficient, part))
        low, high, open_low, open_high = bounds
        constant = rounded(constant)  # sums in another order are the same
        # what truths can still add decides many counts early
        free = math.inf if any(part.kind != "truth" for _, part in kept) else 0.0
        least = constant - free + sum(min(c, 0.0) for c, _ in kept)
        most = constant + free + sum(max(c, 0.0) for c, _ in kept)
        above = [y > low if open_low else y >= low for y in (least, most)]
        below = [y < high if open_high else y <= high for y in (least, most)]
        if above[0] and below[1]:
            return True
        if not above[1] or not below[0] or not kept:
            return False
        payload = (bounds, tuple(c for c, _ in kept), constant)
        return self.node("atom", payload, tuple(part for _, part in kept))


def rounded(value: float) -> float:
    return float(f"{value:.12g}")
