"""Name resolution: a formula restated in terms of the signals and steps of a layout.

A resolved formula holds no name that is not a signal, no parameter, no model time and no `end`;
every series is read at an explicit step; chained comparisons are conjunctions; categories are
weights compared with one half; bound variables are called `%0`, `%1`, ... by their depth, so that
formulas that differ in the names of variables only are equal. Steps outside the grid raise errors
here.
"""

from __future__ import annotations

from dataclasses import replace

from constraints.ast import formulas as f
from constraints.ast.aggregates import aggregates
from constraints.ast.build import always
from constraints.ast.dates import is_date
from constraints.ast.families import Observation
from constraints.ast.lowered import BoundUntil, CategoryWeight, HasClass
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.walk import descend, ends, indexes
from constraints.ast.words import ARITHMETIC, NOW, PIXEL, SERIES, built_in, is_built_in
from constraints.compile.comparisons import typed_comparison, with_instance
from constraints.compile.images import ImageResolver
from constraints.compile.latches import spelled_out
from constraints.compile.reading_errors import (
    aggregate_off_grid,
    constant_body,
    missing_step,
    no_time_grid,
    not_a_reading,
    superfluous_step,
)
from constraints.compile.scope import Scope, Times
from constraints.errors import FormulaError, quoted, unknown
from constraints.language.bridge import ambiguous, readings
from constraints.layout.image_terms import is_image, reads_image
from constraints.layout.signals import Layout

END_RULES = ("weak", "strong", "clip")  # for what a formula reads outside the grid


