"""surrogate simulate MODEL"""

from __future__ import annotations

import json
import shlex

import click
from rich.markup import escape

from cli import console, files, networks, options
from cli.networks import find, grid, parameters_of, start_of
from cli.sections import Command, section
from cli.values import Choice, Whole
from simulators.kernels import methods


@click.command(cls=Command)
@networks.argument()
@options.samples
@options.seed
@networks.start_and_parameters
@networks.time_grid
@section(
    "Method",
    click.option(
        "--method",
        type=Choice(list(methods())),
        default="direct",
        show_default=True,
        help="Algorithm: "
        + "; ".join(f"{name}, {each.summary}" for name, each in methods().items())
        + ".",
    ),
)
@section(
    "Advanced",
    click.option(
        "--max-events",
        type=Whole(1),
        default=100_000_000,
        show_default=True,
        help="Budget of events per trajectory.",
    ),
)
@options.out("trajectories.nc", "Output file: .nc or .zarr.")
@options.force
@options.threads
@options.as_json
@options.quiet
def command(
    model: str,
    samples: int,
    points: int | None,
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
    times = grid(network, points, until)
    say = console.messages(quiet)

    from simulators.ensemble import make_engine
    from simulators.storage import check_target, write

    files.check_writable(check_target(out, force))
    engine = make_engine(network, samples, times, seed, start, parameters, method, max_events)
    with say.status("preparing the kernel (compiled on the first run)"):
        engine.prepare()
    with console.bar(say, network.name, samples) as advance:
        made = write(engine, out, samples, threads=threads, force=force, progress=advance)
    speed = made.samples / made.simulating
    shape = f"{made.samples:,} trajectories × {made.points} times of {', '.join(made.variables)}"
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
            "steps": made.points,
            "variables": list(made.variables),
            "bytes": made.bytes,
            "seconds": made.seconds,
            "trajectories_per_second": speed,
            "seed": seed,
        }
        click.echo(json.dumps(summary))
