"""The page about a table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from constraints import parse
from surrogate.data import evaluate
from surrogate.errors import ModelError
from surrogate.kinds.labels import label
from surrogate.kinds.tables.align import Rows, shared_columns
from surrogate.kinds.tables.report import Table, associations
from surrogate.reports import figures as pictures
from surrogate.reports.conditions import condition
from tests.surrogate.reports.pages import Page, facts, report
from tests.surrogate.rows import few_rounds as few_rounds
from tests.surrogate.rows import shuffled, wines

pytestmark = pytest.mark.usefixtures("few_rounds")
RULES = ("alcohol >= 9", "sugar <= 5")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages in no time: tests of words need no pictures."""
    monkeypatch.setattr(pictures, "drawn", lambda *arguments: "data:,")


def labelled(rows: int = 200, seed: int = 1) -> pd.DataFrame:
    return label(wines(rows, seed), [parse(rule) for rule in RULES])


def test_the_page_has_every_section() -> None:
    page = Page(report(labelled(), wines(300, 2), target="quality"))
    assert page.sections == {
        "What was asked",
        "Requirements met",
        "Against the reference",
        "What goes together",
        "Whether rows were memorised",
        "What can be learned from them",
        "Where it comes from",
    }
    pictures_ = page.pictures()
    assert len(pictures_) == 3
    assert all(str(each["src"]).startswith("data:image/") and each["alt"] for each in pictures_)
    assert "What if alcohol is at least 9 and sugar is at most 5?" in page.said
    assert f"{float(labelled().satisfied.mean()):.1%}"[:4] in page.said
    assert "trajector" not in page.said
    for text in ("D(alcohol)", "gradient boosting", "exact copies", "200 rows", "R²"):
        assert text in page.said


@pytest.mark.usefixtures("undrawn")
def test_numbers_of_the_page_equal_those_of_evaluate() -> None:
    x, y = wines(200, 1), wines(300, 2)
    page, found = Page(report(x, y)), evaluate(x, y)
    for row in found.rows():
        for cell in row:
            assert not cell or cell in page.said
    assert "Requirements met" not in page.sections
    assert "What can be learned from them" not in page.sections


@pytest.mark.usefixtures("undrawn")
def test_a_table_without_a_reference_has_a_page() -> None:
    page = Page(report(wines(200, 1)))
    assert page.sections == {"The columns", "What goes together", "Where it comes from"}
    assert "Nothing was required of them" in page.said
    assert "A table of alcohol, sugar, quality, colour and 3 more columns" in page.said
    single = label(wines(200, 1), [parse(RULES[0])])
    assert "meet what was asked, which is not told here" in Page(report(single)).said
    assert "What goes together" not in Page(report(wines(200, 1)[["sugar"]])).sections
    assert "1 row" in Page(report(wines(1))).said


@pytest.mark.usefixtures("undrawn")
def test_diagnostics_of_the_sampler_are_on_the_page() -> None:
    frame = wines(100, 1).drop(columns="density")
    data = xr.Dataset({name: ("sample", frame[name].to_numpy()) for name in frame})
    data = label(data, [parse(rule) for rule in RULES]).assign_attrs(
        surrogate_model="b44e5f3a",
        surrogate_diagnostics=json.dumps(
            {"method": "twisted", "log_probability": -2.5, "seconds": 3.0, "warnings": ["so"]}
        ),
        history="surrogate sample",
    )
    page = Page(report(data, wines(200, 2)))
    assert "What it took" in page.sections
    for text in ("1 in 12", "twisted", "b44e5f3a", "The sampler warns: so", "surrogate sample"):
        assert text in page.said
    assert "not compared: density" in page.said


def test_the_verdict_names_its_reasons() -> None:
    train = wines(400, 1)
    poor = facts(train[:200], wines(300, 2), train=train).verdict
    assert poor is not None
    assert poor.level == "poor"
    assert "seem to be repeated: 100 % are exact copies" in poor.against[0]
    fine = facts(wines(300, 4), wines(400, 24), target="quality").verdict
    assert fine is not None
    assert fine.level == "good"
    assert any("no nearer" in reason for reason in fine.good)
    assert any("about as well: R²" in reason for reason in fine.good)
    mixed = facts(shuffled(wines(800, 3)), wines(900, 2), target="quality").verdict
    assert mixed is not None
    said = " ".join(mixed.against)
    for text in ("correlations differ", "classifier tells", "quality is predicted worse"):
        assert text in said


def test_associations_of_each_side() -> None:
    x, y = wines(300, 1), wines(300, 2)
    sides = Rows(x, "x"), Rows(y, "y")
    names, found = associations(
        Table(tuple(shared_columns(*sides)[0]), tuple(each.weights for each in sides))
    )
    assert names[-3:] == ["colour", "place", "old"]
    a, b = names.index("alcohol"), names.index("quality")
    for table, matrix in zip((x, y), found, strict=True):
        assert matrix[a, b] == pytest.approx(np.corrcoef(table.alcohol, table.quality)[0, 1])


@pytest.mark.usefixtures("undrawn")
def test_names_and_words_are_escaped() -> None:
    x = wines(60, 1).rename(columns={"sugar": "<script>"}).assign(colour="<img src=x>")
    page = Page(report(x, x, title="<b>"))
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "b>"})
    assert "<script>" in page.said


def test_constant_empty_and_mixed_columns_are_plotted() -> None:
    x = pd.DataFrame(
        {
            "constant": np.ones(40),
            "missing": np.full(40, np.nan),
            "tiny": 5e-324 * np.arange(40),
            "huge": 1e300 * np.arange(40),
            "words": [f"word {k} äöü 漢" for k in range(40)],
            "$x^{": np.arange(40),
        }
    )
    page = Page(report(x, x))
    assert len(page.pictures()) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alcohol >= 11", "alcohol is at least 11"),
        ("quality > 5", "quality is more than 5"),
        ('"fixed acidity" in [5, 6]', "fixed acidity is between 5 and 6"),
        ('colour = "red" or colour != "white"', "colour is red or colour is not white"),
        ("x <= 5 implies y >= 0.5", "if x is at most 5, then y is at least 0.5"),
        ("x = 5 +- 2", "x is 5, give or take 2"),
        ("alcohol[1] > alcohol[2] + 1", "alcohol of row 1 is more than alcohol[2] + 1"),
        ("not (x > 1)", None),
        ("x >", None),
    ],
)
def test_conditions_in_words(text: str, said: str | None) -> None:
    assert condition(text) == said


def test_data_that_cannot_be_reported_are_refused() -> None:
    with pytest.raises(ModelError, match="no column is in common"):
        report(wines(9), wines(9).add_prefix("my "))
    with pytest.raises(ModelError, match="target needs real rows"):
        report(wines(9), target="quality")
    with pytest.raises(ModelError, match="give data of one kind"):
        report(wines(9), xr.Dataset({"S": (("sample", "time"), np.zeros((5, 3)))}))
    with pytest.raises(ModelError, match="target is for rows"):
        report(xr.Dataset({"S": (("sample", "time"), np.zeros((5, 3)))}), target="S")
