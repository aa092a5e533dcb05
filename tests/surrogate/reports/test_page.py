"""The page: whole in itself, and with the numbers of `evaluate`."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import pytest
import xarray as xr

from constraints import parse
from simulators import models, simulate
from surrogate.data import evaluate
from surrogate.kinds.labels import label
from tests.surrogate.reports.pages import RULES, SECTIONS, Page, report


def test_the_page_needs_nothing_but_itself(full: Page) -> None:
    for tag, attributes in full.elements:
        assert tag not in ("script", "link", "iframe", "object", "embed", "a", "base")
        assert not {name for name in attributes if name.startswith("on")}
        assert "href" not in attributes
        if "src" in attributes:
            assert str(attributes["src"]).startswith("data:image/")
    assert not re.search(r"url\(|@import|https?://", full.text)
    assert "default-src 'none'" in full.text
    assert len(full.text) < 2_000_000


def test_pictures_have_words_and_are_drawings(full: Page) -> None:
    assert len(full.pictures()) == 3 + 3 + 1 + 1
    for picture in full.pictures():
        assert picture["alt"]
        kind, content = str(picture["src"]).split(";base64,")
        assert kind == "data:image/svg+xml"
        drawing = base64.b64decode(content)
        assert ElementTree.fromstring(drawing).tag.endswith("svg")
        assert b"prefers-color-scheme: dark" in drawing
        assert b"#1d2b3a;" in drawing.split(b"</style>")[0]
        assert b"#1d2b3a" not in drawing.split(b"</style>", 1)[1]


def test_the_same_data_give_the_same_page(plain: xr.Dataset) -> None:
    few = plain[["I"]].isel(time=slice(0, None, 6))
    assert report(few, few) == report(few, few)


@pytest.mark.usefixtures("undrawn")
def test_sections_are_those_that_the_data_have(
    full: Page, plain: xr.Dataset, scenario: xr.Dataset
) -> None:
    assert full.sections == {*SECTIONS} - {"Values at single times"}
    bare = plain.drop_attrs()
    always = {"How it unfolds", "Values at single times", "What goes together"}
    always |= {"Where it comes from"}
    assert Page(report(bare)).sections == always
    assert Page(report(label(bare, [parse(RULES[1])]))).sections == {
        *always,
        "What was asked",
        "Requirements met",
    }
    assert Page(report(scenario)).sections == {*SECTIONS} - {"Against the reference"}


@pytest.mark.usefixtures("undrawn")
def test_the_headline_answers(full: Page, scenario: xr.Dataset) -> None:
    met = float(scenario.satisfied.mean())
    for part in (
        "Scenario report · esirs",
        "about 1 in 75,000, give or take 5 %",
        "log P = −11.23 ± 0.05",
        f"of which {100 * met:.1f} % meet every requirement",
        "S is 30 at time 2.76 (step 25) or S is 40 at time 2.76 (step 25)",
        "I is at most 40 at all times",
        "2 hours",
        "24,000",
        "S + I -> 2 I",
        "surrogate sample --where ...",
        "beta = 2.36012158",
    ):
        assert part in full.said, part
    titles = [words for words in full.words if words.startswith("What if")]
    assert titles == []  # one of the rules has no plain words
    capped = label(scenario, [parse(RULES[1])])
    assert "What if I is at most 40 at all times?" in Page(report(capped)).words
    assert "My title <1>" in Page(report(capped, title="My title <1>")).words


def test_numbers_are_those_of_evaluate(full: Page, scenario: xr.Dataset) -> None:
    found = evaluate(scenario, simulate(models.esirs(), samples=150, seed=2))
    for cells in found.rows():
        for cell in cells:
            assert not cell or cell in full.words
    assert f"{found.overall.median.ratio:.2f} × noise" in full.words
    assert found.correlation is not None
    assert f"Mean difference {found.correlation.value:.4f}" in full.said


def test_shares_of_rules(full: Page, scenario: xr.Dataset) -> None:
    shares = scenario.rule_satisfied.mean("sample")
    widths = [a["style"] for tag, a in full.elements if tag == "i"]
    assert widths == [f"width: {100 * share:.2f}%" for share in shares.values]
    bars = [a["class"] for tag, a in full.elements if tag == "rect"]
    assert set(bars) == {"met", "missed"}
