"""Conditions on whole trajectories: all grid paths of a small network, and dense exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import linalg, stats

from simulators import InputError, Reaction, ReactionNetwork, models
from simulators.exact import chain
from simulators.exact.master_equation import MasterEquation
from simulators.exact.monitors import before, count, exists, reaches, until
from tests.simulators.exact.test_master_equation import (
    BruteForce,
    pooled_chi_square,
)

ESIRS = models.esirs()
TIMES = [0.0, 0.3, 0.5, 1.2]


def solver() -> MasterEquation:
    return MasterEquation(ESIRS, parameters={"N": 3}, times=TIMES)


def first(hits: np.ndarray) -> np.ndarray:
    """The first step of each path at which it holds, 99 without one."""
    return np.where(hits.any(1), hits.argmax(1), 99)


def _until(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return right.any(1) & (first(right) <= first(~left))


CASES: list[tuple[Any, Any, Any]] = [
    (exists("I >= 2"), {}, lambda x: (x["I"] >= 2).any(1)),
    (
        exists("I >= 2", 1, 2),
        {3: "S >= 1"},
        lambda x: (x["I"][:, 1:3] >= 2).any(1) & (x["S"][:, 3] >= 1),
    ),
    (~exists("I >= 2"), {}, lambda x: (x["I"] < 2).all(1)),
    (until("I <= 1", "R >= 2"), {}, lambda x: _until(x["I"] <= 1, x["R"] >= 2)),
    (
        until("S >= 1", lambda v: v["I"] == 0, 1),
        {},
        lambda x: _until(x["S"][:, 1:] >= 1, x["I"][:, 1:] == 0),
    ),
    (count("I > 0", 2, 3), {}, lambda x: np.isin((x["I"] > 0).sum(1), [2, 3])),
    (count("I > 0", 4), {}, lambda x: (x["I"] > 0).sum(1) >= 4),
    (count("I > 0", at_most=1), {}, lambda x: (x["I"] > 0).sum(1) <= 1),
    (before("I >= 2", "R >= 2"), {}, lambda x: first(x["I"] >= 2) < first(x["R"] >= 2)),
    (
        exists("I = 3") | (until("S > 0", "R > 1") & count(["I > 0", "S > 0"], 1)),
        {2: "R > 0"},
        lambda x: (
            ((x["I"] == 3).any(1)
            | (_until(x["S"] > 0, x["R"] > 1) & ((x["I"] > 0) & (x["S"] > 0)).any(1)))
            & (x["R"][:, 2] > 0)
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "masks", "truth"), CASES)
def test_conditions_on_paths_are_sums_over_paths(condition: Any, masks: Any, truth: Any) -> None:
    exact = solver()
    brute = BruteForce(exact)
    good = truth(brute.trajectories())
    assert 0 < good.sum() < len(good)
    where = {**masks, "path": condition}
    total = brute.chances[good].sum()
    assert exact.probability(where) == pytest.approx(total, rel=1e-11)
    for step in range(4):
        weights = np.bincount(brute.paths[good, step], brute.chances[good], len(exact.states))
        np.testing.assert_allclose(exact.joint(step, where), weights / total, rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(exact.conditions(where).holds(brute.trajectories()), good)
    drawn = exact.draw(20_000, where, seed=1)
    assert exact.conditions(where).holds(drawn).all()
    place = {tuple(state): at for at, state in enumerate(exact.states.tolist())}
    label = np.zeros(20_000, dtype=int)
    for step in range(4):
        column = np.stack([drawn[name][:, step] for name in "SIR"], axis=1).tolist()
        label = label * len(place) + [place[tuple(state)] for state in column]
    expected = 20_000 * brute.chances[good] / total
    assert pooled_chi_square(np.bincount(label, minlength=len(good))[good], expected) > 1e-4


# --- first passage --------------------------------------------------------------------------------


class Dense:
    """The generator of a solver's network, on its states, and answers by dense exponentials."""

    def __init__(self, solver: MasterEquation) -> None:
        n = len(solver.states)
        unit = np.eye(n)
        moved = [solver._chain.backward(unit[:, k], 1e-3) for k in range(n)]
        self.q = np.real(linalg.logm(np.stack(moved, axis=1))) / 1e-3
        self.start = solver._start

    def over(self, duration: float, without: np.ndarray | None = None) -> np.ndarray:
        q = self.q.copy()
        if without is not None:  # jumps into the set are lost
            q[:, without] = 0.0
        found: np.ndarray = linalg.expm(q * duration)
        return found