def resolve(
    formula: f.Formula, layout: Layout, end: str | None = None, trace: bool = False
) -> f.Formula:
    """The formula resolved against a layout, at step 0, or at each step `now` if `trace`.

    `end`: the rule for atoms that read outside the grid. None raises an error; "weak" counts them
    as met, "strong" as not met; "clip" lets quantifiers range over existing steps only.
    """
    if end is not None and end not in END_RULES:
        raise unknown("rule for the end of the grid", str(end), END_RULES)
    scope = Scope()
    if trace:
        if not layout.steps:
            raise FormulaError(
                "a trace needs series, and these signals have no time grid",
                remedy="compile the formula without trace=True",
            )
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
                return HasClass(self.class_probability(call, scope))
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
            case f.Reaches():
                return self.formula(spelled_out(node, self.layout), scope)
            case Observation(_, distribution):
                return node.moved(tuple(self.term(x, scope) for x in distribution.parameters))
        raise TypeError(f"{node!r} is not a formula")

    def compare(self, node: f.Compare, scope: Scope) -> f.Formula:
        """A chain a <= b <= c as the conjunction of its links."""
        links = zip(node.terms[:-1], node.relations, node.terms[1:], strict=True)
        typed = (
            typed_comparison(left, relation, right, node.tolerance, self.layout)
            for left, relation, right in links
        )
        return f.conjunction(*(self.sides(link, scope) for link in typed))

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
                f"{node.kind} {node.variable}: {node.variable} is a signal",
                value=node.variable,
                remedy="give the variable another name, such as t",
            )
        if region is not None or (
            node.first is None and reads_image(node.body, node.variable, self.layout)
        ):
            return self.over_pixels(node, scope, name, region)
        if node.variable == NOW and any(bound.base == NOW for bound in ends(node)):
            self.check_anchor(node, scope)
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
        return f.Quantifier(node.kind, name, first, last, body, None if times else f.NUMBER_DOMAIN)

    def over_pixels(
        self, node: f.Quantifier, scope: Scope, name: str, region: str | None
    ) -> f.Formula:
        if region is not None and not self.layout.is_region(region):
            self.layout.region(region, (0, 0))  # raises
        inner = replace(
            scope,
            variables={**scope.variables, node.variable: name},
            pixels=scope.pixels | {name},
            level=scope.level + 1,
        )
        body = self.formula(node.body, inner)
        domain = self.domain(body, name, region)
        return f.Quantifier(node.kind, name, None, None, body, domain)

    def check_anchor(self, node: f.Formula, scope: Scope) -> None:
        """Reject `forall t: ... eventually[0,5](...)`: it would count from step 0 for every t."""
        if scope.now is None and scope.variables:
            bound = ", ".join(scope.variables)
            raise FormulaError(
                f"{node} counts from step 0, not from {bound}",
                remedy="write always(...) in place of the outer quantifier, or bind a variable "
                "here too, as in exists u in [t, t + 5]: ...",
            )

    def until(self, node: f.Until, scope: Scope) -> f.Formula:
        """`Until` binds a step of its own; `here` becomes that step in both operands."""
        if node.weak:
            strong = replace(node, weak=False)
            return self.formula(f.Or((strong, always(node.left, 0, node.last))), scope)
        self.check_anchor(node, scope)
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
            case Apply(function, arguments) if function in SERIES or self.returns_whole_signal(
                function
            ):
                if scope.now is None:
                    raise missing_step(node, self.layout)
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
        raise TypeError(f"{node!r} is not a term")

    def name(self, node: Name, scope: Scope) -> Term:
        """A name on its own: a column, a parameter, a series read now, or `S25`."""
        signal = self.layout.find(node.name)
        if node.instance is not None and is_image(node, self.layout):
            self.named_image(node)  # raises if it has no such instance
        elif node.instance is not None:
            with_instance(node, self.layout)
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
            return with_instance(node, self.layout)
        if signal is not None and signal.kind == "category":
            raise FormulaError(
                f"{node} is a category, not a number",
                value=node.name,
                allowed=[quoted(each) for each in signal.categories],
                remedy="compare it with = or != to one of these",
            )
        if scope.now is None:
            raise missing_step(node, self.layout)
        return self.at(node, Step(NOW), scope)

    def compact(self, word: str) -> tuple[Name, int]:
        """`S25` as S at step 25, if that is the only reading."""
        series = [signal.name for signal in self.layout.signals if signal.kind == "series"]
        found = readings(word, series)
        if len(found) > 1:
            raise ambiguous(word, found)
        if not found:
            known = [*self.layout.names, *self.layout.parameters]
            known += self.layout.pictures
            remedy = self.picture_remedy(Name(word))
            if is_date(word) and self.layout.steps:
                remedy = (f'the step of a date is written @"{word}"',)
            raise unknown("signal, parameter or category", word, known, remedy)
        return Name(found[0][0]), found[0][1]

    def at(self, series: Term, when: Step, scope: Scope) -> Term:
        """`series` read at a step; an expression of series is read at it throughout."""
        if isinstance(series, Name):
            return self.read(series, when, scope)
        if isinstance(series, (At, Aggregate, Count)):
            raise superfluous_step(series, when, "is one number")
        pixel = scope.variables.get(when.base or "") in scope.pixels
        function = self.layout.function(series.function) if isinstance(series, Apply) else None
        if isinstance(series, Apply) and function is not None and function.returns != "number":
            call = self.call(series, scope)
            if function.returns == "series":
                return At(call, self.times.inside(self.times.step(when, scope), series, scope))
            return At(call, self.pixel_variable(when, series, scope))
        step = self.pixel_variable(when, series, scope) if pixel else self.times.step(when, scope)
        if isinstance(series, Apply) and series.function in SERIES:
            moved = replace(
                scope,
                here=Step(NOW),
                now=Step(NOW),
                variables={NOW: NOW},
                ranges={NOW: (0, self.layout.steps - 1)},
            )
            body = self.term(series.arguments[0], moved)
            self.check_varies(body, series)
            return At(Apply(series.function, (body,)), self.times.inside(step, series, scope))
        if not any(isinstance(each, (Name, Apply, Aggregate)) for each in descend(series)):
            raise superfluous_step(series, when, "has no values over time")
        return self.term(series, replace(scope, here=step, now=step))

    def read(self, node: Name, when: Step, scope: Scope) -> Term:
        signal = self.layout.find(node.name)
        if signal is None and self.layout.function(node.name) is not None:
            return self.call(Apply(node.name, (when,)), scope)
        if is_image(node, self.layout):
            return At(self.named_image(node), self.pixel_variable(when, node, scope))
        if signal is None and node.name in self.layout.parameters:
            raise superfluous_step(node, when, "is a parameter, one number")
        if signal is None and node.name != "time":
            known = [*self.layout.names, *self.layout.pictures, *self.layout.functions]
            raise unknown("signal or function", node.name, known, self.picture_remedy(node))
        if signal is None or signal.kind == "series":
            if signal is None and not self.layout.times:
                raise no_time_grid(f"{node}({when})", self.layout)
            return At(
                with_instance(node, self.layout),
                self.times.inside(self.times.step(when, scope), node, scope),
            )
        raise superfluous_step(node, when, "has one value a sample")

    def applied(self, node: Apply, scope: Scope) -> Term:
        """A call of a function, a classifier or a signal of the layout."""
        if self.layout.function(node.function) is not None:
            return self.call(node, scope)
        if node.function in self.layout.classifiers:
            return self.class_probability(node, scope)
        if is_image(Name(node.function), self.layout):
            return self.pixel(node, Name(node.function), node.arguments, scope)
        if self.layout.find(node.function) is None:
            raise unknown("function", node.function, [*built_in(), *self.layout.callables])
        raise not_a_reading(node)

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
            self.term(node.body, scope)  # raises if it has unknown names
        if region is not None:
            raise FormulaError(
                f"{node}: {region} is not a step and {node.body} is not an image",
                value=str(region),
                remedy="give two steps, or a region of an image",
            )
        if not self.layout.steps:
            raise no_time_grid(str(node), self.layout)
        first, last = (self.times.step(bound, scope) for bound in ends(node))
        span = self.times.window(first, last, scope, str(node), clip=True)
        if span[1] < span[0]:
            raise self.times.empty_window(str(node), first, last)
        moved = replace(
            scope,
            variables={**scope.variables, NOW: NOW},
            ranges={**scope.ranges, NOW: span},
            here=Step(NOW),
            now=Step(NOW),
        )
        if self.end in ("weak", "strong") and not 0 <= span[0] <= span[1] < self.layout.steps:
            raise aggregate_off_grid(node, self.layout)
        if isinstance(node, Count):
            return Count(self.formula(node.body, moved), first, last)
        inner = self.term(node.body, moved)
        self.check_varies(inner, node)
        return Aggregate(node.kind, inner, first, last, parameters=node.parameters)

    def check_varies(self, body: Node, node: Node) -> None:
        """Reject an aggregate or difference over time of what is the same at every step."""
        if not any(isinstance(each, Step) and each.base == NOW for each in descend(body)):
            raise constant_body(body, node, self.layout)
