"""What a simulated dataset says of itself, and whether trajectories keep the rules it implies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from constraints import Formula, Layout, compiled
from constraints.physics.rules import from_network
from simulators import ReactionNetwork
from simulators.dataset import attributes
from simulators.ensemble import make_engine


def describe(network: ReactionNetwork, **how: Any) -> dict[str, Any]:
    """What a dataset of the network would say of itself."""
    written = attributes(make_engine(network, how.pop("samples", 50), **how))["surrogate_config"]
    found: dict[str, Any] = json.loads(written)
    return found


def holds(rule: Formula, data: Mapping[str, Any], integer: bool = True, **more: Any) -> list[bool]:
    series = {name: torch.as_tensor(np.asarray(rows)) for name, rows in data.items()}
    steps = next(iter(series.values())).shape[1]
    layout = Layout.series(list(series), steps, integer=integer, **more)
    verdicts: list[bool] = compiled(rule, layout).verdict(series).tolist()
    return verdicts


def broken(config: Mapping[str, Any], data: Any, integer: bool = True) -> list[str]:
    """The derived rules that some trajectory breaks."""
    return [
        name
        for name, rule in from_network(config).items()
        if not all(holds(rule, {k: data[k] for k in config["network"]["species"]}, integer))
    ]
