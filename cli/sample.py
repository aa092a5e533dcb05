"""surrogate sample MODEL"""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import click
from rich.markup import escape

from cli import console, files, options
from simulators.errors import InputError

TRAINED = "model"
DEFAULT = "esirs"


@click.command()
@click.argument("model", required=False)
@options.samples
@options.seed
@click.option(
    "--solver",
    type=click.Choice(["ode", "heun", "sde", "predictor-corrector"]),
    default="ode",
    show_default=True,
    help="How noise becomes a trajectory: few steps (ode, heun, sde), or many as in the paper.",
)
@click.option(
    "--steps", type=int, help="Noise levels on the way.  [default: 40; 1000 as in the paper]"
)
@options.out("samples.nc", "Output file: .nc or .zarr.")
@options.force
@options.threads
@options.device
@options.as_json
@options.quiet
def command(
    model: str | None,
    samples: int,
    seed: int,
    solver: str,
    steps: int | None,
    out: str,
    force: bool,
    threads: int | None,
    device: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw trajectories from MODEL: a folder that `surrogate train` made, or a bundled model.

    Without MODEL it is the folder model/ if there is one, else the bundled model esirs.
    """
    from simulators.storage import SUFFIXES, check_target

    target = check_target(out, force, SUFFIXES)
    say = console.messages(quiet)

    from surrogate.model import Surrogate

    options.compute_on(device, threads)
    folder, what = chosen(model)
    found = Surrogate.load(folder)
    found.denoiser.to(device)
    say.print(f"model: {escape(what)}")
    if samples < 1:
        raise InputError(f"--samples must be >= 1, not {samples}")
    start = time.perf_counter()
    with console.bar(say, "sampling", samples) as advance:
        draws = found.sample(samples, seed, solver=solver, steps=steps, progress=advance)
    seconds = time.perf_counter() - start
    files.write_dataset(draws, target)
    names = escape(", ".join(map(str, draws.data_vars)))
    say.print(f"[bold]{escape(str(target))}[/bold]  {samples:,} trajectories of {names}")
    say.print(f"sampled in {seconds:.1f} s ({samples / seconds:,.0f} a second)")
    say.print(f"next: surrogate plot {escape(shlex.quote(str(target)))}")
    if as_json:
        summary = {"path": str(target), "model": what, "samples": samples, "seed": seed}
        click.echo(json.dumps(summary | {"solver": solver, "seconds": seconds}))


def chosen(model: str | None) -> tuple[Path, str]:
    """The folder of a model that may be named or not, and what to call it."""
    from surrogate.model import bundled

    if model is None and Path(TRAINED).is_dir():
        return Path(TRAINED), TRAINED
    name = DEFAULT if model is None else model
    if not Path(name).exists() and name in bundled():
        return bundled()[name], f"{name}, which comes with the package"
    return Path(name), name
