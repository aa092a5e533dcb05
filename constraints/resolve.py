"""Names, times and kinds: what a formula means for a given layout.

After `resolve` a formula holds no name that is not a signal, no parameter, no model time and no
`end`; every series is read at an explicit step; chained comparisons are conjunctions; categories
are weights compared with one half; bound variables are called `%0`, `%1`, ... by their depth, so
that formulas that differ in such names only are equal. Steps outside the grid are found here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from constraints import formula as f
from constraints.errors import FormulaError, unknown
from constraints.nodes import Node
from constraints.signals import Layout, Signal
from constraints.terms import (
    BUILT_IN,
    END,
    NOW,
    SERIES,
    Aggregate,
    Apply,
    At,
    Const,
    Count,
    Name,
    Step,
    Term,
)

ENDS = ("weak", "strong", "clip")
NUMBERS, PIXELS = "#", "*"  # domains of a quantifier: plain numbers; every pixel
_START = Step(None, 0)


@dataclass(frozen=True, eq=False, repr=False)
class Option(Term):
    """The weight of one category of a signal."""

    signal: Name
    index: int


@dataclass(frozen=True)
class _Scope:
    """What stands around a place: bound variables, their ranges, and the meaning of `now`."""

    variables: Mapping[str, str] = field(default_factory=dict)  # as written -> as renamed
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    pixels: frozenset[str] = frozenset()  # renamed variables that are pixels
    here: Step = _START  # what windows are relative to
    now: Step | None = None  # where a bare series is read; None: nowhere
    level: int = 0


def resolve(
    formula: f.Formula, layout: Layout, end: str | None = None, trace: bool = False
) -> f.Formula:
    """The formula against a layout, at step 0, or at each step `now` if `trace`.

    `end`: what to do where it reaches outside the grid: None is an error; "weak" takes what lies
    outside as met, "strong" as not met, "clip" lets quantifiers range over existing steps only.
    """
    if end is not None and end not in ENDS:
        raise FormulaError(f"end must be one of {', '.join(ENDS)}, not {end!r}")
    scope = _Scope()
    if trace:
        if not layout.steps:
            raise FormulaError("a trace needs series; these signals have no time grid")
        ranges = {NOW: (0, layout.steps - 1)}
        scope = _Scope({NOW: NOW}, ranges, here=Step(NOW), now=Step(NOW))
    return _Resolver(layout, end).formula(formula, scope)


class _Resolver:
    def __init__(self, layout: Layout, end: str | None) -> None:
        self.layout = layout
        self.end = end

    # formulas

    def formula(self, node: f.Formula, scope: _Scope) -> f.Formula:
        match node:
            case f.Compare():
                return self.compare(node, scope)
            case f.Not(body):
                return f.Not(self.formula(body, scope))
            case f.And(parts) | f.Or(parts):
                return type(node)(tuple(self.formula(part, scope) for part in parts))
            case f.Implies(left, right) | f.Iff(left, right) | f.Xor(left, right):
                return type(node)(self.formula(left, scope), self.formula(right, scope))
            case f.Annotated(body, k, weight):
                return f.Annotated(self.formula(body, scope), k, weight)
            case f.Quantifier():
                return self.quantifier(node, scope)
            case f.Until():
                return self.until(node, scope)
        raise FormulaError(f"{node!r} is not a formula")

    def compare(self, node: f.Compare, scope: _Scope) -> f.Formula:
        links = zip(node.terms[:-1], node.relations, node.terms[1:], strict=True)
        return f.conjunction(*(self.link(a, relation, b, node, scope) for a, relation, b in links))

    def link(
        self, left: Term, relation: str, right: Term, node: f.Compare, scope: _Scope
    ) -> f.Formula:
        for subject, other in ((left, right), (right, left)):
            signal = self.layout.find(subject.name) if isinstance(subject, Name) else None
            if signal is not None and signal.kind == "category":
                return self.category(subject, signal, relation, other)
        sides = (self.term(left, scope), self.term(right, scope))
        return f.Compare(sides, (relation,), node.tolerance)

    def category(self, subject: Node, signal: Signal, relation: str, other: Term) -> f.Formula:
        assert isinstance(subject, Name)
        if relation not in ("=", "!="):
            raise FormulaError(
                f"{signal.name} is a category: compare it with = or !=, or write in {{...}}"
            )
        if isinstance(other, Name) and other.name in signal.categories:
            index = signal.categories.index(other.name)
        elif isinstance(other, Const) and str(other) in signal.categories:
            index = signal.categories.index(str(other))
        else:
            word = other.name if isinstance(other, Name) else str(other)
            raise unknown(f"category of {signal.name}:", word, signal.categories)
        weight = Option(self.owned(subject), index)
        return f.Compare((weight, Const(0.5)), (">=" if relation == "=" else "<",))

    def quantifier(self, node: f.Quantifier, scope: _Scope) -> f.Formula:
        name = f"%{scope.level}"
        region = node.region
        if region is not None or (
            node.first is None and _reads_image(node.body, node.variable, self.layout)
        ):
            return self.over_pixels(node, scope, name, region)
        first, last = (self.step(bound, scope) for bound in _ends(node))
        times = node.variable == NOW or _indexes(node.body, node.variable)
        window = self.window(first, last, scope, f"{node.kind} {node.variable}", clip=times)
        inner = replace(
            scope,
            variables={**scope.variables, node.variable: name},
            ranges={**scope.ranges, name: window},
            level=scope.level + 1,
        )
        if node.variable == NOW:
            inner = replace(inner, here=Step(name), now=Step(name))
        body = self.formula(node.body, inner)
        return f.Quantifier(node.kind, name, first, last, body, None if times else NUMBERS)

    def over_pixels(
        self, node: f.Quantifier, scope: _Scope, name: str, region: str | None
    ) -> f.Formula:
        if region is not None and region not in self.layout.regions:
            raise unknown("region", region, self.layout.regions)
        inner = replace(
            scope,
            variables={**scope.variables, node.variable: name},
            pixels=scope.pixels | {name},
            level=scope.level + 1,
        )
        body = self.formula(node.body, inner)
        return f.Quantifier(node.kind, name, None, None, body, region or PIXELS)

    def until(self, node: f.Until, scope: _Scope) -> f.Formula:
        """`Until` binds a step of its own; `here` becomes that step in both operands."""
        name = f"%{scope.level}"
        low, high = self.range(scope.here, scope)
        if node.past:
            window = (low - node.last if node.last is not None else 0, high)
        else:
            last = self.layout.steps - 1
            window = (low, high + node.last if node.last is not None else last)
        if self.end == "clip":
            window = (max(window[0], 0), min(window[1], self.layout.steps - 1))
        inner = replace(
            scope,
            variables={**scope.variables, NOW: name},
            ranges={**scope.ranges, name: window},
            here=Step(name),
            now=Step(name),
            level=scope.level + 1,
        )
        left, right = self.formula(node.left, inner), self.formula(node.right, inner)
        return Moving(node.kind, left, right, node.first, node.last, node.past, scope.here, name)

    # terms

    def term(self, node: Term, scope: _Scope) -> Term:
        match node:
            case Const() | Option():
                return node
            case Name():
                return self.name(node, scope)
            case Step():
                return self.number(node, scope)
            case At(series, when):
                return self.at(series, when, scope)
            case Aggregate() | Count():
                return self.aggregate(node, scope)
            case Apply(function, arguments) if function in SERIES:
                return self.at(node, Step(NOW), scope)
            case Apply("max" | "min" as kind, (body, Name(region))) if (
                region in self.layout.regions and region not in self.layout.names
            ):
                return self.aggregate(Aggregate(kind, body, region=region), scope)
            case Apply(function, arguments):
                if function in (*BUILT_IN, "+", "neg", "*", "/"):
                    return Apply(function, tuple(self.term(each, scope) for each in arguments))
                return self.call(node, scope)
        raise FormulaError(f"{node!r} is not a term")

    def name(self, node: Name, scope: _Scope) -> Term:
        """A name on its own: a column, a parameter, a series read now, or `S25`."""
        signal = self.layout.find(node.name)
        if signal is None and node.instance is None:
            if node.name in self.layout.parameters:
                return Const(float(self.layout.parameters[node.name]))
            if node.name != "time" or not self.layout.times:
                series, when = self.compact(node.name)
                return self.at(series, Step(None, when), scope)
        if signal is not None and signal.kind == "column":
            return self.owned(node)
        if signal is not None and signal.kind == "category":
            raise FormulaError(
                f"{node} is a category, not a number; compare it with = or != to one of "
                f"{', '.join(signal.categories[:12])}"
            )
        if scope.now is None:
            if signal is not None and signal.kind == "image":
                raise FormulaError(
                    f"{node} is an image: say which pixels, as in forall p: {node}(p) >= 0, or "
                    f"mean({node})"
                )
            raise FormulaError(
                f"{node} does not say when: write {node}(0), forall t: {node}(t) ..., "
                f"always({node} ...) or max({node})"
            )
        return self.at(node, Step(NOW), scope)

    def compact(self, word: str) -> tuple[Name, int]:
        """`S25` as S at step 25, if that can mean one thing only."""
        readings = [
            (word[:cut], int(word[cut:]))
            for cut in range(1, len(word))
            if word[cut:].isdecimal() and word[cut:].isascii() and len(word) - cut < 9
            if (signal := self.layout.find(word[:cut])) is not None and signal.kind == "series"
        ]
        if len(readings) > 1:
            shown = " or ".join(f"{name}({when})" for name, when in readings)
            raise FormulaError(f"{word} is ambiguous: write {shown}")
        if not readings:
            raise unknown("signal", word, [*self.layout.names, *self.layout.parameters])
        return Name(readings[0][0]), readings[0][1]

    def owned(self, node: Name) -> Name:
        """The signal's name with its instance, which must exist."""
        if self.layout.find(node.name) is None and node.name != "time":
            raise unknown("signal", node.name, [*self.layout.names, *self.layout.parameters])
        count = self.layout.instances
        if node.instance is None:
            if count > 1:
                raise FormulaError(
                    f"there are {count} instances: write {node}[1], ..., {node}[{count}]"
                )
            return Name(node.name)
        if node.instance > count:
            raise FormulaError(f"{node}: there are {count} instance(s), numbered from 1")
        return Name(node.name, node.instance if count > 1 else None)

    def at(self, series: Term, when: Step, scope: _Scope) -> Term:
        """`series` read at a step; an expression of series is read at it throughout."""
        if isinstance(series, Name):
            return self.read(series, when, scope)
        pixel = scope.variables.get(when.base or "") in scope.pixels
        if isinstance(series, Apply) and series.function in self.layout.functions:
            function = self.layout.functions[series.function]
            if function.returns in ("series", "image"):
                call = self.call(series, scope)
                if function.returns == "series":
                    return At(call, self.inside(self.step(when, scope), series, scope))
                return At(call, self.pixel(when, series, scope))
        step = self.pixel(when, series, scope) if pixel else self.step(when, scope)
        if isinstance(series, Apply) and series.function in SERIES:
            moved = replace(
                scope,
                here=Step(NOW),
                now=Step(NOW),
                variables={NOW: NOW},
                ranges={NOW: (0, self.layout.steps - 1)},
            )
            body = self.term(series.arguments[0], moved)
            self.varies(body, series)
            return At(Apply(series.function, (body,)), self.inside(step, series, scope))
        if not any(isinstance(each, (Name, Apply, Aggregate)) for each in _descend(series)):
            raise FormulaError(f"{series} has no values over time to be read at {when}")
        return self.term(series, replace(scope, here=step, now=step))

    def read(self, node: Name, when: Step, scope: _Scope) -> Term:
        signal = self.layout.find(node.name)
        if signal is None and node.name in self.layout.functions:
            return self.call(Apply(node.name, (when,)), scope)
        if signal is None and node.name not in ("time",):
            known = [*self.layout.names, *self.layout.functions]
            raise unknown("signal", node.name, known)
        if signal is None or signal.kind == "series":
            if signal is None and not self.layout.times:
                raise FormulaError("these signals have no time grid")
            return At(self.owned(node), self.inside(self.step(when, scope), node, scope))
        if signal.kind == "image":
            return At(self.owned(node), self.pixel(when, node, scope))
        raise FormulaError(f"{node} has one value a sample; write {node} without a step")

    def pixel(self, when: Step, series: Node, scope: _Scope) -> Step:
        renamed = scope.variables.get(when.base or "")
        if renamed not in scope.pixels or when.offset:
            raise FormulaError(
                f"{series}({when}): a pixel is a variable bound by forall or exists, as in "
                f"forall p: {series}(p) >= 0"
            )
        return Step(renamed)

    def call(self, node: Apply, scope: _Scope) -> Term:
        """A function of the layout on its arguments."""
        function = self.layout.functions.get(node.function)
        if function is None:
            if self.layout.find(node.function) is not None:
                only = node.arguments[0] if len(node.arguments) == 1 else None
                if isinstance(only, Name):
                    raise FormulaError(
                        f"{node}: {only} is not bound; write forall {only}: ... {node} ..., or "
                        "give a whole number"
                    )
                raise FormulaError(
                    f"{node}: a signal is read at one step: a whole number, a bound variable, "
                    "`end`, or one of these plus or minus a whole number; at a model time write "
                    f"{node.function}@2.5"
                )
            raise unknown("function", node.function, [*BUILT_IN, *self.layout.functions])
        if len(node.arguments) != function.arity:
            raise FormulaError(
                f"{node.function} takes {function.arity} argument(s), not {len(node.arguments)}"
            )
        arguments = tuple(
            self.owned(each)
            if function.whole and isinstance(each, Name) and self.layout.find(each.name)
            else self.term(each, scope)
            for each in node.arguments
        )
        return Apply(node.function, arguments)

    def aggregate(self, node: Aggregate | Count, scope: _Scope) -> Term:
        region = node.region if isinstance(node, Aggregate) else None
        body: Term | f.Formula = node.body
        if isinstance(body, Name) and body.name in self.layout.regions and region is None:
            images = [signal for signal in self.layout.signals if signal.kind == "image"]
            if self.layout.find(body.name) is None and len(images) == 1:
                body, region = Name(images[0].name, body.instance), body.name
        image = isinstance(body, Term) and _is_image(body, self.layout)
        if image:
            if region is not None and region not in self.layout.regions:
                raise unknown("region", region, self.layout.regions)
            assert isinstance(node, Aggregate)
            if node.kind in ("integral", "argmax", "argmin") or node.first is not None:
                raise FormulaError(f"{node}: of an image take max, min, mean or sum")
            moved = replace(
                scope,
                variables={**scope.variables, NOW: NOW},
                pixels=scope.pixels | {NOW},
                here=Step(NOW),
                now=Step(NOW),
            )
            assert isinstance(body, Term)
            return Aggregate(node.kind, self.term(body, moved), region=region or PIXELS)
        if region is not None:
            raise FormulaError(f"{node}: {region} is not a step and {node.body} is not an image")
        if not self.layout.steps:
            raise FormulaError(f"{node}: these signals have no time grid to aggregate over")
        first, last = (self.step(bound, scope) for bound in _ends(node))
        span = self.window(first, last, scope, str(node), clip=True)
        moved = replace(
            scope,
            variables={**scope.variables, NOW: NOW},
            ranges={**scope.ranges, NOW: span},
            here=Step(NOW),
            now=Step(NOW),
        )
        if self.end in ("weak", "strong") and not 0 <= span[0] <= span[1] < self.layout.steps:
            raise FormulaError(f"{node} reaches outside the grid, where it has no value")
        if isinstance(node, Count):
            return Count(self.formula(node.body, moved), first, last)
        inner = self.term(node.body, moved)
        self.varies(inner, node)
        return Aggregate(node.kind, inner, first, last)

    def varies(self, body: Node, node: Node) -> None:
        if not any(isinstance(each, Step) and each.base == NOW for each in _descend(body)):
            raise FormulaError(f"{node}: {body} does not change with time")

    # times

    def step(self, node: Step, scope: _Scope) -> Step:
        """A step in terms of renamed variables and step 0."""
        if node.time is not None:
            return Step(None, self.layout.step_at(node.time))
        if node.base is None:
            return node
        if node.base == END:
            if not self.layout.steps:
                raise FormulaError("these signals have no time grid, so no last step")
            return Step(None, self.layout.steps - 1 + node.offset)
        if node.base == NOW:
            return scope.here.shifted(node.offset)
        if node.base not in scope.variables:
            raise FormulaError(
                f"the time variable {node.base} is not bound: write forall {node.base}: ... or "
                f"exists {node.base}: ..."
            )
        return Step(scope.variables[node.base], node.offset)

    def number(self, node: Step, scope: _Scope) -> Term:
        """A step used as a number."""
        step = self.step(node, scope)
        if step.base in scope.pixels:
            raise FormulaError(f"{node} is a pixel and has no number")
        return Const(step.offset) if step.base is None else step

    def range(self, step: Step, scope: _Scope) -> tuple[int, int]:
        low, high = scope.ranges.get(step.base or "", (0, 0))
        return low + step.offset, high + step.offset

    def window(
        self, first: Step, last: Step, scope: _Scope, what: str, *, clip: bool
    ) -> tuple[int, int]:
        """The range of a variable over a window, which must not be empty from the outset."""
        if first.base == last.base and last.offset < first.offset:
            raise FormulaError(f"{what}: the window [{first}, {last}] is empty")
        low, high = self.range(first, scope)[0], self.range(last, scope)[1]
        if clip and self.end == "clip":
            low, high = max(low, 0), min(high, self.layout.steps - 1)
        if high < low:
            raise FormulaError(f"{what}: the window [{first}, {last}] is empty on this grid")
        return low, high

    def inside(self, step: Step, series: Node, scope: _Scope) -> Step:
        """The step, if it stays on the grid or the formula says what to do where it does not."""
        low, high = self.range(step, scope)
        last = self.layout.steps - 1
        if self.end in ("weak", "strong") or 0 <= low <= high <= last:
            return step
        reached = high if high > last else low
        side = f"past the last step, {last}" if high > last else "before the first step, 0"
        if step.base is None:
            raise FormulaError(
                f"{series}({reached}) is {side}; the steps are 0..{last}, the last is called `end`"
            )
        raise FormulaError(
            f"{series} is read at step {reached}, {side}; shorten the window (`end` is the last "
            'step), or say what to do there: end="clip" (only steps that exist), "weak" (outside '
            'counts as met) or "strong" (as not met)'
        )