WINDOWS = [(0.0, 1.2), (0.1, 0.4), (0.3, 0.5), (0.35, 0.4), (0.4, 0.4), (0.5, 0.5), (0.7, 1.2)]


@pytest.mark.parametrize(("a", "b"), WINDOWS)
def test_first_passage_in_a_window(a: float, b: float) -> None:
    """Never in the set from a to b; and jointly with a condition after the window."""
    exact = solver()
    dense = Dense(exact)
    hit, ends = exact.states[:, 1] >= 2, exact.states[:, 0] >= 1
    never = np.where(hit, 0.0, dense.start @ dense.over(a)) @ dense.over(b - a, hit)
    never = np.where(hit, 0.0, never) @ dense.over(1.2 - b)
    assert exact.reaches("I >= 2", a, b) == pytest.approx(1 - never.sum(), rel=1e-8)
    condition = reaches("I >= 2", a, b)
    assert exact.probability({"path": ~condition}) == pytest.approx(never.sum(), rel=1e-8)
    after = (dense.start @ dense.over(1.2))[ends].sum() - never[ends].sum()
    where = {"path": condition, 3: "S >= 1"}
    assert exact.probability(where) == pytest.approx(after, rel=1e-8)
    joint = exact.joint(3, where)
    expected = np.where(ends, dense.start @ dense.over(1.2) - never, 0.0) / after
    np.testing.assert_allclose(joint, expected, atol=1e-8)


def test_two_passages_whose_windows_overlap() -> None:
    """Inclusion and exclusion, with the union of both sets as a third passage."""
    exact = solver()
    one, other = reaches("I >= 2", 0.1, 0.8), reaches("R >= 2", 0.1, 0.8)
    either = reaches("I >= 2 or R >= 2", 0.1, 0.8)
    p = [exact.probability({"path": each}) for each in (one, other, either, one & other)]
    assert p[3] == pytest.approx(p[0] + p[1] - p[2], rel=1e-10)
    assert exact.probability({"path": one | other}) == pytest.approx(p[2], rel=1e-10)
    assert exact.probability({"path": [one, ~other]}) == pytest.approx(p[0] - p[3], rel=1e-10)


def test_draws_of_a_first_passage() -> None:
    """At each step as the exact conditional marginals say, the grid not seeing the passage."""
    exact = MasterEquation(ESIRS, {"S": 10, "I": 2}, {"N": 12}, times=[0.0, 0.8, 1.6])
    where = {"path": reaches("I >= 7", 0.2, 1.1) & exists("R >= 3"), 2: "I <= 5"}
    marginals, drawn = exact.marginals(where), exact.draw(20_000, where, seed=2)
    assert (drawn.I[:, 2] <= 5).all()
    assert float((drawn.I[:, 1] < 7).mean()) > 0.05
    for step in (1, 2):
        seen = np.bincount(drawn.I[:, step], minlength=13)
        assert pooled_chi_square(seen, 20_000 * np.asarray(marginals.I[step])) > 1e-3


def network(species: dict[str, int], *reactions: tuple[str, float]) -> ReactionNetwork:
    every = [Reaction(f"r{k}", text, rate) for k, (text, rate) in enumerate(reactions)]
    return ReactionNetwork(name="network", species=species, reactions=every)


