"""Kinds of data: trajectories, tables, images, and what a user registers.

A `Kind` answers every question whose answer depends on what data are. The rest of the package asks
the object and never looks at the data itself, so that a new kind is one class and one call of
`register`. Inside the package samples are datasets over the dimension `sample`; `from_python` and
`to_python` lead from and to what users hold (a DataFrame for tables, an array for images).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action, Setting
from surrogate import diffusion, reports
from surrogate.errors import ModelError
from surrogate.io import formats
from surrogate.io.formats import DATASET, Say
from surrogate.io.grids import check_names
from surrogate.io.paths import check_target
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.drawing import Drawing, drawing_of
from surrogate.kinds.label_variables import with_label_variables
from surrogate.kinds.rule_options import NO_RULES, RuleOptions, StatedRules
from surrogate.reports import card as cards

if TYPE_CHECKING:  # with torch, which recognising, plotting and reading data do not need
    from torch import Tensor, nn

    from constraints import Formula, Layout
    from surrogate.diffusion.covariance import Covariance
    from surrogate.diffusion.presets import Preset
    from surrogate.evaluation.result import CardRow, Evaluation
    from surrogate.kinds.codec import Codec
    from surrogate.kinds.decoder import Decoder
    from surrogate.kinds.observed import Observed
    from surrogate.reports.facts import Facts
    from surrogate.reports.page import Section

Data = xr.Dataset | pd.DataFrame
D = TypeVar("D", xr.Dataset, pd.DataFrame, xr.Dataset | pd.DataFrame)


class Knowing(Protocol):
    """A model whose formulas may name more than its variables: `surrogate.model.Surrogate`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a normalised sample."""

    def knowing(self, **named: Any) -> Self:
        """The same model, for formulas that name more."""


M = TypeVar("M", bound=Knowing)
Hint = tuple[str | Setting | Action, ...]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names in a sentence, the first ones of many."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


@dataclass(frozen=True)
class NoOptions:
    """Of a kind whose files are read in one way."""


class Kind(ABC):
    """What data of one kind are, and how everything is done with them."""

    name: ClassVar[str]  # in sentences and in the registry: "trajectories"
    stored: ClassVar[str]  # in the description of a model folder
    singular: ClassVar[str]  # of one sample: "trajectory"
    dimensions: ClassVar[str]  # of its data, in sentences: "(sample, time)"

    # --- recognising ------------------------------------------------------------------------------

    @abstractmethod
    def holds(self, data: object) -> bool:
        """Whether data in memory are of this kind."""

    @abstractmethod
    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        """What a user holds as a dataset over (sample, ...)."""

    def to_python(self, data: xr.Dataset) -> Any:
        """Samples as users hold them."""
        return data

    def more_samples(self, least: int) -> Hint:
        return (f"give {least} or more",)  # where samples are too few

    def count(self, samples: int) -> str:
        """So many of them, in words: "1 trajectory", "5,000 trajectories"."""
        return f"{samples:,} {self.singular if samples == 1 else self.name}"

    # --- learning ---------------------------------------------------------------------------------

    half_precision: ClassVar[bool] = False  # whether weights are kept as float16
    validation_samples: ClassVar[int] = 4096  # held-out ones that the loss is measured with
    detects_copies: ClassVar[bool] = False  # whether `compare` takes the training data, `train=`

    def with_rules(self, data: xr.Dataset, options: RuleOptions) -> tuple[xr.Dataset, StatedRules]:
        """The dataset with rules that all samples obey in an attribute, and these rules; ModelError
        for a declared rule that the data break."""
        if options.declared is not None or options.refused:
            raise ModelError(
                f"rules are declared of series and of columns, not of {self.name}",
                value=options.declared,
                remedy="leave them out",
            )
        return data, NO_RULES

    @abstractmethod
    def fit_codec(
        self, data: xr.Dataset, learned: np.ndarray, transforms: Mapping[str, str]
    ) -> Codec:
        """The codec of a dataset whose samples `learned` (their numbers) are learned from."""

    def decoder(
        self, codec: Codec, width: int | None = None, depth: int | None = None, *, new: bool = True
    ) -> Decoder | None:
        """An untrained decoder, if there is one; `new`: with parts that stored ones may lack."""
        return None

    @abstractmethod
    def codec_from_config(self, config: Mapping[str, Any]) -> Codec:
        """The codec that `Codec.to_config` described; ModelError says what is wrong."""

    def layout_in_config(self, config: Mapping[str, Any]) -> Layout | None:
        """The layout of formulas, from the description of a codec alone and without torch; None
        where it takes the codec itself.
        """
        return None

    def config_knowing(self, config: Mapping[str, Any], **named: Any) -> Mapping[str, Any]:
        """The description of a codec that knows more, as `Codec.knowing` does."""
        return config

    def rules_in_config(self, config: Mapping[str, Any]) -> Mapping[str, Formula]:
        """Rules that all samples of a model obey, from the description of its codec alone."""
        return {}

    @abstractmethod
    def network(self, codec: Codec, width: int | None, depth: int) -> nn.Module:
        """A network (B, *shape), (B,) -> (B, *shape); `width` None is chosen to fit the shape."""

    def tuned(self, preset: Preset) -> Preset:
        """The preset as samples of this kind need it."""
        return preset

    def loss_weights(self, codec: Codec, held_out: Tensor, noise: Tensor) -> Tensor | None:
        """Weights (*shape) of the coordinates in the loss, of mean one; None for equal ones."""
        return None

    def covariance(self, block: Tensor) -> Covariance:
        """The covariance of encoded samples (N, *shape)."""
        return diffusion.covariance.Covariance.of(block)

    def overlap(self, data: xr.Dataset) -> int:
        """How many neighbours on either side a sample shares values with; 0: independent ones."""
        return 0

    def loaded(self, model: M, folder: Path) -> M:
        """A model that was read from a folder, with what else of this kind lies in it."""
        return model

    # --- formulas and sampling --------------------------------------------------------------------

    default_samples: ClassVar[int] = 10_000  # that `surrogate sample` draws
    preferred_method: ClassVar[str] = "auto"  # of guidance, where the user chooses none
    pilot_samples: ClassVar[int] = 2_000  # unconditional ones that estimate a probability
    network_jacobian: ClassVar[bool] = False  # whether guidance needs the network's own Jacobian
    bridges: ClassVar[bool] = False  # whether `bridge("S0=95,S25=30")` is a scenario of it
    formula_names: ClassVar[tuple[str, ...]] = ()  # keywords of `Codec.knowing`

    def observed(self, data: Any, layout: Layout, options: ObservationOptions) -> Observed:
        """Observed numbers as statements about samples."""
        raise ModelError(f"{self.name} cannot be observed", remedy="state a scenario")

    @abstractmethod
    def layout(self, data: Any, instances: int | None = None) -> Layout:
        """The signals, grid and parameters that formulas about data may use."""

    @abstractmethod
    def tensors(
        self, data: Any, layout: Layout, samples: slice, names: set[str] | None = None
    ) -> dict[str, Tensor]:
        """The signals (of `names` only) of some samples; DataError where a value is missing."""

    def labelled(
        self,
        data: D,
        rules: Sequence[str],
        verdicts: np.ndarray,
        margins: np.ndarray,
        log_likelihood: np.ndarray | None = None,
    ) -> D:
        """A copy of the data with verdicts and margins (N, R) of the rules, if there are any, and
        the log-likelihood (N,) of observations."""
        return with_label_variables(data, rules, verdicts, margins, log_likelihood)

    # --- comparing --------------------------------------------------------------------------------

    compare_options: ClassVar[tuple[str, ...]] = ()  # names of the options of `compare`

    @abstractmethod
    def compare(self, data: Any, against: Any, seed: int, **options: Any) -> Evaluation:
        """Samples against reference data of this kind; only options of `compare_options`."""

    # --- plotting and reporting -------------------------------------------------------------------

    plot_options: ClassVar[tuple[str, ...]] = ()  # names of the options of `plot`
    report_options: ClassVar[tuple[str, ...]] = ()  # of pages, besides those of `compare`

    @abstractmethod
    def plot(self, data: Any, against: Any, observed: Any, ax: Any, **options: Any) -> Any:
        """Samples on new Axes, or on `ax`: Axes, or an array of them if there are several."""

    names_option: ClassVar[str | None] = None  # option of `plot` that chooses what is shown
    figure_suffixes: ClassVar[tuple[str, ...]] = (".png", ".svg", ".pdf")

    def drawing(self, data: Any, against: Any, observed: Any, **options: Any) -> Drawing:
        """The figure of `plot` for a file, with a caption; options are those of `plot`."""
        axes = np.ravel(np.asarray(self.plot(data, against, observed, None, **options), object))
        return drawing_of(axes[0].figure, self.name)

    reference_example: ClassVar[str | None] = None  # what to compare with, in a hint

    def report_facts(self, data: Any, against: Any, **options: Any) -> Facts:
        """What a page tells of samples; options are those of `compare` and `report_options`."""
        evaluation = None if against is None else self.compare(data, against, 0, **options)
        axes = np.ravel(np.asarray(self.plot(data, against, None, None), dtype=object))
        found: Facts = reports.default.read(self, data, against, axes[0].figure, evaluation)
        return found

    def report_sections(self) -> Sequence[Section]:
        """The sections of a page, in order."""
        sections: Sequence[Section] = reports.default.SECTIONS
        return sections

    def report(self, data: Any, against: Any, title: str | None, **options: Any) -> str:
        """One HTML page about samples, whole in itself; options are those of `compare`."""
        found = self.report_facts(data, against, **options)
        page: str = reports.page.page(found, self.report_sections(), title)
        return page

    subject: ClassVar[str]  # what a model is a surrogate of: "trajectories", "a table"

    def summary(self, codec: Any) -> list[str]:
        """What a codec makes learnable, in a few lines of a card."""
        return [codec.learned]

    def card_rows(self, found: Mapping[str, Any]) -> list[CardRow]:
        """Rows of a model's card, from the JSON of an evaluation."""
        return cards.variable_rows(found)

    def card(self, codec: Any, about: Mapping[str, Any]) -> str:
        """The card of a model in Markdown; `about` describes its training."""
        found = about.get("card")
        rows = self.card_rows(found) if isinstance(found, Mapping) else []
        return cards.card(self.subject, self.name, self.summary(codec), about, rows)

    def card_table(self, found: Mapping[str, Any]) -> str:
        """What a card measures, as plain text."""
        return cards.table(self.name, found, self.card_rows(found))

    # --- files ------------------------------------------------------------------------------------

    reading: ClassVar[type] = NoOptions  # dataclass of `option`s: how files of this kind are read
    written_as: ClassVar[tuple[str, ...]] = (DATASET,)  # what formats hold, the preferred one first
    judged_by_source: ClassVar[bool] = False  # samples are compared with the data learned from
    outputs: ClassVar[tuple[str, ...]] = ("samples.nc",)  # where samples go by default

    def reads(self, holds: str, given: Collection[str]) -> bool:
        """Whether a file whose format holds a table, or images, is of this kind if it is read with
        these options. Datasets in files are recognised by `holds`."""
        return False

    def recognises_table(self, table: pd.DataFrame) -> bool:
        """Whether a table of a file has the form in which this kind writes tables of its own."""
        return False

    def opened(self, data: Any, path: str, options: Any, say: Say) -> Data:
        """Data as a format read them, by the options (a `reading`); `say` receives assumptions."""
        found: Data = data
        return found

    def as_read(self, data: Data, options: Any) -> Data:
        """Opened data as `sg.read` returns them."""
        return data

    def learnable(self, data: Data, path: str, options: Any, say: Say) -> xr.Dataset:
        """Opened data as a dataset to learn from; `say` receives what was understood of them."""
        return self.from_python(data)

    def hint(self, data: Data) -> Hint:
        """How opened data may have been meant instead, with the options that say so."""
        return ()

    def for_formulas(self, data: Data) -> Data:
        """Opened data as formulas see them."""
        return data

    def chosen(self, data: Any, samples: np.ndarray) -> Data:
        """The samples with these numbers."""
        found: Data = data.isel(sample=samples)
        return found

    def endings(self, data: object = None) -> tuple[str, ...]:
        """Suffixes of files that data of this kind can be written to."""
        return formats.endings(self.written_as)

    def targets(
        self, out: str | None, force: bool, names: Iterable[str] = (), data: object = None
    ) -> list[Path]:
        """Where to write samples of variables `names`; ModelError if nothing may be written."""
        made = []
        for name in self.outputs if out is None else (out,):
            target = check_target(name, force, self.endings(data))
            formats.format_for(name, self.written_as).check_package()
            check_names(names, target)
            made.append(target)
        return made

    def write(self, data: Data, path: str | Path) -> None:
        """Write data in the format of the path's suffix, atomically."""
        formats.write(data, path, self.written_as)

    def extent(self, data: xr.Dataset, learned: str) -> str:
        """How much there is to learn from; `learned` is how the codec names its variables."""
        return f"{self.count(int(data.sizes['sample']))} of {learned}"

    def example_rule(self, names: Sequence[str]) -> str:
        """A formula about samples of this kind, for messages."""
        return f"{names[0]} >= 0" if names else ""

    def described(self, data: xr.Dataset, names: Sequence[str]) -> str:
        """How many samples there are, and of what: "40 trajectories of S, I, R"."""
        return f"{self.count(int(data.sizes['sample']))} of {listed(names)}"


