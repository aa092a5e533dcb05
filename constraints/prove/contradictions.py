"""Contradictions that interval reasoning can prove, before anything is sampled.

Linear atoms of a formula, under `and` and `forall`, bound sums of readings. Bounds are passed from
sum to reading and back (feasibility-based bound tightening) until nothing changes, whole numbers
being rounded inwards; a disjunction counts once all but one of its branches have been refuted. A
reading left with no value proves that no data can satisfy the formula, and so do orders that lead
from a reading to itself (see `orders`). The proof is sound, not complete: nothing found does not
mean that the formula can be met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from constraints import gaussian
from constraints.ast import formulas as f
from constraints.ast.families import factored
from constraints.ast.lowered import Atom, Pixels
from constraints.compile.linearity import linear
from constraints.compile.lower import lower
from constraints.compile.resolve import resolve
from constraints.errors import ImpossibleError
from constraints.evaluate.frames import Frame, Index, over_pixels
from constraints.layout.image_operators import CHANNELS
from constraints.layout.signals import Layout, Signal
from constraints.prove.bounds import Bounds, Choice, Conflict, Sources, Sum, shown_as
from constraints.prove.orders import refuse_cycle
from constraints.prove.ranges import refuse_impossible_parameters
from constraints.prove.rows import rows

# limits of the effort; sums beyond them are left out, which keeps a proof sound
MAX_READINGS = 4_000  # numbers of a flat sample
MAX_SUMS = 20_000
MAX_COEFFICIENTS = 40_000  # of all sums together
MAX_BRANCHES = 2_000  # of all disjunctions together
MAX_EXPANDED_STEPS = 100  # of a quantifier around a disjunction, one set of rows for each step
MAX_TIGHTENING_ROUNDS = 50


@dataclass(frozen=True)
class Contradiction:
    """Parts of a formula that cannot hold together, and the reason."""

    parts: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        listed = "\n".join(f"  {part}" for part in self.parts)
        subject = "this" if len(self.parts) == 1 else "these together"
        return f"no data can satisfy {subject}:\n{listed}\n{self.reason}"


def find(
    formula: f.Formula,
    layout: Layout,
    given: Iterable[f.Formula] = (),
    end: str | None = None,
) -> Contradiction | None:
    """A contradiction of the formula with the `given` rules, which all data obey; or None."""
    parts = [*_conjuncts(formula), *(part for rule in given for part in _conjuncts(rule))]
    prover = _Prover(layout, parts, end)
    conflict = prover.conflict(range(len(parts)))
    if conflict is None:
        return None
    needed = [i for i in conflict.sources if i < len(parts)]
    for candidate in list(needed):  # drop what the proof does not need
        shorter = [i for i in needed if i != candidate]
        found = prover.conflict(shorter)
        if found is not None:
            needed, conflict = shorter, found
    limits = sorted(i for i in conflict.sources if i >= len(parts))
    named = [str(parts[i]) for i in sorted(needed)] + [prover.limit(i) for i in limits]
    return Contradiction(tuple(dict.fromkeys(named)), conflict.reason)


def refuse_impossible(
    formula: f.Formula,
    layout: Layout,
    given: Iterable[f.Formula] = (),
    end: str | None = None,
) -> None:
    """Raise ImpossibleError if a contradiction is found, or an observation has no distribution."""
    for observation in factored(formula)[1]:
        refuse_impossible_parameters(observation, layout)
    found = find(formula, layout, given, end)
    if found is not None:
        remedy = "relax it" if len(found.parts) == 1 else "relax one of these parts"
        raise ImpossibleError(str(found), value=found.parts, remedy=remedy)


def _conjuncts(formula: f.Formula) -> tuple[f.Formula, ...]:
    stated, _ = factored(formula)
    return stated.parts if isinstance(stated, f.And) and stated.parts else (stated,)


def _reading(own: str, signal: Signal, place: int) -> str:
    """The name of a number of a flat sample, as a formula writes it."""
    match signal.kind:
        case "column":
            return own
        case "category":
            return f'({own} = "{signal.categories[place]}")'
        case "image" if signal.shape[0] in (1, len(CHANNELS)):
            channel, pixel = divmod(place, signal.shape[1] * signal.shape[2])
            image = own if signal.shape[0] == 1 else f"{CHANNELS[channel]}({own})"
            return f"{image}({pixel // signal.shape[2]}, {pixel % signal.shape[2]})"
    return f"{own}({place})"


def _plain(node: f.Formula) -> bool:
    """Whether the formula is made of `and` and `forall` over atoms."""
    if isinstance(node, (f.Or, f.Quantifier)) and getattr(node, "kind", "exists") == "exists":
        return False
    return all(_plain(child) for child in node.children() if isinstance(child, f.Formula))


class _Prover:
    """The parts of a formula as sums and choices over the readings of one flat sample."""

    def __init__(self, layout: Layout, parts: Sequence[f.Formula], end: str | None) -> None:
        self.layout = layout
        self.end = end
        self.first_limit = len(parts)
        self.sum_count = self.branches = self.coefficients = 0
        self.start = self.known_bounds()
        self.parts: list[list[Sum | Choice]] = []
        for i, part in enumerate(parts):
            lowered = lower(resolve(part, layout, end), layout)
            self.parts.append(list(self.rows(lowered, Frame(), frozenset({i}))))

    def conflict(self, chosen: Iterable[int]) -> Conflict | None:
        """The conflict of the chosen parts, if one is found."""
        bounds = self.start.copy()
        try:
            rows = [row for i in chosen for row in self.parts[i]]
            self.settle(rows + self.one_hot(), bounds)
            sums = [row for row in rows if isinstance(row, Sum)]
            bounds.compare(sums)
            refuse_cycle(sums, bounds.names)
        except Conflict as found:
            return found
        return None

    def settle(self, rows: list[Sum | Choice], bounds: Bounds) -> None:
        """Tighten the bounds until nothing changes, or raise the conflict found.

        A choice of which all but one branch are refuted is replaced by that branch.
        """
        sums = [row for row in rows if isinstance(row, Sum)]
        choices = [row for row in rows if isinstance(row, Choice)]
        while True:
            for _ in range(MAX_TIGHTENING_ROUNDS):
                if not sum(bounds.tighten(row) for row in sums):
                    break
            forced = None
            for choice in choices:
                alive, refuted, reason = [], choice.sources, "it is never true"
                for branch in choice.branches:
                    try:
                        self.settle(list(branch), bounds.copy())
                        alive.append(branch)
                    except Conflict as found:
                        refuted, reason = refuted | found.sources, found.reason
                    if len(alive) > 1:
                        break
                if not alive:
                    raise Conflict(refuted, reason)
                if len(alive) == 1:
                    forced = choice, alive[0], refuted
                    break
            if forced is None:
                return
            choice, branch, refuted = forced
            choices = [other for other in choices if other is not choice]
            for row in branch:
                row = replace(row, sources=row.sources | refuted)
                (sums if isinstance(row, Sum) else choices).append(row)  # type: ignore[arg-type]

    # from lowered formulas to rows

    def rows(self, node: f.Formula, frame: Frame, sources: Sources) -> Iterator[Sum | Choice]:
        match node:
            case f.And(parts):
                for part in parts:
                    yield from self.rows(part, frame, sources)
            case f.Or(parts) if not frame.sizes:
                yield Choice(tuple(tuple(self.rows(p, frame, sources)) for p in parts), sources)
            case f.Annotated(body):
                yield from self.rows(body, frame, sources)
            case f.Quantifier():
                yield from self.quantified(node, frame, sources)
            case Atom():
                yield from self.sums(node, frame, sources)

    def quantified(
        self, node: f.Quantifier, frame: Frame, sources: Sources
    ) -> Iterator[Sum | Choice]:
        if isinstance(node.region, Pixels):
            pixels = {**frame.pixels, node.variable: node.region}
            count = over_pixels(frame, node.variable, node.region, self.layout).sizes[-1]
            frame, low, high = replace(frame, pixels=pixels), Index(0), Index(count - 1)
        else:
            assert node.first is not None
            assert node.last is not None
            low, high = frame.index(node.first), frame.index(node.last)
        if low.axes != high.axes:
            return
        if self.end == "clip" and node.region is None:
            if low.axes:
                return
            low, high = Index(max(low.offset, 0)), Index(min(high.offset, self.layout.steps - 1))
        size = high.offset - low.offset + 1
        steps = range(low.offset, high.offset + 1)
        index = Index(low.offset, (*low.axes, len(frame.sizes)))
        if isinstance(node.region, Pixels) and size > MAX_EXPANDED_STEPS and not _plain(node.body):
            return  # too many to expand
        if node.kind == "forall" and not frame.sizes and not _plain(node.body):
            for step in steps[:MAX_EXPANDED_STEPS]:
                at = replace(frame, variables={**frame.variables, node.variable: Index(step)})
                yield from self.rows(node.body, at, sources)
        elif node.kind == "forall" and size > 0:
            inner = frame.extended(node.variable, index, size)
            yield from self.rows(node.body, inner, sources)
        elif node.kind == "exists" and not frame.sizes and size > 0:
            self.branches += size
            if self.branches > MAX_BRANCHES:
                return
            branches: list[tuple[Sum | Choice, ...]]
            if isinstance(node.body, Atom):
                found = self.sums(node.body, frame.extended(node.variable, index, size), sources)
                branches = [(row,) for row in found]
            else:
                names = [{**frame.variables, node.variable: Index(step)} for step in steps]
                places = (replace(frame, variables=each) for each in names)
                branches = [tuple(self.rows(node.body, at, sources)) for at in places]
            if branches:
                yield Choice(tuple(branches), sources)

    def sums(self, node: Atom, frame: Frame, sources: Sources) -> Iterator[Sum]:
        """One row for each place of the frame that the atom depends on."""
        self.sum_count += math.prod(frame.sizes)
        if self.layout.size > MAX_READINGS or self.sum_count > MAX_SUMS:
            return
        if not all(linear(term, self.layout) for term in node.terms):
            return
        if self.end in ("weak", "strong"):
            return  # values outside the grid are no readings
        found = rows(node, frame, self.layout)
        if found is None:  # images, and functions of the layout: by evaluation
            found = gaussian.affine_rows(node, frame, self.layout, self.end)
        self.coefficients += sum(len(coefficients) for coefficients, _ in found)
        if self.coefficients > MAX_COEFFICIENTS:
            return
        low, high = node.low - node.slack, node.high + node.slack
        strict, slack = (node.open_low, node.open_high), node.slack
        if node.integer:
            (low, high), strict, slack = node.whole_bounds(), (False, False), 0.0
        if node.category is not None:  # weights of a sample are 0 or 1
            low, high = (1.0, math.inf) if node.chooses else (-math.inf, 0.0)
            strict = (False, False)
        for row, offset in found:
            ends = low - offset, high - offset
            yield Sum(tuple(row), tuple(row.values()), *ends, strict, sources, slack)

    # bounds of the readings that the layout states

    def known_bounds(self) -> Bounds:
        known = Bounds([], [], [], [], [], [], [])
        for instance in range(1, self.layout.instances + 1):
            for j, signal in enumerate(self.layout.signals):
                own = f"{signal.name}[{instance}]" if self.layout.instances > 1 else signal.name
                category = signal.kind == "category"
                for place in range(signal.size):
                    label = _reading(own, signal, place)
                    known.names.append(label)
                    known.low.append(0.0 if category else signal.low)
                    known.high.append(1.0 if category else signal.high)
                    source: Sources = frozenset() if category else frozenset({self.first_limit + j})
                    known.low_from.append(source if math.isfinite(signal.low) else frozenset())
                    known.high_from.append(source if math.isfinite(signal.high) else frozenset())
                    known.whole.append(signal.integer or category)
                    known.dates.append(signal.dates)
        return known

    def one_hot(self) -> list[Sum | Choice]:
        """The weights of a categorical signal add up to one."""
        rows: list[Sum | Choice] = []
        cell = 0
        for _ in range(self.layout.instances):
            for signal in self.layout.signals:
                if signal.kind == "category" and signal.size:
                    cells = tuple(range(cell, cell + signal.size))
                    ones = (1.0,) * signal.size
                    rows.append(Sum(cells, ones, 1.0, 1.0, (False, False), frozenset()))
                cell += signal.size
        return rows

    def limit(self, source: int) -> str:
        """The known bounds of a signal, as a part of the proof."""
        signal = self.layout.signals[source - self.first_limit]
        low, high = (shown_as(value, signal.dates) for value in (signal.low, signal.high))
        return f"{signal.name} stays within [{low}, {high}]"
