"""Small tables, and decoders of them with random weights."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from surrogate.kinds.rule_options import RuleOptions
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.decoder import TableDecoder
from surrogate.kinds.tables.rules import with_rules
from surrogate.kinds.tables.schema import infer_types
from tests.surrogate.analytic import generator

ROWS = 240


def discrete(rows: int = ROWS) -> pd.DataFrame:
    """A category, a grade, a number of ten values (too many for a choice), a gap."""
    random = np.random.default_rng(5)
    colour = random.choice(["blue", "green", "red"], rows, p=[0.5, 0.3, 0.2])
    grade = random.integers(1, 5, rows)
    size = np.clip(grade * 2 + random.integers(0, 4, rows), 0, 11) * 0.5
    known = np.where(random.uniform(size=rows) < 0.3, np.nan, random.integers(0, 2, rows) * 1.0)
    return pd.DataFrame({"colour": colour, "grade": grade, "size": size, "known": known})


def every_row(frame: pd.DataFrame) -> pd.DataFrame:
    """All combinations of the values of the columns."""
    values = [list(frame[name].drop_duplicates()) for name in frame]
    return pd.DataFrame(list(product(*values)), columns=list(frame))


def dataset(frame: pd.DataFrame, rules: list[str] | None = None) -> xr.Dataset:
    """Columns with their types, and declared rules."""
    data = infer_types(frame).data
    return with_rules(data, RuleOptions(rules, search=False))[0]


def decoder_of(data: xr.Dataset, seed: int = 1, size: float = 1.0) -> TableDecoder:
    """An untrained decoder, all weights random, also those that start at 0."""
    made = TableDecoder(TableCodec.fit(data), width=16, depth=1)
    source = generator(seed)
    with torch.no_grad():
        for weight in made.parameters():
            fan = weight.shape[-1] if weight.ndim > 1 else 1
            weight.copy_(size * torch.randn(weight.shape, generator=source) / math.sqrt(fan))
    return made.eval()


def encoded(decoder: TableDecoder, data: xr.Dataset, seed: int = 0) -> Tensor:
    return decoder.drawn.codec.encode(data, slice(None), generator(seed))


def listed(decoder: TableDecoder, frame: pd.DataFrame) -> tuple[pd.DataFrame, Tensor]:
    """All rows that there can be, and their probabilities."""
    rows = every_row(frame)
    data = decoder.drawn.codec.read(rows)
    return rows, decoder.log_prob(encoded(decoder, data)).double().exp()
