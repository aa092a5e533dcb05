"""surrogate simulate MODEL"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from rich.markup import escape

from cli import console, options
from simulators import ReactionNetwork, models
from simulators.errors import InputError, unknown
from simulators.kernels import methods
from simulators.network import even_times

F = TypeVar("F", bound=Callable[..., Any])
_NETWORK = [
    click.option("--steps", type=int, help="Number of grid times [default: the model's]."),
    click.option("--until", type=float, help="Last time of the grid [default: the model's]."),
    click.option("--population", type=int, help="Size of the conserved population."),
    click.option(
        "--initial",
        multiple=True,
        metavar="S=95,I=5",
        help="Initial counts, ranges (I=1..10), or uniform.",
    ),
    click.option(
        "--param",
        "params",
        multiple=True,
        metavar="beta=2.4",
        help="Parameter value, or range (beta=2..3): one draw per trajectory.",
    ),
]


def network_options(command: F) -> F:
    """How a network is simulated: its grid, size, start and parameters."""
    made: Any = command
    for option in reversed(_NETWORK):
        made = option(made)
    return made  # type: ignore[no-any-return]


@click.command()
@click.argument("model")
@options.samples
@network_options
@click.option(
    "--method",
    type=click.Choice(list(methods())),
    default="direct",
    show_default=True,
    help="; ".join(f"{name}: {each.summary}" for name, each in methods().items()) + ".",
)
@click.option(
    "--max-events", type=int, default=100_000_000, show_default=True, help="Budget per trajectory."
)
@options.seed
@options.out("trajectories.nc", "Output file: .nc or .zarr.")
@options.force
@options.threads
@options.as_json
@options.quiet
def command(
    model: str,
    samples: int,
    steps: int | None,
    until: float | None,
    population: int | None,
    initial: tuple[str, ...],
    params: tuple[str, ...],
    method: str,
    max_events: int,
    seed: int,
    out: str,
    force: bool,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Simulate MODEL, a built-in name (see `surrogate models`) or an SBML file."""
    network = find(model)
    parameters = parameters_of(network, params, population)
    start = start_of(initial)
    times = grid(network, steps, until)
    say = console.messages(quiet)

    from simulators.ensemble import make_engine
    from simulators.storage import check_target, write

    check_target(out, force)
    engine = make_engine(network, samples, times, seed, start, parameters, method, max_events)
    with say.status("preparing the kernel (compiled on the first run)"):
        engine.prepare()
    with console.bar(say, network.name, samples) as advance:
        made = write(engine, out, samples, threads=threads, force=force, progress=advance)
    speed = made.samples / made.simulating
    shape = f"{made.samples:,} trajectories × {made.steps} times of {', '.join(made.variables)}"
    size = console.size(made.bytes)
    say.print(f"[bold]{escape(str(made.path))}[/bold]  {shape}  ({size}, seed {seed})")
    say.print(f"simulated in {made.simulating:.2f} s ({speed:,.0f} trajectories/s)")
    name = escape(shlex.quote(str(made.path)))
    say.print(f"next: surrogate plot {name}, surrogate train {name}")
    if as_json:
        summary = {
            "path": str(made.path),
            "model": network.name,
            "samples": made.samples,
            "steps": made.steps,
            "variables": list(made.variables),
            "bytes": made.bytes,
            "seconds": made.seconds,
            "trajectories_per_second": speed,
            "seed": seed,
        }
        click.echo(json.dumps(summary))


def find(model: str) -> ReactionNetwork:
    """A built-in model by name, or an SBML file by path."""
    if model in models.MODELS:
        return models.get(model)
    path = Path(model)
    if path.suffix.lower() in (".xml", ".sbml") or path.exists():
        from simulators.sbml import read_sbml

        return read_sbml(path)
    raise InputError(
        f"{unknown('model', model, models.MODELS)}; or give an SBML file, my_model.xml"
    )


def parameters_of(
    network: ReactionNetwork, params: tuple[str, ...], population: int | None
) -> dict[str, Any]:
    parameters = options.assignments(params, "--param")
    if population is not None:
        if network.population is None:
            raise InputError(f"{network.name} has no conserved population; set --initial instead")
        if network.population in parameters:
            raise InputError(
                f"--population and --param {network.population} say the same: give one"
            )
        if population < 0:
            raise InputError(f"--population must be >= 0, not {population}")
        parameters[network.population] = population
    return parameters


def start_of(texts: tuple[str, ...]) -> dict[str, Any] | str | None:
    if texts in (("uniform",), ("fixed",)):
        return texts[0]
    return options.assignments(texts, "--initial") or None


def grid(network: ReactionNetwork, steps: int | None, until: float | None) -> np.ndarray | None:
    if steps is None and until is None:
        return None
    return even_times(
        network.until if until is None else until, network.steps if steps is None else steps
    )
