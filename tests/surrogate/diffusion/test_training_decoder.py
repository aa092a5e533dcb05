"""A run that trains a decoder beside the denoiser."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from surrogate.diffusion.training import DECODER, State
from surrogate.errors import ModelError, TrainingError
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files
from tests.surrogate.analytic import gaussian, generator
from tests.surrogate.diffusion.small_runs import MeanDecoder, Pool, equal, small, trainer


class AtFive(MeanDecoder):
    """To which all samples, also held-out ones, seem to be at 5: it improves at every look."""

    def loss(self, clean: Tensor, generator: torch.Generator) -> Tensor:
        return super().loss(torch.full_like(clean, 5.0), generator)


@pytest.mark.parametrize("stop", [30, 37])
def test_a_run_with_a_decoder_resumes_bit_for_bit(tmp_path: Path, stop: int) -> None:
    """Through files, at a look or between two."""
    straight = trainer(decoder=MeanDecoder())
    straight.run()
    first = trainer(decoder=MeanDecoder())
    while first.step < stop:
        first.advance()
    state = first.state()
    digest = tensor_files.write_tensors(tmp_path / "state.safetensors", state.tensors)
    store.write_json(tmp_path / "state.json", state.to_config())
    tensors = tensor_files.read_tensors(tmp_path / "state.safetensors", digest)
    kept = State.from_config(store.read_json(tmp_path / "state.json"), tensors)
    second = trainer(decoder=MeanDecoder(), state=kept)
    second.run()
    assert equal(second.state().tensors, straight.state().tensors)
    assert equal(second.best, straight.best)
    assert second.looks == straight.looks
    assert second.least == straight.least


def test_the_decoder_learns() -> None:
    decoder = MeanDecoder()
    run = trainer(small(steps=300, rate=3e-2), decoder=decoder)
    best = run.run()
    chance = 4.5 / math.sqrt(300)  # of the mean of 300 samples of unit size
    assert (best[DECODER + "mean"] - gaussian(2).mean.float()).abs().max() < 0.1 + chance
    assert run.looks[-1].decoder is not None
    assert run.looks[0].decoder is not None
    assert run.looks[-1].decoder < run.looks[0].decoder


def test_a_decoder_does_not_change_how_the_denoiser_learns() -> None:
    """Its gradients are clipped apart, and it draws from a stream of its own."""
    alone, beside = trainer().run(), trainer(decoder=MeanDecoder()).run()
    assert equal(alone, {k: v for k, v in beside.items() if not k.startswith(DECODER)})


def test_the_best_weights_are_kept_for_each_network() -> None:
    """From step 40 on the batches are far away: the denoiser gets worse, the decoder does not."""
    data = gaussian(2).sample(400, generator()).float()
    source = Pool(data[100:], bad=40, other=5.0)
    settings = small(steps=120, check_every=10, patience=50, average=0.5, rate=1e-2)
    run, kept = trainer(settings, source, decoder=AtFive()), list[State]()
    best = run.run(keep=kept.append)
    denoiser = [look.held_out for look in run.looks]
    decoder = [look.decoder for look in run.looks if look.decoder is not None]
    first, last = denoiser.index(min(denoiser)), decoder.index(min(decoder))
    assert first <= 5
    assert last == len(run.looks) - 1
    assert run.least == {"": min(denoiser), DECODER: min(decoder)}
    for name, value in best.items():
        look = last if name.startswith(DECODER) else first
        assert torch.equal(value, kept[look].tensors[f"averages.{name}"]), name


def test_a_run_goes_on_while_either_network_improves() -> None:
    data = gaussian(2).sample(400, generator()).float()
    source = Pool(data[100:], bad=40, other=5.0)
    settings = small(steps=150, check_every=10, patience=3, average=0.5, rate=1e-2)

    alone = trainer(settings, source)
    alone.run()
    beside = trainer(settings, source, decoder=AtFive())
    beside.run()
    assert alone.step < 150
    assert beside.step == 150


def test_a_decoder_whose_loss_is_no_number_stops_the_run() -> None:
    class Broken(MeanDecoder):
        def loss(self, clean: Tensor, generator: torch.Generator) -> Tensor:
            return math.nan * super().loss(clean, generator)

    with pytest.raises(TrainingError, match="the loss diverged at step 0"):
        trainer(decoder=Broken()).run()


def test_a_state_without_the_decoder_is_refused() -> None:
    run = trainer()
    run.advance()
    with pytest.raises(ModelError, match=r"another model: its weights\.decoder\.mean"):
        trainer(decoder=MeanDecoder(), state=run.state())


def test_the_held_out_loss_of_the_decoder_is_that_of_the_averages() -> None:
    """With the same noise every time, and without a trace in the weights."""
    run = trainer(decoder=MeanDecoder())
    for _ in range(20):
        run.advance()
    found = run.measure().decoder
    assert run.measure().decoder == found
    with torch.no_grad():
        run.averages[DECODER + "mean"].fill_(9.0)
    other = run.measure().decoder
    assert other is not None
    assert found is not None
    assert other > found + 10
    assert isinstance(run.decoder, nn.Module)
    assert run.decoder.get_parameter("mean").detach().abs().max() < 3


class Two(MeanDecoder):
    """With a second network, of which any change makes held-out samples less likely."""

    def __init__(self) -> None:
        super().__init__()
        self.second = Worse()

    @property
    def learners(self) -> dict[str, Any]:
        return {"": self, "second.": self.second}


class Worse(nn.Module):
    """Its loss falls in training and rises on held-out samples, which come without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def loss(self, clean: Tensor, generator: torch.Generator) -> Tensor:
        sign = -1.0 if torch.is_grad_enabled() else 1.0
        return sign * self.weight.expand(len(clean))


def test_networks_of_a_decoder_are_stopped_apart_and_may_stay_as_they_began() -> None:
    alone, run = trainer(decoder=MeanDecoder()), trainer(decoder=Two())
    first, best = alone.run(), run.run()
    own = {name: value for name, value in best.items() if "second" not in name}
    assert equal(own, first)
    assert [look.decoder for look in run.looks] == [look.decoder for look in alone.looks]
    second = DECODER + "second."
    assert float(best[second + "weight"]) == 0
    assert run.least[second] == 0
    assert min(look.others[second] for look in run.looks) > 0
    again = State.from_config(run.state().to_config(), run.state().tensors)
    assert again.looks == run.looks
