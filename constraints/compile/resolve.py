"""Names, times and kinds: what a formula means for a given layout.

After `resolve` a formula holds no name that is not a signal, no parameter, no model time and no
`end`; every series is read at an explicit step; chained comparisons are conjunctions; categories
are weights compared with one half; bound variables are called `%0`, `%1`, ... by their depth, so
that formulas that differ in such names only are equal. Steps outside the grid are found here.
"""

from __future__ import annotations

from dataclasses import replace

from constraints.ast import formulas as f
from constraints.ast.aggregates import aggregates
from constraints.ast.build import always
from constraints.ast.lowered import NUMBERS, BoundUntil, CategoryWeight, HasClass
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.walk import descend, ends, indexes
from constraints.ast.words import ARITHMETIC, NOW, PIXEL, SERIES, built_in, is_built_in
from constraints.compile.comparisons import compared, owned, some
from constraints.compile.images import ImageResolver
from constraints.compile.scope import Scope, Times
from constraints.errors import FormulaError, unknown
from constraints.language.bridge import ambiguous, readings
from constraints.layout.image_terms import is_image, reads_image
from constraints.layout.signals import Layout

ENDS = ("weak", "strong", "clip")


def resolve(
    formula: f.Formula, layout: Layout, end: str | None = None, trace: bool = False
) -> f.Formula:
    """The formula against a layout, at step 0, or at each step `now` if `trace`.

    `end`: what to do where it reaches outside the grid: None is an error; "weak" takes what lies
    outside as met, "strong" as not met, "clip" lets quantifiers range over existing steps only.
    """
    if end is not None and end not in ENDS:
        raise FormulaError(f"end must be one of {', '.join(ENDS)}, not {end!r}")
    scope = Scope()
    if trace:
        if not layout.steps:
            raise FormulaError("a trace needs series; these signals have no time grid")
        ranges = {NOW: (0, layout.steps - 1)}
        scope = Scope({NOW: NOW}, ranges, here=Step(NOW), now=Step(NOW))
    return _Resolver(layout, end).formula(formula, scope)


