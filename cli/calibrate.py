"""surrogate calibrate MODEL"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from rich.markup import escape

from cli import complete, console, files, networks, options, reading
from cli.errors import UsageError
from cli.method_options import MethodCommand, settings_given
from cli.sample import chosen
from cli.sections import section
from cli.values import Whole
from surrogate.io.reading import ObservationOptions

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from surrogate.calibration.result import Calibration
    from surrogate.model import Surrogate

DEFAULT_OUTPUT = "calibration.html"
PAGES, FIGURES = (".html", ".htm"), (".png", ".svg", ".pdf")
REPLICATES, SAMPLES = 100, 100


@click.command(cls=MethodCommand)
@click.argument("model", required=False, shell_complete=complete.surrogate_models)
@section(
    "What",
    click.option(
        "--replicates",
        type=Whole(1),
        default=REPLICATES,
        show_default=True,
        help="Number of truths.",
    ),
    click.option(
        "--samples",
        "-n",
        type=Whole(2),
        default=SAMPLES,
        show_default=True,
        help="Number of samples given what was observed of each truth.",
    ),
    click.option(
        "--data",
        metavar="FILE",
        shell_complete=complete.files,
        help="Take truths from data that the model has not learned from.",
    ),
    click.option(
        "--simulate",
        metavar="MODEL",
        shell_complete=complete.simulator_models,
        help="Take truths from a simulator, a built-in name or an SBML file [default: the one that "
        "the model was learned from].",
    ),
    click.option(
        "--own-samples",
        is_flag=True,
        help="Take samples of the model itself as truths, which tests the sampler alone.",
    ),
)
@networks.start_and_parameters
@options.seed
@section(
    "Observed data",
    click.option(
        "--given",
        metavar="A,B",
        help="Variables that are observed [default: those in --noise, else all series, or every "
        "other column].",
    ),
    click.option(
        "--steps-observed",
        metavar="3,6,9",
        help="Steps at which series are observed [default: four, evenly spread; with --upto or "
        "--every all others].",
    ),
    click.option(
        "--observe",
        metavar="FILE",
        shell_complete=complete.files,
        help="Observe what is observed in this file: its columns, at its times.",
    ),
    click.option(
        "--quantity",
        "quantities",
        multiple=True,
        metavar="TERM",
        help="Rank this term, such as max(I) or beta/gamma; repeatable [default: parameters, and "
        "variables where they are not observed].",
    ),
    reading.options("observing", ObservationOptions),
)
@section(
    "Output",
    click.option(
        "--out",
        "-o",
        "outs",
        multiple=True,
        shell_complete=complete.files,
        help="Write a page (.html), a figure (.png, .svg, .pdf) or a table of ranks (.csv, .tsv, "
        f".parquet); repeatable  [default: {DEFAULT_OUTPUT}].",
    ),
    click.option(
        "--resume", is_flag=True, help="Add replicates to the table of ranks that --out names."
    ),
)
@options.force
@options.threads
@options.device
@options.as_json
@options.quiet
def command(
    model: str | None,
    replicates: int,
    samples: int,
    data: str | None,
    simulate: str | None,
    own_samples: bool,
    params: tuple[str, ...],
    initial: tuple[str, ...],
    population: int | None,
    seed: int,
    given: str | None,
    steps_observed: str | None,
    observe: str | None,
    quantities: tuple[str, ...],
    observing: dict[str, Any],
    outs: tuple[str, ...],
    resume: bool,
    force: bool,
    threads: int | None,
    device: str,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Test whether samples of MODEL given data are calibrated: whether 80 % intervals hold the
    truth in 80 %.

    Each replicate observes a truth as --noise and --steps-observed say, samples the model given
    these observations, and ranks the truth among the samples. The verdict is good where ranks are
    uniform.

    \b
    surrogate calibrate esirs --given S,I --quantity "max(I)"
    surrogate calibrate sir --noise "poisson(0.9*I)" --every 4 --upto 8
    surrogate calibrate sir --observe flu.csv --map B=I --noise "poisson(0.9*I)"
    surrogate calibrate wine --data held_out.csv --given alcohol,density
    """
    own = settings_given(settings, True)
    _check_sources(data, simulate, own_samples)
    if data is not None or own_samples:
        networks.refuse(params, initial, population, None, None)
    steps = _steps(steps_observed)
    targets = _targets(outs, force or resume)
    known = _known(targets, resume)
    for path in filter(None, (data, observe)):
        files.check_exists(path)
    files.check_distinct([data, observe], targets)
    folder, what = chosen(model)

    from surrogate.calibration.run import calibrate
    from surrogate.model import Surrogate

    say = console.messages(quiet)
    options.compute_on(device, threads)
    found = Surrogate.load(folder, device)
    say.print(f"model: {escape(what)}")
    like = None if observe is None else reading.opened(observe, {}, say.print).data
    if data is not None:
        truths: Any = reading.opened(data, {}, say.print).data
    else:
        stated = (params, initial, population)
        truths = None if own_samples else _simulated(found, simulate, stated, replicates, seed)
    with console.bar(say, "replicates", replicates) as advance:
        result = calibrate(
            found,
            truths,
            replicates=replicates,
            samples=samples,
            given=[] if given is None else [name.strip() for name in given.split(",")],
            steps_observed=steps,
            like=like,
            quantities=quantities,
            seed=seed,
            known=known,
            progress=advance,
            **observing,
            **own,
        )
    for note in result.observed:
        say.print(escape(note))
    for target in targets:
        _write(result, target, what.partition(",")[0])
    if as_json:
        click.echo(json.dumps({"model": what, **result.to_dict()}))
    else:
        click.echo(result.table())
    for line in console.verdict(result.verdict.to_dict()):
        say.print(line)
    for note in result.notes:
        say.print(f"[yellow]{escape(note)}[/yellow]")
    shares = ", ".join(f"{p:.0%} in {100 * c:.1f} %" for p, (c, _) in result.coverage.items())
    say.print(f"truths in central intervals, all quantities: {shares}")
    say.print(f"[bold]{escape(' and '.join(map(str, targets)))}[/bold]  {result.seconds:.0f} s")
    if result.interrupted:
        click.get_current_context().exit(1)


