"""surrogate sample MODEL"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from cli import complete, console, files, options, pictures
from cli import observing as observed_data
from cli.errors import UsageError, unknown
from cli.method_options import MethodCommand, settings_given
from cli.sections import section
from cli.summary import scenario_summary
from cli.values import Choice, Whole
from constraints.errors import nearest

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from constraints import Formula, Layout
    from surrogate.guidance.sampler import Answer
    from surrogate.kinds import Kind
    from surrogate.model import Surrogate

TRAINED_MODEL = "model"
DEFAULT_MODEL = "esirs"
MAX_PARAMETERS = 8  # whose intervals are printed
COMMANDLINE = click.core.ParameterSource.COMMANDLINE


@click.command(cls=MethodCommand)
@click.argument("model", required=False, shell_complete=complete.surrogate_models)
@section(
    "What",
    click.option(
        "--samples",
        "-n",
        type=Whole(1),
        help="Number of samples to draw  [default: 10000; 64 images].",
    ),
)
@options.seed
@options.where
@options.bridge
@observed_data.options
@options.out(
    None,
    "Output file. Trajectories: .nc, .zarr, or .csv, .tsv, .parquet with a row for each step "
    "[default: samples.nc]; tables: .csv, .tsv, .parquet "
    "or .nc [default: rows.csv]; images: .png (a sheet), .npz, .nc or a folder/ [default: "
    "samples.png and samples.npz].",
)
@options.force
@observed_data.dates
@section(
    "Method",
    click.option(
        "--solver",
        type=Choice(["autoregressive", "ode", "heun", "sde", "predictor-corrector"]),
        help="Solver of samples without a scenario: the decoder alone, or a reverse diffusion; "
        "predictor-corrector takes 1000 --steps by default.  [default: autoregressive where the "
        "model has a decoder, else ode]",
    ),
)
@section(
    "Output",
    click.option(
        "--summary",
        "summarised",
        metavar="FILE",
        help="Write means, deviations and quantiles by variable and time to this table (.csv, "
        ".tsv, .parquet).",
    ),
)
@section("Images", pictures.scenery)
@options.end
@options.threads
@options.device
@options.as_json
@options.quiet
def command(
    model: str | None,
    samples: int | None,
    start: str | None,
    unit: str | None,
    where: tuple[str, ...],
    bridge: tuple[str, ...],
    observe: str | None,
    observing: dict[str, Any],
    named: dict[str, tuple[str, ...]],
    solver: str | None,
    summarised: str | None,
    seed: int,
    out: str | None,
    force: bool,
    threads: int | None,
    device: str,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Draw trajectories, rows of a table or images from MODEL: a folder that `surrogate train`
    made, or a bundled model.

    MODEL defaults to the folder model/ if there is one, else to the bundled model esirs. With
    --bridge or --where all samples satisfy that scenario, and its probability is reported. With
    --observe they are from the posterior given the data, and the evidence is reported.

    \b
    surrogate sample --bridge S0=95,I0=5,S25=30
    surrogate sample --where "forall t: I(t) <= 20" -o capped.nc
    surrogate sample sir --observe flu.csv --map B=I --noise "poisson(0.9*I)" --upto 4
    surrogate sample cases --start 1948-01-10 --where 'cases@"1948-03-06" >= 100'
    surrogate sample wine --where "alcohol >= 12 and quality = 7" -o rows.csv
    surrogate sample digits --where "mean(image, upper) <= 0.05" -o grid.png
    """
    options.check_syntax(where, bridge)
    observed_data.refuse(observe, observing)
    scenario = bool(where or bridge or observe)
    given = settings_given(settings, scenario)
    context = click.get_current_context()
    if scenario and context.get_parameter_source("solver") == COMMANDLINE:
        raise UsageError(
            "--solver is for draws without a scenario", value=solver, remedy="use --method"
        )
    folder, what = chosen(model)

    from surrogate.io import model_folder

    config = model_folder.read_config(folder)

    from surrogate.kinds import kind_named

    kind = kind_named(config.get("kind"))
    outputs = [*kind.targets(out, force, []), *files.tables(summarised, force)]
    files.check_distinct([observe], outputs)
    for target in outputs:
        files.check_writable(target)
    pictures.check_scenery(named)
    if observe is not None:
        files.check_exists(observe)
    say = console.messages(quiet)
    data = observed_data.opened(observe, say.print)
    begun_by = observed_data.beginning(kind, start, unit, data, observing)
    config = observed_data.started(kind, config, begun_by, say.print)
    known = scenario and isinstance(config.get("codec"), Mapping)
    layout = kind.layout_in_config(config["codec"]) if known else None
    seen = None
    if layout is not None:
        seen = observed_data.observed(observe, observing, kind, layout, say.print, data)
        stated = {} if seen is None else seen.statements
        _refuse_impossible(kind, config, layout, where, bridge, stated, settings["end"])

    from surrogate.data import summary as summary_of
    from surrogate.errors import DegenerateError
    from surrogate.kinds.observed import RECORD
    from surrogate.model import Surrogate
    from surrogate.reports.card import verdict_in

    options.compute_on(device, threads)
    found = Surrogate.load(folder)
    _refuse_bridges(bridge, found)
    if begun_by:
        found = found.knowing(**begun_by)
    if layout is None:
        layout = found.codec.layout()
        seen = observed_data.observed(observe, observing, kind, layout, say.print, data)
    names = list(found.codec.layout().names)
    targets = found.kind.targets(out, force, names)
    scenery = pictures.read_scenery(named, found.codec.layout())
    if scenery is not None:
        if not where:
            raise UsageError(
                "--picture, --region and --classifier name things in rules, and there is none",
                remedy="add --where",
            )
        found = found.knowing(**scenery.given)
    found.denoiser.to(device)
    say.print(f"model: {escape(what)}")
    if days := found.codec.layout().dates:
        say.print(f"dates from {days[0]} to {days[-1]}")
    doubt = verdict_in(found.about.get("card"))
    if doubt is not None and doubt["level"] != "good":
        say.print(f"[yellow]its card says: {escape(doubt['words'])}[/yellow]")
        for reason in doubt["against"]:
            say.print(f"  {escape(str(reason))}")
    if samples is None:
        samples = found.kind.default_samples
    begun = time.perf_counter()
    if scenario:
        rules = options.formulas(where, bridge, found.codec.layout())
        rules |= {} if seen is None else seen.statements
        given["observations"] = () if seen is None else tuple(seen.statements)
        answer = _conditional(found, samples, rules, seed, given, say)
        draws = answer.dataset
        if seen is not None:
            draws = draws.assign_attrs({RECORD: json.dumps({**seen.record, "file": observe})})
    else:
        with console.bar(say, "sampling", samples) as advance:
            draws = found.dataset(samples, seed=seed, solver=solver, progress=advance, **given)
    seconds = time.perf_counter() - begun
    files.write_data(draws, *targets)
    table = summary_of(draws) if summarised is not None or found.kind.bridges else None
    if table is not None and summarised is not None:
        files.write_table(table, summarised)
    target = targets[-1]
    places = " and ".join(escape(str(each)) for each in targets)
    say.print(f"[bold]{places}[/bold]  {escape(found.kind.described(draws, names))}")
    count = draws.sizes["sample"]
    if summarised is not None:
        say.print(f"[bold]{escape(summarised)}[/bold]  means and quantiles by variable and time")
    summary: dict[str, Any] = {"path": str(target), "model": what, "samples": count, "seed": seed}
    summary |= {"sheet": str(targets[0])} if len(targets) > 1 else {}
    if scenario:
        from constraints import has_verdict

        summary |= scenario_summary(answer, sum(map(has_verdict, rules.values())), say)
    else:
        summary |= {"solver": draws.attrs["surrogate_solver"]}
    if table is not None:
        _tell_parameters(table, say)
    say.print(f"sampled in {seconds:.1f} s ({count / seconds:,.0f} a second)")
    again = _next(found, target, where, scenario, draws)
    if scenery is not None and target.suffix.lower() != ".png":  # a report does not know its names
        again = f"surrogate report {shlex.quote(str(target))}"
    say.print(f"next: {escape(again)}")
    if as_json:
        click.echo(json.dumps(summary | {"seconds": seconds}))
    if scenario and answer.diagnostics.degenerate:  # kept, and still not to be relied on
        context.exit(DegenerateError.exit_code)


