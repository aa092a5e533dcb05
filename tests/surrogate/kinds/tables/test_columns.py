"""Columns of a table, one kind after the other: encoded, decoded, finished, kept and refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.kinds.label_names import ABSENT
from surrogate.kinds.tables import columns
from surrogate.kinds.tables.column_values import to_text
from surrogate.kinds.tables.columns import (
    CategoricalColumn,
    NumericColumn,
    fit_column,
    from_config,
)

ROWS = 600


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, 6])


def there_and_back(column: NumericColumn | CategoricalColumn, values: np.ndarray) -> np.ndarray:
    uniform = random(1).uniform(size=(len(values), column.size))
    x = column.encode(values, uniform)
    assert x.shape == (len(values), column.size)
    assert np.isfinite(x).all()
    return column.finish(x)


def fit(kind: str, values: np.ndarray, **attrs: Any) -> NumericColumn | CategoricalColumn:
    return fit_column("x", kind, values, attrs)


def gaps(values: np.ndarray, share: float = 0.3) -> np.ndarray:
    return np.where(random(2).uniform(size=len(values)) < share, np.nan, values)


def days(count: int) -> np.ndarray:
    start = np.datetime64("1968-03-01", "ns")
    return start + random().integers(0, 9_000, count).astype("timedelta64[D]")


def seconds(count: int) -> np.ndarray:
    start = np.datetime64("2021-11-05T13:14:15", "ns")
    return start + random().integers(0, 10**8, count).astype("timedelta64[s]")


NUMBERS = {
    "number": random().normal(5, 2, ROWS),
    "integer": random().integers(-5, 40, ROWS),
    "days": days(ROWS),
    "seconds": seconds(ROWS),
    "gaps": gaps(random().normal(5, 2, ROWS)),
    "whole gaps": gaps(random().integers(0, 9, ROWS)),
}
KIND = {"days": "date", "seconds": "date", "gaps": "number", "whole gaps": "integer"}
WORDS = {
    "words": random().choice(np.array(["b", "a", "c d"], object), ROWS, p=[0.2, 0.5, 0.3]),
    "missing words": random().choice(np.array(["b", None, "c"], object), ROWS),
    "truths": random().uniform(size=ROWS) < 0.3,
    "missing truths": random().choice(np.array([True, None, False], object), ROWS),
}
EVERY = NUMBERS | WORDS


def column_of(name: str) -> NumericColumn | CategoricalColumn:
    kind = "category" if "words" in name else "boolean"
    return fit(KIND.get(name, name) if name in NUMBERS else kind, EVERY[name])


# --- there and back -------------------------------------------------------------------------------


def test_integers_stay_integers() -> None:
    found = there_and_back(column_of("integer"), EVERY["integer"])
    assert found.dtype == np.int64
    assert (found == EVERY["integer"]).all()


@pytest.mark.parametrize("name", ["days", "seconds"])
def test_dates_are_restored_to_the_day_or_second(name: str) -> None:
    found = there_and_back(column_of(name), EVERY[name])
    assert found.dtype == np.dtype("datetime64[ns]")
    assert (found == EVERY[name]).all()
    made = column_of(name).finish(random().normal(size=(300, 1)))
    unit = "D" if name == "days" else "s"
    assert (made == made.astype(f"datetime64[{unit}]")).all()
    assert made.min() >= EVERY[name].min()
    assert made.max() <= EVERY[name].max()


def test_dates_may_be_missing() -> None:
    dates = days(ROWS)
    dates[::4] = np.datetime64("NaT")
    column = fit("date", dates)
    found = there_and_back(column, dates)
    assert (np.isnat(found) == np.isnat(dates)).all()
    assert (found[1::4] == dates[1::4]).all()
    assert column.signal().optional
    assert column.signal().dates


@pytest.mark.parametrize("name", ["gaps", "whole gaps"])
def test_missing_numbers_are_restored(name: str) -> None:
    values = EVERY[name]
    column = column_of(name)
    assert column.size == 2
    assert column.signal().optional
    np.testing.assert_allclose(there_and_back(column, values), values, rtol=1e-6)
    made = column.finish(random().normal(size=(20_000, 2)))
    share = np.isnan(values).mean()
    assert abs(np.isnan(made).mean() - share) < 4 * math.sqrt(share * (1 - share) / 20_000) + 2e-3
    assert np.isnan(column.signals_of(random().normal(size=(50, 2)))).any()


def test_the_channel_of_a_missing_number_is_noise() -> None:
    column = column_of("gaps")
    x = column.encode(np.full(4000, np.nan), random().uniform(size=(4000, 2)))
    assert abs(x[:, 0].mean()) < 0.1
    assert abs(x[:, 0].std() - 1) < 0.1
    present = NumericColumn.fit("x", "number", np.arange(9.0), {})
    with pytest.raises(ModelError, match=r"x is missing in row 2, and never was"):
        present.encode(np.array([1.0, 2.0, np.nan]), np.zeros((3, 1)))


@pytest.mark.parametrize("name", WORDS)
def test_words_are_restored(name: str) -> None:
    found = there_and_back(column_of(name), EVERY[name])
    assert found.tolist() == EVERY[name].tolist()  # None where they are missing
    assert found.dtype == (bool if name == "truths" else object)
    assert column_of(name).size == len({*EVERY[name].tolist()})


def test_a_denoised_estimate_is_a_vector_of_probabilities() -> None:
    """The mean of encoded words decodes to their shares, and to one in all."""
    column = column_of("words")
    x = column.encode(EVERY["words"], np.zeros((ROWS, 3)))
    weights = column.decode(torch.from_numpy(x.mean(0, keepdims=True)))[0]
    shares = [(EVERY["words"] == word).mean() for word in ("a", "b", "c d")]
    np.testing.assert_allclose(weights, shares, atol=1e-9)
    np.testing.assert_allclose(column.decode(torch.from_numpy(x)).sum(1), 1)
    np.testing.assert_allclose(x.var(0).sum(), 2)


@pytest.mark.parametrize("count", [65, 300])
def test_many_categories_share_channels_and_are_restored(count: int) -> None:
    words = np.array([f"w{i:03}" for i in range(count)], object)
    column = fit("category", np.concatenate([words, words[:40]]))
    assert there_and_back(column, words).tolist() == words.tolist()
    assert column.signal().categories == tuple(words)
    uniform = np.zeros((count, column.size))
    weights = column.decode(torch.from_numpy(column.encode(words, uniform)))
    assert weights.shape == (count, count)
    np.testing.assert_allclose(weights.diagonal(), 1)
    assert column.encode(words, uniform).var(0).sum() < 2.5


def test_too_many_categories_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_CATEGORIES", 3)
    with pytest.raises(ModelError, match=r"x has 4 different words, such as a, b, c; .*leave it"):
        fit("category", np.array(list("abcd"), object))


@settings(max_examples=40)
@given(st.lists(st.text(max_size=5) | st.none(), min_size=1, max_size=40))
def test_any_words_are_restored(words: list[str | None]) -> None:
    values = np.empty(len(words), object)
    values[:] = words
    column = fit("category", values)
    wanted = [None if word == ABSENT else word for word in words]
    assert there_and_back(column, values).tolist() == wanted
    assert list(column.signal().categories) == sorted({ABSENT if w is None else w for w in words})


def test_all_missing_values_become_one_category() -> None:
    values = np.array(["a", None, np.nan, pd.NA, pd.NaT], object)
    assert to_text(values).tolist() == ["a", *[ABSENT] * 4]
    assert to_text(np.array([True, False])).tolist() == ["True", "False"]
    assert to_text(np.array([3, 1, 3])).tolist() == ["3", "1", "3"]


# --- what never varies ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("number", 2.5), ("integer", 7), ("date", np.datetime64("2020-02-03", "ns")),
        ("category", "only"), ("boolean", True), ("category", None),
    ],
)  # fmt: skip
def test_constants_have_no_channel(kind: str, value: Any) -> None:
    values = np.full(60, value, object if kind == "category" else None)
    column = fit(kind, values)
    assert column.size == 0
    assert there_and_back(column, values).tolist() == values.tolist()
    x = torch.zeros(5, 0, dtype=torch.float64)
    assert column.within(x).shape == (5, 0)
    decoded = column.decode(x)
    assert decoded.shape == ((5, 1) if kind in columns.CATEGORICAL_TYPES else (5,))
    again = from_config(json.loads(json.dumps(column.to_config())))
    assert there_and_back(again, values).tolist() == values.tolist()


def test_a_constant_with_missing_values_has_one_channel() -> None:
    values = np.where(random().uniform(size=ROWS) < 0.2, np.nan, 4.0)
    column = fit("integer", values)
    assert column.size == 1
    np.testing.assert_array_equal(there_and_back(column, values), values)
    x = torch.randn(30, 1, generator=torch.Generator().manual_seed(0))
    assert column.within(x).shape == (30, 1)
    assert (column.decode(x) == 4).all()


def test_a_single_value_among_missing_ones_is_restored() -> None:
    values = np.full(60, np.nan)
    values[3] = 0.123456789012345
    column = fit("number", values)
    again = from_config(json.loads(json.dumps(column.to_config())))
    for each in (column, again):
        np.testing.assert_array_equal(there_and_back(each, values), values)
    with pytest.raises(ModelError, match="x has no values; leave it out"):
        fit("number", np.full(9, np.nan))


# --- coordinates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_within_leaves_data_unchanged_and_is_idempotent(name: str) -> None:
    column = column_of(name)
    draw = random(4)
    x = torch.from_numpy(column.encode(EVERY[name], draw.uniform(size=(ROWS, column.size))))
    torch.testing.assert_close(column.within(x), x, atol=1e-6, rtol=1e-6)
    wild = torch.from_numpy(draw.normal(0, 4, (400, column.size)))
    if name in WORDS:
        wild = wild - wild.mean(1, keepdim=True)  # weights that add up to one
    once = column.within(wild)
    torch.testing.assert_close(column.within(once), once)
    if name in WORDS:
        weights = column.latent(once)
        assert bool((weights >= -1e-9).all())
        torch.testing.assert_close(weights.sum(1), torch.ones(400).double())
        found, before = column.signals_of(once.numpy()), column.signals_of(wild.numpy())
        clear = (column.latent(wild) > 1).sum(1) < 2
        assert (found[clear] == before[clear]).all()
    else:  # beyond its ends the map does not change
        found, before = (column.signals_of(each.numpy()) for each in (once, wild))
        np.testing.assert_allclose(found, before, rtol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_decoded_values_have_a_gradient(name: str) -> None:
    column = column_of(name)
    x = torch.from_numpy(random(5).normal(size=(50, column.size))).requires_grad_()
    y = column.decode(x)
    (slope,) = torch.autograd.grad(
        (y * torch.arange(1.0, 51).reshape(-1, *[1] * (y.ndim - 1))).sum(), x
    )
    assert bool(torch.isfinite(slope).all())
    assert float((slope[:, 0] != 0).double().mean()) > 0.6  # but at the ends
    latent = column.latent(x.detach())
    twice = column.latent(2 * x.detach()) - latent  # affine: equal steps
    torch.testing.assert_close(column.latent(3 * x.detach()) - column.latent(2 * x.detach()), twice)


@pytest.mark.parametrize("name", EVERY)
def test_signals_equal_finished_values(name: str) -> None:
    """Formulas see the values that are emitted, to the last bit."""
    column = column_of(name)
    x = random(6).normal(0, 1.5, (3000, column.size))
    signals, made = column.signals_of(x), column.finish(x)
    if isinstance(column, CategoricalColumn):
        words = np.array(column.categories, object)[signals]
        assert words.tolist() == to_text(made).tolist()
    else:
        np.testing.assert_array_equal(columns.as_numbers("x", column.kind, made), signals)


# --- refused and kept -----------------------------------------------------------------------------


def test_unknown_words_are_refused() -> None:
    column = column_of("words")
    with pytest.raises(ModelError, match=r"x is 'z' in row 2.*have: a, b, c d"):
        column.encode(np.array(["a", "b", "z"], object), np.zeros((3, 3)))
    with pytest.raises(ModelError, match=r"x is '\(missing\)' in row 0"):
        column.encode(np.array([None], object), np.zeros((1, 3)))


def test_values_of_another_type_are_refused() -> None:
    numbers, dates = column_of("number"), column_of("days")
    with pytest.raises(ModelError, match=r"x holds .* where numbers were"):
        numbers.encode(np.array(["red"], object), np.zeros((1, 1)))
    with pytest.raises(ModelError, match=r"x holds .* where dates were"):
        dates.encode(np.array(["red"], object), np.zeros((1, 1)))
    with pytest.raises(ModelError, match="x is infinite in row 1"):
        numbers.encode(np.array([1.0, -np.inf]), np.zeros((2, 1)))


@pytest.mark.parametrize("name", EVERY)
def test_columns_are_restored_from_json(name: str) -> None:
    column = fit_column("x", column_of(name).kind, EVERY[name], {"units": "m"})
    again = from_config(json.loads(json.dumps(column.to_config())))
    assert again.to_config() == column.to_config()
    assert again.attrs == {"units": "m"}
    assert again.signal() == column.signal()
    x = random(7).normal(size=(200, column.size))
    np.testing.assert_array_equal(again.finish(x), column.finish(x))
    torch.testing.assert_close(
        again.decode(torch.from_numpy(x)), column.decode(torch.from_numpy(x)), atol=0, rtol=0
    )


@pytest.mark.parametrize(
    "change",
    [
        {"categories": None}, {"categories": []}, {"categories": ["a"]}, {"categories": "ab"},
        {"categories": ["a", "a", "b"]}, {"categories": {}}, {"shares": None}, {"shares": [1]},
        {"shares": [0.5, 0.5, 0.5]}, {"shares": [0.0, 0.5, 0.5]}, {"shares": [-0.5, 0.5, 1.0]},
        {"shares": ["a", "b", "c"]}, {"shares": [math.nan, 0.5, 0.5]}, {"shares": [10**400, 1, 1]},
        {"kind": "number"}, {"kind": "words"}, {"kind": None}, {"kind": []}, {"attrs": None},
        {"attrs": []}, {"name": None}, {"name": 3},
    ],
)  # fmt: skip
def test_damaged_descriptions_of_categories_are_refused(change: dict[str, Any]) -> None:
    good = column_of("words").to_config()
    from_config(good)
    with pytest.raises(ModelError, match="in the codec"):
        from_config(good | change)


@pytest.mark.parametrize("name", ["quantiles", "known"])
@pytest.mark.parametrize("value", [3, "x", {"edges": []}, [1]])
def test_damaged_descriptions_of_numbers_are_refused(name: str, value: Any) -> None:
    good = column_of("gaps").to_config()
    from_config(good)
    with pytest.raises(ModelError, match="in the codec"):
        from_config(good | {name: value})
    odd: Any
    for odd in (None, [], "x", {}):
        with pytest.raises(ModelError, match="in the codec"):
            from_config(odd)