@dataclass(frozen=True, eq=False, repr=False)
class Moving(f.Formula):
    """A resolved `Until`: relative to `here`, with the name of the step it binds."""

    kind: str
    left: f.Formula
    right: f.Formula
    first: int
    last: int | None
    past: bool
    here: Step
    variable: str


def _ends(node: f.Quantifier | Aggregate | Count) -> tuple[Step, Step]:
    """The window, which is the whole grid where none is given."""
    if node.first is None or node.last is None:
        return _START, Step(END)
    return node.first, node.last


def _descend(node: Node) -> list[Node]:
    """The node and everything below it."""
    return [node, *(below for child in node.children() for below in _descend(child))]


def _indexes(body: Node, variable: str) -> bool:
    """Whether the variable is a time there: something is read at it or a window depends on it."""
    for node in _descend(body):
        bounds: tuple[Step | None, ...] = ()
        if isinstance(node, At):
            bounds = (node.step,)
        elif isinstance(node, (f.Quantifier, Aggregate, Count)):
            bounds = (node.first, node.last)
        if any(bound is not None and bound.base == variable for bound in bounds):
            return True
    return False


def _is_image(body: Term, layout: Layout) -> bool:
    """Whether a term is made of images, so that an aggregate of it runs over pixels."""
    if isinstance(body, Name):
        signal = layout.find(body.name)
        return signal is not None and signal.kind == "image"
    if isinstance(body, Apply):
        function = layout.functions.get(body.function)
        if function is not None:
            return function.returns == "image"
        return any(_is_image(argument, layout) for argument in body.arguments)
    return False


def _reads_image(body: Node, variable: str, layout: Layout) -> bool:
    return any(
        isinstance(node, At) and node.step.base == variable and _is_image(node.series, layout)
        for node in _descend(body)
    )
