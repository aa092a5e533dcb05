"""Stochastic simulators: reaction networks in, labelled trajectories out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from simulators import models as models
from simulators.errors import InputError as InputError
from simulators.errors import SimulationError as SimulationError
from simulators.network import Event as Event
from simulators.network import Reaction as Reaction
from simulators.network import ReactionNetwork as ReactionNetwork

if TYPE_CHECKING:
    from simulators.conditions import Conditions as Conditions
    from simulators.ensemble import simulate as simulate
    from simulators.master_equation import MasterEquation as MasterEquation
    from simulators.rejection import reject as reject
    from simulators.sbml import read_sbml as read_sbml
    from simulators.storage import simulate_to as simulate_to

# numba and xarray are loaded when they are first needed, so that listing models stays quick
_LATER = {
    "Conditions": "conditions",
    "MasterEquation": "master_equation",
    "read_sbml": "sbml",
    "reject": "rejection",
    "simulate": "ensemble",
    "simulate_to": "storage",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'simulators' has no attribute {name!r}")
    return getattr(import_module(f"simulators.{_LATER[name]}"), name)
