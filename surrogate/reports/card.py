"""What a model says of itself, for people: its card and the curve of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surrogate.evaluation.result import MEASURES, NEAREST
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.trajectories.codec import TimeSeriesCodec

if TYPE_CHECKING:
    from surrogate.kinds.codec import Codec

HEADER = ("measure", "value", "floor", "ratio")


def card(codec: Codec, about: Mapping[str, Any]) -> str:
    """Markdown: what was learned, how, and how far its samples are from held-out data."""
    of = "a table" if isinstance(codec, TableCodec) else codec.noun
    lines = [f"# A surrogate of {of}", "", *_learned(codec, about), ""]
    found = about.get("card")
    if isinstance(found, Mapping):
        lines += _measured(found)
    return "\n".join(lines).rstrip() + "\n"


def curve(looks: Sequence[Mapping[str, Any]]) -> str:
    """CSV: the loss of training and of held-out data, look by look."""
    rows = [f"{each['step']},{each['loss']!r},{each['held_out']!r}" for each in looks]
    return "\n".join(["step,loss,held_out", *rows]) + "\n"


def _learned(codec: Codec, about: Mapping[str, Any]) -> list[str]:
    noun = codec.noun
    if isinstance(codec, TimeSeriesCodec):
        made = _variables(codec)
    else:
        made = [f"- {'columns: ' if isinstance(codec, TableCodec) else ''}{codec.learned}"]
    settings = about.get("settings")
    if "trajectories" in about:
        fresh = ", and fresh ones in every epoch" if about.get("fresh") else ""
        if not fresh and "learned" in about:
            fresh = f", {about['learned']:,} of them learned from"
        made.append(f"- made from {about['trajectories']:,} {noun}{fresh}; seed {about['seed']}")
    if isinstance(settings, Mapping):
        steps = (about.get("looks") or [settings])[-1].get("step", settings["steps"])
        made.append(f"- {steps:,} updates with batches of {settings['batch']}")
    if about.get("command"):
        made.append(f"- `{about['command']}`")
    return made


def _variables(codec: TimeSeriesCodec) -> list[str]:
    names, times = [v.name for v in codec.variables if not v.total], codec.times
    made = [
        f"- variables: {', '.join(names)}, at {len(times)} times from {times[0]:g} to {times[-1]:g}"
    ]
    if codec.restored:
        made.append(f"- follows from conservation: {', '.join(codec.restored)}")
    if codec.constant:
        made.append(f"- constant: {', '.join(codec.constant)}")
    return made


def table(found: Mapping[str, Any]) -> str:
    """Plain text: what was measured, one line a row."""
    lines = [HEADER, *_rows(found)]
    wide = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    shown = [
        "  ".join(
            [name.ljust(wide[0]), *(c.rjust(w) for c, w in zip(cells, wide[1:], strict=True))]
        )
        for name, *cells in lines
    ]
    return "\n".join([_compared(found), *(line.rstrip() for line in shown)])


def _measured(found: Mapping[str, Any]) -> list[str]:
    rows = [f"| {' | '.join(row)} |" for row in (HEADER, *_rows(found))]
    return [_compared(found), "", rows[0], "|---|---|---|---|", *rows[1:]]


def _compared(found: Mapping[str, Any]) -> str:
    noun = found.get("noun") or ("trajectories" if found.get("times") else "rows")
    return (
        f"{found['samples']:,} samples without conditions against {found['reference']:,} held-out "
        f"{noun}; a ratio of 1 is the distance of data from data"
    )


def _rows(found: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = _distances(found)
    rows += [_row(words, found[name]) for name, words in MEASURES.items() if found.get(name)]
    told = found["classifier"]
    floor = f"0.5000 ± {told['error']:.4f}"
    rows.append(("accuracy of a classifier", f"{told['accuracy']:.4f}", floor, ""))
    if found.get("privacy"):
        rows += _privacy(found["privacy"])
    if found.get("consistent") is not None:
        share = f"{found['consistent']:.2%}"
        rows.append((f"obey the {found['rules']} rules of the network", share, "", ""))
    if found.get("unjudged"):
        rows.append(("not judged", ", ".join(found["unjudged"]), "", ""))
    return rows


def _distances(found: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Of trajectories each variable over its steps; of rows all columns, and the furthest one."""
    if found.get("times"):
        return [
            _row(f"D({each['name']}), {how} over steps", each[how])
            for each in found["variables"]
            for how in ("median", "max")
        ]
    if found.get("noun"):
        return [
            _row(f"D({each['name']}){', median' * (len(each['steps']) > 1)}", each["median"])
            for each in found["variables"]
        ]
    overall = found["overall"]
    worst = found["variables"][overall["worst"]]["name"]
    return [
        _row("D, median over columns", overall["median"]),
        _row(f"D, max over columns ({worst})", overall["max"]),
    ]


def _privacy(found: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """How near samples come to the rows that were learned from, beside held-out rows."""
    mine, real = found["samples"], found["real"]
    near = f"{found['near']:.4f}", f"{NEAREST:.4f} ± {found['error']:.4f}"
    median, copies = ((f"{mine[k]:.4f}", f"{real[k]:.4f}") for k in ("median", "copies"))
    return [
        ("nearest learned row, median", *median, ""),
        (f"as near to one as {NEAREST:.0%} of held-out rows", *near, ""),
        ("exact copies of learned rows", *copies, "memorised" if found["memorised"] else ""),
    ]


def _row(name: str, measured: Mapping[str, Any]) -> tuple[str, str, str, str]:
    ratio = measured["ratio"]
    shown = "" if ratio is None else f"{ratio:.2f}"
    floor = f"{measured['floor']:.4f} ± {measured['floor_sd']:.4f}"
    return name, f"{measured['value']:.4f}", floor, shown
