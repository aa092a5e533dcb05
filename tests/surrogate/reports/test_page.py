"""The page: whole in itself, safe, with what the data have and with evaluation's numbers."""

from __future__ import annotations

import base64
import json
import math
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr

from constraints import parse
from constraints.physics.rules import from_network
from simulators import models, simulate
from surrogate.data import evaluate, report_facts
from surrogate.errors import ModelError
from surrogate.kinds.labels import label
from surrogate.kinds.signals import described
from surrogate.kinds.trajectories import figures as own
from surrogate.kinds.trajectories import report as section
from surrogate.kinds.trajectories.requirements import Mark
from surrogate.reports import figures as pictures
from surrogate.reports.facts import Facts
from surrogate.reports.page import page
from surrogate.reports.wording import duration, give_or_take, odds, stamp

RULES = ("S(25) = 30 or S(25) = 40", "forall t: I(t) <= 40", "mean(I) >= 1")
DIAGNOSTICS = {
    "method": "twisted",
    "why": "few meet it",
    "log_probability": -11.23,
    "log_probability_error": 0.05,
    "effective": 90.0,
    "least_effective": 0.4,
    "ancestors": 95,
    "particles": 600,
    "evaluations": 24_000,
    "met_before": 0.9,
    "acceptance": 0.001,
    "copies": 2,
    "seconds": 3.2,
    "samples": 120,
    "rejection_seconds": 7200.0,
    "warnings": [],
}
SECTIONS = (
    "What was asked",
    "How it unfolds",
    "Requirements met",
    "Against the reference",
    "Values at single times",
    "What goes together",
    "What it took",
    "Where it comes from",
)


def facts(data: Any, against: Any = None, **options: Any) -> Facts:
    return report_facts(data, against, **options)[1]


def report(data: Any, against: Any = None, title: str | None = None, **options: Any) -> str:
    kind, found = report_facts(data, against, **options)
    return page(found, kind.report_sections(), title)


class Page(HTMLParser):
    """What a browser would make of a page: elements, texts, headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        assert not self.stack, self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("img", "meta"):
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.words.append(data)
            if self.stack[-1:] == ["h2"]:
                self.headings.append(data)

    @property
    def said(self) -> str:
        return " ".join(self.words)

    @property
    def sections(self) -> set[str]:
        return set(self.headings)

    def pictures(self) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == "img"]


@pytest.fixture(scope="module")
def plain() -> xr.Dataset:
    return simulate(models.esirs(), samples=120, seed=1)


@pytest.fixture(scope="module")
def scenario(plain: xr.Dataset) -> xr.Dataset:
    """As the sampler labels its trajectories; not all of these meet the rules."""
    rules = {text: parse(text) for text in RULES} | from_network(described(plain))
    return label(plain, rules).assign_attrs(
        surrogate_model="b44e5f3a",
        surrogate_settings=json.dumps({"method": "auto", "particles": None}),
        surrogate_diagnostics=json.dumps(DIAGNOSTICS),
        history="2026-01-01T00:00:00Z surrogate sample --where ...",
    )


@pytest.fixture(scope="module")
def full(scenario: xr.Dataset) -> Page:
    return Page(report(scenario, simulate(models.esirs(), samples=150, seed=2)))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages in no time: tests of words need no pictures."""
    monkeypatch.setattr(pictures, "drawn", lambda *arguments: "data:,")


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
        "about 1 in 75,000, give or take 5 % by chance",
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


# --- strangers ------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&$\\frac{$"


