"""surrogate reference MODEL"""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape

from cli import console, files, networks, options
from cli.errors import UsageError
from cli.networks import find, grid, parameters_of, start_of
from cli.sections import Command, section
from cli.values import Whole
from simulators import ReactionNetwork

if TYPE_CHECKING:
    import xarray as xr

    from constraints import Layout, Program

SIMULATED_PER_BLOCK = 20_000  # trajectories simulated at a time
MAX_EXACT_STATES = 200_000  # up to which the master equation is solved


@click.command(cls=Command)
@networks.argument(default="esirs")
@options.samples
@options.seed
@options.where
@options.bridge
@networks.start_and_parameters
@networks.time_grid
@options.end
@section(
    "Advanced",
    click.option(
        "--most",
        type=Whole(1),
        default=10_000_000,
        show_default=True,
        help="Trajectories to simulate at most, where there is no exact answer.",
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
    end: str | None,
    points: int | None,
    until: float | None,
    population: int | None,
    initial: tuple[str, ...],
    params: tuple[str, ...],
    most: int,
    seed: int,
    out: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw the true answer to a scenario of MODEL, to judge samples by.

    The draws are exact, from the master equation, where it can be solved and the scenario reads one
    step at a time; else they are the simulated trajectories that satisfy the scenario.

    \b
    surrogate reference esirs --bridge S0=95,I0=5,S25=30
    surrogate evaluate samples.nc --against reference.nc
    """
    if not (where or bridge):
        raise UsageError(
            "state a scenario with --bridge or --where", remedy="without one: surrogate simulate"
        )
    options.check_syntax(where, bridge)
    network = find(model)

    from simulators.ensemble import make_engine
    from simulators.storage import SUFFIXES, check_target

    target = check_target(out, force, SUFFIXES)
    files.check_writable(target)
    given: dict[str, Any] = {
        "initial": start_of(initial),
        "parameters": parameters_of(network, params, population),
        "times": grid(network, points, until),
    }
    say = console.messages(quiet)
    make_engine(network, samples, seed=seed, **given)  # refuses bad numbers and names before torch

    from constraints import compiled, conjunction
    from constraints.prove.contradictions import refuse_impossible
    from simulators import simulate
    from surrogate.kinds.labels import label
    from surrogate.kinds.signals import layout_of

    example = simulate(network, samples=100, seed=seed, **given)
    layout = layout_of(example)
    rules = options.formulas(where, bridge, layout)
    goal = conjunction(*rules.values())
    refuse_impossible(goal, layout, end=end)
    began = time.perf_counter()
    program = compiled(goal, layout, end)
    found = _exact(network, program, samples, seed, given, say)
    if found is None:
        found = _kept(network, program, layout, samples, most, seed, given, say)
    data, method, log_p, error = found
    data = label(data, rules, end).assign_attrs(surrogate_method=method, surrogate_seed=seed)
    files.write_data(data, target)
    count = data.sizes["sample"]
    say.print(f"[bold]{escape(str(target))}[/bold]  {count:,} trajectories, {method}")
    sure = "" if error == 0 else f" ± {error:.3f}"
    if program.observations:
        stated = "the scenario and the data" if program.has_verdict else "the data"
        say.print(f"log evidence {log_p:.4f}{sure} of {stated}")
    else:
        say.print(f"probability {math.exp(log_p):.4g} (log {log_p:.4f}{sure})")
    say.print(f"next: surrogate report samples.nc --against {escape(shlex.quote(str(target)))}")
    if as_json:
        summary = {"path": str(target), "model": network.name, "samples": count, "seed": seed}
        summary |= {"method": method, "log_probability": log_p, "log_probability_error": error}
        click.echo(json.dumps(summary | {"seconds": time.perf_counter() - began}))


Found = tuple["xr.Dataset", str, float, float]


def _exact(
    network: ReactionNetwork,
    program: Program,
    samples: int,
    seed: int,
    given: dict[str, Any],
    say: Console,
) -> Found | None:
    """Draws of the master equation; None where it cannot be solved."""
    import torch

    from constraints.compile.stepwise import stepwise, stepwise_likelihoods
    from simulators import InputError, MasterEquation, UnreachableError
    from simulators.exact.conditions import Likelihood

    conditions, observed = stepwise(program), stepwise_likelihoods(program)
    if conditions is None or observed is None:
        return None
    try:
        with say.status("solving the master equation"):
            exact = MasterEquation(network, **given, max_states=MAX_EXACT_STATES)
    except (InputError, RuntimeError):  # too many states, events, rates that change
        return None

    def predicate(holds: Callable[[dict[str, torch.Tensor]], torch.Tensor]) -> Any:
        def judge(values: dict[str, np.ndarray]) -> np.ndarray:
            return holds({k: torch.from_numpy(np.asarray(v)) for k, v in values.items()}).numpy()

        return judge

    where: Any = {step: [predicate(each) for each in those] for step, those in conditions.items()}
    for step, densities in observed.items():
        factors = [Likelihood(predicate(density)) for density in densities]
        where[step] = [*where.get(step, ()), *factors]
    log_p = exact.log_probability(where)
    if log_p == -math.inf:
        raise UnreachableError(
            "the scenario has probability 0 from this start",
            remedy="change the scenario, or the start with --initial",
        )
    with say.status("drawing from the conditional law"):
        return exact.draw(samples, where, seed=seed), "exact, by the master equation", log_p, 0.0


def _kept(
    network: ReactionNetwork,
    program: Program,
    layout: Layout,
    samples: int,
    most: int,
    seed: int,
    given: dict[str, Any],
    say: Console,
) -> Found:
    """Simulated trajectories that satisfy the scenario."""
    import xarray as xr

    if program.observations:
        raise UsageError(
            "observations need the master equation, which cannot be solved here, or not for a "
            "scenario that relates several steps",
            remedy="state rules about single steps, or use surrogate sample",
        )

    from simulators import simulate
    from surrogate.kinds.signals import tensors_of

    parts: list[xr.Dataset] = []
    drawn = kept = 0
    with console.bar(say, "simulating", samples) as advance:
        while kept < samples and drawn < most:
            count = min(SIMULATED_PER_BLOCK, most - drawn)
            data = simulate(network, samples=count, seed=seed, first=drawn, **given)
            met = program.verdict(tensors_of(data, layout)).numpy()
            parts.append(data.isel(sample=np.flatnonzero(met)))
            drawn += count
            advance(min(int(met.sum()), samples - kept))
            kept += int(met.sum())
    if not kept:
        raise UsageError(
            f"none of {drawn:,} simulated trajectories satisfies the scenario",
            remedy="allow more with --most",
        )
    data = xr.concat(parts, "sample").isel(sample=slice(samples))
    data = data.assign_coords(sample=("sample", np.arange(data.sizes["sample"])))
    data["sample"].attrs = parts[0]["sample"].attrs
    if kept < samples:
        say.print(f"[yellow]only {kept:,} of {samples:,} were found in {drawn:,}[/yellow]")
    error = math.sqrt((1 - kept / drawn) / kept)
    method = f"{kept / drawn:.3%} of {drawn:,} simulated trajectories"
    return data, method, math.log(kept / drawn), error
