"""Ready-made networks: `models.esirs()`, or by name `models.get("esirs")`."""

from __future__ import annotations

from collections.abc import Callable

from simulators.errors import unknown
from simulators.models.birth_death import birth_death as birth_death
from simulators.models.dimerisation import dimerisation as dimerisation
from simulators.models.esirs import esirs as esirs
from simulators.models.lotka_volterra import lotka_volterra as lotka_volterra
from simulators.models.schloegl import schloegl as schloegl
from simulators.models.seir import seir as seir
from simulators.models.sir import sir as sir
from simulators.models.sirs import sirs as sirs
from simulators.models.toggle_switch import toggle_switch as toggle_switch
from simulators.network import ReactionNetwork

MODELS: dict[str, Callable[[], ReactionNetwork]] = {
    "esirs": esirs,
    "sir": sir,
    "seir": seir,
    "sirs": sirs,
    "lotka_volterra": lotka_volterra,
    "birth_death": birth_death,
    "dimerisation": dimerisation,
    "toggle_switch": toggle_switch,
    "schloegl": schloegl,
}


def get(name: str) -> ReactionNetwork:
    """The model of that name; an unknown one is an `InputError` that lists them."""
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]()
