"""A network as text: one line, plain text, or a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulators.network import ReactionNetwork

MAX_LISTED_NAMES = 8
MAX_TABLE_ROWS = 30


def line(network: ReactionNetwork) -> str:
    """`ReactionNetwork('sir': S, I, R; 3 parameters, 2 reactions)`."""
    counts = [
        _count(len(network.parameters), "parameter"),
        _count(len(network.reactions), "reaction"),
        *([_count(len(network.rules), "rule")] if network.rules else []),
        *([_count(len(network.events), "event")] if network.events else []),
    ]
    return f"ReactionNetwork({network.name!r}: {_listed(network.species)}; {', '.join(counts)})"


def text(network: ReactionNetwork) -> str:
    """Everything about the network, a line for each part."""
    lines = [f"{network.name}: {network.title}" if network.title else network.name]
    lines.append("  species     " + _pairs(network.species))
    if network.parameters:
        lines.append("  parameters  " + _pairs(_short(network)))
    wide = max((len(reaction.equation) for reaction in network.reactions), default=0)
    for reaction, law in zip(network.reactions, network.propensities, strict=True):
        lines.append(f"  {reaction.name:<20} {reaction.equation:<{wide}}   at {law}")
    lines += [f"  {name} := {rule}" for name, rule in network.rules.items()]
    for event in network.events:
        assignments = ", ".join(f"{k} := {v}" for k, v in event.assignments.items())
        lines.append(f"  {event.name:<20} when {event.trigger}: {assignments}")
    lines += [f"  conserved   {law}" for law in network.conservation_laws]
    return "\n".join(lines)


def html(network: ReactionNetwork) -> str:
    """A small table: species, parameters, reactions with their rates, events."""
    head = f"<b>{escape(network.name)}</b> {escape(network.title)}"
    rows = [("species", _pairs(network.species)), ("parameters", _pairs(_short(network)))]
    rows += [
        (reaction.name, f"{reaction.equation} at {law}")
        for reaction, law in zip(network.reactions, network.propensities, strict=True)
    ]
    rows += [(name, f":= {rule}") for name, rule in network.rules.items()]
    rows += [(event.name, f"when {event.trigger}") for event in network.events]
    rows += [("conserved", str(law)) for law in network.conservation_laws]
    left = len(rows) - MAX_TABLE_ROWS
    if left > 0:
        rows = [*rows[:MAX_TABLE_ROWS], ("", f"and {left:,} more")]
    cell = 'style="text-align:left"'
    body = "".join(
        f"<tr><th {cell}>{escape(label)}</th><td {cell}>{escape(shown)}</td></tr>"
        for label, shown in rows
    )
    return f"<div>{head}</div><table>{body}</table>"


def _short(network: ReactionNetwork) -> dict[str, str]:
    return {name: f"{value:g}" for name, value in network.parameters.items()}


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "none"


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:MAX_LISTED_NAMES]) + ", ..." * (len(found) > MAX_LISTED_NAMES)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
