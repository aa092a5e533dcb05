"""Training: what small networks learn of known data, and that a run can stop and go on."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from surrogate.diffusion.denoise import Denoiser, Preconditioned
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.losses import LogNormal, Loss
from surrogate.diffusion.schedule import karras
from surrogate.diffusion.training import Look, Settings, State, Trainer
from surrogate.errors import ModelError, TrainingError
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files
from surrogate.networks.residual_mlp import ResidualMLP
from surrogate.random import stream
from surrogate.sampling import dpm_solver
from tests.surrogate.analytic import assert_moments, gaussian, generator, toy, toy_distance

LEVELS = LogNormal(-1.0, 1.2)
TOP = 10.0  # the noise level at which sampling starts


class Pool:
    """Batches from samples (N, *shape); from step `bad` on, other ones."""

    def __init__(self, samples: Tensor, bad: int | None = None, other: float = math.nan) -> None:
        self.samples, self.bad, self.other = samples, bad, other

    def batch(self, step: int, size: int) -> Tensor:
        if self.bad is not None and step >= self.bad:
            return torch.full_like(self.samples[:size], self.other)
        chosen = torch.randint(len(self.samples), (size,), generator=stream(3, step))
        return self.samples[chosen]


def untrained(size: int, width: int = 32, seed: int = 0) -> Preconditioned:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Preconditioned(ResidualMLP(size, width, 2))


def small(**settings: Any) -> Settings:
    given = {"steps": 60, "batch": 16, "warm_up": 10, "check_every": 15, "average": 0.95}
    return Settings(**{**given, **settings})


def trainer(settings: Settings | None = None, source: Pool | None = None, **more: Any) -> Trainer:
    """A small run on Gaussian data."""
    data = gaussian(2).sample(400, generator()).float()
    source = source or Pool(data[100:])
    return Trainer(untrained(2, 16), source, data[:100], settings=settings or small(), **more)


def learn(samples: Tensor, loss: Loss, steps: int) -> Preconditioned:
    denoiser = untrained(samples.shape[1])
    settings = Settings(
        steps=steps, batch=512, rate=5e-3, warm_up=30, check_every=steps // 4, average=0.99
    )
    best = Trainer(denoiser, Pool(samples[1000:]), samples[:1000], loss, settings).run()
    denoiser.load_state_dict(best, strict=False)
    return denoiser


def draw(denoiser: Denoiser, count: int, size: int) -> Tensor:
    noise = math.hypot(TOP, 1) * torch.randn(count, size, generator=generator(3))
    return dpm_solver(denoiser, noise, karras(30, 0.01, TOP).float())


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


# --- what is learned ------------------------------------------------------------------------------


@pytest.mark.parametrize(("sliced", "slack"), [(0.0, 0.08), (0.5, 0.08), (1.0, 0.15)])
def test_learns_a_gaussian(sliced: float, slack: float) -> None:
    mean, covariance = torch.tensor([0.3, -0.2]), torch.tensor([[1.0, 0.8], [0.8, 1]])
    data = GaussianDenoiser(mean, covariance)
    learned = learn(data.sample(20_000, generator()), Loss(LEVELS, sliced=sliced), 240)
    assert_moments(draw(learned, 4000, 2), mean, covariance, slack)
    # and it is much nearer to the truth than what it started from
    for sigma in torch.tensor([0.3, 0.7, 2.0]):
        x = data.sample(4000, generator(4), float(sigma))
        with torch.no_grad():
            exact = data(x, sigma)
            off, start = ((d(x, sigma) - exact).square().mean() for d in (learned, untrained(2)))
        assert off < 0.25 * start


@pytest.mark.parametrize(
    ("loss", "steps", "margin"),
    [(Loss(LEVELS), 400, 0.06), (Loss(LEVELS, draws=4, sliced=1), 300, 0.2)],
    ids=["denoising", "sliced"],
)
def test_learns_two_clusters(loss: Loss, steps: int, margin: float) -> None:
    """Sliced score matching finds how much each weighs slowly: the score hardly depends on it."""
    shift, scale = 0.5, 3.6
    samples = (toy().sample(50_000, generator()) - shift) / scale
    learned = learn(samples, loss, steps)
    found = scale * draw(learned, 5000, 1) + shift
    distance, allowed = toy_distance(found)
    assert distance < allowed + margin
    nothing, _ = toy_distance(scale * draw(untrained(1), 5000, 1) + shift)
    assert nothing > allowed + 0.35  # the bounds mean something
    for near, centre, deviation in ((found < 0, -3, 0.5), (found > 0.5, 4, 1)):
        cluster = found[near]
        assert abs(cluster.mean() - centre) < 0.25 * deviation + 0.1
        assert abs(cluster.std() - deviation) < 0.35 * deviation


# --- stopping and going on ------------------------------------------------------------------------


@pytest.mark.parametrize("sliced", [0.0, 0.5])
@pytest.mark.parametrize("stop", [30, 37])
def test_resumes_bit_for_bit(tmp_path: Path, stop: int, sliced: float) -> None:
    """Through files, at a look or between two."""
    loss = Loss(sliced=sliced)
    straight = trainer(loss=loss)
    straight.run()

    first = trainer(loss=loss)
    while first.step < stop:
        first.advance()
    state = first.state()
    digest = tensor_files.write_tensors(tmp_path / "state.safetensors", state.tensors)
    store.write_json(tmp_path / "state.json", state.to_config())

    tensors = tensor_files.read_tensors(tmp_path / "state.safetensors", digest)
    kept = State.from_config(store.read_json(tmp_path / "state.json"), tensors)
    second = trainer(loss=loss, state=kept)
    assert second.step == stop
    second.run()
    assert equal(second.state().tensors, straight.state().tensors)
    assert equal(second.best, straight.best)
    assert second.looks == straight.looks
    assert second.least == straight.least


def test_a_run_is_a_function_of_its_seed() -> None:
    one, same, other = trainer(seed=1), trainer(seed=1), trainer(seed=2)
    assert equal(one.run(), same.run())
    assert not equal(one.best, other.run())


def test_other_random_numbers_do_not_matter() -> None:
    one = trainer().run()
    torch.rand(7)
    assert equal(one, trainer().run())


def test_a_state_is_a_copy() -> None:
    run = trainer()
    for _ in range(20):
        run.advance()
    state = run.state()
    kept = {name: value.clone() for name, value in state.tensors.items()}
    run.run()
    assert equal(state.tensors, kept)
    assert len(state.looks) == 1
    run.restore(state)  # back again, in the same run
    assert (run.step, len(run.looks)) == (20, 1)
    assert equal(run.run(), trainer().run())


def test_a_state_before_the_first_step() -> None:
    fresh = trainer().state()
    assert equal(trainer(state=fresh).run(), trainer().run())


def test_a_finished_run_stays_finished() -> None:
    run = trainer()
    best = run.run()
    again = trainer(state=run.state())
    assert again.done
    assert equal(again.run(), best)


def test_states_of_other_models() -> None:
    run = trainer()
    run.advance()
    other = Trainer(untrained(3, 16), run.source, torch.zeros(5, 3))
    with pytest.raises(ModelError, match=r"another model: its weights\.network\.enter\.weight"):
        other.restore(run.state())
    for group in ("weights", "averages", "best", "exp_avg", "exp_avg_sq"):
        broken, name = run.state(), f"{group}.network.norm.bias"
        broken.tensors[name] = torch.zeros(())  # could be spread over the whole weight
        with pytest.raises(
            ModelError, match=rf"its {group}\.network.* has shape \(\), not \(16,\)"
        ):
            trainer().restore(broken)
        del broken.tensors[name]
        with pytest.raises(ModelError, match="has shape None"):
            trainer().restore(broken)


def test_a_refused_state_changes_nothing() -> None:
    run = trainer()
    for _ in range(20):
        run.advance()
    before, broken = run.state(), trainer(seed=5).state()
    broken.tensors.popitem()
    with pytest.raises(ModelError):
        run.restore(broken)
    assert equal(run.state().tensors, before.tensors)


def test_states_as_json() -> None:
    looks = [Look(5, 1.5, 1.25)]
    for state in (State(7, {}, looks, 1.25), State(0, {})):
        assert State.from_config(state.to_config(), {}) == state
    good = State(7, {}, looks, 1.25).to_config()
    bad: list[dict[str, Any]] = [
        {},
        {**good, "step": "x"},
        {**good, "step": math.inf},
        {**good, "best": []},
        {**good, "looks": 3},
        {**good, "looks": ["x"]},
        {**good, "looks": [{"step": 1}]},
        {**good, "looks": [{**asdict(looks[0]), "loss": None}]},
    ]
    for config in bad:
        with pytest.raises(ModelError, match="the checkpoint is damaged"):
            State.from_config(config, {})


# --- how a run goes -------------------------------------------------------------------------------


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
    assert run.least == min(losses)
    chosen = kept[least].tensors
    assert all(torch.equal(best[name], chosen[f"averages.{name}"]) for name in best)
    run.averages = {name: value.clone() for name, value in best.items()}
    assert run.measure() == min(losses)
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
    first = exact.measure()
    exact.step = 7
    assert exact.measure() == first  # with the same noise
    expected = Loss(draws=2)(data, data.sample(40_000, generator(1)), generator(2))
    chance = 4.5 * expected.std().item() / math.sqrt(10_000)
    assert abs(exact.measure() - expected.mean().item()) < chance

    run = trainer()
    for _ in range(20):
        run.advance()
    weights = {name: value.detach().clone() for name, value in run.weights.items()}
    found = run.measure()
    assert equal(weights, {name: value.detach() for name, value in run.weights.items()})
    run.averages = weights
    assert run.measure() != found


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


# --- random numbers -------------------------------------------------------------------------------


def test_seeded_streams_are_unrelated() -> None:
    places = [(seed, *place) for seed in range(4) for place in ((), (0,), (1,), (0, 0), (0, 1))]
    places += [(0, 1, step) for step in range(30)] + [(-1, 5), (2**63 - 1, 7), (10**30, 1)]
    n = 20_000
    draws = torch.stack([torch.randn(n, generator=stream(*place)) for place in places])
    off = torch.corrcoef(draws) - torch.eye(len(places))
    assert off.abs().max() < 5.5 / math.sqrt(n)
    assert abs(draws.mean()) < 5 / math.sqrt(draws.numel())


def test_seeded_places_do_not_meet() -> None:
    """Torch's generator knows 32 bits of its seed: they alone must differ, but for chance."""
    places = product(range(3), range(4), range(800))
    seeds = [stream(*place).initial_seed() % 2**32 for place in places]
    assert len(seeds) - len(set(seeds)) <= 1  # 0.01 expected
    assert stream(3, 1, 2).initial_seed() != stream(3, 2, 1).initial_seed()
    same = (torch.rand(5, generator=stream(9, 1)) for _ in range(2))
    assert torch.equal(*same)
