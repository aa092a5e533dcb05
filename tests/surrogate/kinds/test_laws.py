"""Which rules data carry, and the share of samples that obey them."""

from __future__ import annotations

import numpy as np
import pytest

from constraints import parse
from surrogate.data import evaluate
from surrogate.io.rules import rules_in
from surrogate.kinds.laws import share_obeying
from surrogate.kinds.signals import layout_of, tensors_of
from tests.surrogate.evaluation.test_evaluate import epidemic, table


def test_data_of_a_network_carry_its_rules() -> None:
    assert len(rules_in(epidemic(5).attrs)) > 3
    assert rules_in({}) == {}
    assert rules_in({"surrogate_config": "no JSON"}) == {}


def test_samples_that_break_any_rule_count_once_by_their_weight() -> None:
    data = epidemic(100, seed=1)
    data["I"][:10, 2] = -1
    layout = layout_of(data)
    weights = np.where(np.arange(100) < 10, 2.0, 1.0)
    rules = {text: parse(text) for text in ("forall t: I(t) >= 0", "min(I) >= 0", "max(E) <= 3")}
    share, count = share_obeying(rules, layout, tensors_of(data, layout), weights)
    assert share == pytest.approx(90 / 110)
    assert count == 2  # there is no E


def test_tables_without_rules_are_not_judged_by_any() -> None:
    assert evaluate(table(50, seed=1), table(50, seed=2)).consistent is None
