"""A training run: early stopping, averages, learning rates, and runs that diverge."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from surrogate.diffusion.denoise import Preconditioned
from surrogate.diffusion.losses import Loss
from surrogate.diffusion.training import Settings, State, Trainer
from surrogate.errors import ModelError, TrainingError
from surrogate.random import stream
from tests.surrogate.analytic import gaussian, generator
from tests.surrogate.diffusion.small_runs import MeanDecoder, Pool, equal, small, trainer, untrained


def test_early_stopping_keeps_the_best() -> None:
    """From step 40 on the batches are of other data, and the held-out loss rises."""
    data = gaussian(2).sample(400, generator()).float()
    source = Pool(data[100:], bad=40, other=5.0)
    settings = small(steps=1000, check_every=10, patience=3, average=0.5, rate=1e-2)
    run, kept = trainer(settings, source), list[State]()
    best = run.run(keep=kept.append)
    losses = [look.held_out for look in run.looks]
    least = losses.index(min(losses))
    assert 1 <= least <= 5
    assert [look.step for look in run.looks] == [state.step for state in kept]
    assert len(losses) == least + 1 + 3
    assert run.step == 10 * len(losses)
    assert run.least == {"": min(losses)}
    chosen = kept[least].tensors
    assert all(torch.equal(best[name], chosen[f"averages.{name}"]) for name in best)
    run.averages = {name: value.clone() for name, value in best.items()}
    assert run.measure().held_out == min(losses)
    assert trainer(settings, source, state=kept[-1]).done
    assert not trainer(settings, source, state=kept[-2]).done


def test_callbacks() -> None:
    steps, kept = list[int](), list[int]()
    run = trainer(small(steps=20))
    run.run(lambda now: steps.append(now.step), lambda state: kept.append(state.step))
    assert steps == list(range(1, 21))
    assert kept == [15, 20]  # a look each 15 steps, and at the end
    assert [look.step for look in run.looks] == kept


def test_looks_tell_the_mean_loss_since_the_last() -> None:
    run = trainer()
    losses = []
    for step in range(30):
        clean = run.source.batch(step, 16)
        with torch.no_grad():
            losses.append(run.loss(run.denoiser, clean, stream(0, 1, step)).mean().item())
        run.advance()
    assert run.looks[0].loss == pytest.approx(sum(losses[:15]) / 15, rel=1e-5)
    assert run.looks[1].loss == pytest.approx(sum(losses[15:]) / 15, rel=1e-5)


def test_the_held_out_loss_is_that_of_the_averages() -> None:
    """In pieces of unequal size, and without a trace in the weights."""
    data = gaussian(2)
    held_out = data.sample(5000, generator()).float()
    exact = Trainer(untrained(2, 16), Pool(held_out), held_out, Loss(draws=2))
    exact.denoiser = data  # type: ignore[assignment]
    first = exact.measure().held_out
    exact.step = 7
    assert exact.measure().held_out == first  # with the same noise
    expected = Loss(draws=2)(data, data.sample(40_000, generator(1)), generator(2))
    chance = 4.5 * expected.std().item() / math.sqrt(10_000)
    assert abs(first - expected.mean().item()) < chance

    run = trainer()
    for _ in range(20):
        run.advance()
    weights = {name: value.detach().clone() for name, value in run.weights.items()}
    found = run.measure().held_out
    assert equal(weights, {name: value.detach() for name, value in run.weights.items()})
    run.averages = weights
    assert run.measure().held_out != found


def test_an_interrupted_look_leaves_the_weights() -> None:
    run = trainer()
    for _ in range(20):
        run.advance()
    before = run.state()

    def interrupt(*_: object) -> Tensor:
        raise KeyboardInterrupt

    run.loss = interrupt  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        run.measure()
    assert equal(run.state().tensors, before.tensors)


def test_averages() -> None:
    """They start short and grow to the setting's length."""
    run = trainer(small(average=0.8))
    expected = {name: value.clone() for name, value in run.averages.items()}
    for step in range(1, 60):
        run.advance()
        keep = min(0.8, (1 + step) / (10 + step))
        for name, weight in run.weights.items():
            expected[name] = keep * expected[name] + (1 - keep) * weight.detach()
            torch.testing.assert_close(run.averages[name], expected[name])
    at_once = trainer(small(average=0))
    at_once.advance()
    assert equal(at_once.averages, {name: w.detach() for name, w in at_once.weights.items()})


def test_learning_rates() -> None:
    settings = Settings(steps=1000, warm_up=100, rate=0.1)
    rates = [settings.rate_at(step) for step in range(1001)]
    assert rates[0] == pytest.approx(0.001)
    assert rates[49] == pytest.approx(0.05)
    assert max(rates) == rates[100] == rates[99] == pytest.approx(0.1)
    assert rates[550] == pytest.approx(0.1 * (0.01 + 0.99 / 2))
    assert rates[1000] == pytest.approx(0.001)
    assert all(one >= two for one, two in pairwise(rates[100:]))
    assert Settings(warm_up=0).rate_at(0) == Settings().rate
    late = Settings(steps=10, warm_up=100)
    assert late.rate_at(9) == pytest.approx(late.rate / 10)
    assert settings.rate_at(5000) == pytest.approx(0.001)
    run = trainer()
    for step in range(12):
        run.advance()
        assert run.optimizer.param_groups[0]["lr"] == run.settings.rate_at(step)


