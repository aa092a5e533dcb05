"""Small tables of one law, and the same with a mistake in them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from surrogate.evaluation import boosting
from surrogate.kinds.tables import train_on_synthetic as usefulness


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees in no time: the tables are small."""
    monkeypatch.setattr(boosting, "MAX_TREES", 20)
    monkeypatch.setattr(usefulness, "FIT_REPEATS", 2)


def wines(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Numbers, counts, words, truth values and gaps that depend on one another."""
    random = np.random.default_rng([seed, 77])
    red = random.uniform(size=rows) < 0.4
    alcohol = random.normal(10 + red, 1, rows)
    sugar = np.exp(random.normal(1 - 0.5 * red, 0.6))
    quality = np.rint(np.clip(alcohol - 4 + random.normal(0, 0.6, rows), 2, 10)).astype(int)
    place = np.where(red, random.choice(["hill", "plain"], rows, p=[0.8, 0.2]), "plain")
    density = np.where(random.uniform(size=rows) < 0.1, np.nan, 1 - alcohol / 100)
    return pd.DataFrame(
        {
            "alcohol": alcohol,
            "sugar": sugar,
            "quality": quality,
            "colour": np.where(red, "red", "white"),
            "place": place,
            "density": density,
            "old": random.uniform(size=rows) < 0.3,
        }
    )


def shuffled(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """The same columns, each in an order of its own: all that goes together is lost."""
    random = np.random.default_rng([seed, 78])
    return pd.DataFrame({name: random.permutation(table[name]) for name in table})
