"""Soft values against LTNtorch's product logic, an independent implementation.

Its conjunction is the product, its disjunction the probabilistic sum, its negation 1 - p and its
implication Reichenbach's; under these De Morgan's laws hold exactly, so that a formula has the same
value there, negations in place, as here, where they are pushed to the comparisons. Its generalised
mean of order p over a variable is our LogMeanExp with alpha = p.
"""

from __future__ import annotations

import warnings
from functools import reduce
from random import Random

import pytest
import torch
from torch import Tensor

from constraints import Formula, Layout, LogLTN, LogProbabilistic, compiled, parse
from constraints.ast import formulas as f
from constraints.ast.terms import Const, Name
from tests.constraints.random_formulas import NAMES

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    ltn = pytest.importorskip("ltn")

K = 2.0
STEPS = 5
COLUMNS = Layout.columns(NAMES)
SERIES = Layout.series(NAMES, STEPS)
NOT = ltn.fuzzy_ops.NotStandard()
AND = ltn.fuzzy_ops.AndProd(stable=False)
OR = ltn.fuzzy_ops.OrProbSum(stable=False)
IMPLIES = ltn.fuzzy_ops.ImpliesReichenbach(stable=False)


def normal(seed: int, *shape: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(len(NAMES), *shape, generator=generator, dtype=torch.float64)
    return dict(zip(NAMES, values, strict=True))


def drawn(random: Random, depth: int, serial: list[int]) -> Formula:
    """A formula of connectives over comparisons of columns, no two of which are equal."""
    if depth == 0 or random.random() < 0.2:
        serial[0] += 1
        left, right = random.sample(NAMES, 2)
        bound = Name(right) + Const(round(random.uniform(-2, 2), 1) + serial[0] / 1000)
        return Name(left) <= bound if random.random() < 0.5 else Name(left) > bound
    parts = [drawn(random, depth - 1, serial) for _ in range(random.choice([2, 3]))]
    kind = random.choice(["not", "and", "or", "implies"])
    if kind == "not":
        return f.Not(parts[0])
    if kind == "implies":
        return f.Implies(parts[0], parts[1])
    return (f.And if kind == "and" else f.Or)(tuple(parts))


def truth(node: Formula, data: dict[str, Tensor]) -> Tensor:
    """The formula in LTNtorch's operators: (B,)."""
    match node:
        case f.Compare((Name(left), right), (relation,)):
            offset = right.arguments[1].value
            margin = data[left] - data[right.arguments[0].name] - offset
            return torch.sigmoid(K * (margin if relation == ">" else -margin))
        case f.Not(body):
            return NOT(truth(body, data))
        case f.And(parts):
            return reduce(AND, [truth(part, data) for part in parts])
        case f.Or(parts):
            return reduce(OR, [truth(part, data) for part in parts])
        case f.Implies(left, right):
            return IMPLIES(truth(left, data), truth(right, data))
    raise TypeError(node)


def test_connectives_equal_those_of_ltn() -> None:
    for seed in range(150):
        formula = drawn(Random(seed), 3, [0])
        data = normal(seed, 6)
        value = compiled(formula, COLUMNS)(data, LogProbabilistic(K))
        torch.testing.assert_close(
            value.exp(), truth(formula, data), rtol=1e-9, atol=1e-12, msg=str(formula)
        )


def test_gradients_of_connectives_equal_those_of_ltn() -> None:
    for seed in range(30):
        formula = drawn(Random(seed), 2, [0])
        data = {name: value.requires_grad_() for name, value in normal(seed, 6).items()}
        ours = compiled(formula, COLUMNS)(data, LogProbabilistic(K)).exp().sum()
        theirs = truth(formula, data).sum()
        inputs = [*data.values()]
        for mine, other in zip(
            torch.autograd.grad(ours, inputs, allow_unused=True),
            torch.autograd.grad(theirs, inputs, allow_unused=True),
            strict=True,
        ):
            assert (mine is None) == (other is None)
            if mine is not None:
                torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(("kind", "operator"), [("forall", AND), ("exists", OR)])
def test_quantifiers_are_folds_of_connectives(kind: str, operator: ltn.LTNObject) -> None:
    data = normal(0, 6, STEPS)
    program = compiled(parse(f"{kind} t: x(t) <= y(t) + 0.3"), SERIES)
    steps = torch.sigmoid(K * (data["y"] + 0.3 - data["x"]))
    wanted = reduce(operator, steps.unbind(1))
    torch.testing.assert_close(program(data, LogProbabilistic(K)).exp(), wanted)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_exists_is_the_generalised_mean(p: int) -> None:
    aggregate = ltn.fuzzy_ops.AggregPMean(p=p, stable=False)
    data = normal(1, 6, STEPS)
    program = compiled(parse("exists t: x(t) >= 0.4"), SERIES)
    wanted = aggregate(torch.sigmoid(K * (data["x"] - 0.4)), dim=(1,))
    torch.testing.assert_close(program(data, LogLTN(K, alpha=float(p))).exp(), wanted)
    either = compiled(parse("x(0) >= 0.4 or y(1) <= z(2)"), SERIES)
    parts = [data["x"][:, 0] - 0.4, data["z"][:, 2] - data["y"][:, 1]]
    wanted = aggregate(torch.sigmoid(K * torch.stack(parts, 1)), dim=(1,))
    torch.testing.assert_close(either(data, LogLTN(K, alpha=float(p))).exp(), wanted)


@pytest.mark.parametrize("p", [1, 3])
def test_a_formula_has_the_value_that_ltn_gives_it(p: int) -> None:
    """exists t: exists u: x(t) <= y(u), and its complement, for one sample, in single precision."""
    data = normal(2, 1, STEPS)
    t, u = (ltn.Variable(name, data[name].T) for name in ("x", "y"))
    below = ltn.Predicate(func=lambda a, b: torch.sigmoid(K * (b - a))[:, 0])
    some = ltn.Quantifier(ltn.fuzzy_ops.AggregPMean(p=p, stable=False), quantifier="e")
    semantics = LogLTN(K, alpha=float(p))
    plain = compiled(parse("exists t: exists u: x(t) <= y(u)"), SERIES)
    wanted = some([t, u], below(t, u)).value
    torch.testing.assert_close(plain(data, semantics).exp()[0].float(), wanted)
    negated = compiled(parse("not forall t: forall u: x(t) <= y(u)"), SERIES)
    wanted = some([t, u], ltn.Connective(NOT)(below(t, u))).value
    torch.testing.assert_close(negated(data, semantics).exp()[0].float(), wanted)
