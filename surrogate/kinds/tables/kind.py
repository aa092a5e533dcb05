"""Tables: samples are rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action, DataError, Setting
from surrogate import networks
from surrogate.errors import ModelError
from surrogate.io import formats
from surrogate.io.formats import DATASET, TABLE, Say
from surrogate.io.reading import ObservationOptions, TableOptions, says_runs
from surrogate.kinds import tables
from surrogate.kinds.images.values import is_images
from surrogate.kinds.kind import D, Data, Hint, Kind, listed
from surrogate.kinds.label_names import LOG_LIKELIHOOD, RULE_PREFIX, label_columns
from surrogate.kinds.tables import files, schema, shapes

if TYPE_CHECKING:
    from torch import Tensor, nn

    from constraints import Layout
    from surrogate.diffusion.presets import Preset
    from surrogate.evaluation.result import CardRow, Evaluation
    from surrogate.kinds.codec import Codec
    from surrogate.kinds.decoder import Decoder
    from surrogate.kinds.drawing import Drawing
    from surrogate.kinds.observed import Observed
    from surrogate.kinds.rule_options import RuleOptions, StatedRules
    from surrogate.reports.facts import Facts
    from surrogate.reports.page import Section

MAX_TABLE_DEPTH = 3  # blocks of a network for rows: more are slower, and no better


class Tables(Kind):
    """Rows of numbers, words, booleans and dates: a DataFrame, or a dataset over (sample,)."""

    name = "rows"
    stored = "table"
    singular = "row"
    dimensions = "(sample,)"

    # --- recognising ------------------------------------------------------------------------------

    def holds(self, data: object) -> bool:
        if isinstance(data, pd.DataFrame):
            return True
        if not isinstance(data, xr.Dataset) or "sample" not in data.dims:
            return False
        return "time" not in data.dims and not is_images(data)

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        """`types` and `missing`: see `surrogate.kinds.tables.schema.infer_types`."""
        if isinstance(data, pd.DataFrame):
            return schema.infer_types(data, **options).data
        if options:
            name = next(iter(options))
            raise ModelError(
                f"{name} applies to a DataFrame, not to a dataset",
                value=name,
                remedy=("leave out ", Setting(name)),
            )
        if not isinstance(data, xr.Dataset):
            raise ModelError(f"a table is a pandas.DataFrame, not {type(data).__name__}")
        return data

    def to_python(self, data: xr.Dataset) -> pd.DataFrame:
        return schema.to_frame(data)

    # --- learning ---------------------------------------------------------------------------------

    detects_copies = True

    def with_rules(self, data: xr.Dataset, options: RuleOptions) -> tuple[xr.Dataset, StatedRules]:
        found: tuple[xr.Dataset, StatedRules] = tables.rules.with_rules(data, options)
        return found

    def fit_codec(
        self, data: xr.Dataset, learned: np.ndarray, transforms: Mapping[str, str]
    ) -> Codec:
        if transforms:
            raise ModelError(
                f"there is no transform of {next(iter(transforms))!r} to choose: the columns of a "
                "table are learned by their quantiles",
                value=dict(transforms),
                remedy=("leave out ", Action("transforms=...", "--transform")),
            )
        return tables.codec.TableCodec.fit(data, learned)

    def codec_from_config(self, config: Mapping[str, Any]) -> Codec:
        return tables.codec.TableCodec.from_config(config)

    def network(self, codec: Codec, width: int | None, depth: int) -> nn.Module:
        (size,) = codec.shape
        return networks.residual_mlp.ResidualMLP(size, width, depth)

    def decoder(
        self, codec: Any, width: int | None = None, depth: int | None = None, *, new: bool = True
    ) -> Decoder | None:
        made: Decoder = tables.decoder.TableDecoder(codec, width, depth, new)
        return made

    def tuned(self, preset: Preset) -> Preset:
        return replace(preset, depth=min(preset.depth, MAX_TABLE_DEPTH))

    # --- formulas and sampling --------------------------------------------------------------------

    def observed(self, data: Any, layout: Layout, options: ObservationOptions) -> Observed:
        found: Observed = tables.observations.observations(data, layout, options)
        return found

    def layout(self, data: Any, instances: int | None = None) -> Layout:
        return tables.layout.layout(data, instances)

    def tensors(
        self, data: Any, layout: Layout, samples: slice, names: set[str] | None = None
    ) -> dict[str, Tensor]:
        return tables.layout.tensors(data, layout, samples, names)

    def labelled(
        self,
        data: D,
        rules: Sequence[str],
        verdicts: np.ndarray,
        margins: np.ndarray,
        log_likelihood: np.ndarray | None = None,
    ) -> D:
        """In a DataFrame of several rules, each has a column "satisfied: <rule>"."""
        if isinstance(data, xr.Dataset):
            return super().labelled(data, rules, verdicts, margins, log_likelihood)
        old = label_columns(data)
        for name in ("satisfied", "robustness"):
            if name in data.columns and name not in old:
                raise DataError(
                    f"the table has a column {name!r} of its own", remedy="rename it to keep it"
                )
        kept = data[[name for name in data.columns if name not in old]].copy()
        if log_likelihood is not None:
            kept[LOG_LIKELIHOOD] = log_likelihood
        if not rules:
            return kept
        kept["satisfied"] = np.asarray(verdicts.all(1))
        kept["robustness"] = np.asarray(margins.min(1))
        if len(rules) > 1:
            for r, rule in enumerate(rules):
                kept[RULE_PREFIX + rule] = verdicts[:, r]
        return kept

    # --- comparing --------------------------------------------------------------------------------

    compare_options = ("target", "train")

    def compare(self, data: Any, against: Any, seed: int, **options: Any) -> Evaluation:
        """`target`: a column to predict; `train`: the rows that were learned from."""
        train = options.get("train")
        if train is not None and not self.holds(train):
            raise ModelError(
                "the training rows are no table", value=train, remedy="give data of one kind"
            )
        found: Evaluation = tables.compare.compare(data, against, seed, **options)
        return found

    # --- plotting and reporting -------------------------------------------------------------------

    plot_options = ("columns", "title")

    def plot(self, data: Any, against: Any, observed: Any, ax: Any, **options: Any) -> Any:
        """`columns`: which."""
        if observed is not None:
            raise ModelError(
                f"observed is for trajectories, and these are {self.name}", remedy="leave it out"
            )
        return tables.plot.plot(data, against, ax=ax, **options)

    names_option = "columns"

    def drawing(self, data: Any, against: Any, observed: Any, **options: Any) -> Drawing:
        if observed is not None:
            self.plot(data, against, observed, None)  # which refuses it
        made: Drawing = tables.plot.drawing(data, against, **options)
        return made

    reference_example = "REAL.csv"

    def report_facts(self, data: Any, against: Any, **options: Any) -> Facts:
        facts: Facts = tables.report.read(data, against, **options)
        return facts

    def report_sections(self) -> Sequence[Section]:
        sections: Sequence[Section] = tables.report.SECTIONS
        return sections

    subject = "a table"

    def summary(self, codec: Any) -> list[str]:
        return [f"columns: {codec.learned}"]

    def card_rows(self, found: Mapping[str, Any]) -> list[CardRow]:
        rows: list[CardRow] = tables.compare.card_rows(found)
        return rows

    # --- files ------------------------------------------------------------------------------------

    reading = TableOptions
    written_as = (TABLE, DATASET)
    outputs = ("rows.csv",)
    judged_by_source = True

    def reads(self, holds: str, given: Collection[str]) -> bool:
        return holds == TABLE and not says_runs(given)

    def opened(self, data: Any, path: str, options: Any, say: Say) -> Data:
        return files.opened(data, path, options)

    def as_read(self, data: Data, options: Any) -> pd.DataFrame:
        return files.as_read(data, options)

    def learnable(self, data: Data, path: str, options: Any, say: Say) -> xr.Dataset:
        return files.learnable(data, path, options, say)

    def hint(self, data: Data) -> Hint:
        return shapes.hint(data) if isinstance(data, pd.DataFrame) else ()

    def for_formulas(self, data: Data) -> Data:
        """Text that spells dates and numbers as these; rows written one by one as (sample,
        instance)."""
        if not isinstance(data, pd.DataFrame):
            return data
        table = schema.with_parsed_text(data)
        together = schema.regrouped_instances(table)
        return table if together is None else together

    def chosen(self, data: Data, samples: np.ndarray) -> Data:
        if isinstance(data, pd.DataFrame):
            return data.iloc[samples].reset_index(drop=True)
        return data.isel(sample=samples)

    def endings(self, data: object = None) -> tuple[str, ...]:
        ways = (TABLE,) if isinstance(data, pd.DataFrame) else self.written_as
        return formats.endings(ways)

    def write(self, data: Data, path: str | Path) -> None:
        table = formats.format_for(path, self.written_as).holds == TABLE
        if table and isinstance(data, xr.Dataset):
            data = schema.to_frame(data)
        formats.write(data, path, (TABLE,) if isinstance(data, pd.DataFrame) else (DATASET,))

    def extent(self, data: xr.Dataset, learned: str) -> str:
        columns = len(data.data_vars)
        return f"{data.sizes['sample']:,} rows of {columns:,} column{'s' * (columns != 1)}"

    def example_rule(self, names: Sequence[str]) -> str:
        name = names[0] if names else "column"
        return f"{name} = 11" if name.isidentifier() else f'"{name}" = 11'

    def described(self, data: xr.Dataset, names: Sequence[str]) -> str:
        count, several = int(data.sizes["sample"]), int(data.sizes.get("instance", 1))
        many = f"{count:,}" if several == 1 else f"{count:,} times {several}"
        return f"{many} row{'s' * (count * several != 1)} of {listed(names)}"
