"""What the description of a simulation proves of its process: Markov, homogeneous in time."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

import numpy as np

from surrogate.io.attributes import simulation_in


def simulated(about: str) -> bool:
    """Whether the data are simulations of a network, of which there are as many as one likes."""
    return bool(simulation_in(about))


def markov(about: str, names: Collection[str]) -> bool:
    """Whether the future depends on the present values of the variables `names` alone: of a
    simulation that shows its species and the parameters that events set. Whether a trigger held is
    a function of these."""
    network = simulation_in(about).get("network") or {}
    sets = [event.get("assignments") or () for event in network.get("events") or ()]
    return simulated(about) and set(network.get("species") or ()).union(*sets) <= set(names)


def homogeneous(about: str, names: Collection[str], times: Sequence[float]) -> bool:
    """Whether a step from x to y has the same law at all times: a Markov process without events on
    an even grid, none of whose rates names time.

    Events that do not name time are homogeneous, too. But one kernel for all steps learns what they
    do slowly: of a lockdown, trees tell samples after 600 steps with 0.76, and with 0.63 where each
    step has a mean and a deviation of its own (one run each; longer runs were not compared).
    """
    network = simulation_in(about).get("network") or {}
    steps = np.diff(times)
    even = len(steps) > 0 and bool(np.allclose(steps, steps[0], rtol=1e-6))
    stated = json.dumps([network.get(key) for key in ("reactions", "rules")])
    plain = markov(about, names) and not network.get("events")
    return plain and even and re.search(r"\btime\b", stated) is None
