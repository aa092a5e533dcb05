"""Images: samples over (sample, [channel,] y, x)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from constraints.errors import Action, Setting
from surrogate import diffusion, networks
from surrogate.errors import ModelError
from surrogate.io.formats import DATASET, IMAGES, Say
from surrogate.io.paths import check_parent, exists, has_ending
from surrogate.io.reading import ImageOptions
from surrogate.kinds import images
from surrogate.kinds.images import files, write_files
from surrogate.kinds.images.values import from_array, is_images
from surrogate.kinds.kind import Data, Kind, M

if TYPE_CHECKING:
    from torch import Tensor, nn

    from constraints import Layout
    from surrogate.diffusion.covariance import Covariance
    from surrogate.diffusion.presets import Preset
    from surrogate.evaluation.result import CardRow, Evaluation
    from surrogate.kinds.codec import Codec
    from surrogate.kinds.drawing import Drawing
    from surrogate.reports.facts import Facts
    from surrogate.reports.page import Section

TRAINING_BATCH = 128
PRINCIPAL_DIRECTIONS = 256  # of the covariance of pixels


class Images(Kind):
    """Grey or colour images of one size: a dataset with the variable `image`, or an array."""

    name = "images"
    stored = "images"
    singular = "image"
    dimensions = "(sample, [channel,] y, x)"

    # --- recognising ------------------------------------------------------------------------------

    def holds(self, data: object) -> bool:
        return isinstance(data, np.ndarray) or is_images(data)

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        if options:
            name = next(iter(options))
            raise ModelError(
                f"{name} does not apply to images",
                value=name,
                remedy=("leave out ", Setting(name)),
            )
        return from_array(data) if isinstance(data, np.ndarray) else data

    # --- learning ---------------------------------------------------------------------------------

    half_precision = True  # pixels have 256 values: more precision only makes folders larger
    validation_samples = 1024  # each costs more than a trajectory

    def fit_codec(
        self, data: xr.Dataset, learned: np.ndarray, transforms: Mapping[str, str]
    ) -> Codec:
        if transforms:
            raise ModelError(
                f"there is no transform of {next(iter(transforms))!r} to choose: images are "
                "learned as they are",
                value=dict(transforms),
                remedy=("leave out ", Action("transforms=...", "--transform")),
            )
        return images.codec.ImageCodec.fit(data, learned)

    def codec_from_config(self, config: Mapping[str, Any]) -> Codec:
        return images.codec.ImageCodec.from_config(config)

    def network(self, codec: Codec, width: int | None, depth: int) -> nn.Module:
        channels, height, breadth = codec.shape
        return networks.unet.UNet(channels, height, breadth, width, depth)

    def tuned(self, preset: Preset) -> Preset:
        own = preset.with_steps(preset.large_steps)
        return replace(own, settings=replace(own.settings, batch=TRAINING_BATCH), depth=1)

    def covariance(self, block: Tensor) -> Covariance:
        """Of the principal directions, in single precision."""
        covariance = diffusion.covariance.Covariance
        found = covariance.of(block, PRINCIPAL_DIRECTIONS, whole=0)
        return covariance.restore(found.values.float(), found.vectors.float())

    def loaded(self, model: M, folder: Path) -> M:
        """The model that knows the classifier in its folder, if there is one."""
        return images.classifier.with_classifier(model, folder)

    # --- formulas and sampling --------------------------------------------------------------------

    default_samples = 64
    preferred_method = "moments"
    network_jacobian = True
    pilot_samples = 200
    formula_names = ("pictures", "regions", "classifiers", "functions")

    def layout(self, data: Any, instances: int | None = None) -> Layout:
        return images.layout.layout(data, instances)

    def tensors(
        self, data: Any, layout: Layout, samples: slice, names: set[str] | None = None
    ) -> dict[str, Tensor]:
        return images.layout.tensors(data, layout, samples, names)

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, data: Any, against: Any, seed: int, **options: Any) -> Evaluation:
        pair = self.from_python(data), self.from_python(against)
        found: Evaluation = images.compare.compare(*pair, seed, **options)
        return found

    # --- plotting and reporting -------------------------------------------------------------------

    plot_options = ("captions", "title")

    figure_suffixes = (".png", ".pdf")

    def plot(self, data: Any, against: Any, observed: Any, ax: Any, **options: Any) -> Any:
        """A contact sheet; `captions`: a line below each."""
        self._refuse_others(against, observed)
        return images.plot.plot(data, ax=ax, **options)

    def drawing(self, data: Any, against: Any, observed: Any, **options: Any) -> Drawing:
        self._refuse_others(against, observed)
        made: Drawing = images.plot.drawing(data, **options)
        return made

    def _refuse_others(self, against: Any, observed: Any) -> None:
        """Nothing can be drawn over images."""
        if observed is not None:
            raise ModelError(
                f"observed is for trajectories, and these are {self.name}", remedy="leave it out"
            )
        if against is not None:
            raise ModelError(
                "against is not for images", remedy="plot each dataset by itself, or evaluate both"
            )

    reference_example = "IMAGES"

    def report_facts(self, data: Any, against: Any, **options: Any) -> Facts:
        facts: Facts = images.report.read(
            self.from_python(data),
            None if against is None else self.from_python(against),
            **options,
        )
        return facts

    def report_sections(self) -> Sequence[Section]:
        sections: Sequence[Section] = images.report.SECTIONS
        return sections

    subject = "images"

    def card_rows(self, found: Mapping[str, Any]) -> list[CardRow]:
        metrics: list[CardRow] = images.compare.METRICS.card_rows(found)
        return super().card_rows(found) + metrics

    # --- files ------------------------------------------------------------------------------------

    reading = ImageOptions
    written_as = (IMAGES, DATASET)
    outputs = ("samples.png", "samples.npz")
    judged_by_source = True

    def reads(self, holds: str, given: Collection[str]) -> bool:
        return holds == IMAGES

    def opened(self, data: Any, path: str, options: Any, say: Say) -> xr.Dataset:
        """Checked images in memory; array files had the options applied as they were read."""
        found = files.adapted(files.loaded(data, path, say), options.grey, options.size)
        say(files.summary(found))
        return found

    def targets(
        self, out: str | None, force: bool, names: Iterable[str] = (), data: object = None
    ) -> list[Path]:
        if out is None or not has_ending(out, ("/",)):
            return super().targets(out, force, names, data)
        target = Path(out)
        write_files.check_folder(target)
        check_parent(target)
        if target.is_dir() and any(target.iterdir()) and not force:
            raise exists(out)
        return [target]

    def write(self, data: Data, path: str | Path) -> None:
        files.write_images(self.from_python(data), path)

    def extent(self, data: xr.Dataset, learned: str) -> str:
        return f"{data.sizes['sample']:,} {learned}"

    def example_rule(self, names: Sequence[str]) -> str:
        return "mean(image) > 0.3"

    def described(self, data: xr.Dataset, names: Sequence[str]) -> str:
        return files.summary(data)
