"""What the description of a simulation proves of its process: Markov, homogeneous in time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from surrogate.io.attributes import simulation_in


def simulated(about: str) -> bool:
    """Whether the data are simulations of a network, of which there are as many as one likes."""
    return bool(simulation_in(about))


def markov(about: str) -> bool:
    """Whether the future depends on the present alone: simulated, without events."""
    return simulated(about) and not (simulation_in(about).get("network") or {}).get("events")


def homogeneous(about: str, times: Sequence[float]) -> bool:
    """Whether a step from x to y has the same law at all times: a Markov process on an even grid,
    none of whose rates names time."""
    network = simulation_in(about).get("network") or {}
    steps = np.diff(times)
    even = len(steps) > 0 and bool(np.allclose(steps, steps[0], rtol=1e-6))
    stated = json.dumps([network.get("reactions"), network.get("rules")])
    return markov(about) and even and re.search(r"\btime\b", stated) is None
