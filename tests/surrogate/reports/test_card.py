"""Cards for people."""

from __future__ import annotations

from pathlib import Path

from simulators import models, simulate
from surrogate.diffusion.training import Settings
from surrogate.fitting import Preset, Run
from surrogate.kinds.tables.schema import infer_types
from surrogate.reports.card import curve
from tests.surrogate.rows import wines

TINY = Preset(Settings(steps=20, batch=64, warm_up=2, check_every=10), depth=1)


def test_a_card_says_what_was_measured(tmp_path: Path) -> None:
    data = simulate(models.esirs(), samples=200, seed=3, initial={"S": 95, "I": 5})
    model = Run(data, 0, TINY).fit()
    found = model.kind.card(model.codec, model.about)
    for text in (
        "variables: S, I, R, at 30 times from 0 to 3.2",
        "follows from conservation: R",
        "made from 200 trajectories, 180 of them learned from; seed 0",
        "20 updates with batches of 64",
        "20 samples without conditions against 20 held-out trajectories",
        "| D(S), median over steps |",
        "| correlation error |",
        "rules of the network | 100.00% |",
        f"**Verdict: {model.about['card']['verdict']['words']}.**",
        "- Every sample obeys the laws of the network.",
    ):
        assert text in found, text
    lines = model.kind.card_table(model.about["card"]).splitlines()
    assert lines[1].split() == ["measure", "value", "floor", "ratio"]
    assert len(lines) - 1 == found.count("\n| ")


def test_a_card_of_an_untrained_model() -> None:
    data = simulate(models.esirs(), samples=60, seed=3)
    model = Run(data, 0, TINY).model
    assert model.kind.card(model.codec, {}).startswith("# A surrogate of trajectories")
    assert curve([]) == "step,loss,held_out\n"


def test_a_card_of_rows() -> None:
    model = Run(infer_types(wines(400)).data, 0, TINY).fit()
    found = model.kind.card(model.codec, model.about)
    for text in (
        "# A surrogate of a table",
        "columns: alcohol, sugar, quality, colour, place, density, old",
        "made from 400 rows, 360 of them learned from; seed 0",
        "40 samples without conditions against 40 held-out rows",
        "| D, median over columns |",
        "| D, max over columns (",
        "| correlation error |",
        "| D of pairs of columns |",
        "| accuracy of a classifier |",
        "| nearest training row, median |",
        "| exact copies of training rows |",
    ):
        assert text in found, text
    lines = model.kind.card_table(model.about["card"]).splitlines()
    assert len(lines) - 1 == found.count("\n| ")