def test_text_from_a_file_stays_text(scenario: xr.Dataset) -> None:
    """Names, rules, attributes, units, diagnostics: none becomes an element."""
    config = json.loads(scenario.attrs["surrogate_config"])
    config["network"] |= {
        "name": EVIL,
        "title": EVIL,
        "reference": EVIL,
        "reactions": [{"name": EVIL}, 3],
    }
    config["parameters"] = {EVIL: EVIL}
    found = DIAGNOSTICS | {"warnings": [EVIL], "why": EVIL, "method": EVIL}
    texts = dict.fromkeys(("title", "source", "history", "surrogate_model", "surrogate_end"), EVIL)
    data = scenario.rename(R=EVIL).assign_attrs(
        **texts,
        surrogate_constraint=EVIL,
        surrogate_config=json.dumps(config),
        surrogate_diagnostics=json.dumps(found),
    )
    data["time"].attrs["units"] = EVIL
    data = data.assign_coords(rule=[f"{EVIL}{k}" for k in range(data.sizes["rule"])])
    other = simulate(models.esirs(), samples=50, seed=2).rename(R=EVIL)
    undescribed = data.assign_attrs(surrogate_config=EVIL)
    compared = report(undescribed, other.assign_attrs(source=EVIL, surrogate_config=EVIL))
    for text in (report(data, title=EVIL), compared):
        read = Page(text)
        assert "<script" not in text
        assert all(str(each["src"]).startswith("data:") for each in read.pictures())
        assert not [a for _, a in read.elements if "onerror" in a]
        assert EVIL in read.said


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("value", ["{", "[1]", '{"warnings": 3, "log_probability": "x"}', 3.5])
def test_attributes_of_the_wrong_kind_count_as_absent(scenario: xr.Dataset, value: object) -> None:
    odd = dict.fromkeys(("surrogate_diagnostics", "surrogate_settings", "surrogate_config"), value)
    odd |= {"surrogate_log_probability": "likely", "surrogate_seconds": np.array([1.0, 2.0])}
    page = Page(report(scenario.assign_attrs(odd)))
    assert "What it took" not in page.sections
    assert "does not tell how probable" in page.said


# --- kinds of data --------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_weights_count(plain: xr.Dataset) -> None:
    """Samples without weight might as well not be there."""
    rules = [parse("forall t: I(t) <= 40")]
    kept = label(plain, rules).isel(sample=slice(0, None, 2))
    logs = np.where(np.arange(120) % 2, -np.inf, -2.0)
    data = label(plain, rules).assign(log_weight=("sample", logs))
    found = facts(data)
    assert found.satisfied == pytest.approx(float(kept.satisfied.mean()))
    assert found.rules[0].share == pytest.approx(found.satisfied)
    assert found.effective == pytest.approx(60)
    page = Page(report(data))
    assert "count by their weight" in page.said
    median = float(np.quantile(kept.rule_robustness, 0.5, method="inverted_cdf"))
    assert f"{median:g}".replace("-", "−") in page.words


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2)])
def test_little_data(shape: tuple[int, int]) -> None:
    data = xr.Dataset({"x": (("sample", "time"), np.arange(math.prod(shape)).reshape(shape))})
    assert "How it unfolds" in Page(report(data)).sections


def test_gaps_dates_and_many_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 8))
    values[2, 3] = values[:, 5] = np.nan
    arrays = {f"v{k}": (("sample", "time"), values + k) for k in range(4)}
    dates = np.datetime64("2024-03-01", "ns") + np.arange(8) * np.timedelta64(1, "D")
    monkeypatch.setattr(section, "MAX_SHOWN_VARIABLES", 2)
    page = Page(report(xr.Dataset(arrays, {"time": dates})))
    assert "The first 2 of 4 variables are shown" in page.said
    assert "2024-03-01 to 2024-03-08" in page.said


def test_long_series_become_pixels() -> None:
    walk = np.random.default_rng(0).normal(size=(60, 1_000)).cumsum(1)
    page = Page(report(xr.Dataset({"x": (("sample", "time"), walk)})))
    assert str(page.pictures()[0]["src"]).startswith("data:image/png")
    assert len(page.text) < 300_000


@pytest.mark.usefixtures("undrawn")
def test_only_what_both_sides_have_is_compared(plain: xr.Dataset) -> None:
    page = Page(report(plain, simulate(models.esirs(), samples=50, seed=3).drop_vars("R")))
    assert "not compared: R" in page.said
    assert "D(R), median" not in page.said


