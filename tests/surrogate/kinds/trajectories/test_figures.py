"""Figures of trajectories: bins of histograms, and which steps are shown."""

from __future__ import annotations

import numpy as np
import pytest

from surrogate.kinds.trajectories import figures as own
from surrogate.kinds.trajectories.requirements import Mark


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("high", [0, 3, 10, 39, 40, 41, 5_000])
def test_histograms_hold_every_sample(whole: bool, high: int) -> None:
    values = np.array([0.0, high, high // 2])
    edges = own.histogram_edges(values, whole)
    assert np.histogram(values, edges)[0].sum() == 3
    assert len(edges) <= own.MAX_BARS + 6
    if whole:  # no value lies on an edge
        assert (edges % 1 == 0.5).all()


def test_steps_to_look_at() -> None:
    assert own.shown_steps(30, [Mark("S", 25, 25, 30, 30)]) == [0, 6, 12, 18, 25, 29]
    assert own.shown_steps(3, []) == [0, 1, 2]
    assert own.shown_steps(1, []) == [0]
    every = [Mark("S", k, k, 1, 1) for k in range(30)]
    assert own.shown_steps(30, every) == [0, 6, 12, 17, 23, 29]
