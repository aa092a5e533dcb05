"""Trajectories: samples over (sample, time)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Setting
from surrogate import diffusion, networks
from surrogate.errors import ModelError
from surrogate.io.attributes import OVERLAP
from surrogate.io.formats import DATASET, TABLE, Say
from surrogate.io.reading import ObservationOptions, TableOfRuns, says_runs
from surrogate.io.rules import all_rules
from surrogate.kinds import trajectories
from surrogate.kinds.kind import Hint, Kind
from surrogate.kinds.trajectories import files
from surrogate.kinds.trajectories.sample_tables import holds_samples

if TYPE_CHECKING:
    from torch import Tensor, nn

    from constraints import Formula, Layout
    from surrogate.evaluation.result import CardRow, Evaluation
    from surrogate.kinds.codec import Codec
    from surrogate.kinds.decoder import Decoder
    from surrogate.kinds.drawing import Drawing
    from surrogate.kinds.observed import Observed
    from surrogate.kinds.rule_options import RuleOptions, StatedRules
    from surrogate.reports.facts import Facts
    from surrogate.reports.page import Section


class Trajectories(Kind):
    """Series x(t) on a shared grid, and static values of each trajectory."""

    name = "trajectories"
    stored = "time series"
    singular = "trajectory"
    dimensions = "(sample, time)"
    half_precision = True  # counts and changes survive it: trees tell nothing apart on eSIRS

    def more_samples(self, least: int) -> Hint:
        windows = "; windows of one series may overlap: ", Setting("stride", 1)
        return (f"give {least} or more", *windows)

    # --- recognising ------------------------------------------------------------------------------

    def holds(self, data: object) -> bool:
        return isinstance(data, xr.Dataset) and {"sample", "time"} <= set(data.dims)

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        if options:
            raise ModelError(
                f"{next(iter(options))} does not apply to trajectories",
                value=next(iter(options)),
                remedy="leave it out",
            )
        if not isinstance(data, xr.Dataset):
            raise ModelError(
                f"trajectories are an xarray.Dataset, not {type(data).__name__}",
                value=type(data).__name__,
                remedy="read a table of runs with surrogate.read",
            )
        return data

    # --- files ------------------------------------------------------------------------------------

    reading = TableOfRuns

    def reads(self, holds: str, given: Collection[str]) -> bool:
        return holds == TABLE and says_runs(given)

    def recognises_table(self, table: pd.DataFrame) -> bool:
        return holds_samples(table)

    def opened(self, data: Any, path: str, options: Any, say: Say) -> xr.Dataset:
        return files.opened(data, path, options, say)

    written_as = (DATASET, TABLE)

    def write(self, data: Any, path: str | Path) -> None:
        files.write(data, path)

    def extent(self, data: xr.Dataset, learned: str) -> str:
        return f"{super().extent(data, learned)} over {data.sizes['time']} times"

    # --- learning ---------------------------------------------------------------------------------

    def with_rules(self, data: xr.Dataset, options: RuleOptions) -> tuple[xr.Dataset, StatedRules]:
        return trajectories.rules.with_rules(data, options)

    def fit_codec(
        self, data: xr.Dataset, learned: np.ndarray, transforms: Mapping[str, str]
    ) -> Codec:
        """`transforms`: variable -> "identity", "log", "logit(LOW, HIGH)"; else by the data."""
        return trajectories.chosen_codec.fit_to(data, learned, transforms)

    def codec_from_config(self, config: Mapping[str, Any]) -> Codec:
        return trajectories.codec.TimeSeriesCodec.from_config(config)

    def layout_in_config(self, config: Mapping[str, Any]) -> Layout:
        return trajectories.config_layout.layout_from_config(
            trajectories.config_layout.mapping_in(config, "layout")
        )

    def config_knowing(self, config: Mapping[str, Any], **named: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = trajectories.start_date.starting(config, **named)
        return found

    def observed(self, data: Any, layout: Layout, options: ObservationOptions) -> Observed:
        found: Observed = trajectories.observations.observations(data, layout, options)
        return found

    def rules_in_config(self, config: Mapping[str, Any]) -> Mapping[str, Formula]:
        stated = config.get("rules")
        return all_rules(config.get("about"), stated if isinstance(stated, Mapping) else {})

    def network(self, codec: Codec, width: int | None, depth: int) -> nn.Module:
        channels, steps = codec.shape
        return networks.temporal_mlp.TemporalMLP(channels, steps, width, depth)

    def decoder(
        self, codec: Any, width: int | None = None, depth: int | None = None, *, new: bool = True
    ) -> Decoder | None:
        made: Decoder = trajectories.decoder.TrajectoryDecoder(codec, width, depth)
        return made

    def loss_weights(self, codec: Codec, held_out: Tensor, noise: Tensor) -> Tensor:
        return diffusion.losses.emphasis(held_out, codec.within, noise)

    def overlap(self, data: xr.Dataset) -> int:
        return int(data.attrs.get(OVERLAP, 0))

    # --- formulas and sampling --------------------------------------------------------------------

    bridges = True
    formula_names = ("start", "unit", "observed")  # the first date, the unit, observed dates

    def layout(self, data: Any, instances: int | None = None) -> Layout:
        return trajectories.layout.layout(data, instances)

    def tensors(
        self, data: Any, layout: Layout, samples: slice, names: set[str] | None = None
    ) -> dict[str, Tensor]:
        return trajectories.layout.tensors(data, layout, samples, names)

    # --- comparing --------------------------------------------------------------------------------

    def compare(
        self, data: xr.Dataset, against: xr.Dataset, seed: int, **options: Any
    ) -> Evaluation:
        found: Evaluation = trajectories.compare.compare(data, against, seed, **options)
        return found

    # --- plotting and reporting -------------------------------------------------------------------

    plot_options = (
        "variables", "trajectories", "constraints", "title", "observed_columns", "observed_time",
    )  # fmt: skip
    report_options = ("observed", "observing")

    def plot(self, data: Any, against: Any, observed: Any, ax: Any, **options: Any) -> Any:
        """`variables`: which; `trajectories`: how many single ones; `constraints`: drawn or not."""
        return trajectories.plot.plot(data, against, observed, ax, **options)

    names_option = "variables"

    def drawing(self, data: Any, against: Any, observed: Any, **options: Any) -> Drawing:
        made: Drawing = trajectories.plot.drawing(data, against, observed, **options)
        return made

    def report_facts(self, data: Any, against: Any, **options: Any) -> Facts:
        facts: Facts = trajectories.report.read(data, against, **options)
        return facts

    def report_sections(self) -> Sequence[Section]:
        sections: Sequence[Section] = trajectories.report.SECTIONS
        return sections

    subject = "trajectories"

    def summary(self, codec: Any) -> list[str]:
        names, times = [v.name for v in codec.variables if not v.total], codec.times
        ends = codec.signals.dates or [f"{time:g}" for time in times]
        span = f"{len(times)} times from {ends[0]} to {ends[-1]}"
        lines = [f"variables: {', '.join(names)}, at {span}"]
        if codec.restored:
            lines.append(f"follows from conservation: {', '.join(codec.restored)}")
        if codec.constant:
            lines.append(f"constant: {', '.join(codec.constant)}")
        lines += trajectories.coordinates.notes(codec.variables, codec.gains)
        return lines

    def card_rows(self, found: Mapping[str, Any]) -> list[CardRow]:
        rows: list[CardRow] = trajectories.compare.card_rows(found)
        return rows
