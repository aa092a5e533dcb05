"""A kind of data that the package does not know: angles on a circle, through the public API.

An angle a is learned as the point (cos a, sin a) and decoded by atan2. The kind brings its codec,
its layout, its distance and its words; nothing of the package is changed but its registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor, nn

import surrogate as sg
from constraints import Layout, Signal, parse
from surrogate.evaluation.metrics import Metrics
from surrogate.evaluation.result import Distance, Evaluation, pooled
from surrogate.kinds import Kind, register, unregister
from surrogate.kinds.codec import NONE, Codec, Samples
from surrogate.kinds.labels import label
from surrogate.kinds.signals import tensors
from surrogate.networks.residual_mlp import ResidualMLP

LAYOUT = Layout((Signal("angle", "column", low=-np.pi, high=np.pi, span=2 * np.pi),))


@dataclass(frozen=True, eq=False)
class AngleCodec(Codec):
    """(cos a, sin a), which has no seam at a = ±π."""

    kind = "angles"
    noun = "angles"

    @property
    def shape(self) -> tuple[int]:
        return (2,)

    @property
    def learned(self) -> str:
        return "angle"

    @property
    def affine(self) -> bool:
        return False

    def layout(self) -> Layout:
        return LAYOUT

    def encode(
        self,
        data: xr.Dataset,
        samples: Samples,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        angles = torch.from_numpy(np.asarray(data["angle"].isel(sample=samples).values))
        return torch.stack([angles.cos(), angles.sin()], 1).to(dtype)

    def decode(self, x: Tensor) -> dict[str, Tensor]:
        return {"angle": torch.atan2(x[:, 1], x[:, 0])}

    def finish(self, x: Tensor) -> dict[str, np.ndarray]:
        return {"angle": self.decode(x.detach().double().cpu())["angle"].numpy()}

    def to_dataset(self, x: Tensor, attrs: Mapping[str, Any] = NONE) -> xr.Dataset:
        return xr.Dataset({"angle": ("sample", self.finish(x)["angle"])}, attrs=dict(attrs))

    def within(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=1, keepdim=True).clamp_min(1)

    def matches(self, data: xr.Dataset) -> None:
        assert "angle" in data

    def to_config(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True)
class Pair:
    """The mean directions (2,) of samples and reference, and of halves of the reference."""

    ours: np.ndarray
    theirs: np.ndarray
    halves: list[tuple[np.ndarray, np.ndarray]]


METRICS: Metrics[Pair] = Metrics()


@METRICS.distance("direction", "mean direction", "Mean directions differ")
def direction(pair: Pair) -> Distance:
    floors = np.array([np.linalg.norm(a - b) for a, b in pair.halves])
    return Distance.of(float(np.linalg.norm(pair.ours - pair.theirs)), floors)


class Angles(Kind):
    """One angle a sample, in radians."""

    name = "angles"
    stored = "angles"
    singular = "angle"
    dimensions = "(sample,), in a variable `angle`"
    subject = "angles"

    def holds(self, data: object) -> bool:
        return isinstance(data, xr.Dataset) and "angle" in data

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        found: xr.Dataset = data
        return found

    def fit_codec(
        self, data: xr.Dataset, learned: np.ndarray, transforms: Mapping[str, str]
    ) -> Codec:
        return AngleCodec()

    def codec_from_config(self, config: Mapping[str, Any]) -> Codec:
        return AngleCodec()

    def network(self, codec: Codec, width: int | None, depth: int) -> nn.Module:
        return ResidualMLP(2, width or 32, depth)

    def layout(self, data: Any, instances: int | None = None) -> Layout:
        return LAYOUT

    def tensors(
        self, data: Any, layout: Layout, samples: slice, names: set[str] | None = None
    ) -> dict[str, Tensor]:
        return tensors(data, layout, samples, names)

    def compare(self, data: Any, against: Any, seed: int, **options: Any) -> Evaluation:
        def mean(angles: np.ndarray) -> np.ndarray:
            return np.array([np.cos(angles).mean(), np.sin(angles).mean()])

        ours, theirs = data["angle"].values, against["angle"].values
        random = np.random.default_rng(seed)
        halves = [np.array_split(random.permutation(theirs), 2) for _ in range(8)]
        pair = Pair(mean(ours), mean(theirs), [(mean(a), mean(b)) for a, b in halves])
        bins = np.linspace(-np.pi, np.pi, 13)

        def histogram(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            p, q = (np.histogram(each, bins)[0] / len(each) for each in (a, b))
            return np.array([np.abs(p - q).sum() / 2])

        floors = np.stack([histogram(a, b) for a, b in halves])
        part = pooled("angle", [(histogram(ours, theirs), floors)])
        return Evaluation(
            kind=self.name,
            samples=len(ours),
            effective=float(len(ours)),
            reference=len(theirs),
            variables=(part,),
            overall=part,
            findings=tuple(f for each in METRICS if (f := each.measure(pair)) is not None),
        )

    def plot(self, data: Any, against: Any, observed: Any, ax: Any, **options: Any) -> Any:
        axes = Figure().add_subplot(projection="polar") if ax is None else ax
        axes.hist(data["angle"].values, 24)
        axes.set_title("angles")
        return axes


@pytest.fixture(scope="module", autouse=True)
def angles() -> Iterator[Angles]:
    kind = Angles()
    register(kind)
    yield kind
    unregister(kind)


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    """A von Mises distribution around a = 2, some of which lies beyond the seam at π."""
    values = np.random.default_rng(0).vonmises(2.0, 3.0, size=600)
    return xr.Dataset({"angle": ("sample", values)})


@pytest.fixture(scope="module")
def model(data: xr.Dataset) -> sg.Surrogate:
    return sg.fit(data, preset="quick", iterations=300, seed=0)


def test_the_card_speaks_of_angles(model: sg.Surrogate) -> None:
    assert "surrogate of angles: angle" in repr(model).lower()
    assert model.about["card"]["direction"]["value"] < 0.3


def test_a_saved_model_is_loaded_as_that_kind(model: sg.Surrogate, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = sg.load(tmp_path / "model")
    assert again.kind.name == "angles"
    xr.testing.assert_equal(again.sample(9, seed=1)["angle"], model.sample(9, seed=1)["angle"])
    assert "angles" in (tmp_path / "model" / "card.md").read_text()


def test_samples_under_a_formula_obey_it(model: sg.Surrogate) -> None:
    draws = model.sample(40, where="angle >= 1 and angle <= 2", seed=1)
    assert len(draws["angle"]) == 40
    assert draws["satisfied"].values.all()
    assert (draws["angle"].values >= 1).all()
    assert (draws["angle"].values <= 2).all()


def test_data_are_labelled(data: xr.Dataset) -> None:
    met = label(data, [parse("angle >= 1")])["satisfied"].values
    np.testing.assert_array_equal(met, data["angle"].values >= 1)


def test_evaluation_has_the_kinds_own_distance(model: sg.Surrogate, data: xr.Dataset) -> None:
    found = sg.evaluate(model.sample(300, seed=2), data)
    assert "mean direction" in str(found)
    turned = data.assign(angle=-data["angle"])
    assert sg.evaluate(turned, data).to_dict()["direction"]["ratio"] > 5


def test_plot_and_report_are_the_kinds_own(
    model: sg.Surrogate, data: xr.Dataset, tmp_path: Path
) -> None:
    draws = model.sample(200, seed=3)
    assert sg.plot(draws).get_title() == "angles"
    page = sg.report(draws, tmp_path / "angles.html", against=data).read_text()
    assert "Angles" in page
    assert "mean direction" in page