class _Resolver(ImageResolver):
    def __init__(self, layout: Layout, end: str | None) -> None:
        self.layout = layout
        self.end = end
        self.times = Times(layout, end)

    # formulas

    def formula(self, node: f.Formula, scope: Scope) -> f.Formula:
        match node:
            case f.Compare():
                return self.compare(node, scope)
            case f.Holds(Apply(function) as call) if function in self.layout.classifiers:
                return HasClass(self.chance(call, scope))
            case f.Holds(call):
                return self.compare(f.Compare((call, Const(0)), (">=",)), scope)
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

    def compare(self, node: f.Compare, scope: Scope) -> f.Formula:
        links = zip(node.terms[:-1], node.relations, node.terms[1:], strict=True)
        return f.conjunction(*(self.link(a, relation, b, node, scope) for a, relation, b in links))

    def link(
        self, left: Term, relation: str, right: Term, node: f.Compare, scope: Scope
    ) -> f.Formula:
        return self.sides(compared(left, relation, right, node.tolerance, self.layout), scope)

    def sides(self, node: f.Formula, scope: Scope) -> f.Formula:
        """Comparisons of numbers with their terms resolved."""
        match node:
            case f.Compare((left, right), relations, tolerance):
                terms = (self.term(left, scope), self.term(right, scope))
                return f.Compare(terms, relations, tolerance)
            case f.Not(body):
                return f.Not(self.sides(body, scope))
            case f.And(parts):
                return f.And(tuple(self.sides(part, scope) for part in parts))
        raise TypeError(f"{node!r} is not a comparison")

    def quantifier(self, node: f.Quantifier, scope: Scope) -> f.Formula:
        name = f"%{scope.level}"
        region = None if node.region is None else str(node.region)
        if self.layout.find(node.variable) is not None:
            raise FormulaError(
                f"{node.kind} {node.variable}: {node.variable} is a signal; name the variable "
                "otherwise, such as t"
            )
        if region is not None or (
            node.first is None and reads_image(node.body, node.variable, self.layout)
        ):
            return self.over_pixels(node, scope, name, region)
        if node.variable == NOW and any(bound.base == NOW for bound in ends(node)):
            self.anchored(node, scope)
        first, last = (self.times.step(bound, scope) for bound in ends(node))
        times = node.variable == NOW or indexes(node.body, node.variable)
        window = self.times.window(first, last, scope, f"{node.kind} {node.variable}", clip=times)
        if window[1] < window[0]:
            return f.TRUE if node.kind == "forall" else f.FALSE
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
        self, node: f.Quantifier, scope: Scope, name: str, region: str | None
    ) -> f.Formula:
        if region is not None and not self.layout.is_region(region):
            self.layout.region(region, (0, 0))  # which refuses it
        inner = replace(
            scope,
            variables={**scope.variables, node.variable: name},
            pixels=scope.pixels | {name},
            level=scope.level + 1,
        )
        body = self.formula(node.body, inner)
        domain = self.domain(body, name, region)
        return f.Quantifier(node.kind, name, None, None, body, domain)

    def anchored(self, node: f.Formula, scope: Scope) -> None:
        """Refuse `forall t: ... eventually[0,5](...)`: it would count from step 0 for every t."""
        if scope.now is None and scope.variables:
            bound = ", ".join(scope.variables)
            raise FormulaError(
                f"{node} counts from step 0, not from {bound}: write always(...) in place of the "
                "outer quantifier, or bind a variable here too, as in exists u in [t, t + 5]: ..."
            )

    def until(self, node: f.Until, scope: Scope) -> f.Formula:
        """`Until` binds a step of its own; `here` becomes that step in both operands."""
        if node.weak:
            strong = replace(node, weak=False)
            return self.formula(f.Or((strong, always(node.left, 0, node.last))), scope)
        self.anchored(node, scope)
        name = f"%{scope.level}"
        low, high = self.times.range(scope.here, scope)
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
        return BoundUntil(
            node.kind, left, right, node.first, node.last, node.past, scope.here, name
        )

    # terms

    def term(self, node: Term, scope: Scope) -> Term:
        match node:
            case Const() | CategoryWeight():
                return node
            case Name():
                return self.name(node, scope)
            case Step():
                return self.times.number(node, scope)
            case At(series, when):
                return self.at(series, when, scope)
            case Aggregate() | Count():
                return self.aggregate(node, scope)
            case Apply(function, arguments) if function in SERIES or self.makes_many(function):
                if scope.now is None:
                    raise FormulaError(self.unsaid(node))
                return self.at(node, Step(NOW), scope)
            case Apply("max" | "min" as kind, (body, Name(region) as other)) if (
                is_image(body, self.layout)
                and not is_image(other, self.layout)
                and region not in self.layout.names
            ):
                return self.aggregate(Aggregate(kind, body, region=region), scope)
            case Apply("pixel", (image, *places)) if self.layout.find(PIXEL) is None:
                return self.pixel(node, image, tuple(places), scope)
            case Apply(function, arguments):
                if is_built_in(function) or function in ARITHMETIC:
                    return Apply(function, tuple(self.term(each, scope) for each in arguments))
                return self.applied(node, scope)
        raise FormulaError(f"{node!r} is not a term")

    def name(self, node: Name, scope: Scope) -> Term:
        """A name on its own: a column, a parameter, a series read now, or `S25`."""
        signal = self.layout.find(node.name)
        if node.instance is not None and is_image(node, self.layout):
            self.named(node)  # which refuses what is not there
        elif node.instance is not None:
            owned(node, self.layout)
        if signal is None:
            if node.name in ("true", "false") and node.quoted:
                return Const(node.name == "true")
            if node.name in self.layout.parameters:
                return Const(float(self.layout.parameters[node.name]))
            image = node.name in self.layout.pictures
            if not image and (node.name != "time" or not self.layout.times):
                series, when = self.compact(node.name)
                return self.at(series, Step(None, when), scope)
        if signal is not None and signal.kind == "column":
            return owned(node, self.layout)
        if signal is not None and signal.kind == "category":
            raise FormulaError(
                f"{node} is a category, not a number; compare it with = or != to one of "
                f"{some(signal.categories)}"
            )
        if scope.now is None:
            raise FormulaError(self.unsaid(node))
        return self.at(node, Step(NOW), scope)

    def unsaid(self, node: Term) -> str:
        """What is wrong with a series or an image where a number is wanted."""
        if is_image(node, self.layout):
            return (
                f"{node} is an image: say which pixels, as in forall p: {node}(p) >= 0, or "
                f"mean({node})"
            )
        at = 0 if isinstance(node, Name) else 5
        return (
            f"{node} does not say when: write {node}({at}), forall t: {node}(t) ..., "
            f"always({node} ...) or max({node})"
        )

    def compact(self, word: str) -> tuple[Name, int]:
        """`S25` as S at step 25, if that can mean one thing only."""
        series = [signal.name for signal in self.layout.signals if signal.kind == "series"]
        found = readings(word, series)
        if len(found) > 1:
            raise ambiguous(word, found)
        if not found:
            known = [*self.layout.names, *self.layout.parameters]
            known += self.layout.pictures
            raise unknown("signal, parameter or category", word, known, self.remedy(Name(word)))
        return Name(found[0][0]), found[0][1]

    def at(self, series: Term, when: Step, scope: Scope) -> Term:
        """`series` read at a step; an expression of series is read at it throughout."""
        if isinstance(series, Name):
            return self.read(series, when, scope)
        if isinstance(series, (At, Aggregate, Count)):
            raise FormulaError(f"{series} is one number; it cannot be read at {when}")
        pixel = scope.variables.get(when.base or "") in scope.pixels
        function = self.layout.function(series.function) if isinstance(series, Apply) else None
        if isinstance(series, Apply) and function is not None and function.returns != "number":
            call = self.call(series, scope)
            if function.returns == "series":
                return At(call, self.times.inside(self.times.step(when, scope), series, scope))
            return At(call, self.place(when, series, scope))
        step = self.place(when, series, scope) if pixel else self.times.step(when, scope)
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
            return At(Apply(series.function, (body,)), self.times.inside(step, series, scope))
        if not any(isinstance(each, (Name, Apply, Aggregate)) for each in descend(series)):
            raise FormulaError(f"{series} has no values over time to be read at {when}")
        return self.term(series, replace(scope, here=step, now=step))

    def read(self, node: Name, when: Step, scope: Scope) -> Term:
        signal = self.layout.find(node.name)
        if signal is None and self.layout.function(node.name) is not None:
            return self.call(Apply(node.name, (when,)), scope)
        if is_image(node, self.layout):
            return At(self.named(node), self.place(when, node, scope))
        if signal is None and node.name in self.layout.parameters:
            raise FormulaError(f"{node} is a parameter, one number; write {node} without a step")
        if signal is None and node.name != "time":
            known = [*self.layout.names, *self.layout.pictures, *self.layout.functions]
            raise unknown("signal or function", node.name, known, self.remedy(node))
        if signal is None or signal.kind == "series":
            if signal is None and not self.layout.times:
                raise FormulaError("these signals have no time grid")
            return At(
                owned(node, self.layout),
                self.times.inside(self.times.step(when, scope), node, scope),
            )
        raise FormulaError(f"{node} has one value a sample; write {node} without a step")

    def applied(self, node: Apply, scope: Scope) -> Term:
        """Something of the layout's on arguments: a function, a classifier, a signal."""
        if self.layout.function(node.function) is not None:
            return self.call(node, scope)
        if node.function in self.layout.classifiers:
            return self.chance(node, scope)
        if is_image(Name(node.function), self.layout):
            return self.pixel(node, Name(node.function), node.arguments, scope)
        if self.layout.find(node.function) is None:
            raise unknown("function", node.function, [*built_in(), *self.layout.callables])
        only = node.arguments[0] if len(node.arguments) == 1 else None
        if isinstance(only, Name):
            raise FormulaError(
                f"{node}: {only} is not bound; write forall {only}: ... {node} ..., or give a "
                "whole number"
            )
        raise FormulaError(
            f"{node}: a signal is read at one step: a whole number, a bound variable, `end`, or "
            f"one of these plus or minus a whole number; at a model time write {node.function}@2.5"
        )

    def aggregate(self, node: Aggregate | Count, scope: Scope) -> Term:
        if isinstance(node, Aggregate) and isinstance(node.body, Name) and node.region is None:
            images = self.layout.images
            if self.names_region(node.body) and len(images) == 1:
                image = Name(images[0].name, node.body.instance)
                node = replace(node, body=image, region=node.body.name)
        region = node.region if isinstance(node, Aggregate) else None
        if isinstance(node, Aggregate) and is_image(node.body, self.layout):
            if not aggregates()[node.kind].pixels or node.first is not None:
                legal = [name for name, entry in aggregates().items() if entry.pixels]
                raise FormulaError(
                    f"{node}: {node.kind} does not run over the pixels of an image",
                    remedy=f"of an image take {', '.join(legal[:-1])} or {legal[-1]}",
                )
            moved = replace(
                scope,
                variables={**scope.variables, NOW: NOW},
                pixels=scope.pixels | {NOW},
                here=Step(NOW),
                now=Step(NOW),
            )
            body = self.term(node.body, moved)
            domain = self.domain(body, NOW, None if region is None else str(region))
            return Aggregate(node.kind, body, region=domain, parameters=node.parameters)
        if isinstance(node.body, Term) and (region is not None or not self.layout.steps):
            self.term(node.body, scope)  # which refuses what is not there
        if region is not None:
            raise FormulaError(f"{node}: {region} is not a step and {node.body} is not an image")
        if not self.layout.steps:
            raise FormulaError(f"{node}: these signals have no time grid to aggregate over")
        first, last = (self.times.step(bound, scope) for bound in ends(node))
        span = self.times.window(first, last, scope, str(node), clip=True)
        if span[1] < span[0]:
            raise FormulaError(f"{node}: the window [{first}, {last}] is empty on this grid")
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
        return Aggregate(node.kind, inner, first, last, parameters=node.parameters)

    def varies(self, body: Node, node: Node) -> None:
        if not any(isinstance(each, Step) and each.base == NOW for each in descend(body)):
            hint = ""
            extreme = isinstance(node, Aggregate) and aggregates()[node.kind].extreme
            if isinstance(node, Aggregate) and extreme and node.first is not None:
                hint = f"; of several numbers it is written {node.kind}({body}, +{node.first}, ...)"
            raise FormulaError(f"{node}: {body} does not change with time{hint}")
