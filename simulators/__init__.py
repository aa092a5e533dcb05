"""Stochastic simulators: reaction networks in, labelled trajectories out.

    data = simulate(models.sir(), samples=1_000, seed=0, parameters={"beta": (0.5, 3.0)})

Names are loaded on first use: numba and xarray take a second that `surrogate --help` need not pay.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulators import models as models
    from simulators.ensemble import simulate as simulate
    from simulators.errors import InputError as InputError
    from simulators.errors import SimulationError as SimulationError
    from simulators.errors import SimulatorError as SimulatorError
    from simulators.errors import UnreachableError as UnreachableError
    from simulators.exact.conditions import Conditions as Conditions
    from simulators.exact.conditions import Likelihood as Likelihood
    from simulators.exact.master_equation import MasterEquation as MasterEquation
    from simulators.exact.particle_filter import particle_filter as particle_filter
    from simulators.exact.rejection import reject as reject
    from simulators.exact.splitting import Splitting as Splitting
    from simulators.exact.splitting import split as split
    from simulators.network import ReactionNetwork as ReactionNetwork
    from simulators.reactions import Event as Event
    from simulators.reactions import Reaction as Reaction
    from simulators.sbml import read_sbml as read_sbml
    from simulators.storage import simulate_to as simulate_to

_HOMES = {
    "Conditions": "exact.conditions",
    "Event": "reactions",
    "InputError": "errors",
    "Likelihood": "exact.conditions",
    "MasterEquation": "exact.master_equation",
    "Reaction": "reactions",
    "ReactionNetwork": "network",
    "SimulationError": "errors",
    "SimulatorError": "errors",
    "Splitting": "exact.splitting",
    "UnreachableError": "errors",
    "particle_filter": "exact.particle_filter",
    "read_sbml": "sbml",
    "reject": "exact.rejection",
    "simulate": "ensemble",
    "simulate_to": "storage",
    "split": "exact.splitting",
}
__all__ = [*_HOMES, "models"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "models":
        return import_module("simulators.models")
    if name not in _HOMES:
        raise AttributeError(f"module 'simulators' has no attribute {name!r}")
    return getattr(import_module(f"simulators.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
