"""Pins: what they mean, how a compact name is cut, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import FormulaError, Layout, compiled, parse
from constraints.language.bridge import MAX_BRIDGE_LENGTH, ambiguous, bridge, readings


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("S0=95,I0=5,S25=30", "S(0) = 95 and I(0) = 5 and S(25) = 30"),
        ("S(25)=30", "S(25) = 30"),
        ("S25=30", "S(25) = 30"),
        ("S025=30", "S(25) = 30"),
        ("S0==95", "S(0) = 95"),
        ("S@2.5=30", "S@2.5 = 30"),
        ("S @ -1e-1 = 30", "S@-0.1 = 30"),
        ('"odd name"(3)=4', '"odd name"(3) = 4'),
        ("'odd name'@3=4", '"odd name"@3 = 4'),
        ("S25=30+-2", "S(25) = 30 +- 2"),
        ("S25=30 +/- 2.5", "S(25) = 30 +- 2.5"),
        ("S25=30±2", "S(25) = 30 +- 2"),
        ("S25=28..32", "28 <= S(25) <= 32"),
        ("S25=-1.5..-.5", "-1.5 <= S(25) <= -0.5"),
        ("S25=28. .. 32.", "28 <= S(25) <= 32"),
        ("S25=+3e1", "S(25) = 30"),
        ("S0=-0", "S(0) = 0"),
        ("  S0 = 95 ,\n\tI ( 3 ) = 5  ", "S(0) = 95 and I(3) = 5"),
        ("S0=95, S(0)=95", "S(0) = 95"),
        ("a_b_3=1", "a_b_(3) = 1"),
        ("X1_25=3", "X1_25 = 3"),  # undecided until the signals are known
        ("max0=3, delta(2)=1", '"max"(0) = 3 and "delta"(2) = 1'),  # signals, not functions
        ("end1=3", '"end"(1) = 3'),
        ("ß2=1", "ß(2) = 1"),
    ],
)
def test_a_bridge_is_a_conjunction_of_equalities(text: str, formula: str) -> None:
    found = bridge(text)
    assert found == parse(formula)
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "names", "formula"),
    [
        ("X10=3", ["X"], "X(10) = 3"),
        ("X10=3", ["X1"], "X1(0) = 3"),
        ("X10=3", ["X1", "X10"], "X1(0) = 3"),  # X10 itself has no step
        ("X1=3", ["X", "X1"], "X(1) = 3"),
        ("X1_25=3", ["X1_"], "X1_(25) = 3"),
        ("X1_25=3", ["X1_2"], "X1_2(5) = 3"),
        ("X123456789=1", ["X1"], "X1(23456789) = 1"),
        ("X(10)=3", ["X", "X1"], "X(10) = 3"),
        ('"a b"(1)=3', ["a b"], '"a b"(1) = 3'),
        ("X2@1.5=3", ["X2", "X"], "X2@1.5 = 3"),
    ],
)
def test_known_names_decide_the_split_into_name_and_step(
    text: str, names: list[str], formula: str
) -> None:
    assert bridge(text, names) == parse(formula)
    assert bridge(text, iter(names)) == parse(formula)


def test_readings_lists_every_split_that_fits() -> None:
    assert readings("X10", ["X", "X1"]) == [("X", 10), ("X1", 0)]
    assert readings("X10", ["X10", "Y"]) == []
    assert readings("X", ["X"]) == []
    assert readings("X٣", ["X"]) == []
    assert readings("X123456789", ["X"]) == []  # no grid has so many steps
    assert str(ambiguous("X10", [("X", 10), ("end", 0)])).endswith('write X(10) or "end"(0)')


def test_names_with_digits_are_split_by_the_layout() -> None:
    series = torch.arange(6.0).reshape(1, 6)
    program = compiled(bridge("X1_5=5"), Layout.series("X1_ Y", 6))
    assert program.verdict({"X1_": series, "Y": series}).tolist() == [True]
    with pytest.raises(FormulaError, match=r"X1_11 is ambiguous; write X1_\(11\) or X1_1\(1\)"):
        compiled(bridge("X1_11=5"), Layout.series("X1_ X1_1", 20))


def test_the_verdict_of_a_bridge_is_that_of_its_pins() -> None:
    layout = Layout.series("S I", 3, integer=True)
    data = {"S": [[9, 5, 3], [9, 4, 3], [8, 5, 3]], "I": [[1, 5, 7], [1, 6, 7], [2, 5, 7]]}
    tensors = {name: torch.tensor(rows) for name, rows in data.items()}
    pins = {"S0=9,I2=7": [1, 1, 0], "S1=5..6": [1, 0, 1], "S0=10+-1": [1, 1, 0], "I@2=7": [1, 1, 1]}
    for text, wanted in pins.items():
        assert compiled(bridge(text, layout.names), layout).verdict(tensors).tolist() == wanted


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('"S25"=95', 0, '"S25" does not say when'),
        ("S0", 2, r"S\(0\) ends where = and a value are expected; write S\(0\)=30"),
        ("S0, I0=5", 2, r"S\(0\) is followed by ','"),
        ("S0=", 3, r"finite number, and none is here; write S\(0\)=30"),
        ("S0=,I0=3", 3, "finite number, and none is here"),
        ("S0=abc,I0=3", 3, r"finite number, not 'abc'; write S\(0\)=30, S\(0\)=30\+-2 or"),
        ("S0=nan", 3, "not 'nan'"),
        ("S0=inf", 3, "not 'inf'"),
        ("S0=I0", 3, "not 'I0'"),
        ("S0=1e999", 3, "the value is a finite number, not 1e999"),
        ("S@1e999=3", 2, "a model time is a finite number, not 1e999"),
        ("S@x=3", 2, "model time is a finite number, not 'x=3'; write S@2.5"),
        ("S-1=3", 0, r"S has no step -1; steps are counted from 0, as in S\(0\)"),
        ("S(-1)=3", 2, "S has no step -1"),
        ("S+1=3", 0, r"the step \+1 has a sign; write S\(1\)"),
        ("S2.5=30", 0, "2.5 is not a step, which is a whole number; for the model time write S@2"),
        ("S(2.5)=30", 2, "2.5 is not a step, which is a whole number; for the model time write"),
        ("S(x)=30", 2, r"a step is a whole number, not 'x'; write S\(25\)"),
        ("S()=30", 2, "a step is a whole number"),
        ("S(3=30", 3, r"a closing bracket is missing; write S\(3\)"),
        ("S[3]=30", 0, r"the step of S is in square brackets; write S\(25\)"),
        ("S123456789=3", 0, "step 123456789 is beyond any grid"),
        ("S(123456789)=3", 2, "step 123456789 is beyond any grid"),
        ("S0=95,", 6, "a pin is missing here; drop the comma"),
        ("S0=95,,I0=5", 6, "a pin is missing here"),
        (",S0=95", 0, "a pin is missing here"),
        ("S0=95 I0=5", 6, "'I' is misplaced; a comma separates"),
        ("S0=95;I0=5", 5, "';' is misplaced; a comma separates"),
        ("S0<=95", 2, r'for inequalities use where="S\(0\) <= 30", or an interval: S\(0\)=28..32'),
        ("S0!=95", 2, "for inequalities use where="),
        ("3=S0", 0, "'3' does not start the name of a signal"),
        ('"S(3)=3', 0, "no partner"),
        ('""(3)=3', 0, "a name"),
        ("S0=3..1", 6, r"the interval 3\.\.1 is empty; did you mean 1\.\.3\?"),
        ("S0=3..", 6, "the end of an interval is a number, and none is here"),
        ("S0=3+-x", 6, "a tolerance is a number >= 0, not 'x'; write"),
        ("S0=3+--1", 6, "a tolerance is a number >= 0, not -1; write"),
        ("S0=95, I0=3, S(0)=90", 13, r"S\(0\) is pinned twice, S\(0\) = 95 and S\(0\) = 90; keep"),
        ("S0=95, S0=94..96", 7, r"pinned twice, S\(0\) = 95 and 94 <= S\(0\) <= 96"),
        ("X1_2=3, X1_2=4", 8, "X1_2 is pinned twice"),
    ],
)
def test_errors_show_the_place_and_the_remedy(text: str, place: int, message: str) -> None:
    with pytest.raises(FormulaError, match=message) as caught:
        bridge(text)
    assert str(caught.value).splitlines()[-2:] == [f"  {text}", f"  {' ' * place}^"]


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("X10=3", ["X", "X1"], r"X10 is ambiguous; write X\(10\) or X1\(0\)"),
        ("Q10=3", ["S", "I"], r"unknown signal 'Q' \(have: I, S\)"),
        ("infectd3=3", ["S", "infected"], "unknown signal 'infectd'; did you mean 'infected'"),
        ("s(3)=3", ["S", "I"], r"unknown signal 's'; did you mean 'S'\?"),
        ("s@3=3", ["S", "I"], r"unknown signal 's'; did you mean 'S'\?"),
        ("S=3", ["I"], "unknown signal 'S'"),
        ("S=95", ["S"], r"S does not say when; write S\(0\)=\.\.\. for a step, S@2\.5=\.\.\. for"),
        ("S=3", [], r"unknown signal 'S' \(have: none\)"),
        ("X1=3", ["X1"], r"X1 does not say when; write X1\(0\)="),
        ("X1.5=3", ["X1"], "X1 does not say when"),
        ("X1.5=3", ["X"], "for the model time write X@1.5"),
        ("X123456789=3", ["X"], "beyond any grid"),
    ],
)
def test_unknown_and_ambiguous_names_are_rejected(
    text: str, names: list[str], message: str
) -> None:
    with pytest.raises(FormulaError, match=message) as caught:
        bridge(text, names)
    assert str(caught.value).splitlines()[-1] == "  ^"


def test_columns_are_pinned_without_a_step() -> None:
    names, columns = ["S", "k"], ["beta", "k2", "R0"]
    wanted = parse("S(25) = 30 and beta = 1.5 and 2 <= R0 <= 3")
    assert bridge("S25=30, beta=1.5, R0=2..3", names, columns) == wanted
    assert bridge("beta=1.5") == parse("beta = 1.5")  # the layout decides when it is compiled
    assert bridge('"k2"=0.5', names, columns) == bridge('"k2"=0.5', ["S"], columns)
    with pytest.raises(FormulaError, match=r'k2 is ambiguous; write k\(2\) or "k2"'):
        bridge("k2=0.5", names, columns)
    with pytest.raises(FormulaError, match="unknown signal 'betta'; did you mean 'beta'"):
        bridge("betta=1.5", names, columns)
    with pytest.raises(FormulaError, match="S does not say when"):
        compiled(bridge("S=95"), Layout.series("S", 3))


def test_empty_long_and_non_text_bridges_are_rejected() -> None:
    for nothing in ("", "  \n"):
        with pytest.raises(FormulaError, match='the bridge is empty; write one such as "S0=95'):
            bridge(nothing)
    with pytest.raises(
        FormulaError, match=f"at most {MAX_BRIDGE_LENGTH} characters, not {MAX_BRIDGE_LENGTH + 1}"
    ):
        bridge("S" * (MAX_BRIDGE_LENGTH + 1))
    with pytest.raises(FormulaError, match="a bridge is text"):
        bridge(3)  # type: ignore[arg-type]


HOSTILE = [
    "S",
    "1",
    " ",
    "=",
    ",",
    ".",
    "'",
    '"',
    "(",
    "S0=",
    "S0=1,",
    "-",
    "+-",
    "9" * 50,
    "٣",
    "²",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_texts_end_in_a_short_error(piece: str) -> None:
    """And soon: no reading goes back and forth."""
    for text in (
        piece * (MAX_BRIDGE_LENGTH // len(piece)),
        "S0=" + piece * ((MAX_BRIDGE_LENGTH - 3) // len(piece)),
    ):
        for names in (None, ["S", "I"]):
            with pytest.raises(FormulaError) as caught:
                bridge(text, names)
            assert len(str(caught.value)) < 1000


pin_names = st.one_of(
    st.from_regex(r"[a-zA-Z_]{1,4}[0-9]{0,2}", fullmatch=True),
    st.sampled_from(["odd name", "end", "max", "ß", "4x"]),
)
values = st.floats(-1e9, 1e9) | st.integers(-1000, 1000).map(float)


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(pin_names, st.integers(0, 10**6), values, st.floats(0, 100) | st.none()),
        min_size=1,
        max_size=5,
        unique_by=lambda pin: pin[:2],
    )
)
def test_explicit_pins_equal_the_parsed_formula(
    pins: list[tuple[str, int, float, float | None]],
) -> None:
    written = [
        f'"{name}"({step})={value!r}' + ("" if tolerance is None else f"+-{tolerance!r}")
        for name, step, value, tolerance in pins
    ]
    found = bridge(", ".join(written), {name for name, *_ in pins})
    assert found == parse(" and ".join(written))
    assert parse(str(found)) == found


@settings(max_examples=100)
@given(st.sets(st.from_regex(r"X[0-9]{0,3}", fullmatch=True), min_size=1), st.integers(0, 9999))
def test_a_compact_name_is_split_if_exactly_one_name_fits(names: set[str], digits: int) -> None:
    word = f"X{digits}"
    fits = [name for name in names if word.startswith(name) and word != name]
    if len(fits) == 1:
        assert bridge(f"{word}=1", names) == parse(f"{fits[0]}({word[len(fits[0]) :]}) = 1")
    else:
        with pytest.raises(FormulaError, match="ambiguous" if fits else "unknown|when|beyond"):
            bridge(f"{word}=1", names)


@settings(max_examples=300)
@given(st.text(alphabet="SX1250.,=+-()@\"' e<", max_size=24))
def test_any_text_is_a_formula_or_a_formula_error(text: str) -> None:
    for names in (None, ["S", "X", "X1"]):
        try:
            found = bridge(text, names)
        except FormulaError:
            continue
        assert parse(str(found)) == found
