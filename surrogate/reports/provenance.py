"""Sections on the cost of samples and on their provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from constraints.explanation import percent
from surrogate.io.attributes import json_object
from surrogate.reports.facts import Facts
from surrogate.reports.markup import Html, element, section, table
from surrogate.reports.scenario import MAX_RULES
from surrogate.reports.wording import duration, number, several, shortened

COST: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("seconds", "time taken", duration),
    ("rejection_seconds", "trial and error (rejection) would have taken", duration),
    ("evaluations", "evaluations of the neural network", number),
    ("particles", "particles", number),
    ("ess", "effective sample size", lambda x: f"{x:,.0f}"),
    ("min_ess", "smallest effective sample size on the way, of the particles", percent),
    ("steps", "noise levels on the way", number),
    ("ancestors", "starting points the samples descend from", number),
    ("ancestor_ess", "effective number of these starting points", lambda x: f"{x:,.0f}"),
    ("copies", "samples that are copies of others", number),
    ("met_before", "particles that met the scenario before any was chosen", percent),
    ("acceptance", "unconditional samples that meet the scenario", percent),
)


def cost(facts: Facts) -> list[Html]:
    rows = [
        (label, facts.text(name))
        for name, label in (("method", "method"), ("why", "chosen because"))
    ]
    for name, label, shown in COST:
        value = facts.effective if name == "ess" else facts.number(name)
        rows.append((label, None if value is None else shown(max(value, 0.0))))
    known = [(label, shortened(text)) for label, text in rows if text]
    return section("What it took", table(known, class_="facts")) if known else []


def provenance(facts: Facts) -> list[Html]:
    made = [table(_origins(facts), class_="facts")]
    network = facts.network.get("network") or {}
    reactions = network.get("reactions")
    if isinstance(reactions, list) and reactions:
        rows = [
            [shortened(each.get(k, "")) for k in ("name", "equation", "rate")]
            for each in reactions[:MAX_RULES]
            if isinstance(each, dict)
        ]
        made += [element("h3", "The network"), table(rows, ("reaction", "equation", "rate"))]
        if len(reactions) > MAX_RULES:
            made.append(element("p", f"The first {MAX_RULES} of {len(reactions)}.", class_="note"))
    if facts.requirements is not None:
        made += [
            element("h3", "The whole formula"),
            element("pre", shortened(facts.requirements.text)),
        ]
    history = facts.attrs.get("history")
    if history:
        made += [element("h3", "Commands"), element("pre", shortened(history))]
    return section("Where it comes from", *made)


def _origins(facts: Facts) -> Iterator[tuple[str, str]]:
    attrs, about = facts.attrs, facts.network
    network = about.get("network") or {}
    found: list[tuple[str, Any]] = [
        ("network", network.get("name")),
        ("described as", network.get("title") or attrs.get("title")),
        ("literature", network.get("reference") or attrs.get("references")),
        ("parameters", _pairs(about.get("parameters") or network.get("parameters"))),
        ("initial state", _pairs(about.get("initial")) or about.get("start")),
        ("model", attrs.get("surrogate_model")),
        ("seed", attrs.get("surrogate_seed")),
        ("settings", _pairs(json_object(attrs.get("surrogate_settings")))),
        ("beyond the last step", attrs.get("surrogate_end")),
        ("solver", attrs.get("surrogate_solver")),
        ("source", attrs.get("source")),
        ("versions", _pairs(json_object(attrs.get("surrogate_versions")))),
    ]
    if facts.against_attrs is not None and facts.evaluation is not None:
        other = facts.against_attrs
        made = other.get("surrogate_method") or other.get("source") or other.get("title")
        size = f"{facts.evaluation.reference:,} {facts.subject.plural}"
        found.append(("reference data", f"{size}{f', {made}' if made else ''}"))
    yield facts.subject.plural, f"{facts.samples:,} of {facts.subject.extent}"
    for label, value in found:
        if value is not None and str(value).strip():
            yield label, shortened(value)


def _pairs(values: Any) -> str | None:
    """beta = 2.36, N = 100"""
    if not isinstance(values, Mapping):
        return None
    shown = [
        f"{key} = {f'{v:.10g}' if isinstance(v, float) else v}"
        for key, v in values.items()
        if v is not None
    ]
    return ", ".join(shown)


def footer() -> str:
    packages = ("surrogate-toolkit", "numpy", "xarray", "torch", "matplotlib")
    known = []
    for name in packages:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # used from a folder, not installed
            continue
    return f"This page was made by {several(known)}. It is complete in itself and loads nothing."
