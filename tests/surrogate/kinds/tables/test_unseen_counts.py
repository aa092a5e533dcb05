"""Whole numbers that no row has, in columns of counts."""

from __future__ import annotations

import numpy as np

from surrogate.kinds.tables.quantiles import Quantiles


def test_counts_that_no_row_has_can_be_stated_and_codes_cannot() -> None:
    random = np.random.default_rng(4)
    counts = random.negative_binomial(1, 1 / 101, 1_000).astype(float)
    found = Quantiles.fit(counts)
    assert len(np.unique(counts)) < 0.8 * (np.ptp(counts) + 1)
    assert (found.start == np.arange(counts.min(), counts.max() + 1)).all()
    assert found.stepped
    seen = np.isin(found.start, counts)
    assert np.diff(found.edges)[~seen].sum() < 0.05
    np.testing.assert_array_equal(found.finish(found.forward(counts, np.full(1_000, 0.5))), counts)
    for codes in (5 * counts, np.unique(counts)[:60].repeat(20), counts**2):
        assert (Quantiles.fit(codes).start == np.unique(codes)).all()
