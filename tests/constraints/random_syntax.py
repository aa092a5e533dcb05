"""Random formulas of every kind of node, with names, numbers and steps that are hard to write.

They need mean nothing for any data. They are built with the operators that people use, which keep
sums and steps in their usual form; variables are bound where they occur.
"""

from __future__ import annotations

from random import Random

from constraints.ast import build
from constraints.ast import formulas as f
from constraints.ast.aggregates import aggregates
from constraints.ast.build import call, maximum, minimum
from constraints.ast.families import families, observe
from constraints.ast.terms import Aggregate, Apply, At, Const, Name, Step, Term
from constraints.ast.words import END, NOW
from constraints.errors import FormulaError

PLAIN_NAMES = ["S", "I", "t", "u", "x²", "Ω", "_a1", "e5", "not_a", "inner", "été", "True", "k"]
QUOTED_NAMES = [
    "residual sugar",
    "and",
    "now",
    "max",
    "1st",
    "it's",
    "#",
    "forall t: x",
    " ",
    "a\\b",
    "{k=7}",
]
AGGREGATES = [name for name, entry in aggregates().items() if not entry.of_formula]
VARIABLES = ["t", "u", "S", "été", NOW]
NUMBERS = [0, 1, 3, 2.5, 0.1, 1e300, 5e-324, 1e15, 123456789012345678.0, 1e-7, 1 / 3]


