"""surrogate reference MODEL"""

from __future__ import annotations

import json
import math
import shlex
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from cli import answers, console, files, networks, options
from cli import observing as observed_data
from cli.errors import UsageError
from cli.networks import find, grid, parameters_of, start_of
from cli.sections import Command, section
from cli.values import Choice, Whole

if TYPE_CHECKING:
    import xarray as xr


@click.command(cls=Command)
@networks.argument(default="esirs")
@options.samples
@options.seed
@options.where
@options.bridge
@networks.start_and_parameters
@networks.time_grid
@observed_data.options
@observed_data.dates
@options.end
@section(
    "Method",
    click.option(
        "--method",
        type=Choice(answers.METHODS),
        default=answers.AUTO,
        show_default=True,
        help="Answer by the master equation (exact), by simulated trajectories that satisfy the "
        "scenario (rejection), or by a particle filter on the simulator (filter); auto takes the "
        "first that can.",
    ),
    click.option(
        "--particles",
        type=Whole(1),
        help="Particles of the filter in all  [default: 40000; 131072 with drawn parameters, more "
        "where they are needed].",
    ),
    click.option(
        "--most",
        type=Whole(1),
        default=10_000_000,
        show_default=True,
        help="Trajectories to simulate at most by rejection.",
    ),
)
@options.out("reference.nc", "Output file: .nc or .zarr.")
@options.force
@options.as_json
@options.quiet
def command(
    model: str,
    samples: int,
    where: tuple[str, ...],
    bridge: tuple[str, ...],
    observe: str | None,
    observing: dict[str, Any],
    start: str | None,
    unit: str | None,
    end: str | None,
    points: int | None,
    until: float | None,
    population: int | None,
    initial: tuple[str, ...],
    params: tuple[str, ...],
    method: str,
    particles: int | None,
    most: int,
    seed: int,
    out: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw the true answer to a scenario of MODEL, or its posterior given data.

    The draws are exact, from the master equation, where it can be solved and what is stated reads
    one step at a time; else they are the simulated trajectories that satisfy the scenario, or the
    particles of a filter that simulates from one observed time to the next.

    \b
    surrogate reference esirs --bridge S0=95,I0=5,S25=30
    surrogate reference esirs --observe counts.csv --noise "binomial(I, 0.5)"
    surrogate reference sir --param beta=0.5..3 --observe flu.csv --map B=I --noise "poisson(0.9*I)"
    surrogate evaluate samples.nc --against reference.nc
    """
    observed_data.refuse(observe, observing)
    if not (where or bridge or observe):
        raise UsageError(
            "state a scenario with --bridge or --where, or data with --observe",
            remedy="without one: surrogate simulate",
        )
    options.check_syntax(where, bridge)
    observed_data.refuse_unit(start, unit)
    network = find(model)

    from simulators.ensemble import make_engine
    from simulators.storage import SUFFIXES, check_target

    target = check_target(out, force, SUFFIXES)
    files.check_distinct([observe], [target])
    files.check_writable(target)
    if observe is not None:
        files.check_exists(observe)
    given: dict[str, Any] = {
        "initial": start_of(initial),
        "parameters": parameters_of(network, params, population),
        "times": grid(network, points, until),
    }
    say = console.messages(quiet)
    make_engine(network, samples, seed=seed, **given)  # refuses bad numbers and names before torch

    from constraints import compiled, conjunction, factored, has_verdict
    from constraints.prove.contradictions import refuse_impossible
    from simulators import simulate
    from surrogate.io.attributes import simulation
    from surrogate.kinds.kind import kind_of
    from surrogate.kinds.labels import label
    from surrogate.kinds.observed import RECORD

    example = _dated(simulate(network, samples=100, seed=seed, **given), start, unit)
    kind = kind_of(example)
    layout = kind.layout(example)
    seen = observed_data.observed(observe, observing, kind, layout, say.print)
    rules = options.formulas(where, bridge, layout)
    stated = {} if seen is None else seen.statements
    goal = conjunction(*rules.values(), *stated.values())
    laws = kind.rules_in_config({"about": simulation(example.attrs)})
    refuse_impossible(goal, layout, given=list(laws.values()), end=end)
    began = time.perf_counter()
    question = answers.Question(
        network, given, compiled(goal, layout, end), layout, samples, seed, most, particles,
        answers.MAX_SECONDS.get(method), say,
    )  # fmt: skip
    found, way = answers.answered(question, method)
    alone = None
    seen_alone = [
        *stated.values(),
        *(each for rule in rules.values() for each in factored(rule)[1]),
    ]
    if seen_alone and any(map(has_verdict, rules.values())):
        data_alone = compiled(conjunction(*seen_alone), layout, end)
        alone = way.evidence(replace(question, program=data_alone))
    data = label(_dated(found.data, start, unit), {**rules, **stated}, end)
    data = data.assign_attrs(surrogate_method=found.words, surrogate_seed=seed)
    if seen is not None:
        data = data.assign_attrs({RECORD: json.dumps({**seen.record, "file": observe})})
    files.write_data(data, target)
    count = data.sizes["sample"]
    say.print(f"[bold]{escape(str(target))}[/bold]  {count:,} trajectories, {found.words}")
    summary = {"path": str(target), "model": network.name, "samples": count, "seed": seed}
    summary |= {"method": found.words, "way": way.name}
    summary |= {"log_probability": found.log_p, "log_probability_error": found.error}
    summary |= _probability(found, alone, bool(seen_alone), say)
    for reason in found.degenerate:
        say.print(f"[red]degenerate: {escape(reason)}[/red]")
    for warning in found.warnings:
        say.print(f"[yellow]warning: {escape(warning)}[/yellow]")
    say.print(f"next: surrogate report samples.nc --against {escape(shlex.quote(str(target)))}")
    if as_json:
        click.echo(json.dumps(summary | {"seconds": time.perf_counter() - began}))
    if found.degenerate:  # kept, and still not to be relied on
        from surrogate.errors import DegenerateError

        click.get_current_context().exit(DegenerateError.exit_code)


def _dated(data: xr.Dataset, start: str | None, unit: str | None) -> xr.Dataset:
    if start is None:
        return data
    from surrogate.kinds.trajectories.start_date import dated

    return dated(data, start, unit)


def _probability(
    found: answers.Found, alone: tuple[float, float] | None, observed: bool, say: Console
) -> dict[str, float]:
    """Print log P, and with a scenario and data P(scenario | data); the latter for `--json`."""
    within = "" if found.error == 0 else f" ± {found.error:.3f}"
    if alone is not None:
        log_evidence, error = alone
        log_share, share_error = found.log_p - log_evidence, math.hypot(found.error, error)
        share = math.exp(log_share)
        spread = "" if share_error == 0 else f" ± {share * share_error:.2g}"
        say.print(f"log P(scenario and data) = {found.log_p:.4f}{within}")
        say.print(f"P(scenario | data) = {share:.4g}{spread}; log evidence = {log_evidence:.4f}")
        return {
            "log_evidence": log_evidence,
            "log_conditional": log_share,
            "log_conditional_error": share_error,
        }
    if observed:
        say.print(f"log evidence = {found.log_p:.4f}{within}")
    else:
        say.print(f"probability {math.exp(found.log_p):.4g} (log {found.log_p:.4f}{within})")
    return {}