_KINDS: list[Kind] = []


def register(kind: Kind) -> None:
    """Make a kind known; data are offered to the one registered last first."""
    _KINDS.insert(0, kind)


def unregister(kind: Kind) -> None:
    """Forget a kind."""
    _KINDS.remove(kind)


def kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which data are offered to them."""
    return tuple(_KINDS)


def kind_of(data: object) -> Kind:
    """The kind that holds these data; ModelError if none does."""
    for kind in _KINDS:
        if kind.holds(data):
            return kind
    if not isinstance(data, xr.Dataset):
        raise ModelError(
            f"no kind of data is a {type(data).__name__}",
            value=data,
            allowed=[kind.name for kind in _KINDS],
        )
    found = ", ".join(str(name) for name in data.sizes)
    raise ModelError(
        f"no kind of data has the dimensions ({found})",
        value=tuple(str(name) for name in data.sizes),
        allowed=[f"{kind.name} {kind.dimensions}" for kind in reversed(_KINDS)],
        remedy="rename them",
    )


def kind_named(stored: object) -> Kind:
    """The kind that model folders call by this name."""
    for kind in _KINDS:
        if kind.stored == stored:
            return kind
    raise ModelError(
        f"unknown kind of model {stored!r}",
        value=stored,
        allowed=[kind.stored for kind in _KINDS],
    )
