"""surrogate train DATA"""

from __future__ import annotations

import math
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.markup import escape

from cli import complete, console, files, networks, options, pictures, stated_rules, tables
from cli.console import SECONDS_BETWEEN_LINES
from cli.errors import UsageError
from cli.sections import Command, section
from cli.values import Choice, Whole

if TYPE_CHECKING:
    import xarray as xr

    from simulators import ReactionNetwork
    from surrogate.diffusion.checkpoints import Checkpoints
    from surrogate.diffusion.training import Trainer
    from surrogate.fitting import Run
    from surrogate.model import Surrogate

FIRST_TRAJECTORIES = 20_000  # simulated trajectories that the codec and the card see


@click.command(cls=Command)
@click.argument("data", required=False, shell_complete=complete.files)
@section(
    "What",
    click.option(
        "--preset",
        type=Choice(["quick", "default", "best"]),
        default="default",
        show_default=True,
        help="Train for two minutes, ten, or half an hour on two cores.",
    ),
    click.option(
        "--iterations", type=Whole(1), help="Number of weight updates [default: the preset's]."
    ),
    click.option(
        "--simulate",
        "simulated",
        metavar="MODEL",
        shell_complete=complete.simulator_models,
        help="Train on fresh trajectories of a simulator instead of DATA.",
    ),
)
@networks.start_and_parameters
@networks.time_grid
@options.seed
@section("Tables", tables.options, tables.types)
@section("Images", pictures.options)
@section(
    "Advanced",
    click.option(
        "--transform",
        "transforms",
        multiple=True,
        metavar="NAME=KIND",
        help="Learn NAME as it is (identity), its log or logit(LOW,HIGH) [default: by its tail].",
    ),
)
@stated_rules.options
@options.out("model", "Folder of the model.")
@section(
    "Output", click.option("--resume", is_flag=True, help="Continue an interrupted training run.")
)
@options.force
@options.threads
@options.device
@options.as_json
@options.quiet
def command(
    data: str | None,
    simulated: str | None,
    params: tuple[str, ...],
    initial: tuple[str, ...],
    population: int | None,
    points: int | None,
    until: float | None,
    preset: str,
    iterations: int | None,
    table: dict[str, Any],
    types: tuple[str, ...],
    image: dict[str, Any],
    transforms: tuple[str, ...],
    rule: tuple[str, ...],
    no_rule: tuple[str, ...],
    no_found_rules: bool,
    seed: int,
    out: str,
    resume: bool,
    force: bool,
    threads: int | None,
    device: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn a surrogate of DATA, trajectories, a table of rows or images [default:
    trajectories.nc].

    DATA is netCDF or Zarr with dimensions (sample, time) or (sample), or a table of your own (CSV,
    TSV, Parquet). Its rows are samples of numbers, categories and dates, unless options state that
    they are time steps: a long table (--id, --time), or one series to be cut into windows
    (--window). Images are arrays (.npz, .npy), IDX as MNIST has it, or a folder of PNG and JPEG.

    Ctrl-C stops a run; the same command with --resume continues it.

    \b
    surrogate train trajectories.nc
    surrogate train wine.csv --type quality=category
    surrogate train cases.csv --time week --columns cases --window 52 --stride 4
    surrogate train train-images-idx3-ubyte.gz -o digits
    surrogate train faces/ --size 32 -o faces_model
    surrogate train --simulate esirs --preset quick
    surrogate train --simulate sir --param beta=0.5..3
    """
    if data is not None and simulated is not None:
        raise UsageError(
            f"DATA {data!r} and --simulate {simulated} exclude each other",
            value=data,
            remedy="give one of them",
        )
    wanted = _transforms(transforms)
    stated = stated_rules.declared(rule)
    target, folder = _places(out, resume, force)
    say = console.messages(quiet)
    make = None
    if simulated is not None:
        tables.refuse({**table, "type": types or None}, "--simulate makes trajectories")
        pictures.refuse(image, "--simulate makes trajectories")
        network = networks.find(simulated)
        how = networks.simulation(network, params, initial, population, points, until)
        source, make = _simulator(network, seed, how)
    else:
        networks.refuse(params, initial, population, points, until)
        path = "trajectories.nc" if data is None else data
        files.check_exists(path)
        source = tables.open_data(path, table, types, image, say.print)

    from surrogate import fitting
    from surrogate.diffusion.checkpoints import Checkpoints
    from surrogate.diffusion.presets import preset_named
    from surrogate.io import model_folder as store
    from surrogate.kinds.rule_options import RuleOptions

    options.compute_on(device, threads)
    chosen = preset_named(preset, iterations)
    checkpoints = Checkpoints(folder, _words())
    run = fitting.Run(
        source,
        seed,
        chosen,
        make,
        checkpoints,
        device,
        transforms=wanted,
        rules=RuleOptions(stated, not no_found_rules, no_rule),
        resume=resume,
    )
    codec, trainer = run.model.codec, run.trainer
    size = sum(weight.numel() for weight in trainer.weights.values())
    extent = run.model.kind.extent(source, codec.learned)
    say.print(f"{escape(extent)}; a network of {size:,} weights")
    stated_rules.tell(run.rules, say)
    if trainer.step:
        say.print(f"going on from step {trainer.step:,}")
    model = _trained(run, target, checkpoints, say)
    run.discard()
    _report(model, target, say.print)
    if as_json:
        click.echo(store.to_json({"path": str(target), **model.about}))


def _transforms(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, kind = text.rpartition("=")
        if not equals or not name.strip() or not kind.strip():
            raise UsageError(
                f"--transform {text!r} is not NAME=KIND",
                value=text,
                remedy="write --transform I=log",
            )
        found[name.strip()] = kind.strip()
    return found


# --- where to -------------------------------------------------------------------------------------


def _places(out: str, resume: bool, force: bool) -> tuple[Path, Path]:
    """The model's folder and that of its checkpoints; refuses to lose either."""
    from surrogate.io import model_folder as store

    target = Path(out)
    store.check_replaceable(target)
    checkpoints = target.with_name(f"{target.name}.training")
    _check_writable(target)
    if (checkpoints.exists() or checkpoints.is_symlink()) and not checkpoints.is_dir():
        raise UsageError(
            f"{str(checkpoints)!r} is a file, where a folder is needed",
            value=str(checkpoints),
            remedy="move it away, or choose another model folder with -o",
        )
    interrupted = (checkpoints / "state.json").exists()
    if resume:
        if not interrupted:
            raise UsageError(
                f"there is no interrupted run in {str(checkpoints)!r}",
                value=str(checkpoints),
                remedy="leave out --resume, or name the model's folder with -o",
            )
        return target, checkpoints
    if target.exists() and any(target.iterdir()) and not force:
        raise UsageError(
            f"{out!r} exists",
            value=out,
            remedy="replace it with --force, or choose another with -o",
        )
    if interrupted and not force:
        raise UsageError(
            f"{str(checkpoints)!r} holds an interrupted run",
            value=str(checkpoints),
            remedy=f"go on with it ({_started(checkpoints)}), or start again with --force",
        )
    return target, checkpoints


def _check_writable(target: Path) -> None:
    """Check now rather than after the work; restore what a killed run left half replaced."""
    if not target.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(target.parent)!r} to put {target.name!r} in",
            value=str(target),
            remedy="make it, or choose another with -o",
        )
    files.check_writable(target)
    if target.with_name(f".{target.name}.old").exists():
        from surrogate.io import model_folder as store

        store.settle(target)


