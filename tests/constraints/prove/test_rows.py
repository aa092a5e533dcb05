"""Rows of linear atoms in plain Python equal those that evaluation on unit vectors gives."""

from __future__ import annotations

import pytest

from constraints import Layout, Signal, compiled
from constraints.ast import formulas as f
from constraints.ast.lowered import Atom
from constraints.evaluate.frames import Frame
from constraints.gaussian import affine_rows
from constraints.prove.rows import rows

TIMES = (0.0, 0.5, 2.0, 2.5, 4.0, 7.0)
SERIES = Layout.series("S I", TIMES, parameters={"a": 3.0})
PAIRS = Layout(
    (Signal("x", "column"), Signal("race", "category", (3,), categories=("u", "v", "w"))),
    instances=2,
)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("S(2) + 2 * I(3) - 4 <= a * I(0) / 2", SERIES),
        ("forall t: S(t) - I(t) <= t + 1", SERIES),
        ("forall t in [1, end]: S(t) <= S(t - 1) + time(t)", SERIES),
        ("mean(S) >= 2 * sum(I, 1, 3) + 1", SERIES),
        ("integral(S, 1, 4) + integral(I) <= 5", SERIES),
        ("forall t in [0, 3]: mean(2 * S - I, t, t + 2) <= 3", SERIES),
        ("forall t: delta(S)(t) + cumsum(S + I)(t) <= 3", SERIES),
        ("x[1] - 3 * x[2] <= 1", PAIRS),
        ('race[2] = "v"', PAIRS),
    ],
)
def test_rows_equal_those_of_evaluation(text: str, layout: Layout) -> None:
    program = compiled(text, layout)
    atom, frame = program.lowered, Frame()
    if isinstance(atom, f.Quantifier):
        assert atom.first is not None
        assert atom.last is not None
        first, last = atom.first.offset, atom.last.offset
        frame, atom = Frame().alone(atom.variable, first, last - first + 1), atom.body
    assert isinstance(atom, Atom)
    found = rows(atom, frame, layout)
    expected = affine_rows(atom, frame, layout, None)
    assert found is not None
    assert len(found) == len(expected)
    for (row, constant), (other, offset) in zip(found, expected, strict=True):
        assert row == pytest.approx(other)
        assert constant == pytest.approx(offset)


def test_images_and_functions_are_left_to_evaluation() -> None:
    image = compiled("image(0, 1) <= 0.5", Layout.image((1, 2, 2)))
    assert isinstance(image.lowered, Atom)
    assert rows(image.lowered, Frame(), image.layout) is None
