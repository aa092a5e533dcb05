"""What is said of one category: joined as sets of words, and a probability at a belief."""

from __future__ import annotations

import math
from itertools import chain, combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from constraints import (
    Formula,
    Layout,
    LogLTN,
    LogProbabilistic,
    Signal,
    compiled,
    explain,
    instances_of,
    one_of,
    parse,
    signals,
)
from constraints.ast import formulas as f
from constraints.ast.lowered import Atom
from constraints.gaussian.expectation import log_expectation

WORDS = ("a", "b", "c", "d")
LAYOUT = Layout((Signal("race", "category", (4,), categories=WORDS), Signal("age", "column")))
HARD = LogProbabilistic(k=math.inf)
race = signals("race")
CODES = {"race": torch.arange(4), "age": torch.zeros(4)}
SOME = [set(x) for x in chain(*(combinations(WORDS, n) for n in range(1, 5)))]


def statements(depth: int = 3) -> st.SearchStrategy[Formula]:
    word = st.sampled_from(WORDS)
    single = st.builds(lambda w, same: race == w if same else race != w, word, st.booleans())
    several = st.builds(lambda words: one_of(race, *sorted(words)), st.sampled_from(SOME))
    return st.recursive(
        single | several,
        lambda inner: st.one_of(
            st.builds(lambda x, y: x & y, inner, inner),
            st.builds(lambda x, y: x | y, inner, inner),
            st.builds(lambda x: ~x, inner),
        ),
        max_leaves=2**depth,
    )


def words_of(formula: Formula) -> set[str]:
    """The words that satisfy a statement, by its definition."""
    match formula:
        case f.And(parts):
            return set(WORDS).intersection(*(words_of(part) for part in parts))
        case f.Or(parts):
            return set().union(*(words_of(part) for part in parts))
        case f.Not(body):
            return set(WORDS) - words_of(body)
        case f.Compare((_, word), (relation,)):
            own = {str(word).strip('"')}
            return own if relation == "=" else set(WORDS) - own
    raise AssertionError(formula)


@given(statements())
def test_the_verdict_is_membership_in_a_set(formula: Formula) -> None:
    program = compiled(formula, LAYOUT)
    exact = [word in words_of(formula) for word in WORDS]
    assert program.verdict(CODES).tolist() == exact
    assert program.verdict({**CODES, "race": torch.eye(4)}).tolist() == exact
    assert program.robustness(CODES).gt(0).tolist() == exact


@given(statements(), st.integers(0, 2**20))
def test_satisfiable_statements_merge_into_one_atom_with_its_probability(
    formula: Formula, seed: int
) -> None:
    program = compiled(formula, LAYOUT)
    allowed = words_of(formula)
    if allowed == set(WORDS):
        assert program.verdict(CODES).all()
        return
    if not isinstance(program.lowered, Atom):  # it contradicts itself somewhere
        return
    weights = torch.rand(5, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights = weights / weights.sum(1, keepdim=True)
    p = weights[:, [WORDS.index(word) for word in sorted(allowed)]].sum(1)
    found = log_expectation(program, flat(weights), 0.1 * torch.eye(5, dtype=torch.float64), HARD)
    torch.testing.assert_close(found, p.clamp(1e-6, 1).log())


def flat(weights: Tensor) -> Tensor:
    return torch.cat([weights, torch.zeros(len(weights), 1, dtype=weights.dtype)], 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("race = a", 'race = "a"'),
        ("not race = a", 'race != "a"'),
        ("race in {c, a}", 'race in {"a", "c"}'),
        ("race = a or race = b", 'race in {"a", "b"}'),
        ("race != a and race != b", 'race not in {"a", "b"}'),
        ("race in {a, b} and race != a", 'race = "b"'),
        ("race != a or race = a", None),
        ("race in {a, b, c, d}", None),
        ("age <= 3 or race in {a, b, c, d}", None),
    ],
)
def test_merged_atoms_print_as_membership(text: str, shown: str | None) -> None:
    found = compiled(text, LAYOUT).lowered
    if shown is None:
        assert found == f.TRUE
    else:
        assert isinstance(found, Atom)
        assert found.readable() == shown
        assert compiled(found.readable(), LAYOUT).lowered == found