def _check_sources(data: str | None, simulate: str | None, own_samples: bool) -> None:
    """Refuse several sources of truths."""
    named = {"--data": data, "--simulate": simulate, "--own-samples": own_samples or None}
    used = [name for name, value in named.items() if value is not None]
    if len(used) > 1:
        raise UsageError(
            f"{' and '.join(used)} both say where truths come from", value=used, remedy="give one"
        )


def _steps(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--steps-observed {text!r} are no steps",
            value=text,
            remedy="write whole numbers with commas: 3,6,9",
        ) from None


def _targets(outs: tuple[str, ...], replace: bool) -> list[Path]:
    from surrogate.io.formats import TABLE, endings
    from surrogate.io.paths import check_target

    legal = (*PAGES, *FIGURES, *endings((TABLE,)))
    found = [check_target(out, replace, legal) for out in outs or (DEFAULT_OUTPUT,)]
    for target in found:
        files.check_writable(target)
    return found


def _tables(targets: list[Path]) -> list[Path]:
    return [each for each in targets if each.suffix.lower() not in (*PAGES, *FIGURES)]


def _known(targets: list[Path], resume: bool) -> pd.DataFrame | None:
    """The ranks of an earlier run, which goes on."""
    if not resume:
        return None
    tables = _tables(targets)
    if not tables:
        raise UsageError(
            "--resume adds to a table of ranks, and none is written",
            value=resume,
            remedy="name it: -o ranks.csv",
        )
    if not tables[0].exists():
        return None
    from surrogate.io.formats import read

    return cast("pd.DataFrame", read(tables[0], {})[1])


def _simulated(
    model: Surrogate,
    simulate: str | None,
    stated: tuple[tuple[str, ...], tuple[str, ...], int | None],
    replicates: int,
    seed: int,
) -> xr.Dataset | None:
    """New trajectories on the model's grid, of the simulator that it was learned from or another;
    None without a simulator."""
    from simulators.ensemble import simulate as run
    from simulators.network import ReactionNetwork
    from surrogate.io.attributes import simulation_in
    from surrogate.random import Calibration, derived

    about = simulation_in(model.codec.to_config().get("about"))
    if simulate is None and not about:
        networks.refuse(*stated, None, None)
        return None
    network = (
        ReactionNetwork.from_dict(about["network"]) if simulate is None else networks.find(simulate)
    )
    learned = about.get("network", {}).get("name") == network.name
    params, initial, population = stated
    parameters = _values(about.get("parameters")) if learned else {}
    parameters |= networks.parameters_of(network, params, population)
    start: Any = networks.start_of(initial)
    if start is None and learned:
        start = _values(about.get("initial")) or about.get("start")
    own = derived(seed, Calibration.TRUTHS)
    times = list(model.codec.layout().times)
    return run(network, replicates, times, seed=own, initial=start, parameters=parameters)


def _values(described: Any) -> dict[str, Any]:
    """Values and ranges as a description of a simulation has them."""
    if not isinstance(described, Mapping):
        return {}
    found = {}
    for name, value in described.items():
        if isinstance(value, Mapping):
            if "range" not in value:
                raise UsageError(
                    f"the model was learned from values of {name} that cannot be drawn again",
                    value=name,
                    remedy=f"state a range, --param {name}=LOW..HIGH, or give --data",
                )
            value = tuple(value["range"])
        found[str(name)] = value
    return found


def _write(result: Calibration, target: Path, name: str) -> None:
    from surrogate.calibration.figures import figure
    from surrogate.calibration.page import page
    from surrogate.io.atomic import atomic_file
    from surrogate.kinds.drawing import drawing_of

    ending = target.suffix.lower()
    if ending in PAGES:
        content = page(result, f"Calibration of {name}").encode("utf-8", "replace")
        with atomic_file(target) as part:
            part.write_bytes(content)
    elif ending in FIGURES:
        with atomic_file(target) as part:
            drawing_of(figure(result), "calibration").save(part, ending[1:])
    else:
        files.write_table(result.ranks, target)