BIRTH_DEATH = network({"X": 40}, ("0 -> X", 1.0), ("X -> 0", 0.025))
ISOMERISATION = network({"A": 100, "B": 0}, ("A -> B", 0.12), ("B -> A", 1.0))
FUTILE = network(
    {"S1": 1, "S2": 50, "S3": 0, "S4": 1, "S5": 50, "S6": 0},
    ("S1 + S2 -> S3", 1.0), ("S3 -> S1 + S2", 1.0), ("S3 -> S1 + S5", 0.1),
    ("S4 + S5 -> S6", 1.0), ("S6 -> S4 + S5", 1.0), ("S6 -> S4 + S2", 0.1),
)  # fmt: skip


@pytest.mark.parametrize(
    ("network", "until_", "event", "p"),
    [
        (BIRTH_DEATH, 100, "X >= 80", 2.98596e-7),
        (BIRTH_DEATH, 100, "X >= 65", 2.2907e-3),
        (ISOMERISATION, 10, "B >= 30", 1.19115e-5),
        (ISOMERISATION, 10, "B >= 40", 5.016e-12),
        (FUTILE, 100, "S5 <= 25", 1.73815e-7),
        (FUTILE, 100, "S5 <= 40", 0.042180),
    ],
)
def test_published_rare_events(
    network: ReactionNetwork, until_: float, event: str, p: float
) -> None:
    """To all digits that are known."""
    digits = len(f"{p:.10g}".split("e")[0].replace(".", "").strip("0"))
    exact = MasterEquation(network, until=until_, points=2, tolerance=1e-17)
    assert exact.reaches(event) == pytest.approx(p, rel=1.1 * 10.0 ** -(digits - 1))


def test_a_passage_of_a_pure_death_process_is_a_tail_of_the_binomial() -> None:
    exact = MasterEquation(network({"X": 20}, ("X -> 0", 0.7)), times=[0.0, 2.0])
    expected = stats.binom.cdf(3, 20, np.exp(-0.7 * 1.3))
    assert exact.reaches("X <= 3", 0.0, 1.3) == pytest.approx(expected, rel=1e-11)


def test_messages_that_are_computed_again_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = MasterEquation(ESIRS, parameters={"N": 12})
    where = {"path": exists("I >= 8", 3, 20) & reaches("R >= 6", 0.5, 2.0)}
    expected = exact.marginals(where)
    monkeypatch.setattr(chain, "MAX_HELD_BYTES", 1.0)
    np.testing.assert_allclose(exact.marginals(where).I, expected.I, rtol=1e-13)


def test_large_spaces_are_solved_to_a_certified_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """With terms left out, and without where the event is so rare that these would matter."""
    exact = MasterEquation(ISOMERISATION, times=np.linspace(0, 10, 4))
    wheres: list[Any] = [{}, {1: "B >= 30"}, {"path": reaches("B >= 40", 0, 10)}, {3: "B = 90"}]
    expected = [exact.log_probability(where) for where in wheres]
    marginals = [exact.marginals(where).B for where in wheres]
    assert expected[3] < -150
    monkeypatch.setattr("simulators.exact.master_equation.MAX_PRECISE_WORK", 0.0)
    for where, log_p, marginal in zip(wheres, expected, marginals, strict=True):
        assert exact.log_probability(where) == pytest.approx(log_p, abs=1e-11)
        np.testing.assert_allclose(exact.marginals(where).B, marginal, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"path": "I > 3"}, 'under "path" there are conditions on whole paths'),
        ({"path": exists("I > 3", 2, 9)}, r"the window \[2, 9\] is not on the grid"),
        ({"path": reaches("I > 3", 0, 7)}, "not within the times of the grid, 0 to 1.2"),
        ({"path": exists("Q > 3")}, "unknown name 'Q'"),
    ],
)
def test_conditions_that_cannot_be_solved_are_refused(where: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        solver().probability(where)


def test_passages_need_more_than_a_grid_shows() -> None:
    exact = solver()
    conditions = exact.conditions({"path": reaches("I > 1", 0, 1)})
    assert str(conditions) == "path: reaches(I > 1, 0, 1)"
    with pytest.raises(InputError, match="between its times"):
        conditions.holds(exact.draw(3))
    with pytest.raises(InputError, match="reversed"):
        reaches("I > 1", 2, 1)
