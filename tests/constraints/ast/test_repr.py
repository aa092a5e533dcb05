"""How formulas show themselves: short in a console, whole as text."""

from __future__ import annotations

import pytest

from constraints import FormulaError, bridge, conjunction, parse


def test_the_repr_of_a_long_formula_leaves_out_its_middle() -> None:
    rules = [parse(f"forall t in [{i}, end]: I(t) + S(t) <= {100 + i}") for i in range(50)]
    formula = conjunction(*rules)
    assert len(repr(formula)) <= 200
    assert repr(formula).startswith("<And (forall t in [0, end]")
    assert " ... " in repr(formula)
    assert repr(formula).endswith("<= 149)>")
    assert len(str(formula)) > 2000
    assert parse(str(formula)) == formula


def test_a_short_formula_shows_whole() -> None:
    assert repr(parse("max(I) <= 20")) == "<Compare max(I) <= 20>"


def test_notebooks_show_the_text_with_its_signs_escaped() -> None:
    assert bridge("S0=95")._repr_html_() == "<code>S(0) = 95</code>"
    assert parse("max(I) <= 20")._repr_html_() == "<code>max(I) &lt;= 20</code>"


def test_a_term_is_no_formula() -> None:
    with pytest.raises(FormulaError, match="stands where a formula is wanted; compare it"):
        parse("I(0) <= 1") & parse("I(0) <= 1").terms[0]  # type: ignore[attr-defined]
