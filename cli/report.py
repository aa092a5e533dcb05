"""surrogate report DATA"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.markup import escape

from cli import complete, console, files, hints, options, pictures, reading, tables
from cli import observing as observed_data
from cli.compared import check_tables, meeting, opened, warn_unconditioned
from cli.errors import UsageError
from cli.sections import Command, section
from surrogate.io.reading import ObservationOptions

if TYPE_CHECKING:
    from surrogate.reports.facts import Facts

DEFAULT_DATA = "samples.nc"
PAGE_SUFFIXES = (".html", ".htm")


@click.command(cls=Command)
@click.argument("data", default=DEFAULT_DATA, shell_complete=complete.files)
@options.against("Reference data to compare with, of the same kind and grid.")
@section("What", click.option("--title", help="Heading of the page."))
@options.meeting
@section(
    "Observed data",
    click.option(
        "--observed",
        metavar="DATA",
        shell_complete=complete.files,
        help="Draw these points on fan charts, and count how many lie within the predictive bands: "
        "a table with a column of times.",
    ),
    reading.options("observing", ObservationOptions, without=("time", "upto", "every")),
)
@section("Tables", tables.options, tables.comparison)
@section("Images", pictures.options)
@options.out(None, "Page: .html [default: the data's name with .html].")
@options.force
@options.as_json
@options.quiet
def command(
    data: str,
    against: str | None,
    title: str | None,
    target: str | None,
    train: str | None,
    where: tuple[str, ...],
    observed: str | None,
    observing: dict[str, Any],
    table: dict[str, Any],
    image: dict[str, Any],
    out: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write one page about DATA, trajectories, a table or images, without other files.

    The page shows the scenario and its probability, fan charts with the scenario drawn on them, the
    share that meets each rule, distances from a reference, cost and provenance; for a table its
    columns, their dependence, copies of training rows, and how well a column is predicted.

    \b
    surrogate report samples.nc --against reference.nc
    surrogate report rows.csv --against wine.csv --target quality
    surrogate report forecast.nc --observed bsflu.csv
    surrogate report strong.csv --against wine.csv --where "alcohol >= 12"
    surrogate report runs.csv --id run --time day
    surrogate report samples.npz --against t10k-images-idx3-ubyte.gz
    """
    from simulators.storage import check_target, replacing

    if data == DEFAULT_DATA and not Path(data).exists():
        raise UsageError(
            f"there is no file {data!r}",
            value=data,
            remedy="make one with: surrogate sample --bridge S0=95,I0=5,S25=30, or name your data: "
            "surrogate report trajectories.nc",
        )
    options.check_syntax(where, ())
    for path in filter(None, (data, against, train, observed)):
        files.check_exists(path)
    observed_data.refuse(observed, observing, "--observed")
    say = console.messages(quiet)
    table, when = observed_data.shared_time(table, observed, data, against)
    check_tables(table, data, against or data)
    source = opened(data, table, image, say.print, shared=against is not None)
    page_ = check_target(out or _named(data), force, PAGE_SUFFIXES)
    files.check_writable(page_)
    other, learned = (
        None if path is None else opened(path, table, image, say.print) for path in (against, train)
    )

    if where:
        if against is None or other is None:
            raise UsageError(
                "--where chooses samples of the reference, and there is none",
                value=where,
                remedy="give one with --against",
            )
        other = meeting(against, other, where, say.print, source)

    from surrogate.data import report_facts
    from surrogate.reports.page import page

    points = None if observed is None else reading.opened(observed, {}, say.print).data
    asked: dict[str, Any] = {"target": target, "train": learned, "observed": points}
    asked |= {"observing": observing | when} if observed is not None else {}
    given = {name: each for name, each in asked.items() if each is not None}
    with say.status("measuring and drawing"):
        kind, found = report_facts(source, other, **given)
        content = page(found, kind.report_sections(), title).encode("utf-8", "replace")
    with replacing(page_) as part:
        part.write_bytes(content)
    trust = found.verdict
    checked = getattr(found.content, "checks", ())
    if as_json:
        log_p, error = found.probability or (None, None)
        summary = {
            "path": str(page_),
            "bytes": len(content),
            "samples": found.samples,
            "satisfied": found.satisfied,
            "log_probability": log_p,
            "log_probability_error": error,
            "verdict": None if trust is None else trust.level,
            "reasons": [] if trust is None else list(trust.reasons),
            "coverage": {check.source: check.coverage for check in checked},
            "evaluation": None if found.evaluation is None else found.evaluation.to_dict(),
        }
        click.echo(json.dumps(summary))
    for check in checked:
        for words in check.words():
            say.print(escape(words))
    if trust is not None:
        colour = console.LEVEL_COLOURS[trust.level]
        say.print(f"[{colour}]{escape(trust.summary)}[/{colour}]")
        for reason in trust.against:
            say.print(f"  {escape(reason)}")
    warn_unconditioned(found.evaluation, say.print)
    say.print(f"[bold]{escape(str(page_))}[/bold]  {console.size(len(content))}, for any browser")
    say.print(f"next: {escape(_next(found, data, against, kind.reference_example))}")


def _named(data: str) -> Path:
    """rows.html for rows.csv.gz"""
    place = Path(data)
    bare = place.with_suffix("") if place.suffix.lower() == ".gz" else place
    return bare.with_suffix(".html")


def _next(found: Facts, data: str, against: str | None, example: str | None) -> str:
    """What to do with the page, or how to get a reference for it."""
    if example is not None and against is None:
        return f"surrogate report {shlex.quote(data)} --against {example} --force"
    if against is not None or not found.sampled:
        return "open the page, or print it from the browser"
    again = f"surrogate report {shlex.quote(data)} --against reference.nc --force"
    return f"{_reference(found)} -o reference.nc, then {again}"


def _reference(found: Facts) -> str:
    """The simulator asked the same: parameters, start, grid, observed data and rules."""
    from constraints import has_verdict, parse
    from surrogate.io.attributes import json_object
    from surrogate.kinds.observed import RECORD
    from surrogate.kinds.signals import layout_of

    record = json_object(found.attrs.get(RECORD))
    rules = [part.text for part in found.requirements.parts] if found.requirements else []
    if record:  # whose statements are made of the file again
        rules = [rule for rule in rules if has_verdict(parse(rule))]
    layout = layout_of(found.content.data) if hasattr(found.content, "data") else None
    times = np.array([] if layout is None else layout.times)
    start = layout.dates[0] if layout is not None and layout.dates else None
    return hints.reference_command(found.network, times, record, rules, start)
