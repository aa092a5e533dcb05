"""surrogate train DATA"""

from __future__ import annotations

import json
import math
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from cli import console, files, options
from simulators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from surrogate.model import Surrogate

FIRST = 20_000  # simulated trajectories that the codec and the card see


@click.command()
@click.argument("data", required=False)
@click.option("--simulate", "simulated", metavar="MODEL", help="Train on fresh trajectories of it.")
@click.option(
    "--preset",
    "preset_name",
    type=click.Choice(["quick", "default", "best"]),
    default="default",
    show_default=True,
    help="Two minutes, ten, or an hour on two cores.",
)
@click.option("--iterations", type=int, help="Updates of the weights [default: the preset's].")
@click.option("--time", "time_column", metavar="COLUMN", help="Of a table: the time.")
@click.option("--id", "id_column", metavar="COLUMN", help="Of a long table: which run.")
@click.option("--columns", metavar="A,B", help="Of a table: what to learn [default: the rest].")
@click.option("--window", type=int, help="Cut one long series into windows of so many steps.")
@click.option("--stride", type=int, help="Steps from one window to the next [default: --window].")
@click.option("--pool", metavar="NAME", help="The columns are runs of one variable of that name.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="Of a table: what to do about runs or windows with missing values.",
)
@options.seed
@options.out("model", "Folder of the model.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run.")
@options.force
@options.threads
@options.device
@options.as_json
@options.quiet
def command(
    data: str | None,
    simulated: str | None,
    preset_name: str,
    iterations: int | None,
    time_column: str | None,
    id_column: str | None,
    columns: str | None,
    window: int | None,
    stride: int | None,
    pool: str | None,
    missing: str,
    seed: int,
    out: str,
    resume: bool,
    force: bool,
    threads: int | None,
    device: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn a surrogate of the trajectories in DATA [default: trajectories.nc].

    DATA is netCDF or Zarr with dimensions (sample, time), or a table of your own: long (--id,
    --time), or one series to be cut into windows (--window).

    \b
    surrogate train trajectories.nc
    surrogate train cases.csv --time week --columns cases --window 52 --stride 4
    surrogate train --simulate esirs --preset quick
    """
    if data is not None and simulated is not None:
        raise InputError("give DATA or --simulate, not both")
    target, checkpoints = _places(out, resume, force)
    say = console.messages(quiet)
    make = None
    if simulated is not None:
        source, make = _simulator(simulated, seed)
    else:
        table: dict[str, Any] = {"time": time_column, "id": id_column, "window": window}
        table |= {
            "stride": stride,
            "columns": None if columns is None else [name.strip() for name in columns.split(",")],
            "pool": pool,
        }
        source = _open(data or "trajectories.nc", table | {"missing": missing}, say.print)

    import torch

    from surrogate import fitting

    options.compute_on(device, threads)
    chosen = fitting.preset(preset_name, iterations)
    run = fitting.Run(source, seed, chosen, make, checkpoints, device)
    codec, trainer = run.model.codec, run.trainer
    size = sum(weight.numel() for weight in trainer.weights.values())
    say.print(
        f"{source.sizes['sample']:,} trajectories of {', '.join(codec.names)} over "
        f"{len(codec.times)} times; a network of {size:,} weights"
    )
    if trainer.step:
        say.print(f"going on from step {trainer.step:,}")
    total = trainer.settings.steps
    try:
        with console.bar(say, "training", total) as advance:
            advance(trainer.step)
            model = run.fit(lambda trainer: advance(1, _losses(trainer.looks)))
    except KeyboardInterrupt:
        kept = trainer.looks[-1].step if trainer.looks else 0
        raise click.ClickException(
            f"stopped; the run is kept up to step {kept:,}: go on with --resume"
        ) from None
    torch.set_grad_enabled(True)
    model.save(target)
    run.discard()
    _report(model, target, say.print)
    if as_json:
        click.echo(json.dumps({"path": str(target), **model.about}))


def _places(out: str, resume: bool, force: bool) -> tuple[Path, Path]:
    """The model's folder and that of its checkpoints; refuses to lose either."""
    target = Path(out)
    checkpoints = target.with_name(f"{target.name}.training")
    if target.exists() and not target.is_dir():
        raise InputError(f"{out!r} is a file; a model is a folder")
    if target.exists() and any(target.iterdir()) and not (target / "config.json").exists():
        raise InputError(f"{out!r} is a folder with other things in it; choose another")
    if resume:
        if not (checkpoints / "state.json").exists():
            raise InputError(f"there is no interrupted run in {str(checkpoints)!r}")
        return target, checkpoints
    if target.exists() and not force:
        raise InputError(f"{out!r} exists; replace it with --force or choose another with -o")
    if checkpoints.exists():
        if not force:
            raise InputError(
                f"{str(checkpoints)!r} holds an interrupted run: go on with --resume, or start "
                "anew with --force"
            )
        shutil.rmtree(checkpoints, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target, checkpoints


def _open(path: str, table: dict[str, Any], say: Callable[[str], None]) -> xr.Dataset:
    """Trajectories from a file; a table is turned into them, and what was understood is said."""
    import pandas as pd

    found = files.open_dataset(path)
    if not isinstance(found, pd.DataFrame):
        given = [f"--{name}" for name, value in table.items() if value not in (None, "refuse")]
        if given:
            raise InputError(f"{', '.join(given)} is for tables; {path!r} holds trajectories")
        return files.open_trajectories(path)

    from surrogate.tables import trajectories_from_table

    data, understood = trajectories_from_table(found, **table)
    say(escape(understood))
    return data


def _simulator(name: str, seed: int) -> tuple[xr.Dataset, Callable[[int, int], xr.Dataset]]:
    """The first trajectories of a model, and a way to make others."""
    from cli.simulate import find
    from simulators import simulate

    network = find(name)

    def make(first: int, samples: int) -> xr.Dataset:
        return simulate(network, samples=samples, seed=seed, first=FIRST + first)

    return simulate(network, samples=FIRST, seed=seed), make


def _losses(looks: list[Any]) -> str:
    if not looks:
        return ""
    return f"loss {looks[-1].loss:.4f}, held-out {looks[-1].held_out:.4f}"


def _report(model: Surrogate, target: Path, say: Callable[[str], None]) -> None:
    say(
        f"[bold]{escape(str(target))}[/bold]  {len(model.about['looks'])} looks, seed "
        f"{model.about['seed']}"
    )
    for variable in model.about["card"]["variables"]:
        median = variable["median"]
        ratio = median["value"] / median["floor"] if median["floor"] else math.nan
        say(
            f"{escape(variable['name'])}: distance of samples from held-out data "
            f"{median['value']:.3f}, of data from data {median['floor']:.3f} ({ratio:.2f}×)"
        )
    say(f"next: surrogate sample {escape(shlex.quote(str(target)))}")
