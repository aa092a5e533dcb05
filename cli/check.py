"""surrogate check DATA"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cli import complete, console, files, options, pictures, tables
from cli.compared import check_tables, opened_file
from cli.errors import UsageError
from cli.sections import Command, section

if TYPE_CHECKING:
    from constraints import Explanation, Formula, Layout
    from surrogate.kinds.kind import Data, Kind


@click.command(cls=Command)
@click.argument("data", default="trajectories.nc", shell_complete=complete.files)
@options.where
@options.bridge
@section(
    "Scenario",
    click.option(
        "--consistency",
        is_flag=True,
        help="Also judge by what DATA's network obeys: non-negative counts, conserved totals.",
    ),
)
@options.end
@section("Tables", tables.options)
@section("Images", pictures.scenery, pictures.options)
@options.out(
    None,
    "Also write DATA with its verdicts: .nc or .zarr; .csv, .tsv or .parquet; images also .npz, "
    ".png or a folder/.",
)
@options.force
@options.as_json
@options.quiet
def command(
    data: str,
    where: tuple[str, ...],
    bridge: tuple[str, ...],
    consistency: bool,
    end: str | None,
    named: dict[str, tuple[str, ...]],
    table: dict[str, Any],
    image: dict[str, Any],
    out: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Judge DATA (trajectories, a table or images) by rules: where, and by how much, they fail.

    \b
    surrogate check trajectories.nc --where "forall t: I(t) <= 40"
    surrogate check wine.csv --where "alcohol >= 11 and quality in [6, 8]"
    surrogate check cases.csv --time week --window 52 --where "max(cases) >= 100"
    surrogate check samples.npz --where "mean(image, upper) <= 0.05"
    surrogate check trajectories.nc --where "76 ~ poisson(0.9*I(3))"
    """
    if not (where or bridge or consistency):
        raise UsageError(
            "there is nothing to check DATA by",
            remedy='add a rule: --where "forall t: I(t) <= 40", --where @rules.txt, '
            "--bridge S0=95,S25=30, or --consistency",
        )
    options.check_syntax(where, bridge)
    files.check_exists(data)
    say = console.messages(quiet)
    pictures.check_scenery(named)
    check_tables(table, data)
    opened = opened_file(data, table, image, say.print, shared=False)
    source = opened.kind.for_formulas(opened.data)
    target = _target(out, force, opened.kind, source)
    if target is not None:
        files.check_writable(target)

    from surrogate.kinds import labels, signals

    layout = signals.layout_of(source)
    scenery = pictures.read_scenery(named, layout)
    layout = layout if scenery is None else scenery.extended(layout)
    rules = options.formulas(where, bridge, layout)
    rules |= _consistency(source, data) if consistency else {}
    tolerances = _possible(rules, layout, end)
    samples = signals.samples_of(source)
    with console.bar(say, "judging", samples) as advance:
        found = labels.explanation_of(source, rules, end, layout=layout, progress=advance)
    if target is not None:
        with console.bar(say, "labelling", samples) as advance:
            labelled = labels.label(source, rules, end, layout=layout, progress=advance)
        files.write_data(labelled, target)
    if as_json:
        summary = {"data": data, "rules": list(rules), "tolerances": tolerances}
        summary |= found.to_dict()
        click.echo(json.dumps(summary | {"path": None if target is None else str(target)}))
    else:
        _show(found)
    for equality, slack in tolerances.items():
        say.print(f"{escape(equality)} counts as met within {slack:.3g}; say otherwise with +-")
    if any(row.margin_min == -math.inf for row in found.rows):
        say.print(
            "a margin of -inf: undefined there (a log of a negative number, 0/0) or no step "
            "to look at; it counts as not met"
        )
    if found.rows:
        met = round(found.rows[0].satisfied * found.samples)
        say.print(f"{met:,} of {found.samples:,} samples satisfy {_count(rules)}")
    if target is None:
        ending = Path(opened.kind.outputs[0]).suffix
        say.print(f"next: add -o labelled{ending} to keep the verdicts")
    else:
        say.print(f"[bold]{escape(str(target))}[/bold]")
        if layout.times:
            say.print(f"next: surrogate plot {escape(shlex.quote(str(target)))}")


def _target(out: str | None, force: bool, kind: Kind, source: Data) -> Path | None:
    """Where to write, if anywhere."""
    if out is None:
        return None
    names = [str(name) for name in getattr(source, "data_vars", ())]
    return kind.targets(out, force, names, source)[0]


def _consistency(source: Data, path: str) -> dict[str, Formula]:
    from surrogate.io.rules import rules_in
    from surrogate.kinds.signals import described

    about = described(source)
    found = rules_in(source.attrs)
    if about and not found:
        raise UsageError(
            f"--consistency: nothing can be derived from the network of {path!r}",
            value=path,
            remedy="state its rules with --where",
        )
    if not found:
        raise UsageError(
            f"--consistency: {path!r} does not describe the network it came from, and carries no "
            "rules",
            value=path,
            remedy="state its rules with --where",
        )
    return {str(rule): rule for rule in found.values()}


def _possible(rules: dict[str, Formula], layout: Layout, end: str | None) -> dict[str, float]:
    """The default tolerances of the rules' equalities.

    Refuses rules that mean nothing for these signals, and such as nothing can meet.
    """
    from constraints import FormulaError, compiled, conjunction
    from constraints.prove.contradictions import refuse_impossible

    tolerances: dict[str, float] = {}
    for text, rule in rules.items():
        try:
            tolerances |= compiled(rule, layout, end).tolerances()
        except FormulaError as problem:
            if len(rules) == 1:
                raise
            raise problem.at(f"in the rule {text}") from None
    refuse_impossible(conjunction(*rules.values()), layout, end=end)
    return tolerances


def _show(found: Explanation) -> None:
    """A coloured table on a terminal, else lines of plain text."""
    from constraints.explanation import EXPLANATION_COLUMNS, OBSERVATION_COLUMNS

    screen = Console(highlight=False)
    if not screen.is_terminal:
        click.echo(found.table())
        return
    if found.rows:
        table = _columns(EXPLANATION_COLUMNS)
        for row in found.rows:
            colour = "green" if row.satisfied == 1 else "red" if row.satisfied == 0 else "yellow"
            rule, satisfied, *others = row.cells()
            table.add_row(Text(rule), Text(satisfied, colour), *map(Text, others))
        screen.print(table)
    if found.observations:
        table = _columns(OBSERVATION_COLUMNS)
        for each in found.observations:
            table.add_row(*map(Text, each.cells()))
        screen.print(table)


def _columns(names: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(names):
        table.add_column(
            name, justify="right" if 0 < i < 4 else "left", overflow="fold", no_wrap=i > 0
        )
    return table


def _count(rules: dict[str, Formula]) -> str:
    """What has a verdict: the rules that are not only observations."""
    from constraints import has_verdict

    judged = sum(map(has_verdict, rules.values()))
    return "the rule" if judged == 1 else f"all {judged} rules"
