"""Orders that lead from a reading to itself."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constraints import Layout, conjunction, parse
from constraints.prove.contradictions import find
from constraints.prove.orders import Edge, negative_cycle

SERIES = Layout.series("a b c d", 30)
COLUMNS = Layout.columns("a b c d")
COUNTS = Layout.series("a b c d", 30, integer=True)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["a <= b", "b <= c", "c < a"], "c < a <= b <= c"),
        (["a < b", "b <= c", "c <= a"], "a"),
        (["a <= b - 1", "b <= c", "c <= a + 0.5"], "add up to at most -0.5"),
        (["a <= b <= c <= d", "d < a"], "d < a"),
        (["2*a <= 2*b", "3*b < 3*a - 1"], "no values of a and b"),
        (["a = b +- 0.1", "b = c +- 0.1", "c >= a + 0.3"], "at most -0.1"),
    ],
)
def test_a_chain_of_orders_that_closes_is_impossible(texts: list[str], says: str) -> None:
    found = find(conjunction(*map(parse, texts)), COLUMNS)
    assert found is not None
    assert says in found.reason
    assert len(found.parts) == len(texts)


def test_rules_at_every_step_contradict_a_scenario_at_one() -> None:
    rules = [
        parse(f"forall t: {pair}") for pair in ("a(t) <= b(t)", "b(t) <= c(t)", "c(t) <= d(t)")
    ]
    found = find(parse("d(7) < a(7)"), SERIES, given=rules)
    assert found is not None
    assert found.reason == "together they say d(7) < a(7) <= b(7) <= c(7) <= d(7)"
    assert find(parse("d(7) <= a(7)"), SERIES, given=rules) is None
    assert find(parse("d(7) < a(8)"), SERIES, given=rules) is None


def test_what_only_rises_does_not_fall_over_many_steps() -> None:
    rises = parse("forall t in [1, end]: a(t) >= a(t-1)")
    found = find(parse("a(end) < a(0)"), SERIES, given=[rises])
    assert found is not None
    assert "less than itself" in found.reason
    assert find(parse("a(end) < a(0)"), COUNTS, given=[rises]) is not None
    assert find(parse("a(end) > a(0)"), SERIES, given=[rises]) is None


@pytest.mark.parametrize(
    "texts", [["a <= b", "b <= c", "c <= a"], ["a < b", "b < c", "a < c"], ["a <= b + 1", "b < a"]]
)
def test_orders_that_can_be_met_are_not_refused(texts: list[str]) -> None:
    assert find(conjunction(*map(parse, texts)), COLUMNS) is None


EDGES = st.lists(
    st.builds(
        Edge,
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(-2, 2).map(float),
        st.booleans(),
        st.just(frozenset()),
    ),
    max_size=7,
)


@given(EDGES)
def test_a_cycle_is_found_if_and_only_if_no_numbers_fit(edges: list[Edge]) -> None:
    # a strict edge is shorter by 1/8: cycles have at most four edges, and whole lengths otherwise
    sized = [Edge(e.tail, e.head, e.length - e.strict / 8, False, e.sources) for e in edges]
    best = {
        pair: 0.0 if pair[0] == pair[1] else float("inf") for pair in product(range(4), repeat=2)
    }
    for edge in sized:
        pair = edge.tail, edge.head
        best[pair] = min(best[pair], edge.length)
    for k, i, j in product(range(4), repeat=3):
        best[i, j] = min(best[i, j], best[i, k] + best[k, j])
    possible = all(best[i, i] >= 0 for i in range(4))
    cycle = negative_cycle(edges)
    assert (cycle is None) == possible
    if cycle is not None:
        assert all(a.head == b.tail for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        total = sum(edge.length for edge in cycle)
        assert total < 0 or (total == 0 and any(edge.strict for edge in cycle))
