"""Hints name the command that asks the simulator the same question."""

from __future__ import annotations

import numpy as np

from cli.hints import reference_command
from simulators import models
from simulators.start import Start


def about(**given: object) -> dict[str, object]:
    network = models.sir()
    return {"network": network.to_dict(), **Start(network, **given).describe()}  # type: ignore[arg-type]


def test_the_network_as_it_is_needs_no_options() -> None:
    network = models.sir()
    times = np.linspace(0, network.until, network.points)
    found = reference_command(about(), times, {}, ["max(I) <= 250"])
    assert found == "surrogate reference sir --where 'max(I) <= 250'"
    assert reference_command(about(), times, {}, []) == "surrogate simulate sir"


def test_ranges_starts_and_grids_are_named() -> None:
    own = about(parameters={"beta": (0.5, 3.0), "gamma": 0.2}, initial={"I": 5})
    found = reference_command(own, np.linspace(0, 7, 15), {}, ["I(3) = 8"])
    assert found == (
        "surrogate reference sir --param beta=0.5..3 --param gamma=0.2 --initial I=5 "
        "--points 15 --until 7 --where 'I(3) = 8'"
    )


def test_observed_data_are_named_with_their_options() -> None:
    record = {
        "file": "flu.csv", "time": "date", "columns": {"B": "I"},
        "noise": {"B": "poisson(0.9 * I)"}, "upto": "4", "every": 1, "nearest": True,
    }  # fmt: skip
    network = models.sir()
    times = np.linspace(0, network.until, network.points)
    found = reference_command(about(), times, record, [], start="1978-01-21")
    assert found == (
        "surrogate reference sir --observe flu.csv --time date --map B=I "
        "--noise 'B ~ poisson(0.9 * I)' --upto 4 --nearest --start 1978-01-21"
    )
