"""What all codecs are: labelled data <-> normalised tensors (B, *shape), with a way back.

The way back has three forms. `decode` is differentiable, in data units, as formulas see the data;
`latent` is the same in coordinates in which the posterior of x is Gaussian (`warps` map them to
data units); `finish` makes data: counts rounded, categories chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, FormulaError, Layout, parse
from constraints.compile.dependents import DependentColumn
from constraints.compile.sums import DependentSum
from constraints.gaussian.latent import LatentMap
from surrogate.errors import ModelError

NONE: Mapping[str, Any] = MappingProxyType({})
Samples = slice | Sequence[int] | np.ndarray


class Codec(ABC):
    """How samples of one dataset become tensors and back."""

    kind: ClassVar[str]  # the stored name of its `Kind`
    noun: ClassVar[str]  # what samples are called

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of one encoded sample."""

    @property
    @abstractmethod
    def learned(self) -> str:
        """The variables, for people."""

    @property
    @abstractmethod
    def affine(self) -> bool:
        """Whether `latent` is an affine map of x."""

    @abstractmethod
    def layout(self) -> Layout:
        """The signals that `decode` gives, as formulas see them."""

    @abstractmethod
    def encode(
        self,
        data: xr.Dataset,
        samples: Samples,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Some samples as a normalised tensor (B, *shape)."""

    @abstractmethod
    def decode(self, x: Tensor) -> dict[str, Tensor]:
        """Signals in data units, differentiable, not rounded."""

    @abstractmethod
    def finish(self, x: Tensor) -> dict[str, np.ndarray]:
        """Samples as the data have them."""

    @abstractmethod
    def to_dataset(self, x: Tensor, attrs: Mapping[str, Any] = NONE) -> xr.Dataset:
        """Finished samples with the dimensions, types and coordinates of the data."""

    @abstractmethod
    def within(self, x: Tensor) -> Tensor:
        """x (B, *shape) brought into the convex set that the data lie in."""

    @abstractmethod
    def matches(self, data: xr.Dataset) -> None:
        """ModelError unless the dataset has the variables of this codec."""

    @abstractmethod
    def to_config(self) -> dict[str, Any]:
        """All of it as JSON has it."""

    def read(self, data: Any) -> xr.Dataset:
        """What a user holds as a dataset that can be encoded."""
        if isinstance(data, xr.Dataset):
            return data
        raise ModelError(
            f"{self.noun} are an xarray.Dataset here, not {type(data).__name__}",
            value=type(data).__name__,
        )

    def knowing(self, **named: Any) -> Self:
        """The same, for formulas that name more, such as pictures or classifiers."""
        raise ModelError(
            f"{', '.join(named)}: only formulas about images have them; this is a model of "
            f"{self.learned}",
            value=list(named),
            remedy="leave them out",
        )

    def signals_of(self, x: Tensor) -> dict[str, Tensor]:
        """Finished samples as formulas see them; words are the numbers of their categories."""
        made, found = self.finish(x), {}
        for signal in self.layout().signals:
            values = made[signal.name]
            if signal.categories:
                values = np.searchsorted(np.array(signal.categories), values.astype(str))
                found[signal.name] = torch.from_numpy(values)
            else:
                found[signal.name] = torch.from_numpy(np.asarray(values, np.float64))
        return found

    def latent(self, x: Tensor) -> dict[str, Tensor]:
        """Signals in the coordinates that `warps` leads from, where a signal has one."""
        return self.decode(x)

    @property
    def rules(self) -> Mapping[str, Formula]:
        """Rules that all data obey, by name: of a network, declared, or found in the data."""
        return NONE

    @property
    def imposed_rules(self) -> Mapping[str, Formula]:
        """Those of the rules that guidance makes samples obey."""
        return self.rules

    def conditions(self) -> Mapping[str, Formula]:
        """What holds beside any scenario, by name, and is no part of its probability: the place of
        a date in cycles of the calendar. A decoder knows it."""
        return NONE

    def followers(self) -> Mapping[str, DependentColumn]:
        """Signals that follow from the words of another."""
        return NONE

    def sums(self) -> Mapping[str, DependentSum]:
        """Signals that are sums of others, and restored from them."""
        return NONE

    def warps(self) -> Mapping[str, LatentMap]:
        """Signal -> the map from its latents to data units; none where they are the same."""
        return NONE


def rules_in_config(config: Mapping[str, Any]) -> dict[str, str]:
    """Rules that were declared or found, from a codec's config; earlier versions have none."""
    texts = config.get("rules", {})
    if not isinstance(texts, Mapping):
        raise ModelError("in the codec, rules are texts by name", value=texts)
    for name, text in texts.items():
        try:
            parse(text if isinstance(text, str) else "")
        except FormulaError as problem:
            raise ModelError(
                f"in the codec, the rule {name!r} cannot be read: {problem}", value=text
            ) from None
    return dict(texts)


def plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON has them."""

    def value(given: Any) -> Any:
        if isinstance(given, (np.generic, np.ndarray)):
            given = given.tolist()
        if isinstance(given, (list, tuple)):
            return [value(each) for each in given]
        number = isinstance(given, float) and not math.isfinite(given)
        return given if isinstance(given, (str, int, float)) and not number else str(given)

    return {str(name): value(given) for name, given in attrs.items()}