def test_what_cannot_be_compared_is_refused(plain: xr.Dataset) -> None:
    with pytest.raises(ModelError, match=r"nothing to compare: the data have S, I, R.*has X"):
        report(plain, plain[["S"]].rename(S="X"))
    with pytest.raises(ModelError, match=r"30 times.*times="):
        report(plain, plain.isel(time=slice(9)))
    with pytest.raises(ModelError, match="no variables over"):
        report(plain.drop_vars([*plain.data_vars]))
    with pytest.raises(ModelError, match="give data of one kind"):
        report(plain, plain.isel(time=0).to_dataframe())


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("high", [0, 3, 10, 39, 40, 41, 5_000])
def test_histograms_hold_every_sample(whole: bool, high: int) -> None:
    values = np.array([0.0, high, high // 2])
    edges = own._edges(values, whole)
    assert np.histogram(values, edges)[0].sum() == 3
    assert len(edges) <= own.MAX_BARS + 6
    if whole:  # no value lies on an edge
        assert (edges % 1 == 0.5).all()


def test_steps_to_look_at() -> None:
    assert own.shown_steps(30, [Mark("S", 25, 25, 30, 30)]) == [0, 6, 12, 18, 25, 29]
    assert own.shown_steps(3, []) == [0, 1, 2]
    assert own.shown_steps(1, []) == [0]
    every = [Mark("S", k, k, 1, 1) for k in range(30)]
    assert own.shown_steps(30, every) == [0, 6, 12, 17, 23, 29]


# --- trust ----------------------------------------------------------------------------------------


def judged(data: xr.Dataset, against: xr.Dataset | None = None, **changes: object) -> str:
    """The level of the verdict on samples that all meet their rule, with other diagnostics."""
    text = json.dumps(DIAGNOSTICS | {"effective": 120.0, "ancestors": 400, "copies": 0} | changes)
    data = label(data, [parse("forall t: I(t) >= 0")])
    found = facts(
        data.assign_attrs(surrogate_model="b4", surrogate_diagnostics=text), against
    ).verdict
    assert found is not None
    return found.level


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "good"),
        ({"warnings": ["batches disagree"]}, "care"),
        ({"effective": 5.0}, "care"),
        ({"ancestors": 7}, "care"),
        ({"copies": 60}, "care"),
        ({"log_probability_error": 0.8}, "care"),
    ],
)
def test_signs_of_trouble(plain: xr.Dataset, changes: dict[str, object], level: str) -> None:
    assert judged(plain, **changes) == level


def test_a_reference_tells_good_samples_from_bad_ones(plain: xr.Dataset) -> None:
    same = simulate(models.esirs(), samples=400, seed=7)
    assert judged(plain, same) == "good"
    far = simulate(models.esirs(), samples=120, seed=7, parameters={"beta": 9.0, "omega": 0.1})
    assert judged(far, same) == "poor"
    mixed = plain.copy()  # the right values at each step, of the wrong trajectories
    for name in "SIR":
        values = np.stack(
            [np.random.default_rng(k).permutation(plain[name][:, k]) for k in range(30)], 1
        )
        mixed[name] = (("sample", "time"), values)
    assert judged(mixed, same) == "care"


def test_plain_simulations_are_not_judged(plain: xr.Dataset) -> None:
    assert facts(plain).verdict is None


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_p", "words"),
    [
        (0.0, ">99 %"),
        (math.log(0.43), "43 %"),
        (math.log(0.05), "1 in 20"),
        (-11.2324, "1 in 76,000"),
        (math.log(1 / 1.24e6), "1 in 1.2 million"),
        (-40.0, "1 in 2.4 × 10¹⁷"),
        (-2000.0, "1 in 3.9 × 10⁸⁶⁸"),
    ],
)
def test_odds(log_p: float, words: str) -> None:
    assert odds(log_p) == words


def test_other_words() -> None:
    assert duration(9.71) == "9.7 seconds"
    assert duration(100_000) == "28 hours"
    assert duration(1e12) == "32,000 years"
    assert give_or_take(0.05) == "give or take 5 % by chance"
    assert give_or_take(0.7) == "within a factor of about 2.0 by chance"
    assert stamp(np.linspace(0, 3.2, 30), 25) == "2.76"
    assert stamp(np.arange(9.0), 3) == "3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("S(0) = 95", "S is 95 at the start"),
        ("S(29) >= 5", "S is at least 5 at the end"),
        ("S(25) = 30 +- 2", "S is between 28 and 32 at time 2.76 (step 25)"),
        ("forall t in [0, 10]: I(t) <= 9", "I is at most 9 up to time 1.1 (step 10)"),
        ("exists t: I(t) >= 25", "I is at least 25 at some time"),
        ("mean(I) >= 2", None),
    ],
)
def test_requirements_in_words(plain: xr.Dataset, text: str, words: str | None) -> None:
    found = facts(label(plain, [parse(text)]))
    assert found.requirements is not None
    assert found.requirements.parts[0].words == words
