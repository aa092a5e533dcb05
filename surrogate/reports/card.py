"""A model's card and the curve of its training, for people.

The card is Markdown: what was learned, how, and how far the model's samples are from held-out data.
What depends on the kind of data (subject, summary of the codec, rows of the table) is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from surrogate.evaluation.result import CardRow, distance_row

CARD_HEADER: CardRow = ("measure", "value", "floor", "ratio")


def card(
    subject: str,
    noun: str,
    summary: Iterable[str],
    about: Mapping[str, Any],
    rows: Sequence[CardRow],
) -> str:
    """Markdown for a surrogate of `subject`, whose samples are called `noun`.

    `summary`: what was learned, one line each. `about`: the description of the training run.
    `rows`: the measurements of `about["card"]`, if there are any.
    """
    learned = [*(f"- {each}" for each in summary), *_training(noun, about)]
    lines = [f"# A surrogate of {subject}", "", *learned, ""]
    found = about.get("card")
    if isinstance(found, Mapping):
        cells = [f"| {' | '.join(row)} |" for row in (CARD_HEADER, *rows)]
        lines += [_compared(noun, found), "", cells[0], "|---|---|---|---|", *cells[1:]]
        lines += _verdict(found)
    return "\n".join(lines).rstrip() + "\n"


def table(noun: str, found: Mapping[str, Any], rows: Sequence[CardRow]) -> str:
    """The measurements of a card as plain text, one line a row."""
    lines = [CARD_HEADER, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(CARD_HEADER))]
    shown = [
        "  ".join(
            [name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:], strict=True))]
        )
        for name, *cells in lines
    ]
    return "\n".join([_compared(noun, found), *(line.rstrip() for line in shown)])


def verdict_in(found: Any) -> Mapping[str, Any] | None:
    """The verdict of a card, as `Verdict.to_dict` gives it; None for cards of earlier versions."""
    verdict = found.get("verdict") if isinstance(found, Mapping) else None
    known = isinstance(verdict, Mapping) and isinstance(verdict.get("words"), str)
    return verdict if known else None


def _verdict(found: Mapping[str, Any]) -> list[str]:
    verdict = verdict_in(found)
    if verdict is None:
        return []
    against, good = ([f"- {each}" for each in verdict[side]] for side in ("against", "good"))
    title = f"**Verdict: {verdict['words']}.**"
    return ["", title, "", *against, *good]


def variable_rows(found: Mapping[str, Any]) -> list[CardRow]:
    """D of each variable, from the JSON of an evaluation; the median if there are several."""
    return [
        distance_row(f"D({each['name']}){', median' * (len(each['steps']) > 1)}", each["median"])
        for each in found["variables"]
    ]


def curve(looks: Sequence[Mapping[str, Any]]) -> str:
    """CSV: the losses of training and of held-out data, check by check."""
    rows = [f"{each['step']},{each['loss']!r},{each['held_out']!r}" for each in looks]
    return "\n".join(["step,loss,held_out", *rows]) + "\n"


def _training(noun: str, about: Mapping[str, Any]) -> list[str]:
    lines = []
    if "trajectories" in about:
        part = ", and fresh ones in every epoch" if about.get("fresh") else ""
        if not part and "learned" in about:
            part = f", {about['learned']:,} of them learned from"
        lines.append(f"- made from {about['trajectories']:,} {noun}{part}; seed {about['seed']}")
    settings = about.get("settings")
    if isinstance(settings, Mapping):
        steps = (about.get("looks") or [settings])[-1].get("step", settings["steps"])
        lines.append(f"- {steps:,} updates with batches of {settings['batch']}")
    if line := solver_line(about):
        lines.append(f"- {line}")
    if about.get("command"):
        lines.append(f"- `{about['command']}`")
    return lines


def solver_line(about: Mapping[str, Any]) -> str | None:
    """How plain samples are drawn, where held-out data have chosen it."""
    accuracies = about.get("solver_accuracies")
    if not isinstance(accuracies, Mapping) or not accuracies:
        return None
    each = sorted(accuracies.items(), key=lambda item: float(item[1]))
    found = ", ".join(f"{solver} {float(accuracy):.3f}" for solver, accuracy in each)
    return (
        f"plain samples are drawn by the solver {about['solver']}; accuracy of trees that tell "
        f"samples from held-out data: {found}"
    )


def _compared(noun: str, found: Mapping[str, Any]) -> str:
    return (
        f"{found['samples']:,} samples without conditions against {found['reference']:,} held-out "
        f"{noun}; a ratio of 1 is the distance of data from data"
    )
