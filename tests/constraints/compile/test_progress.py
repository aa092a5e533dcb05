"""Progression: flags and the present give the level that the whole past gives."""

from __future__ import annotations

import pytest
import torch

from constraints import Layout, compiled
from constraints.compile.prefixes import levels
from constraints.compile.progress import Progress

STEPS = 6
LAYOUT = Layout.series("I S", STEPS, integer=True, low=0.0, high=9.0)
RULES = [
    "exists t: I(t) >= 7",
    "forall t in [1, 4]: I(t) <= 6 and S(t) >= 1",
    "(exists t in [2, 3]: I(t) >= 6) and S(5) = 4 and not (forall t: S(t) <= 6)",
    "I(0) = 3 or (eventually(S >= 8) and (always (I <= 8)) {k=2})",
    "S(2) + 2 * I(2) >= 20",
]


@pytest.mark.parametrize("text", RULES)
def test_levels_are_those_of_the_whole_past(text: str) -> None:
    program = compiled(text, LAYOUT)
    progress = Progress.of(program)
    assert progress is not None
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(0, 10, (2, 400, STEPS), generator=generator).double()
    flags = progress.begin(400)
    for known in range(STEPS):
        data = dict(zip("IS", values.clone(), strict=True))
        now = {name: each[:, known].clone() for name, each in data.items()}
        flags = progress.remember(flags, now, known)
        wanted = levels(program, data, known)
        assert torch.equal(progress.levels(flags, data, known), wanted)
        for each in data.values():
            each[:, known + 1 :] = each[:, known, None]
        assert torch.equal(progress.levels(flags, now, known), levels(program, data, known))
        if known + 1 < STEPS:
            least = {"I": now["I"] + 1}
            data["I"][:, known + 1] += 1
            wanted = levels(program, data, known, least)
            assert torch.equal(progress.levels(flags, now, known, least), wanted)
    final = progress.levels(flags, {"I": values[0, :, -1], "S": values[1, :, -1]}, STEPS - 1)
    assert torch.equal(final > 0, program.verdict(dict(zip("IS", values, strict=True))))


@pytest.mark.parametrize(
    "text",
    [
        "max(I) >= argmax(S)",
        "exists t: I(t) >= S(0)",
        "I < 3 until S > 5",
        "count(I > 3) >= 2",
        "forall t in [0, 4]: I(t + 1) <= I(t)",
        "forall t: I(t) <= t",
    ],
)
def test_what_relates_steps_has_no_such_flags(text: str) -> None:
    assert Progress.of(compiled(text, LAYOUT)) is None
