"""Formulas about columns that follow from a category: the same verdict, said of its words."""

from __future__ import annotations

import math
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from constraints import Layout, LogProbabilistic, Signal, compiled
from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, CategoryWeight
from constraints.ast.walk import descend, names
from constraints.compile.dependents import DependentColumn, without_dependents
from constraints.gaussian.expectation import log_expectation

HARD = LogProbabilistic(k=math.inf, half_unit=True)
CITY = ("cusco", "hanoi", "lima", "lyon", "paris")
COUNTRY = ("france", "peru", "vietnam")
FOLLOWERS = {
    "country": DependentColumn("city", CITY, (1, 2, 1, 0, 0)),
    "level": DependentColumn("city", CITY, (1, 3, 2, 2, 3)),
    "height": DependentColumn("city", CITY, (3.4, -0.5, 0.25, 0.2, 0.035)),
}
TABLE = Layout(
    (
        Signal("city", "category", (5,), categories=CITY),
        Signal("country", "category", (3,), categories=COUNTRY),
        Signal("level", "column", integer=True, low=1, high=3, span=2),
        Signal("height", "column", low=-0.5, high=3.4, span=3.9),
        Signal("age", "column", integer=True),
        Signal("plain", "column"),
    ),
    instances=2,
)


def consistent(seed: int, count: int = 60) -> dict[str, Tensor]:
    """Values of both instances (B, 2), followers as they follow."""
    draw = torch.Generator().manual_seed(seed)
    city = torch.randint(0, 5, (count, 2), generator=draw)
    made = {"city": city}
    for name, follower in FOLLOWERS.items():
        values = torch.tensor(follower.values, dtype=torch.float64)[city]
        made[name] = values.long() if name == "country" else values
    made["age"] = torch.randint(-4, 5, (count, 2), generator=draw).double()
    made["plain"] = torch.randn(count, 2, generator=draw, dtype=torch.float64)
    return made


def comparison(random: Random) -> str:
    i, j = random.choice([1, 2]), random.choice([1, 2])
    relation = random.choice(["<=", "<", ">=", ">", "=", "!="])
    inequality = random.choice(["<=", "<", ">=", ">"])
    bound = random.randint(-2, 8) / random.choice([1, 2])
    word, other = random.choice(COUNTRY), random.choice(COUNTRY)
    return random.choice(
        [
            f"level[{i}] {relation} {bound}",
            f"{random.choice([-2, -1, 0.5, 3])} * level[{i}] {relation} {bound}",
            f"{random.choice([-2, 0.25])} * height[{i}] {inequality} {bound / 3 + 0.011}",
            f"height[{i}] = {random.choice(FOLLOWERS['height'].values)}",
            f"height[{i}] = {bound / 4} +- 0.3",
            f"level[{i}] in {{{random.randint(0, 4)}, {random.randint(0, 4)}}}",
            f"abs(height[{i}]) {inequality} {bound / 3 + 0.011}",
            f"level[{i}] not in [{bound - 1}, {bound}]",
            f"country[{i}] {random.choice(['=', '!='])} {word}",
            f"country[{i}] in {{{word}, {other}}}",
            f"city[{i}] {random.choice(['=', '!='])} {random.choice(CITY)}",
            f"level[{i}] + age[{j}] {relation} {bound}",
            f"level[{i}] - 2 * level[{j}] {relation} {bound}",
            f"height[{i}] + plain[{j}] {inequality} {bound / 3 + 0.011}",
            f"height[{i}] * plain[{j}] {inequality} {bound / 3 + 0.011}",
            f"max(level[{i}], age[{j}]) {inequality} {bound}",
            f"age[{i}] {relation} {random.randint(-4, 4)}",
        ]
    )


