"""Random formulas over the series x, y, z, for tests that compare two readings of a formula.

`random_formula(random.Random(seed))` draws one; `formulas()` is the same as a hypothesis strategy.
Every formula is meaningful on a grid of `steps` steps: what its windows and readings reach is
tracked, as a range of steps, while it is drawn. `reach` says how far that may be:
- "inside": the grid, so the formula compiles as it is;
- "clip": windows may reach beyond the grid, readings may not (end="clip");
- "beyond": readings too (end="weak" or "strong").

No two comparisons of a formula are equal: their constants carry a serial number. No reading occurs
twice within a comparison. So nothing in it cancels or is repeated by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st

from constraints.ast import build
from constraints.ast import formulas as f
from constraints.ast.build import maximum, minimum
from constraints.ast.terms import Aggregate, Apply, At, Const, Name, Step, Term
from constraints.ast.words import END, NOW

STEPS = 8
NAMES = ("x", "y", "z")
Range = tuple[int, int]


@dataclass(frozen=True)
class Scope:
    """The steps that bound variables and `here` may stand at; `now`: a bare series means `here`."""

    variables: Mapping[str, Range] = field(default_factory=dict)
    here: Range = (0, 0)
    now: bool = False

    @property
    def anchored(self) -> bool:
        """Where an operator relative to now would count from step 0, not from the variable."""
        return bool(self.variables) and not self.now

    def moved(self, steps: Range) -> Scope:
        return replace(self, here=steps, now=True)

    def binding(self, name: str, steps: Range) -> Scope:
        return replace(self, variables={**self.variables, name: steps})


@dataclass
class Generator:
    """Draws formulas from `random`.

    `explicit`: quantifiers over named variables and readings at given steps. `folds`: aggregates,
    counts, delta and cumsum. `constants`: true, false, and comparisons that may amount to them.
    `annotated`: {k=...} and {weight=...}.
    """

    random: Random
    steps: int = STEPS
    names: tuple[str, ...] = NAMES
    reach: str = "inside"
    explicit: bool = True
    folds: bool = True
    constants: bool = True
    annotated: bool = True
    serial: int = 0

    # formulas

    def formula(self, depth: int, scope: Scope) -> f.Formula:
        if depth <= 0:
            constant = self.constants and self.random.random() < 0.02
            return self.random.choice([f.TRUE, f.FALSE]) if constant else self.compare(0, scope)
        kinds: list[tuple[int, Callable[[int, Scope], f.Formula]]] = [
            (3, self.compare),
            (5, self.connective),
            (5, self.temporal),
            (3, self.until),
        ]
        if self.explicit:
            kinds.append((6, self.quantifier))
        if self.annotated:
            kinds.append((1, self.annotation))
        weights = [weight for weight, _ in kinds]
        (_, draw), *_ = self.random.choices(kinds, weights)
        return draw(depth, scope)

    def connective(self, depth: int, scope: Scope) -> f.Formula:
        kind = self.random.choice(["not", "and", "or", "implies", "iff", "xor"])
        if kind == "not":
            return f.Not(self.formula(depth - 1, scope))
        count = self.random.choice([2, 2, 3]) if kind in ("and", "or") else 2
        parts = [self.formula(depth - 1, scope) for _ in range(count)]
        if kind == "and":
            return f.conjunction(*parts)
        if kind == "or":
            return f.disjunction(*parts)
        return {"implies": f.Implies, "iff": f.Iff, "xor": f.Xor}[kind](*parts)

    def annotation(self, depth: int, scope: Scope) -> f.Formula:
        k, weight = self.random.choice([(2.0, None), (None, 0.5), (5.0, 2.0)])
        return f.Annotated(self.formula(depth - 1, scope), k, weight)

    def temporal(self, depth: int, scope: Scope) -> f.Formula:
        kind = self.random.choice(["forall", "exists"])
        past = self.random.random() < 0.4
        window = self.distances(scope.here, past)
        if window is None or scope.anchored:
            return self.compare(depth, scope)
        first, last = window
        body = self.formula(depth - 1, scope.moved(self.reached(scope.here, first, last, past)))
        if past:
            return (build.historically if kind == "forall" else build.once)(body, first, last)
        return (build.always if kind == "forall" else build.eventually)(body, first, last)

    def until(self, depth: int, scope: Scope) -> f.Formula:
        kind = self.random.choice(["forall", "exists"])
        past = self.random.random() < 0.4
        window = self.distances(scope.here, past)
        if window is None or scope.anchored:
            return self.compare(depth, scope)
        first, last = window
        inner = scope.moved(self.reached(scope.here, 0, last, past))
        left, right = self.formula(depth - 1, inner), self.formula(depth - 1, inner)
        return f.Until(kind, left, right, first, last, past)

    def quantifier(self, depth: int, scope: Scope) -> f.Formula:
        kind = self.random.choice(["forall", "exists"])
        name = self.random.choice(["t", "u", "v", "t", "u", "v", NOW])
        first, last, steps = self.window(scope)
        inner = scope.moved(steps) if name == NOW else scope.binding(name, steps)
        return f.Quantifier(kind, name, first, last, self.formula(depth - 1, inner))

    # windows

    def on_grid(self, steps: Range) -> bool:
        return 0 <= steps[0] <= steps[1] < self.steps

    def distances(self, here: Range, past: bool) -> tuple[int, int | None] | None:
        """A window of an operator relative to `here`; None if there is none."""
        if self.reach == "inside":
            most = here[0] if past else self.steps - 1 - here[1]
        elif self.reach == "clip":
            most = here[1] if past else self.steps - 1 - here[0]
        else:
            most = 3
        if most < 0:
            return None
        first = self.random.randint(0, min(most, 3))
        some = here[1] >= first if past else here[0] + first < self.steps
        if self.random.random() < 0.3 and some:
            return first, None
        spill = 4 if self.reach == "clip" else 0
        return first, self.random.randint(first, min(most + spill, first + 4))

    def reached(self, here: Range, first: int, last: int | None, past: bool) -> Range:
        if past:
            steps = (0 if last is None else here[0] - last, here[1] - first)
        else:
            steps = (here[0] + first, self.steps - 1 if last is None else here[1] + last)
        return self.clipped(steps)

    def clipped(self, steps: Range) -> Range:
        if self.reach != "clip":
            return steps
        return max(steps[0], 0), min(steps[1], self.steps - 1)

    def window(self, scope: Scope) -> tuple[Step | None, Step | None, Range]:
        """The ends of a window, and the steps it may hold."""
        whole = (0, self.steps - 1)
        bases: list[tuple[str | None, Range]] = [(None, (0, 0)), (END, (whole[1], whole[1]))]
        bases += [*scope.variables.items()] * 2
        if scope.now:
            bases += [(NOW, scope.here)] * 2
        if self.random.random() < 0.2:
            return None, None, whole
        for _ in range(10):
            base, low = self.random.choice(bases)
            far, high = (base, low) if self.random.random() < 0.5 else self.random.choice(bases)
            a, b = self.random.randint(-3, 4), self.random.randint(-3, 4)
            steps = (low[0] + a, high[1] + b)
            if base == far and b < a:
                continue
            if self.reach == "inside" and not self.on_grid(steps):
                continue
            steps = self.clipped(steps)
            if steps[0] <= steps[1]:
                return Step(base, a), Step(far, b), steps
        return Step(None, 0), Step(END), whole

    # comparisons

    def constant(self) -> float:
        self.serial += 1
        return round(self.random.uniform(-2, 2), 1) + self.serial / 1000

    def compare(self, depth: int, scope: Scope) -> f.Formula:
        relation = self.random.choice(["<=", "<", ">=", ">"])
        if self.folds and depth > 0 and self.random.random() < 0.25:
            return self.whole(depth, relation, scope)
        names = self.random.sample(self.names, self.random.choice([1, 1, 2, len(self.names)]))
        if len(names) == 1 or self.random.random() < 0.5:
            left, right = self.term(names, scope), Const(round(self.constant(), 3))
        else:
            left = self.term(names[:1], scope)
            right = self.term(names[1:], scope) + round(self.constant(), 3)
        shape = self.random.random()
        if shape < 0.1:
            tolerance = self.random.choice([None, 0.0, 0.5, 1.5])
            return f.Compare((left, right), (self.random.choice(["=", "!="]),), tolerance)
        if shape < 0.2:
            low = Const(round(self.constant() - 2, 3))
            return f.Compare((low, left, right), (relation, relation))
        return f.Compare((left, right), (relation,))

    def whole(self, depth: int, relation: str, scope: Scope) -> f.Formula:
        """A comparison of whole numbers."""
        first, last, steps = self.folded(scope)
        if not self.constants or self.random.random() < 0.5:
            inner = scope.moved(steps)
            counted = self.formula(depth - 2, inner)
            return f.Compare((build.count(counted, first, last), self.number()), (relation,))
        kind = self.random.choice(["argmax", "argmin"])
        scaled = Apply("*", (Const(round(abs(self.constant()) + 0.1, 3)), self.series()))
        relation = self.random.choice([relation, relation, "=", "!="])
        return f.Compare((Aggregate(kind, scaled, first, last), self.number()), (relation,))

    def number(self) -> Const:
        return Const(self.random.randint(0, 4))

    # terms: each name is read once

    def term(self, names: list[str], scope: Scope) -> Term:
        if len(names) > 1:
            return self.joined(names, scope)
        inner = self.reading(names[0], scope)
        shape = self.random.random()
        if shape < 0.1:
            return abs(inner)
        if shape < 0.2:
            return self.random.choice([0.5, 2, -1.5]) * inner
        if shape < 0.25:
            return -inner
        if shape < 0.3:
            return inner / self.random.choice([2, -4])
        if shape < 0.35:
            return inner**2
        if shape < 0.4:
            return abs(inner).sqrt()
        if shape < 0.45 and self.explicit and scope.variables:
            return inner + Apply("*", (Const(0.25), Step(self.random.choice([*scope.variables]))))
        return inner

    def joined(self, names: list[str], scope: Scope) -> Term:
        left, right = self.term(names[:1], scope), self.term(names[1:], scope)
        kind = self.random.choice(["+", "-", "*", "max", "min"])
        if kind in "+-*":
            return {"+": left + right, "-": left - right, "*": left * right}[kind]
        return (maximum if kind == "max" else minimum)(left, right)

    def series(self) -> Term:
        return Name(self.random.choice(self.names))

    def reading(self, name: str, scope: Scope) -> Term:
        series: Term = Name(name)
        if self.folds and self.random.random() < 0.2:
            kind = self.random.choice(["max", "min", "mean", "sum", "integral"])
            first, last, _ = self.folded(scope)
            inner = self.random.choice([series, series, abs(series), 2 * series, series.delta()])
            return Aggregate(kind, inner, first, last)
        if self.folds and self.random.random() < 0.2:
            series = self.random.choice([series.delta(), series.cumsum(), 2 * series + 1])
        return self.read(series, scope)

    def read(self, series: Term, scope: Scope) -> Term:
        bare = scope.now and (self.reach == "beyond" or self.on_grid(scope.here))
        if bare and (not self.explicit or self.random.random() < 0.6):
            return series
        if self.random.random() < 0.1:
            return series.at_time(self.random.randrange(self.steps))
        bases = [*scope.variables.items()] * 2 + ([(NOW, scope.here)] if scope.now else [])
        for _ in range(5):
            if not bases:
                break
            base, steps = self.random.choice(bases)
            by = self.random.randint(-2, 2)
            if self.reach == "beyond" or self.on_grid((steps[0] + by, steps[1] + by)):
                return At(series, Step(base, by))
        return At(series, Step(None, self.random.randrange(self.steps)))

    def folded(self, scope: Scope) -> tuple[Step | None, Step | None, Range]:
        """The window of an aggregate: never empty, on the grid unless it is clipped."""
        whole = (0, self.steps - 1)
        bases = [*scope.variables.items()] + ([(NOW, scope.here)] if scope.now else [])
        for _ in range(4):
            if not bases or self.random.random() < 0.4:
                break
            base, (low, high) = self.random.choice(bases)
            a = self.random.randint(-2, 2)
            b = self.random.randint(a, a + 3)
            if self.on_grid((low + a, high + b)):
                return Step(base, a), Step(base, b), (low + a, high + b)
            if self.reach == "clip" and self.on_grid((low, high)) and a <= 0 <= b:
                return Step(base, a), Step(base, b), self.clipped((low + a, high + b))
        if self.random.random() < 0.5:
            return None, None, whole
        a = self.random.randrange(self.steps)
        b = self.random.randrange(a, self.steps)
        return Step(None, a), Step(None, b), (a, b)


def random_formula(
    random: Random, depth: int = 3, *, trace: bool = False, steps: int = STEPS, **options: object
) -> f.Formula:
    """A formula to be judged at step 0, or, if `trace`, at every step."""
    generator = Generator(random, steps, **options)  # type: ignore[arg-type]
    scope = Scope(here=(0, steps - 1), now=True) if trace else Scope()
    return generator.formula(random.randint(1, depth), scope)


def formulas(
    depth: int = 3, *, trace: bool = False, **options: object
) -> st.SearchStrategy[f.Formula]:
    """`random_formula` as a strategy that shrinks."""
    draws = st.randoms(use_true_random=False)
    return draws.map(lambda random: random_formula(random, depth, trace=trace, **options))