class SyntaxGenerator:
    """Draws from `random`; `scope` lists the variables bound around the place."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pick = random.choice

    def formula(self, depth: int, scope: tuple[str, ...] = ()) -> f.Formula:
        if depth <= 0:
            return self.pick([self.compare, self.compare, self.constant])(0, scope)
        kinds = [self.compare, self.connective, self.prefix, self.quantifier, self.annotated]
        return self.pick(kinds)(depth - 1, scope)

    def factored(self, depth: int) -> f.Formula:
        """A formula with an observation beside it, or an observation alone."""
        family = self.pick(list(families().values()))
        parameters = [
            self.pick([self.term(depth, ()), Const(0.5 if not known.domain.whole else 3)])
            for known in family.parameters
        ]
        positive = self.pick([1, 3, 12]) if family.support.whole else self.pick([0.1, 7, 1 / 3])
        seen = observe(positive, family(*parameters))
        return self.pick([seen, seen & self.formula(depth), self.formula(depth) & seen & seen])

    def constant(self, depth: int, scope: tuple[str, ...]) -> f.Formula:
        return self.pick([f.TRUE, f.FALSE])

    def connective(self, depth: int, scope: tuple[str, ...]) -> f.Formula:
        kind = self.pick([f.And, f.Or, f.Implies, f.Iff, f.Xor, f.Until])
        count = self.random.randint(2, 4) if kind in (f.And, f.Or) else 2
        parts = [self.formula(depth, scope) for _ in range(count)]
        if kind in (f.And, f.Or):
            return kind(tuple(parts))
        if kind is f.Until:
            first = self.pick([0, 0, 2])
            last = self.pick([None, first, first + 7])
            return f.Until(self.quality(), *parts, first, last, past=self.pick([True, False]))
        return kind(*parts)

    def quality(self) -> str:
        return self.pick(["forall", "exists"])

    def prefix(self, depth: int, scope: tuple[str, ...]) -> f.Formula:
        body = self.formula(depth, scope)
        if self.random.random() < 0.3:
            return ~body
        first = self.pick([0, 0, 3])
        last = self.pick([None, first, first + 2])
        return self.pick([build.always, build.eventually, build.historically, build.once])(
            body, first, last
        )

    def quantifier(self, depth: int, scope: tuple[str, ...]) -> f.Formula:
        name = self.pick(VARIABLES)
        first = last = region = None
        if self.random.random() < 0.6:
            first, last = self.step(scope), self.step(scope)
        elif self.random.random() < 0.3:
            region = self.pick(PLAIN_NAMES + QUOTED_NAMES)
        body = self.formula(depth, (*scope, name))
        return f.Quantifier(self.quality(), name, first, last, body, region)

    def annotated(self, depth: int, scope: tuple[str, ...]) -> f.Formula:
        k, weight = self.pick([(7, None), (None, 0.5), (1e-9, 3)])
        return self.formula(depth, scope).given(k, weight)

    def compare(self, depth: int, scope: tuple[str, ...]) -> f.Formula:
        count = self.pick([2, 2, 2, 3, 4])
        terms = tuple(self.term(depth, scope) for _ in range(count))
        if count == 2 and self.random.random() < 0.3:
            return f.Compare(terms, (self.pick(["=", "!="]),), abs(self.pick(NUMBERS)))
        return f.Compare(terms, tuple(self.pick(f.RELATIONS) for _ in terms[1:]))

    def term(self, depth: int, scope: tuple[str, ...]) -> Term:
        if depth <= 0:
            return self.pick([self.number, self.name, self.name, self.time])(scope)
        return self.pick([self.reading, self.arithmetic, self.function, self.fold])(depth, scope)

    def number(self, scope: tuple[str, ...]) -> Term:
        return Const(self.pick([1, -1]) * self.pick(NUMBERS))

    def name(self, scope: tuple[str, ...]) -> Term:
        return Name(
            self.pick(PLAIN_NAMES + QUOTED_NAMES),
            self.pick([None, None, 1, 12]),
            self.pick([True, False]),
        )

    def time(self, scope: tuple[str, ...]) -> Term:
        """A step used as a number; those with neither base nor time are numbers already."""
        step = self.step(scope)
        return step if step.base or step.time is not None else Const(step.offset)

    def step(self, scope: tuple[str, ...]) -> Step:
        kind = self.random.random()
        if kind < 0.2:
            when = float(self.pick([1, -1]) * self.pick(NUMBERS))
            return Step(None, 0, self.pick([when, when, "1948-03-01", "2016-07-01 12:30"]))
        if kind < 0.4:
            return Step(None, self.pick([0, 5, 10**8]))
        return Step(self.pick([*scope, *scope, END, NOW]), self.pick([0, 0, 1, -2, 10**8]))

    def reading(self, depth: int, scope: tuple[str, ...]) -> Term:
        series = self.term(depth - 1, scope)
        if isinstance(series, Step):
            series = self.name(scope)
        return At(series, self.pick([self.step(scope), Step(None, -3)]))

    def arithmetic(self, depth: int, scope: tuple[str, ...]) -> Term:
        left, right = self.term(depth - 1, scope), self.term(depth - 1, scope)
        made = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
            "^": lambda: left**right,
            "neg": lambda: -left,
            "max": lambda: maximum(left, right, *self.pick([(), (2,), (left, right)])),
            "min": lambda: minimum(left, right),
        }
        return made[self.pick([*made])]()

    def function(self, depth: int, scope: tuple[str, ...]) -> Term:
        inner = self.term(depth - 1, scope)
        if self.random.random() < 0.5:
            return Apply(self.pick(["abs", "exp", "log", "sqrt", "delta", "cumsum"]), (inner,))
        more = [self.term(0, scope) for _ in range(self.pick([0, 1, 2]))]
        return call(self.pick(["f", "été", "t"]), inner, *more)

    def fold(self, depth: int, scope: tuple[str, ...]) -> Term:
        window = self.pick([(None, None), (self.step(scope), self.step(scope))])
        if self.random.random() < 0.3:
            return build.count(self.formula(depth - 1, scope), *window)
        kind, body = self.pick(AGGREGATES), self.term(depth - 1, scope)
        levels = tuple(self.pick([0.0, 0.1, 0.5, 1.0]) for _ in aggregates()[kind].parameters)
        if window[0] is None and kind not in ("max", "min") and self.random.random() < 0.3:
            return Aggregate(
                kind, body, region=self.pick(PLAIN_NAMES + QUOTED_NAMES), parameters=levels
            )
        return Aggregate(kind, body, *window, parameters=levels)


def random_syntax(random: Random, depth: int = 4) -> f.Formula:
    while True:
        try:
            made = SyntaxGenerator(random)
            return made.pick([made.formula, made.formula, made.factored])(random.randint(1, depth))
        except FormulaError:  # a step plus 1e15 is beyond any grid
            continue