def test_gradients_are_clipped() -> None:
    sizes: dict[float, float] = {}
    for clip in (1e-3, 1e9):
        run = trainer(small(clip=clip))
        run.advance()
        grads = [w.grad.norm() for w in run.weights.values() if w.grad is not None]
        sizes[clip] = torch.stack(grads).norm().item()
    assert sizes[1e-3] == pytest.approx(1e-3, rel=1e-3)
    assert sizes[1e9] > 0.01


def test_frozen_weights_stay() -> None:
    denoiser = untrained(2, 16)
    for weight in denoiser.network.enter.parameters():  # type: ignore[union-attr]
        weight.requires_grad_(False)
    before = denoiser.network.enter.weight.clone()  # type: ignore[union-attr, operator]
    data = torch.randn(100, 2, generator=generator())
    run = Trainer(denoiser, Pool(data), data[:10], settings=small())
    best = run.run()
    assert "network.enter.weight" not in best
    assert torch.equal(denoiser.network.enter.weight, before)  # type: ignore[union-attr, arg-type]
    Trainer(denoiser, Pool(data), data[:10], settings=small(), state=run.state())


def test_a_decoder_learns_from_its_share_of_each_batch() -> None:
    sizes = list[int]()

    class Counting(MeanDecoder):
        def loss(self, clean: Tensor, generator: torch.Generator) -> Tensor:
            sizes.append(len(clean))
            return super().loss(clean, generator)

    trainer(small(batch=16), decoder=Counting(), decoder_share=0.25).advance()
    assert sizes == [4]


# --- runs that go wrong ---------------------------------------------------------------------------


def test_nan_in_the_data() -> None:
    """The step that met it did not happen: with better data the run goes on as if it never had."""
    data = gaussian(2).sample(400, generator()).float()
    kept = list[State]()
    run = trainer(source=Pool(data[100:], bad=37))
    with pytest.raises(TrainingError, match=r"diverged at step 37 \(it is nan\); look for"):
        run.run(keep=kept.append)
    assert run.step == 37
    assert [state.step for state in kept] == [15, 30]
    straight = trainer().run()
    assert equal(trainer(state=run.state()).run(), straight)
    assert equal(trainer(state=kept[-1]).run(), straight)


@pytest.mark.parametrize("sliced", [0.0, 1.0])
@pytest.mark.parametrize("rate", [1e2, 1e6, 1e30])
def test_a_rate_too_high(rate: float, sliced: float) -> None:
    """Weights that jump far give losses that are huge, or not even finite."""
    run, kept = trainer(small(rate=rate), loss=Loss(sliced=sliced)), list[State]()
    with pytest.raises(TrainingError, match="diverged"):
        run.run(keep=kept.append)
    for state in kept:
        assert all(value.isfinite().all() for value in state.tensors.values())
    assert all(value.isfinite().all() for value in run.best.values())


def test_nan_in_the_held_out_data() -> None:
    data = torch.randn(100, 2, generator=generator())
    run = Trainer(untrained(2, 16), Pool(data), data[:10] * math.nan, settings=small())
    with pytest.raises(TrainingError, match=r"diverged at step 15 \(it is nan\)"):
        run.run()
    assert not run.looks


def test_extreme_values_alone_are_no_divergence() -> None:
    data = gaussian(2).sample(400, generator()).float()
    data[::40] *= 100
    run = trainer(source=Pool(data))
    run.run()
    assert run.step == 60


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"steps": 0}, "steps must be >= 1, not 0"),
        ({"batch": -3}, "batch must be >= 1, not -3"),
        ({"check_every": 0}, "check_every must be >= 1, not 0"),
        ({"patience": math.nan}, "patience must be >= 1, not nan"),
        ({"rate": 0}, "rate must be a number > 0, not 0"),
        ({"rate": math.nan}, "rate must be a number > 0, not nan"),
        ({"clip": math.inf}, "clip must be a number > 0, not inf"),
        ({"decay": -1}, "decay must be a number >= 0, not -1"),
        ({"warm_up": -1}, "warm_up must be a number >= 0, not -1"),
        ({"average": 1}, r"average must be in \[0, 1\), not 1"),
    ],
)
def test_bad_settings(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Settings(**bad)


def test_nothing_to_train() -> None:
    data = torch.zeros(5, 2)
    for denoiser in (gaussian(2), Preconditioned(nn.Identity())):
        with pytest.raises(ModelError, match="only a denoiser with parameters"):
            Trainer(denoiser, Pool(data), data)
    with pytest.raises(ModelError, match="held-out samples"):
        Trainer(untrained(2), Pool(data), data[:0])
