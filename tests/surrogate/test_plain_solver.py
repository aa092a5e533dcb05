"""The solver of plain samples, chosen by held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from surrogate import validation
from surrogate.diffusion.split import split
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.schema import infer_types
from surrogate.model import Surrogate
from tests.surrogate.rows import few_rounds

__all__ = ["few_rounds"]


def drawn(rows: int, seed: int = 0) -> pd.DataFrame:
    normal = np.random.default_rng(seed).normal(size=(rows, 2))
    return pd.DataFrame(normal @ np.array([[1.0, 0.9], [0, 0.4]]), columns=["a", "b"])


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return infer_types(drawn(2_500)).data


def untrained(data: xr.Dataset) -> Surrogate:
    return Surrogate.untrained(TableCodec.fit(data), 0, width=16, depth=1)


class Known(Surrogate):
    """Draws from the data by one solver, and with independent columns by the other."""

    good = ""

    def dataset(self, samples: int, *, where: Any = None, **given: Any) -> xr.Dataset:
        made = drawn(samples, seed=9)
        if given["solver"] != self.good:
            made["b"] = made["b"].sample(frac=1, random_state=0).to_numpy()
        return infer_types(made).data


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("good", ["autoregressive", "ode"])
def test_the_solver_is_the_one_whose_samples_trees_tell_least(good: str, data: xr.Dataset) -> None:
    own = untrained(data)
    model = Known(own.codec, own.denoiser, own.covariance, {}, decoder=own.decoder)
    model.good = good
    chosen = validation.plain_solver(model, data, split(2_500, 0), 0)
    assert chosen is not None
    solver, accuracies = chosen
    assert solver == good
    assert accuracies[good] == min(accuracies.values())
    assert len(accuracies) == 2


def test_few_rows_leave_it_to_the_diffusion(data: xr.Dataset) -> None:
    few = data.isel(sample=slice(400))
    model = untrained(few)
    assert model.default_solver == "autoregressive"  # nothing has been chosen
    chosen = validation.plain_solver(model, few, split(400, 0), 0)
    assert chosen == ("ode", {})
    model.about["solver"] = chosen[0]
    assert model.default_solver == "ode"
    assert len(model.sample(5)) == 5
    model.decoder = None
    assert validation.plain_solver(model, few, split(400, 0), 0) is None
