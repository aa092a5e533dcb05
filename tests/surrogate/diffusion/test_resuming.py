"""A run that stops goes on from its state, bit for bit, and refuses the states of other runs."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from surrogate.diffusion.losses import Loss
from surrogate.diffusion.training import Look, State, Trainer
from surrogate.errors import ModelError
from surrogate.io import model_folder as store
from surrogate.io import tensors as tensor_files
from tests.surrogate.diffusion.small_runs import equal, trainer, untrained


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
    both = State(7, {}, [Look(5, 1.5, 1.25, 0.5)], {"": 1.25, "decoder.": 0.5})
    for state in (State(7, {}, looks, {"": 1.25}), State(0, {}), both):
        assert State.from_config(state.to_config(), {}) == state
    good = State(7, {}, looks, {"": 1.25}).to_config()
    bad: list[dict[str, Any]] = [
        {},
        {**good, "step": "x"},
        {**good, "step": math.inf},
        {**good, "best": []},
        {**good, "best": 1.25},
        {**good, "best": {}},
        {**good, "best": {"": None}},
        {**good, "looks": [{**asdict(looks[0]), "decoder": 0.5}]},  # not among the best
        {**good, "looks": 3},
        {**good, "looks": ["x"]},
        {**good, "looks": [{"step": 1}]},
        {**good, "looks": [{**asdict(looks[0]), "loss": None}]},
    ]
    for config in bad:
        with pytest.raises(ModelError, match="the checkpoint is damaged"):
            State.from_config(config, {})