def test_atoms_of_different_hardness_are_not_merged() -> None:
    found = compiled("(race = a) {k=2} or race = b or race = c", LAYOUT).lowered
    assert isinstance(found, f.Or)
    assert [part.readable() for part in found.parts if isinstance(part, Atom)] == [
        'race = "a"',
        'race in {"b", "c"}',
    ]


def test_instances_have_categories_of_their_own() -> None:
    pairs = Layout(LAYOUT.signals, instances=2)
    formula = parse("race[1] = a or race[2] = b or race[1] = b")
    found = compiled(formula, pairs).lowered
    assert isinstance(found, f.Or)
    assert [part.readable() for part in found.parts if isinstance(part, Atom)] == [
        'race[1] in {"a", "b"}',
        'race[2] = "b"',
    ]
    assert instances_of(formula) == 2


def test_the_gradient_does_not_overshoot() -> None:
    """d value / d p = 1 / max(p, v): covariance times gradient adds at most one to p."""
    program = compiled("race in {a, b}", LAYOUT)
    weights = [[0.0, 0.0, 1.0, 0.0], [0.01, 0.04, 0.9, 0.05], [0.5, 0.3, 0.1, 0.1], [1.2, 0, 0, 0]]
    mean = flat(torch.tensor(weights, dtype=torch.float64)).requires_grad_()
    covariance = 0.1 * torch.eye(5, dtype=torch.float64)  # of which the sum has 0.2
    for sign, text in ((1.0, "race in {a, b}"), (-1.0, "race not in {a, b}")):
        program = compiled(text, LAYOUT)
        value = log_expectation(program, mean, covariance, HARD)
        (slope,) = torch.autograd.grad(value.sum(), mean)
        p = mean[:, :2].sum(1).detach()
        p = p if sign > 0 else 1 - p
        torch.testing.assert_close(slope[:, 0], sign / p.clamp(min=0.2))
        torch.testing.assert_close(slope[:, 1], slope[:, 0])
        moved = (slope @ covariance)[:, :2].sum(1).abs()
        assert (moved <= 1 + 1e-9).all()


def test_without_variance_the_gradient_is_finite() -> None:
    mean = flat(torch.eye(4, dtype=torch.float64)).requires_grad_()
    value = log_expectation(compiled("race = a", LAYOUT), mean, torch.zeros(5, 5).double(), HARD)
    (slope,) = torch.autograd.grad(value.sum(), mean)
    torch.testing.assert_close(value, torch.tensor([1.0, 1e-6, 1e-6, 1e-6]).double().log())
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("semantics", [LogProbabilistic(k=8.0), LogLTN(k=8.0, alpha=2.0)])
def test_soft_weights_are_added_up(semantics: LogProbabilistic | LogLTN) -> None:
    weights = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.8, 0.0]], dtype=torch.float64)
    expected = torch.nn.functional.logsigmoid(8 * (weights[:, :2].sum(1) - 0.5))
    program = compiled("race in {a, b}", LAYOUT)
    torch.testing.assert_close(program(flat(weights), semantics), expected)
    none = torch.zeros(5, 5, dtype=torch.float64)
    torch.testing.assert_close(log_expectation(program, flat(weights), none, semantics), expected)


def test_an_explanation_has_every_part() -> None:
    found = explain(parse("race = a or race = b"), LAYOUT, CODES)
    assert [row.text for row in found.rows] == ["race = a or race = b", "race = a", "race = b"]
    assert [row.satisfied for row in found.rows] == [0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("alcohol[1] > alcohol[2] + 1", 2),
        ("alcohol > 3", 1),
        ("race[3] = a implies alcohol[2] > 1", 3),
    ],
)
def test_instances_of_returns_the_greatest_instance(text: str, count: int) -> None:
    assert instances_of(parse(text)) == count
    assert instances_of(parse("x[2] >= 1"), parse(text)) == max(2, count)
