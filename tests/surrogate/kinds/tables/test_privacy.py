"""Rows that were learned from: repeated, nearly repeated, and new."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from surrogate.kinds.tables import privacy as module
from surrogate.kinds.tables.align import Rows, shared_columns
from surrogate.kinds.tables.privacy import NEAR_SHARE, Privacy, Records, privacy
from tests.surrogate.rows import wines


def found(x: pd.DataFrame, y: pd.DataFrame, train: pd.DataFrame | None = None) -> Privacy:
    sides = [Rows(x, "x"), Rows(y, "y"), *([] if train is None else [Rows(train, "train")])]
    columns, _ = shared_columns(*sides)
    return privacy(columns, sides[0].weights, held_out=train is not None)


@pytest.mark.parametrize("seed", range(4))
def test_new_rows_are_as_near_as_real_ones(seed: int) -> None:
    made = found(wines(500, seed + 1), wines(700, seed + 50))
    assert not made.memorised
    assert made.near == pytest.approx(NEAR_SHARE, abs=4 * made.error)
    assert made.samples.median == pytest.approx(made.real.median, rel=0.1)
    assert made.samples.copies == made.real.copies == 0
    held = found(wines(500, seed + 1), wines(300, seed + 20), wines(700, seed + 50))
    assert held.held_out
    assert not held.memorised


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_copies_are_detected(share: float) -> None:
    train, new = wines(700, 1), wines(400, 2)
    count = int(share * 400)
    x = pd.concat([train[:count], new[count:]])
    for made in (found(x, train), found(x, wines(300, 3), train)):
        assert made.samples.copies == pytest.approx(share)
        assert made.memorised
        assert made.near > 0.8 * share


def test_near_copies_are_detected() -> None:
    train = wines(700, 1)
    x = train[:400].copy()
    x["alcohol"] += np.random.default_rng(0).normal(0, 1e-3, 400)
    made = found(x, wines(300, 3), train)
    assert made.samples.copies == 0
    assert made.memorised
    assert made.samples.median < 0.05 * made.real.median


def test_duplicates_within_real_tables_are_no_memorisation() -> None:
    """Few different rows: everything is a copy, of real rows as well."""
    random = np.random.default_rng(0)
    x, y = (
        pd.DataFrame({"a": random.integers(0, 3, n), "b": random.choice(["u", "v"], n)})
        for n in (300, 500)
    )
    made = found(x, y)
    assert made.samples.copies == made.real.copies == 1
    assert not made.memorised
    assert made.near == pytest.approx(NEAR_SHARE)


def test_distances_equal_those_by_brute_force() -> None:
    x, train = wines(60, 1), wines(90, 2)
    names, words = ["alcohol", "sugar", "quality"], ["colour", "place", "old"]
    columns, _ = shared_columns(Rows(x[names + words], "x"), Rows(train[names + words], "train"))
    records = Records.of(columns, 1)
    mean, deviation = train[names].mean(), train[names].std(ddof=0)
    a, b = ((each[names] - mean) / deviation for each in (x, train))
    unlike = (x[words].to_numpy()[:, None] != train[words].to_numpy()).sum(-1)
    expected = np.sqrt((cdist(a, b) ** 2 + unlike) / 6)
    rows, every = np.arange(60), np.arange(90)
    np.testing.assert_allclose(records.nearest(0, rows, every), expected.min(1))
    itself = cdist(b, b) ** 2 + (train[words].to_numpy()[:, None] != train[words].to_numpy()).sum(
        -1
    )
    np.fill_diagonal(itself, np.inf)
    np.testing.assert_allclose(
        records.nearest(1, every, every, others=True), np.sqrt(itself.min(1) / 6), atol=1e-7
    )


def test_the_chunk_size_does_not_change_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = found(wines(200, 1), wines(300, 2))
    monkeypatch.setattr(module, "CHUNK_DISTANCES", 1000)
    assert found(wines(200, 1), wines(300, 2)) == whole


def test_large_tables_are_subsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRAINING_ROWS", 100)
    monkeypatch.setattr(module, "MAX_QUERIED_ROWS", 50)
    train = wines(700, 1)
    assert found(train[:300], wines(300, 3), train).memorised
    assert not found(wines(300, 2), wines(300, 3), train).memorised


def test_missing_values_and_constants_have_distances() -> None:
    x = pd.DataFrame({"a": [1.0, np.nan, 2, 3], "c": [7.0] * 4, "n": [np.nan] * 4})
    made = found(x, x)
    assert made.samples.copies == 1
    assert made.samples.median == 0
    assert np.isfinite(made.real.median)
    other = x.assign(c=8.0, n=1.0)
    assert found(other, x).samples.copies == 0


def test_rows_are_weighted() -> None:
    train = wines(400, 1)
    x = pd.concat([train[:100], wines(300, 2)])
    x["log_weight"] = np.repeat([-30.0, 0.0], [100, 300])
    assert not found(x, wines(300, 3), train).memorised
    x["log_weight"] = 0.0
    assert found(x, wines(300, 3), train).memorised


def test_shares_of_the_histogram_add_up_to_one() -> None:
    made = found(wines(300, 1), wines(300, 2))
    for side in (made.samples, made.real):
        assert sum(side.shares) == pytest.approx(1)
    assert len(made.edges) == len(made.real.shares) + 1
