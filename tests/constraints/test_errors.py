"""What a user reads when something is wrong: the bad value, the legal ones and the remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from torch import Tensor

from constraints import DataError, FormulaError, Function, Layout, Signal, compiled, parse
from constraints.errors import caret, unknown


def message(text: str) -> str:
    with pytest.raises(FormulaError) as caught:
        parse(text)
    return str(caught.value)


# each case: a formula, the caret under the place, and the message, on one line or several
CASES = Path(__file__).with_name("syntax_errors.txt").read_text(encoding="utf-8")


def cases() -> list[tuple[str, str, str]]:
    blocks = [block.strip("\n").split("\n") for block in CASES.strip().split("\n\n")]
    return [(text, mark, " ".join(says)) for text, mark, *says in (b for b in blocks if len(b) > 1)]


@pytest.mark.parametrize(("text", "mark", "says"), cases(), ids=lambda text: text)
def test_syntax_errors_show_the_place_and_the_remedy(text: str, mark: str, says: str) -> None:
    assert message(text) == f"{says}\n  {text}\n  {mark}"


@pytest.mark.parametrize("text", ["", "  \n", "# only a comment"])
def test_an_empty_formula_is_rejected(text: str) -> None:
    assert message(text) == 'the formula is empty; write one such as "forall t: I(t) <= 20"'


def test_the_line_with_the_mistake_is_shown() -> None:
    shown = dedent("""\
        'y' is misplaced; lines are joined with and
          y > 2  # why
          ^""")
    assert message("x > 1\n\ny > 2  # why") == shown


def test_a_long_line_is_shortened_around_the_caret() -> None:
    text = "x > 1 and " * 50 + "x > & and " + "x > 1 and " * 50
    said, line, mark = message(text).split("\n")
    assert said == "'&' is not part of the language; write and"
    assert line[len(mark) - 1] == "&"
    assert len(line) <= 100
    assert line.startswith("  ...")


def test_characters_that_do_not_print_keep_the_caret_in_place() -> None:
    assert str(caret("a\tb\x00c", 4, "here")) == "here\n  a b c\n      ^"
    assert str(caret("abc", 99, "here")) == "here\n  abc\n     ^"


def test_the_end_of_a_text_is_before_its_comment() -> None:
    assert message("S(0) <= # five").endswith("  S(0) <= # five\n         ^")


def test_unknown_names_the_nearest_and_the_known() -> None:
    assert str(unknown("signal", "Infected", ["S", "infected"])) == (
        "unknown signal 'Infected'; did you mean 'infected'? (have: S, infected)"
    )
    assert str(unknown("signal", "x", [])) == "unknown signal 'x' (have: none)"
    many = [f"signal{i:02}" for i in range(50)]
    assert str(unknown("signal", "zzz", many)).endswith("signal39, ...)")


SERIES = Layout.series("S I R", 30, parameters={"N": 100.0})
UNEVEN = Layout.series("S", [0, 0.5, 1, 2])
TWINS = Layout.series("X X1", 40)
TABLE = Layout(
    (
        Signal("age", "column"),
        Signal("race", "category", (3,), categories=("White", "Black", "Asian")),
        Signal("residual sugar", "column"),
    )
)
IMAGE = Layout.image((1, 4, 4), regions={"lung": torch.ones(4, 4, dtype=torch.bool)})
WINES = Layout.columns("alcohol price", instances=2)
RISKY = replace(SERIES, functions={"risk": Function(torch.add, 2)})


@pytest.mark.parametrize(
    ("layout", "text", "says"),
    [
        # names
        (SERIES, "forall t: s(t) <= 3", "'s'; did you mean 'S'? (have: I, R, S)"),
        (SERIES, "S(0) <= n", "'n'; did you mean 'N'? (have: I, N, R, S)"),
        (SERIES, "S <= 3", "S does not say when; write S(0), forall t: S(t) ..., always(S ...)"),
        (SERIES, "delta(S) <= 3", "delta(S) does not say when; write delta(S)(5), forall t:"),
        (
            SERIES,
            "S(0)(1) <= 3",
            "S(0) is one number, which cannot be read at 1; write S(0) without",
        ),
        (SERIES, "N(3) <= 3", "N is a parameter, one number, which cannot be read at 3; write N w"),
        (SERIES, "max(S(0), 3, 5) <= 9", "of several numbers it is written max(S(0), +3, ...)"),
        (TABLE, '"residual suger" <= 3', 'did you mean "residual sugar"?'),
        (TWINS, "X10 = 3", "X10 is ambiguous; write X(10) or X1(0)"),
        # categories
        (TABLE, "race = white", "category of race: 'white'; did you mean 'White'?"),
        (TABLE, 'race in {"White", "Green"}', "'Green' (have: Asian, Black, White)"),
        (
            TABLE,
            "race <= 2",
            "race is a category, and categories have no order (have: =, !=, in); write",
        ),
        (TABLE, "race = 3", "'3' (have: Asian, Black, White); write race = \"White\""),
        (TABLE, "residual_sugar <= 3", 'did you mean "residual sugar"? (have: age, race, "resid'),
        (TABLE, "age <= residual_sugar", 'did you mean "residual sugar"?'),
        (TABLE, 'age <= "residual suger"', 'did you mean "residual sugar"?'),
        (
            TABLE,
            'age = "old"',
            'age holds numbers, not text such as "old" (have: age, race, "residual sugar"); com',
        ),
        (TABLE, 'age in {"old"}', "age holds numbers, not text"),
        (TABLE, 'age >= "2021-03-01"', 'age holds numbers, not dates such as "2021-03-01"'),
        (TABLE, "age = old", "unknown signal, parameter or category 'old'"),
        (
            TABLE,
            "race + 1 <= 2",
            "race is a category, not a number (have: White, Black, Asian); comp",
        ),
        (TABLE, "race = race", "a category is compared with its labels, not with another signal"),
        (
            TABLE,
            "age(0) <= 3",
            "age has one value a sample, which cannot be read at 0; write age w",
        ),
        # regions and instances
        (IMAGE, "forall p in long: image(p) <= 3", "unknown region 'long'; did you mean 'lung'?"),
        (IMAGE, "mean(image, long) <= 3", "unknown region 'long'; did you mean 'lung'?"),
        (IMAGE, "max(image, long) <= 3", "unknown region 'long'; did you mean 'lung'?"),
        (
            IMAGE,
            "image <= 3",
            "image is an image and does not say which pixels; write forall p: im",
        ),
        (IMAGE, "image(0) <= 3", "a pixel is a variable bound by forall or exists"),
        (
            WINES,
            "alcohol[3] <= 3",
            "alcohol[3]: there is no such instance; write alcohol[1] to alcohol[2]",
        ),
        (WINES, "alchol[1] <= 3", "unknown signal 'alchol'; did you mean 'alcohol'?"),
        (
            WINES,
            "alcohol <= 3",
            "does not say of which instance, and there are 2; write alcohol[1] or alcohol[2]",
        ),
        # functions
        (RISKY, "risc(S(0), I(0)) <= 3", "unknown function 'risc'; did you mean 'risk'?"),
        (RISKY, "risk(S(0)) <= 3", "risk takes 2 argument(s), not 1"),
        (SERIES, "S(1, 2) <= 3", "S(1, 2): a signal is read at one step"),
        # times
        (
            UNEVEN,
            "S@0.7 <= 3",
            "0.7 is not on the grid; nearby are 0 (step 0), 0.5 (step 1), 1 (st",
        ),
        (UNEVEN, "S@5 <= 3", "the time 5 is not on the grid; nearby are 1 (step 2), 2 (step 3)"),
        (TABLE, "age@2 <= 3", "age has one value a sample, which cannot be read at @2; write age"),
        (SERIES, "S(t) <= 3", "t is not bound; write forall t: ... S(t) ..."),
        (SERIES, "forall t: S(t + 0.5) <= 3", "S(t + 0.5): a signal is read at one step"),
        (SERIES, "S(40) <= 3", "S(40) is past the last step, 29"),
        (SERIES, "S(-1) <= 3", "S(-1) is before the first step, 0"),
        (SERIES, "forall t in [10, 5]: S(t) <= 3", "the window [10, 5] is empty"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_errors_of_resolution_name_value_and_remedy(layout: Layout, text: str, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        compiled(parse(text), layout)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("forall t in [0, 40]: S(t) <= 3", "step 40, past the last step, 29"),
        ("always[0,40](S <= 3)", "step 40, past the last step, 29"),
        ("forall t: S(t + 1) <= 3", "step 30, past the last step, 29"),
        ("once[1,3](S <= 3)", "step -3, before the first step, 0"),
        ("(S <= 3) until[0,40] (I <= 3)", "step 40, past the last step, 29"),
        ("max(S, 0, 40) <= 3", "step 40, past the last step, 29"),
    ],
)
def test_a_window_past_the_end_needs_a_rule(text: str, reached: str) -> None:
    with pytest.raises(FormulaError) as caught:
        compiled(parse(text), SERIES)
    assert reached in str(caught.value)
    for remedy in ("shorten the window", "end='clip'", "end='weak'", "end='strong'"):
        assert remedy in str(caught.value)
    assert "--end weak (what lies outside counts as met)" in caught.value.render("command")


def test_a_window_past_the_end_with_a_rule() -> None:
    reaching = parse("forall t in [0, 40]: S(t) <= 3")
    data = {"S": torch.zeros(2, 30)}
    assert compiled(reaching, SERIES, end="clip").verdict(data).all()
    assert compiled(reaching, SERIES, end="weak").verdict(data).all()
    assert not compiled(reaching, SERIES, end="strong").verdict(data).any()
    with pytest.raises(
        FormulaError, match=r"unknown rule .* 'stop'.* \(have: clip, strong, weak\)"
    ):
        compiled(reaching, SERIES, end="stop")


def spoilt(value: float) -> Tensor:
    series = torch.zeros(4, 30)
    series[2, 7] = series[3, 1] = value
    return series


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "the data have no signal 'S'"),
        ({"I": torch.zeros(4, 30)}, "the data have no signal 'S' (have: "),
        ({"S": spoilt(torch.nan)}, "S holds NaN in 2 of 4 samples, first at sample 2, step 7"),
        ({"S": spoilt(torch.inf)}, "S holds infinite values in 2 of 4 samples, first at sample 2"),
        ({"S": torch.zeros(4, 29)}, "S has shape (4, 29) where (B, 30) is expected"),
        ({"S": torch.zeros(30)}, "S has shape (30,) where (B, 30) is expected"),
        ({"S": torch.zeros(4, 30, dtype=torch.complex64)}, "S is complex"),
        (torch.zeros(4, 91), "flat samples have shape (B, 90), not (4, 91)"),
    ],
)
def test_errors_of_data_name_signal_and_place(data: dict[str, Tensor] | Tensor, says: str) -> None:
    with pytest.raises(DataError) as caught:
        compiled(parse("forall t: S(t) <= 3"), SERIES).verdict(data)
    assert says in str(caught.value)


def test_signals_with_different_numbers_of_samples_are_rejected() -> None:
    program = compiled(parse("forall t: S(t) <= I(t)"), SERIES)
    with pytest.raises(DataError, match="I has 3 samples, others have 4"):
        program.verdict({"S": torch.zeros(4, 30), "I": torch.zeros(3, 30)})


def test_a_value_that_is_nan_is_an_error_but_its_verdict_is_false() -> None:
    program = compiled(parse("S(0) / I(0) <= 3"), SERIES)
    data = {"S": torch.zeros(4, 30), "I": torch.zeros(4, 30)}
    with pytest.raises(DataError, match=r"S\(0\) / I\(0\) <= 3 is not a number for 4 of 4"):
        program(data)
    assert not program.verdict(data).any()  # what is undefined is not met
    assert not compiled(parse("not S(0) / I(0) <= 3"), SERIES).verdict(data).any()
    assert compiled(parse("I(0) = 0 or S(0) / I(0) <= 3"), SERIES).verdict(data).all()


def test_a_relative_operator_does_not_count_from_a_named_variable() -> None:
    layout = Layout.series("I", 30)
    for text in (
        "forall t in [0, 5]: I(t) > 30 implies eventually[0,5](I < 10)",
        "exists t: I(t) > 3 until I < 2",
    ):
        with pytest.raises(FormulaError, match="counts from step 0, not from t"):
            compiled(parse(text), layout)
    compiled(parse("always[0,5](I > 30 implies eventually[0,5](I < 10))"), layout)
    compiled(parse("always[0,5](exists u in [now, now + 3]: I(u) > I)"), layout)


def test_a_caret_stays_when_an_error_is_placed_in_a_file() -> None:
    with pytest.raises(FormulaError) as caught:
        parse("forall t I(t) <= 20")
    placed = caught.value.at("--where")
    assert str(placed).startswith("--where: ")
    assert str(placed).endswith("^")
    assert placed.place == ("forall t I(t) <= 20", 9)
