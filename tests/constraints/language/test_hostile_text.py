"""Whatever text is given, `parse` gives a formula that reads back, or a FormulaError."""

from __future__ import annotations

import re
from random import Random

import pytest

from constraints import Formula, FormulaError, parse
from constraints.ast.nodes import MAX_DEPTH
from constraints.language.parser import MAX_FORMULA_LENGTH

VALID = [
    "exists u in [t,t+5]: I(u) > 10",
    "S(0) = 95 and I(end) = 5",
    "always[0,29](I <= 20)",
    "(I < 5) until[0,20] (R > 10)",
    "argmax(I) in [8,12]",
    "sum(I, 0, 10) <= 300",
    "forall t: 0 <= S(t) + abs(delta(I)(t)) <= N",
    'age >= 40 and race != "White"',
    'education in {"Masters", b}',
    "(S@2.5 = 3 +- 0.5) {k=7} # why",
    "count(I > 10, 0, 10) >= 3",
    "true iff not x[1] ^ 2 / -3 <= f(x, +3)",
]
TOKENS = sorted({token for text in VALID for token in re.findall(r"\w+|\S", text)})
TOKENS += ["implies", "xor", "or", "weak until", "since", "next", "false", "end", "now", "<=", "+-"]
TOKENS += ["=>", "<->", "**", "'a b'", '"', "1e999", ".", "\n", "&", "|", "!", "AND", "is", "all"]
NASTY = [
    "\x00",
    "\ud800",
    "\u0301",
    "\u200f",
    "\u202e",
    "\ufeff",
    "\u2028",
    "٣",
    "²",
    "½",
    "𝔸",
    "\t",
]


def garbled(random: Random) -> str:
    """Characters, tokens, a formula with a few changes, or one inside many brackets."""
    kind = random.random()
    if kind < 0.2:
        letters = [chr(random.randrange(0x11 ** random.randint(1, 5) % 0x110000)) for _ in range(8)]
        return "".join(random.choices(letters + NASTY + list("xSt(1)[]{}<=:,@ "), k=12))
    if kind < 0.5:
        return random.choice([" ", ""]).join(random.choices(TOKENS, k=random.randint(1, 12)))
    if kind < 0.51:
        left, right = random.choice(
            [("(", ")"), ("not ", ""), ("f(", ",1)"), ("-", ""), ("[", "]")]
        )
        depth = random.choice([5, 30, MAX_DEPTH - 3, MAX_DEPTH, 200])
        return (
            left * depth + random.choice(["x", "x <= 1"]) + right * random.choice([depth, depth, 9])
        )
    by_token = random.random() < 0.5
    text = random.choice(VALID)
    parts = re.findall(r"\w+|\s+|.", text) if by_token else list(text)
    for _ in range(random.randint(1, 3)):
        i, j = random.randrange(len(parts)), random.randrange(len(parts))
        match random.randrange(4):
            case 0:
                parts[i] = ""
            case 1:
                parts[i] *= 2
            case 2:
                parts[i], parts[j] = parts[j], parts[i]
            case 3:
                parts.insert(i, random.choice(TOKENS if by_token else NASTY + list("(){}[],:+-.#")))
    return "".join(parts)


def reads_back(formula: Formula) -> None:
    again = parse(str(formula))
    assert again == formula
    assert hash(again) == hash(formula)


def outcome(text: str) -> bool:
    """Whether the text is a formula; if so it reads back, and if not the error shows the place."""
    try:
        formula = parse(text)
    except FormulaError as error:
        problem = str(error)
    else:
        reads_back(formula)
        return True
    assert problem.endswith("^") or "is empty" in problem
    return False


@pytest.mark.parametrize("seed", range(10))
def test_any_text_is_a_formula_or_a_formula_error(seed: int) -> None:
    random = Random(seed)
    read = [outcome(garbled(random)) for _ in range(10_000)]
    assert sum(read) > 500  # the changes are not all mistakes


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n",
        "# nothing else",
        "x" * MAX_FORMULA_LENGTH,
        "x" * (MAX_FORMULA_LENGTH + 1),
        " " * MAX_FORMULA_LENGTH + "x <= 1",
        "(" * 20_000,
        ")" * 20_000,
        "[" * 20_000,
        "{" * 20_000,
        "not " * 4_990 + "x <= 1",
        "-" * 10_000 + "x <= 1",
        "-" * 10_000,
        "f(" * 9_000,
        "f(" * 6_000 + "x" + ")" * 6_000,
        "x^" * 9_000 + "x <= 1",
        "forall t: " * 1_990 + "x(t) <= 1",
        "always " * 2_800 + "x <= 1",
        "(" * 90 + "x <= 1" + ") => y <= 1" * 90,
        "x <= 1 implies " * 1_300 + "x <= 1",
        "(" * 1_000 + "x <= 1" + "){k=1}" * 1_000,
        "x(1)" + "(1)" * 6_000 + " <= 1",
        '"' * 20_001,
        '"x <= 1',
        "x = 'it",
        "x\x00 <= 1",
        "\x00",
        "\ud800 <= 1",
        '"\ud800" <= 1',
        '"" <= 1',
        '"a\tb" <= 1',
        "x <= 1e999",
        "x <= " + "9" * 5_000,
        "x@" + "9" * 5_000 + " <= 1",
        "x[" + "9" * 5_000 + "] <= 1",
        "x(" + "9" * 5_000 + ") <= 1",
        "always[0," + "9" * 5_000 + "](x <= 1)",
        "forall t: x(t + 999999999999) <= 1",
        "forall t: x(t - 1e308 - 1e308) <= 1",
        "(x <= 1) {k=1e999}",
        "x\u0301 <= 1",
        "\u200fx <= 1",
        "x <= 1 \ufeff",
        "x <= 1" + "\u202e",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_hostile_text_is_rejected(text: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["x"] * 4_000) + " <= 1",
        " and ".join(["x <= 1"] * 1_600),
        "x <= 1" + " " * 9_000,
        "(" * 5_000 + "x" + ")" * 5_000 + " <= 1",
        "x" + " = y" * 4_000,
        "x in {" + "1, " * 2_000 + "2}",
        "x <= 1 # " + "(" * 9_000,
        '"e\u0301 \u05d0" <= 1',
        "x٣ <= ٣",
        "x²\r\n<=\t1",
        '"#" <= 1',
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_long_or_unusual_text_is_parsed(text: str) -> None:
    formula = parse(text)
    if len(str(formula)) <= MAX_FORMULA_LENGTH:
        reads_back(formula)