def drawn(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return comparison(random)
    word = random.choice(["and", "or", "implies", "iff", "xor", "not"])
    if word == "not":
        return f"not ({drawn(random, depth - 1)})"
    return f"({drawn(random, depth - 1)}) {word} ({drawn(random, depth - 1)})"


@settings(max_examples=80)
@given(st.integers(0, 2**20), st.booleans())
def test_the_verdict_about_leaders_is_that_about_followers(seed: int, soft: bool) -> None:
    text = drawn(Random(seed), 3)
    program = compiled(text, TABLE)
    data = consistent(seed)
    found = without_dependents(program, FOLLOWERS, soft=soft)
    assert not names(found.lowered) & set(FOLLOWERS), text
    leaders = {name: value for name, value in data.items() if name not in FOLLOWERS}
    assert torch.equal(found.verdict(leaders), program.verdict(data)), text


@settings(max_examples=25)
@given(st.integers(0, 2**20))
def test_expectations_about_leaders_are_finite(seed: int) -> None:
    text = drawn(Random(seed), 2)
    draw = torch.Generator().manual_seed(seed)
    mean = torch.randn(7, TABLE.size, generator=draw, dtype=torch.float64).requires_grad_()
    covariance = 0.3 * torch.eye(TABLE.size, dtype=torch.float64)
    for soft, semantics in ((False, HARD), (True, LogProbabilistic(k=2.0))):
        value = log_expectation(
            without_dependents(compiled(text, TABLE), FOLLOWERS, soft=soft),
            mean,
            covariance,
            semantics,
        )
        assert (value <= 1e-6).all(), text
        assert torch.isfinite(value).all(), text
        if value.requires_grad:
            (slope,) = torch.autograd.grad(value.sum(), mean)
            assert torch.isfinite(slope).all(), text


def words_of(node: f.Formula) -> set[str]:
    """The words that a single atom about a category admits."""
    assert isinstance(node, Atom)
    assert node.category is not None
    named = {t.words[t.index] for t in node.terms if isinstance(t, CategoryWeight)}
    return named if node.chooses else set(CITY) - named


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("country[1] = peru", {"cusco", "lima"}),
        ("country[1] != peru", {"hanoi", "lyon", "paris"}),
        ("country[2] in {peru, france}", {"cusco", "lima", "lyon", "paris"}),
        ("level[1] >= 3", {"hanoi", "paris"}),
        ("level[1] != 2", {"cusco", "hanoi", "paris"}),
        ("-2 * level[1] > -3", {"cusco"}),
        ("height[1] < 0.2", {"hanoi", "paris"}),
        ("height[1] <= 0.2", {"hanoi", "paris", "lyon"}),
        ("country[1] = peru or level[1] = 3", {"cusco", "lima", "hanoi", "paris"}),
        ("country[1] = france and level[1] = 3", {"paris"}),
        ("country[1] = france and city[1] != lyon", {"paris"}),
        ("not (country[1] = france or level[1] = 1)", {"lima", "hanoi"}),
    ],
)
def test_a_statement_about_a_follower_is_a_set_of_categories(text: str, words: set[str]) -> None:
    assert words_of(without_dependents(compiled(text, TABLE), FOLLOWERS).lowered) == words


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("level[1] >= 1", f.TRUE),
        ("level[1] >= 4", f.FALSE),
        ("level[1] = 1.5", f.FALSE),
        ("country[1] in {france, peru, vietnam}", f.TRUE),
        ("height[1] > 3.4", f.FALSE),
        ("level[1] = 7 or height[2] >= -1", f.TRUE),
    ],
)
def test_tautologies_and_contradictions_become_constants(text: str, constant: f.Formula) -> None:
    assert without_dependents(compiled(text, TABLE), FOLLOWERS).lowered == constant


def test_a_category_that_no_leader_implies_is_never_met() -> None:
    """All that is said of it is known."""
    lost = {"country": DependentColumn("city", CITY, (1, 1, 1, 0, 0))}
    for text, constant in (
        ("country[1] = vietnam", f.FALSE),
        ("country[1] != vietnam", f.TRUE),
        ("country[1] in {france, peru}", f.TRUE),
        ("country[1] not in {france, peru}", f.FALSE),
    ):
        assert without_dependents(compiled(text, TABLE), lost).lowered == constant, text


def test_instances_are_rewritten_separately() -> None:
    program = without_dependents(compiled("level[1] = 1 and level[2] = 3", TABLE), FOLLOWERS)
    found = {
        (node.signal.instance, node.words[node.index])
        for node in descend(program.lowered)
        if isinstance(node, CategoryWeight)
    }
    assert found == {(1, "cusco"), (2, "hanoi"), (2, "paris")}
    data = {"city": torch.tensor([[0, 1], [0, 0], [1, 0]])}
    assert program.verdict(data).tolist() == [True, False, False]


def test_the_expectation_is_the_weight_of_the_categories() -> None:
    """At a belief without spread: about certain words it is certain."""
    layout = Layout(TABLE.signals)
    program = without_dependents(compiled("country = peru and plain <= 0", layout), FOLLOWERS)
    mean = torch.zeros(5, layout.size, dtype=torch.float64)
    mean[:, :5] = torch.eye(5)
    covariance = torch.diag(torch.tensor([1e-4] * 11 + [1.0])).double()
    assert covariance.shape == (layout.size, layout.size)
    found = log_expectation(program, mean, covariance, HARD)
    half = math.log(0.5)
    torch.testing.assert_close(found[[0, 2]], torch.full((2,), half).double(), atol=1e-3, rtol=0)
    assert bool((found[[1, 3, 4]] < -10).all())


def test_programs_without_followers_are_unchanged() -> None:
    program = compiled("age[1] >= 3 and city[2] = lima", TABLE)
    assert without_dependents(program, FOLLOWERS) is program
    assert without_dependents(program, {}) is program


def test_atoms_with_their_own_hardness_keep_their_margin() -> None:
    """A margin of a number is one in its units, over the words' weights."""
    program = compiled("(level[1] >= 2.5) {k=2}", TABLE)
    found = without_dependents(program, FOLLOWERS)
    weights = torch.zeros(1, 2, 5, dtype=torch.float64)
    weights[0, :, 1] = 0.5  # half hanoi (3), half cusco (1): 2 on average
    weights[0, :, 0] = 0.5
    value = found({"city": weights}, LogProbabilistic(k=9.0))
    exact = torch.nn.functional.logsigmoid(torch.tensor([2 * (2 - 2.5)], dtype=torch.float64))
    torch.testing.assert_close(value, exact)