def _started(checkpoints: Path) -> str:
    """How to go on with an interrupted run: as it was started, with --resume."""
    from surrogate.errors import ModelError
    from surrogate.io import model_folder as store

    try:
        words = store.read_json(checkpoints / "state.json").get("command")
    except ModelError:
        words = None
    if not isinstance(words, list) or not words or not all(str(w).isprintable() for w in words):
        return "--resume"
    return shlex.join([*map(str, words), "--resume"])


def _words() -> list[str]:
    """The command as it was given, without --resume and --force."""
    context = click.get_current_context()
    words = ["surrogate", "train"]
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name in ("resume", "force"):
            continue
        if isinstance(option, click.Argument):
            words.insert(2, str(context.params[name]))
        elif isinstance(option, click.Option):
            value = context.params[name]
            for each in value if option.multiple else [value]:
                words += [option.opts[0]] if option.is_flag else [option.opts[0], str(each)]
    return words


# --- what from ------------------------------------------------------------------------------------


def _simulator(
    network: ReactionNetwork, seed: int, how: dict[str, Any]
) -> tuple[xr.Dataset, Callable[[int, int], xr.Dataset]]:
    """The first trajectories of a model, and a way to make others."""
    from simulators import simulate

    def make(first: int, samples: int) -> xr.Dataset:
        return simulate(
            network, samples=samples, seed=seed, first=FIRST_TRAJECTORIES + first, **how
        )

    return simulate(network, samples=FIRST_TRAJECTORIES, seed=seed, **how), make


