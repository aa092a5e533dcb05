"""surrogate sample MODEL"""

from __future__ import annotations

import json
import shlex
import time

import click
from rich.markup import escape

from cli import console, files, options
from simulators.errors import InputError


@click.command()
@click.argument("model", default="model")
@options.samples
@options.seed
@click.option(
    "--method",
    type=click.Choice(["ode", "heun", "sde"]),
    default="ode",
    show_default=True,
    help="How noise becomes a trajectory.",
)
@click.option("--steps", type=int, default=40, show_default=True, help="Noise levels on the way.")
@options.out("samples.nc", "Output file: .nc or .zarr.")
@options.force
@options.threads
@options.device
@options.as_json
@options.quiet
def command(
    model: str,
    samples: int,
    seed: int,
    method: str,
    steps: int,
    out: str,
    force: bool,
    threads: int | None,
    device: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw trajectories from MODEL, a folder that `surrogate train` made."""
    from simulators.storage import SUFFIXES, check_target

    target = check_target(out, force, SUFFIXES)
    say = console.messages(quiet)

    from surrogate.model import Surrogate

    options.compute_on(device, threads)
    found = Surrogate.load(model)
    found.denoiser.to(device)
    if samples < 1:
        raise InputError(f"--samples must be >= 1, not {samples}")
    start = time.perf_counter()
    with console.bar(say, "sampling", samples) as advance:
        draws = found.sample(samples, seed, method=method, steps=steps, progress=advance)
    seconds = time.perf_counter() - start
    files.write_dataset(draws, target)
    names = ", ".join(found.codec.names)
    say.print(f"[bold]{escape(str(target))}[/bold]  {samples:,} trajectories of {escape(names)}")
    say.print(f"sampled in {seconds:.1f} s ({samples / seconds:,.0f} a second)")
    say.print(f"next: surrogate plot {escape(shlex.quote(str(target)))}")
    if as_json:
        summary = {"path": str(target), "model": model, "samples": samples, "seed": seed}
        click.echo(json.dumps(summary | {"method": method, "steps": steps, "seconds": seconds}))
