"""Models end to end: fitted, sampled, saved, loaded, resumed, refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import surrogate as sg
from constraints import parse
from simulators import models, simulate
from surrogate.diffusion.batches import Blocks, from_dataset
from surrogate.diffusion.presets import preset_named
from surrogate.diffusion.training import Settings
from surrogate.fitting import Preset, Run
from surrogate.io import model_folder as store
from surrogate.kinds.tables.schema import infer_types
from surrogate.model import Surrogate
from tests.surrogate.rows import wines

TINY = Preset(Settings(steps=40, batch=64, warm_up=5, check_every=20), depth=1)


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return simulate(models.esirs(), samples=400, seed=3)


@pytest.fixture(scope="module")
def model(data: xr.Dataset) -> Surrogate:
    return Run(data, 1, TINY).fit()


def test_samples_look_like_the_data(model: Surrogate, data: xr.Dataset) -> None:
    draws = model.sample(50, seed=2, steps=6)
    assert {name: draws[name].dims for name in "SIR"} == dict.fromkeys("SIR", ("sample", "time"))
    assert all(draws[name].dtype.kind == "i" for name in "SIR")
    total = sum(draws[name].astype(int) for name in "SIR")
    assert (total == 100).all()  # conserved exactly, trained or not
    np.testing.assert_allclose(draws.time, data.time)


@pytest.mark.parametrize("solver", ["ode", "heun", "sde", "predictor-corrector"])
def test_a_sample_depends_on_the_seed_and_not_on_how_many_are_drawn(
    model: Surrogate, solver: str
) -> None:
    few = model.draw(3, seed=5, solver=solver, steps=4)
    many = model.draw(7, seed=5, solver=solver, steps=4)
    if solver in ("ode", "heun"):
        torch.testing.assert_close(few, many[:3])
    assert torch.equal(few, model.draw(3, seed=5, solver=solver, steps=4))
    assert not torch.equal(few, model.draw(3, seed=6, solver=solver, steps=4))


def test_a_saved_model_draws_the_same(model: Surrogate, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model"]
    again = sg.load(tmp_path / "model")
    assert torch.equal(again.draw(4, seed=1, steps=4), model.draw(4, seed=1, steps=4))
    assert torch.equal(
        again.draw(4, seed=1, steps=4, solver="sde"), model.draw(4, seed=1, steps=4, solver="sde")
    )
    assert again.digest == model.digest
    card = (tmp_path / "model" / "card.md").read_text()
    assert "| D(S), median over steps |" in card
    assert "follows from conservation: R" in card
    curve = (tmp_path / "model" / "training.csv").read_text().splitlines()
    assert curve[0] == "step,loss,held_out"
    assert len(curve) == 1 + len(model.about["looks"])
    assert again.about["card"]["variables"][0]["name"] == "S"
    with pytest.raises(sg.ModelError, match=r"exists; force=True"):
        again.save(tmp_path / "model")
    again.save(tmp_path / "model", force=True)
    assert torch.equal(sg.load(tmp_path / "model").draw(2, steps=4), model.draw(2, steps=4))


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    frame = wines(300)
    frame["land"] = frame["place"].map({"hill": "north", "plain": "south"})
    frame["year"] = pd.to_datetime("2001-02-03") + pd.to_timedelta(np.arange(300) % 50, unit="D")
    return frame


@pytest.fixture(scope="module")
def tabular(rows: pd.DataFrame) -> Surrogate:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surrogate.fitting.validate", lambda *words: None)
        return Run(infer_types(rows).data, 1, TINY.with_steps(6)).fit()


def test_rows_look_like_the_data(tabular: Surrogate, rows: pd.DataFrame) -> None:
    draws = tabular.sample(60, seed=2, steps=4)
    assert isinstance(draws, pd.DataFrame)
    assert list(draws.columns) == list(rows.columns)
    assert draws["quality"].dtype == np.int64
    assert draws["old"].dtype == bool
    assert draws["year"].dtype.kind == "M"
    assert (draws["land"] == draws["place"].map({"hill": "north", "plain": "south"})).all()
    for name in ("alcohol", "sugar", "quality"):
        assert draws[name].between(rows[name].min(), rows[name].max()).all()
    assert draws.attrs["surrogate_seed"] == 2
    assert np.isfinite(tabular.log_likelihood(rows.head(4), levels=10)).all()
    with pytest.raises(sg.ModelError, match="the table lacks sugar"):
        tabular.log_likelihood(rows.drop(columns="sugar"))
    with pytest.raises(sg.ModelError, match="colour is 'blue' in row 1"):
        tabular.log_likelihood(rows.head(3).assign(colour=["red", "blue", "red"]))


def test_a_saved_table_model_draws_the_same(
    tabular: Surrogate, rows: pd.DataFrame, tmp_path: Path
) -> None:
    tabular.save(tmp_path / "model")
    again = sg.load(tmp_path / "model")
    assert again.kind.stored == "table"
    assert again.codec.to_config() == tabular.codec.to_config()
    pd.testing.assert_frame_equal(again.sample(30, steps=4), tabular.sample(30, steps=4))
    asked = {"where": parse("quality >= 6 and land = south"), "method": "rejection", "steps": 4}
    first, second = (model.sample(10, seed=3, **asked) for model in (tabular, again))
    pd.testing.assert_frame_equal(first, second)
    assert first["satisfied"].all()
    one, other = (model.log_likelihood(rows.head(3), levels=10) for model in (tabular, again))
    assert (one == other).all()
    again.save(tmp_path / "twice")
    for name in ("config.json", "weights.safetensors"):
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_folders_that_are_no_models(model: Surrogate, tmp_path: Path) -> None:
    with pytest.raises(sg.ModelError, match=r"sg.fit\(data\)"):
        sg.load(tmp_path / "nothing")
    place = tmp_path / "model"
    model.save(place)
    config, weights = place / "config.json", place / "weights.safetensors"
    content, tensors = config.read_text(), weights.read_bytes()

    def refused(text: str) -> None:
        with pytest.raises(sg.ModelError, match=text):
            sg.load(place)
        config.write_text(content)
        weights.write_bytes(tensors)

    weights.write_bytes(tensors[:-7])
    refused("cut short")
    weights.unlink()
    refused("there is no")
    config.write_text(content[:200])
    refused("not JSON")
    config.write_text(json.dumps(json.loads(content) | {"version": 99}))
    refused("version 99")
    good = {name: value for name, value in json.loads(content).items() if name != "seal"}
    config.write_text(json.dumps(store.sealed({k: v for k, v in good.items() if k != "codec"})))
    refused("damaged")
    config.write_text(json.dumps(store.sealed(good | {"kind": "rows"})))
    refused("unknown kind of model 'rows'")
    wider = good | {"network": {"width": 64, "depth": 1}}
    config.write_text(json.dumps(store.sealed(wider)))
    refused("do not fit the network")
    config.write_text(content.replace('"seed": 1', '"seed": 2'))
    refused("was changed after it was written")
    sg.load(place)


def test_an_interrupted_run_goes_on_bit_for_bit(data: xr.Dataset, tmp_path: Path) -> None:
    whole = Run(data, 4, TINY)
    whole.trainer.run()
    first = Run(data, 4, TINY, checkpoints=tmp_path / "run")

    class Killed(Exception):
        pass

    def stop(trainer: object) -> None:
        if first.trainer.step == 27:
            raise Killed

    with pytest.raises(Killed):
        first.fit(stop)
    again = Run(data, 4, TINY, checkpoints=tmp_path / "run")
    assert again.trainer.step == 20  # the last look
    again.trainer.run()
    for name, weight in whole.trainer.averages.items():
        assert torch.equal(weight, again.trainer.averages[name])
    with pytest.raises(sg.ModelError, match="another run"):
        Run(data, 5, TINY, checkpoints=tmp_path / "run")
    again.discard()
    assert not (tmp_path / "run").exists()


def test_batches_leave_out_what_is_held_out(data: xr.Dataset) -> None:
    marked = data.assign(mark=("sample", np.arange(400) % 2 * 1.0))
    run = Run(marked, 0, TINY)
    rows = np.arange(1, 400, 2)
    source = from_dataset(run.model.codec, marked, rows, 0)
    seen = torch.cat([source.batch(step, 32) for step in range(12)])
    marks = run.model.codec.decode(seen)["mark"]
    assert marks.max() < 0.5
    assert torch.equal(
        source.batch(3, 32), from_dataset(run.model.codec, marked, rows, 0).batch(3, 32)
    )


def test_blocks_smaller_than_a_batch_are_drawn_again() -> None:
    blocks = Blocks(lambda j: torch.arange(5.0)[:, None], 5, 0)
    assert blocks.batch(0, 16).shape == (16, 1)


def test_fresh_trajectories_in_every_block(data: xr.Dataset) -> None:
    asked = []

    def make(first: int, samples: int) -> xr.Dataset:
        asked.append(first)
        return simulate(models.esirs(), samples=64, seed=1, first=first)

    run = Run(data, 0, TINY, simulate=make)
    run.source.size = 64
    run.source.batch(0, 64)
    run.source.batch(1, 64)
    assert len(set(asked)) == 2


def test_numbers_of_any_kind(model: Surrogate) -> None:
    plain = model.draw(3, seed=3, steps=4)
    assert torch.equal(model.draw(np.int64(3), seed=np.int64(3), steps=np.int8(4)), plain)
    for asked in ({"samples": "10"}, {"samples": 2.5}, {"samples": None}, {"samples": True}):
        with pytest.raises(sg.ModelError, match="samples must be a whole number"):
            model.draw(**asked)  # type: ignore[arg-type]
    for seed in ("1", 2.5, None, -1, 2**70):
        with pytest.raises(sg.ModelError, match="seed must be a whole number"):
            model.sample(3, seed=seed)  # type: ignore[arg-type]


def test_what_cannot_be_asked(model: Surrogate, data: xr.Dataset) -> None:
    with pytest.raises(sg.ModelError, match="samples must be a whole number from 1"):
        model.draw(0)
    with pytest.raises(sg.ModelError, match="unknown solver"):
        model.draw(1, solver="magic")
    with pytest.raises(sg.ModelError, match="steps must be a whole number from 2 to 100,000"):
        model.draw(1, steps=1)
    with pytest.raises(sg.ModelError, match="too few"):
        sg.fit(data.isel(sample=slice(10)))
    with pytest.raises(sg.ModelError, match="unknown preset"):
        preset_named("fast")
    with pytest.raises(sg.ModelError, match="lacks"):
        model.log_likelihood(data.drop_vars("S"))


def test_likelihood_prefers_the_data(model: Surrogate, data: xr.Dataset) -> None:
    few = data.isel(sample=slice(4))
    assert np.isfinite(model.log_likelihood(few, levels=10)).all()


# --- the public interface -------------------------------------------------------------------------


def test_a_scenario_is_a_formula_a_text_a_list_or_a_dict(model: Surrogate) -> None:
    rule = "I(3) <= 90"
    settings = {"seed": 2, "method": "rejection", "steps": 4}
    wanted = model.sample(5, where=parse(rule), **settings)
    for where in (rule, [rule], [parse(rule)]):
        xr.testing.assert_equal(model.sample(5, where=where, **settings), wanted)
    named = model.sample(5, where={"few": rule}, **settings)
    assert "few" in named.rule.values


def test_a_misspelt_keyword_names_the_nearest(model: Surrogate, data: xr.Dataset) -> None:
    with pytest.raises(sg.SurrogateError, match=r"'particels' of .*; did you mean particles\?"):
        model.sample(3, where="I(3) <= 90", particels=100)
    with pytest.raises(sg.SurrogateError, match="'slover'; did you mean 'solver'"):
        model.sample(3, slover="heun")
    with pytest.raises(sg.SurrogateError, match="'presett'; did you mean 'preset'"):
        sg.fit(data, presett="quick")  # type: ignore[call-arg]
    with pytest.raises(sg.SurrogateError, match="particles applies to a scenario"):
        model.sample(3, particles=100)


def test_a_model_is_described_in_short(model: Surrogate) -> None:
    said = repr(model)
    assert len(said) < 200
    assert all(part in said for part in ("trajectories", "S, I, R", "weights", "trained on"))
    page = model._repr_html_()
    assert page.startswith("<table>")
    assert "noise floor" in page
    assert model.to("cpu") is model


def test_the_version_is_that_of_the_distribution() -> None:
    assert sg.__version__.count(".") == 2