# --- the run --------------------------------------------------------------------------------------


def _trained(run: Run, target: Path, checkpoints: Checkpoints, say: Console) -> Surrogate:
    """Train and write the model; where that stops, report how to continue."""
    again = shlex.join([*checkpoints.command, "--resume"])
    try:
        with _stoppable() as stopping, _watched(run.trainer, say) as progress:
            run.train(progress, stopping)
        with say.status("measuring how far samples are from held-out data"):
            model = run.finish()
        try:
            model.save(target, force=True)
        except OSError as problem:
            raise click.ClickException(
                f"cannot write the model to {str(target)!r}: {problem.strerror or problem}; "
                f"{checkpoints.kept()}: make room, and go on with\n  {again}"
            ) from None
    except KeyboardInterrupt:
        said = f"; go on with\n  {again}" if checkpoints.step is not None else ""
        raise click.ClickException(f"stopped: {checkpoints.kept()}{said}") from None
    return model


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C (or SIGTERM) came: the step is finished first. A second one stops at once."""
    asked: list[int] = []

    def ask(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield lambda: False
        return
    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _watched(trainer: Trainer, say: Console) -> Iterator[Callable[[Trainer], None]]:
    """Progress: a bar on a terminal, else a line now and then."""
    total, first = trainer.settings.steps, trainer.step
    begun = told = time.monotonic()

    def tell(trainer: Trainer) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= SECONDS_BETWEEN_LINES:
            told = now
            left = (now - begun) / (trainer.step - first) * (total - trainer.step)
            losses = f"  {_losses(trainer)}"
            say.print(f"step {trainer.step:,} of {total:,}{losses}  {_duration(left)} left")

    if not say.is_terminal:
        yield tell
        return
    with console.bar(say, "training", total) as advance:
        advance(first, _losses(trainer))
        yield lambda trainer: advance(1, _losses(trainer))


def _losses(trainer: Trainer) -> str:
    recent = trainer.recent
    if math.isnan(recent):
        recent = trainer.looks[-1].loss if trainer.looks else recent
    said = "" if math.isnan(recent) else f"loss {recent:.4f}"
    return said + (f", held-out {trainer.looks[-1].held_out:.4f}" if trainer.looks else "")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _report(model: Surrogate, target: Path, say: Callable[[str], None]) -> None:
    from surrogate.reports.card import solver_line

    about = model.about
    steps = about["looks"][-1]["step"]
    say(f"[bold]{escape(str(target))}[/bold]  {steps:,} updates, seed {about['seed']}")
    if line := solver_line(about):
        say(escape(line))
    if about["card"] is None:
        say(f"its samples cannot be judged: {escape(about['problem'])}")
    else:
        say(escape(model.kind.card_table(about["card"])))
        for line in console.verdict(about["card"]["verdict"]):
            say(line)
    say(f"next: surrogate sample {escape(shlex.quote(str(target)))}")
