"""Reaction networks on the command line: MODEL and the options of its simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli import complete, options
from cli.errors import UsageError, unknown
from cli.sections import section
from cli.values import Positive, Whole
from simulators.network import MAX_POINTS, MIN_POINTS, even_times

if TYPE_CHECKING:
    import numpy as np

    from simulators import ReactionNetwork

F = TypeVar("F", bound=Callable[..., Any])


class Renamed(click.Option):
    """An option that also understands names it had before, which neither help nor Tab show."""

    def __init__(self, *words: Any, before: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.before = before

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown, self.opts = self.opts, [*self.opts, *self.before]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


def argument(**settings: Any) -> Callable[[F], F]:
    """MODEL: a built-in name or an SBML file."""
    return click.argument("model", shell_complete=complete.simulator_models, **settings)


start_and_parameters = section(
    "What",
    click.option(
        "--param",
        "params",
        multiple=True,
        metavar="beta=2.4",
        help="Value of a parameter, or a range (beta=2..3) with one draw per trajectory.",
    ),
    click.option(
        "--initial",
        multiple=True,
        metavar="S=95,I=5",
        help="Initial counts, ranges (I=1..10), or uniform.",
    ),
    click.option("--population", type=Whole(0), help="Size of the conserved population."),
)
time_grid = section(
    "What",
    click.option(
        "--points",
        cls=Renamed,
        before=("--steps",),
        type=Whole(MIN_POINTS, MAX_POINTS),
        help="Number of grid times [default: the model's].",
    ),
    click.option("--until", type=Positive(), help="Last time of the grid [default: the model's]."),
)


def find(model: str) -> ReactionNetwork:
    """A built-in model by name, or an SBML file by path."""
    from simulators import models

    if model in models.MODELS:
        return models.get(model)
    path = Path(model)
    if path.suffix.lower() in (".xml", ".sbml") or path.exists():
        from simulators.sbml import read_sbml

        return read_sbml(path)
    raise unknown("model", model, models.MODELS, "or give an SBML file, my_model.xml")


def parameters_of(
    network: ReactionNetwork, params: tuple[str, ...], population: int | None
) -> dict[str, Any]:
    """Values and ranges of the parameters, the population among them."""
    parameters = options.assignments(params, "--param")
    if population is not None:
        if network.population is None:
            raise UsageError(
                f"{network.name} has no conserved population", remedy="set --initial instead"
            )
        if network.population in parameters:
            raise UsageError(
                f"--population and --param {network.population} say the same", remedy="give one"
            )
        parameters[network.population] = population
    return parameters


def start_of(texts: tuple[str, ...]) -> dict[str, Any] | str | None:
    """Initial counts and ranges, or the name of a distribution of them."""
    if texts in (("uniform",), ("fixed",)):
        return texts[0]
    return options.assignments(texts, "--initial") or None


def grid(network: ReactionNetwork, points: int | None, until: float | None) -> np.ndarray | None:
    """The grid of times; None for the network's own."""
    if points is None and until is None:
        return None
    return even_times(
        network.until if until is None else until, network.points if points is None else points
    )


def simulation(
    network: ReactionNetwork,
    params: tuple[str, ...],
    initial: tuple[str, ...],
    population: int | None,
    points: int | None,
    until: float | None,
) -> dict[str, Any]:
    """The options of a simulation as arguments of `simulators.simulate`."""
    return {
        "parameters": parameters_of(network, params, population),
        "initial": start_of(initial),
        "times": grid(network, points, until),
    }


def refuse(
    params: tuple[str, ...],
    initial: tuple[str, ...],
    population: int | None,
    points: int | None,
    until: float | None,
) -> None:
    """UsageError for an option of a simulation where nothing is simulated."""
    given = {
        "--param": params,
        "--initial": initial,
        "--population": population,
        "--points": points,
        "--until": until,
    }
    for name, value in given.items():
        if value not in (None, ()):
            raise UsageError(
                f"{name} is about a simulator, and there is none",
                value=value,
                remedy="add --simulate MODEL, or leave it out",
            )
