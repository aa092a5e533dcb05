"""Settings declared as fields: what keywords and options are made of."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from surrogate.errors import ModelError
from surrogate.settings import made, option, options_of


@dataclass(frozen=True)
class Toy:
    sides: int = option(6, help="Sides of the die.", low=2, high=20)
    colour: str = option("red", help="Its colour.", choices=("red", "blue"))
    loaded: bool = option(False, help="Whether it is fair.")
    private: int = 0


def test_fields_become_options_under_their_names() -> None:
    found = options_of(Toy)
    assert list(found) == ["sides", "colour", "loaded"]
    assert found["sides"].default == 6
    assert found["colour"].choices == ("red", "blue")
    assert found["loaded"].option == "--loaded"


def test_keywords_make_settings() -> None:
    assert made(Toy, {"sides": 8}, "the die") == Toy(sides=8)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sides": 1}, "sides must be a whole number from 2 to 20, not 1"),
        ({"sides": True}, "sides must be a whole number from 2 to 20"),
        ({"sides": 2.5}, "sides must be a whole number"),
        ({"loaded": 1}, "loaded must be True or False"),
        ({"colour": "green"}, "(have: red, blue)"),
        ({"side": 3}, "did you mean 'sides'?"),
        ({"private": 3}, "the die has no setting 'private'"),
    ],
)
def test_values_out_of_bounds_and_unknown_keywords_are_refused(
    given: dict[str, object], says: str
) -> None:
    with pytest.raises(ModelError) as problem:
        made(Toy, given, "the die")
    assert says in str(problem.value)