def _tell_parameters(table: pd.DataFrame, say: Console) -> None:
    """Credible intervals of the numbers that a trajectory has once, such as its parameters."""
    for row in table[table["time"].isna() & (table["sd"] > 0)].head(MAX_PARAMETERS).itertuples():
        words = f"{row.variable} {row.mean:.4g}, 90 % in [{row.q5:.4g}, {row.q95:.4g}]"
        say.print(escape(words))


def _next(
    model: Surrogate, target: Path, where: tuple[str, ...], scenario: bool, draws: xr.Dataset
) -> str:
    """What to do with the samples; those of a scenario are to be compared with what meets it."""
    name = shlex.quote(str(target))
    if target.suffix.lower() == ".png":
        return f"look at {name}, or keep the numbers: -o samples.npz"
    if not model.kind.judged_by_source:
        return f"surrogate {'report' if scenario else 'plot'} {name}"
    words = shlex.split(str(model.about.get("command", "")))  # surrogate train DATA ...
    data = words[2] if len(words) > 2 and not words[2].startswith("-") else "DATA"
    if "instance" in draws.sizes:
        return f"surrogate report {name}"
    rules = "".join(f" --where {shlex.quote(rule)}" for rule in where)
    verb = "report" if scenario else "evaluate"
    return f"surrogate {verb} {name} --against {shlex.quote(data)}{rules}"


