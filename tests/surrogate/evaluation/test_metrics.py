"""A new metric is one registered function: it is then in the table, the JSON and the verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from surrogate.data import evaluate, report_facts
from surrogate.evaluation.result import Distance
from surrogate.kinds.trajectories.compare import METRICS, Pair
from surrogate.reports.page import page
from tests.surrogate.evaluation.test_evaluate import epidemic


@pytest.fixture
def toy() -> Iterator[None]:
    """The distance of the means of the last step."""

    @METRICS.distance("last_mean", "difference of last means", "The last means differ")
    def last_mean(pair: Pair) -> Distance:
        x, y = (float(side.values("I")[:, -1].mean()) for side in (pair.x, pair.y))
        return Distance.of(abs(x - y), np.array([0.01, 0.03]))

    yield
    METRICS.unregister(last_mean)


@pytest.mark.usefixtures("toy")
def test_a_registered_metric_is_measured_and_shown_everywhere() -> None:
    found = evaluate(epidemic(200, seed=1, rate=0.4), epidemic(200, seed=2))
    assert found.last_mean.value > 1
    assert "last_mean" in dir(found)
    assert "difference of last means" in found.table()
    assert json.loads(json.dumps(found.to_dict()))["last_mean"]["floor"] == pytest.approx(0.02)
    assert any("The last means differ" in reason.sentence for reason in found.reasons())
    kind, facts = report_facts(epidemic(20, seed=1), epidemic(20, seed=2))
    assert "difference of last means" in page(facts, kind.report_sections())
    rows = METRICS.card_rows(json.loads(json.dumps(found.to_dict())))
    assert "difference of last means" in [row[0] for row in rows]


def test_a_metric_that_is_not_registered_is_no_attribute() -> None:
    found = evaluate(epidemic(20, seed=1), epidemic(20, seed=2))
    with pytest.raises(AttributeError, match=r"no 'last_mean'; have .*energy"):
        _ = found.last_mean


def test_a_repr_is_short() -> None:
    found = evaluate(epidemic(20, seed=1), epidemic(20, seed=2))
    assert repr(found).splitlines()[0] == "20 trajectories against 20"
    assert len(repr(found)) < 2_500
    assert found._repr_html_().count("<tr>") == len(found.rows()) + 1
