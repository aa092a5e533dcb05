"""Formulas as automata: their verdict along trajectories is that of the formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from constraints import Layout, compiled, parse
from constraints.compile.monitor import FormulaMonitor, TooManyMemoriesError, monitored
from constraints.layout.signals import Signal

LAYOUT = Layout.series("S I", 6, integer=True)
FORMULAS = [
    "exists t: I(t) >= 4",
    "exists t in [1, 3]: I(t) > S(t - 1)",
    "forall t in [1, end]: I(t) >= I(t - 1) - 3",
    "I < 4 until S > 3",
    "I < 4 weak until S > 3",
    "I < 4 release S > 1",
    "eventually[1,4](I >= 4 and next S <= 2)",
    "always(I >= 4 implies eventually[0,2](I <= 2))",
    "always[2,5](S <= 4 since I >= 1)",
    "eventually(historically(S >= 1) and I >= 4)",
    "count(I > 2) >= 3",
    "2 <= count(I > S, 1, 4) <= 3",
    "argmax(I) <= 3",
    "argmin(S) >= 2",
    "max(I, 0, 2) > max(I, 3, 5)",
    "max(I) <= 4 and min(S) >= 1",
    "mean(I) <= 2.5",
    "mean(I, 0, 4) = 3",
    "sum(I, 0, 3) - sum(S, 2, 5) >= 2",
    "integral(I) >= 0.5 * integral(S)",
    "delta(I)(3) >= 1 or cumsum(S)(2) <= 5",
    "abs(I(2) - S(4)) <= 1",
    "(S(0) = 5) iff (I(5) = 2)",
    "(exists t: I(t) = 4) xor (exists t: S(t) = 4)",
    "not (I < 4 until S > 3)",
    "exists t: forall u in [t, end]: I(u) <= 3",
    "I(2) * S(2) >= 6 and exists t: I(t) * S(t) >= 20",
    "eventually(I >= 4) implies argmax(I) <= 2",
    "S(1) = 5 or S(3) = 2",
]


def verdicts(monitor: FormulaMonitor, x: dict[str, np.ndarray], steps: int) -> np.ndarray:
    """The automaton's memory after the last step, along trajectories (n, steps)."""
    count = len(next(iter(x.values())))
    memories: dict[Any, np.ndarray] = {monitor.start(): np.ones(count, dtype=bool)}
    for step in range(steps):
        then: dict[Any, np.ndarray] = {}
        now = {name: each[:, step] for name, each in x.items()}
        for memory, mine in memories.items():
            options, which = monitor.read(memory, step, now)
            for place, option in enumerate(options):
                then[option] = then.get(option, np.zeros(count, bool)) | (mine & (which == place))
        memories = then
    assert set(memories) <= {True, False}
    return memories.get(True, np.zeros(count, dtype=bool))


@pytest.mark.parametrize("text", FORMULAS)
def test_the_automaton_ends_with_the_verdict(text: str) -> None:
    program = compiled(parse(text), LAYOUT, "clip")
    generator = np.random.default_rng(0)
    high = generator.integers(2, 7, (400, 1))
    x = {name: (generator.random((400, 6)) * high).astype(float).round() for name in "SI"}
    monitor = monitored(program)
    assert monitor is not None
    expected = program.verdict({k: torch.from_numpy(each) for k, each in x.items()}).numpy()
    assert 0 < expected.sum() < 400
    np.testing.assert_array_equal(verdicts(monitor, x, 6), expected)


@pytest.mark.parametrize(
    ("text", "most"),
    [("exists t: I(t) >= 4", 3), ("I < 4 until S > 3", 3), ("count(I > 2) >= 3", 5),
     ("always(I >= 4 implies eventually[0,2](I <= 2))", 5)],
)  # fmt: skip
def test_automata_are_small(text: str, most: int) -> None:
    """What follows from the rest is dropped: an obligation already implied by an earlier one."""
    layout = Layout.series("S I", 30, integer=True)
    monitor = monitored(compiled(parse(text), layout, "clip"))
    assert monitor is not None
    grid = np.array(np.meshgrid(np.arange(7.0), np.arange(7.0))).reshape(2, -1)
    memories = {monitor.start()}
    for step in range(30):
        reached = (monitor.read(m, step, {"S": grid[0], "I": grid[1]})[0] for m in memories)
        memories = {option for options in reached for option in options}
        assert len(memories) <= most


def test_what_is_not_written_out_has_no_automaton() -> None:
    assert monitored(compiled(parse("quantile(I, 0.9) <= 3"), LAYOUT)) is None
    assert monitored(compiled(parse("I(1) * I(2) <= 3"), LAYOUT)) is None
    assert monitored(compiled(parse("next I <= 3"), LAYOUT, "weak")) is None


def test_too_many_memories_are_refused() -> None:
    layout = Layout.series("S I", 12, integer=True)
    weights = " + ".join(f"{3**k} * I({k})" for k in range(12))
    monitor = monitored(compiled(parse(f"{weights} <= 70000"), layout))
    assert monitor is not None

    def follow() -> None:
        memories, states = [monitor.start()], {"S": np.zeros(3), "I": np.arange(3.0)}
        for step in range(12):
            memories = [o for m in memories for o in monitor.read(m, step, states)[0]]

    with pytest.raises(TooManyMemoriesError, match="different pasts"):
        follow()


def test_latches_are_passages() -> None:
    """The bound on "max(I)" at step 2 is a passage between steps 1 and 2; its opposite too."""
    latch = Signal("max(I)", "series", (6,), integer=True)
    layout = replace(LAYOUT, signals=(*LAYOUT.signals, latch))
    for text, reached in (('"max(I)"(2) >= 4', True), ('"max(I)"(2) < 4', False)):
        monitor = monitored(compiled(parse(text), layout))
        assert monitor is not None
        (passage,) = monitor.passages
        times = layout.times
        assert (passage.first, passage.last) == (times[1], times[2])
        states = {"S": np.zeros(4), "I": np.arange(2.0, 6.0)}
        assert passage.holds(states).tolist() == [False, False, True, True]
        start = monitor.start()
        assert monitor.waits(start, 0)
        assert monitor.passed(start, 0, True) is reached
        assert monitor.passed(start, 0, False) is not reached