def _refuse_impossible(
    kind: Kind,
    config: Mapping[str, Any],
    layout: Layout,
    where: tuple[str, ...],
    bridges: tuple[str, ...],
    seen: Mapping[str, Formula],
    end: str | None,
) -> None:
    """Refuse a scenario that the description of a model rules out, before torch is imported."""
    from constraints import conjunction, instances_of
    from constraints.compile.names import of_instances
    from constraints.prove.contradictions import refuse_impossible

    rules = [*options.formulas(where, bridges, layout).values(), *seen.values()]
    if not rules:
        return
    goal = conjunction(*rules)
    layout = replace(layout, instances=instances_of(goal))
    obeyed = kind.rules_in_config(config["codec"]).values()
    given = [rule for each in obeyed for rule in of_instances(each, layout)]
    refuse_impossible(goal, layout, given=given, end=end)


def _refuse_bridges(bridges: tuple[str, ...], model: Surrogate) -> None:
    """Only trajectories have steps that a bridge can be between."""
    if bridges and not model.kind.bridges:
        numbers = [each.name for each in model.codec.layout().signals if not each.categories]
        rule = shlex.quote(model.kind.example_rule(numbers))
        raise UsageError(
            f"--bridge states values at steps of trajectories, and this is a model of "
            f"{model.kind.name}",
            value=bridges,
            remedy=f"use --where {rule}",
        )


def chosen(model: str | None) -> tuple[Path, str]:
    """The folder of a model that may be named or not, and what to call it."""
    from surrogate.io.model_folder import bundled

    if model is None and Path(TRAINED_MODEL).is_dir():
        return Path(TRAINED_MODEL), TRAINED_MODEL
    name = DEFAULT_MODEL if model is None else model
    if not Path(name).exists() and name in bundled():
        return bundled()[name], f"{name}, which comes with the package"
    if Path(name).is_file():
        raise UsageError(
            f"{name!r} is a file, not a model folder",
            value=name,
            remedy=f"train a model first: surrogate train {shlex.quote(name)}",
        )
    if not Path(name).exists() and "/" not in name and nearest(name, bundled()) is not None:
        raise unknown("model", name, bundled(), "or train one: surrogate train DATA -o NAME")
    return Path(name), name


# --- with a scenario ------------------------------------------------------------------------------


def _conditional(
    model: Surrogate,
    samples: int,
    rules: dict[str, Formula],
    seed: int,
    settings: dict[str, Any],
    say: Console,
) -> Answer:
    from surrogate.guidance.sampler import sample

    with console.bar(say, "sampling", 100) as advance:
        percent = console.Percent(advance)

        def tell(text: str) -> None:  # what is said between two runs
            say.print(escape(text))
            percent.restart()

        return sample(model, samples, rules, seed=seed, say=tell, progress=percent, **settings)
