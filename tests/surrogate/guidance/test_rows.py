"""Scenarios about rows of a table against exact answers: numbers, words, and several rows at once.

The law is known in the latent space of a fitted codec: a mixture of Gaussians, whose components sit
on the points of words, so that probabilities are sums of normal ones.
"""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from scipy.special import ndtr
from torch import Tensor

from constraints import parse
from constraints.errors import FormulaError, ImpossibleError
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import MixtureDenoiser
from surrogate.evaluation.distances import histogram_distance
from surrogate.exact import Exact
from surrogate.guidance.sampler import dataset_of, sample
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.smc import systematic
from surrogate.guidance.twisted import Particles, twisted
from surrogate.guidance.twisted_batches import levels
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.dependents import DerivedColumn
from surrogate.kinds.tables.schema import infer_types, to_frame
from surrogate.model import Surrogate
from surrogate.random import stream

DRAWS = 120_000
PILOT = 200  # enough here, and quick


def exact(codec: TableCodec, weights: Tensor, means: Tensor, covariances: Tensor) -> Surrogate:
    """A model of this mixture in the latent space of the codec."""
    shares = weights / weights.sum()
    middle = shares @ means
    apart = means - middle
    spread = torch.einsum("k,kij->ij", shares, covariances) + apart.mT @ (shares[:, None] * apart)
    law = MixtureDenoiser(shares, means, covariances)
    return Exact(codec, law, Covariance(spread), {})  # type: ignore[arg-type]


# --- numbers --------------------------------------------------------------------------------------


@cache
def numbers() -> tuple[Surrogate, Tensor]:
    """A skewed column, a staircase, one with a heap, two that are nearly normal; exact draws."""
    weights = torch.tensor([0.6, 0.4]).double()
    means = torch.tensor([[-0.5, 0.3, 0.2, -0.2, -0.4], [0.75, -0.45, -0.3, 0.3, 0.6]]).double()
    first = torch.tensor(
        [
            [0.6, 0.3, 0.0, 0.1, 0.2],
            [0.3, 0.9, 0.0, -0.2, 0.0],
            [0.0, 0.0, 1.0, 0.2, 0.0],
            [0.1, -0.2, 0.2, 0.9, 0.3],
            [0.2, 0.0, 0.0, 0.3, 0.7],
        ]
    ).double()
    second = torch.diag(torch.tensor([0.4, 0.5, 0.8, 1.0, 0.5])).double()
    law = MixtureDenoiser(weights, means, torch.stack([first, second]))
    z = law.sample(30_000, stream(0, 77)).numpy()
    frame = pd.DataFrame(
        {
            "income": np.exp(1.2 * z[:, 0]),
            "grade": np.rint(2 * z[:, 1] + 5).astype(int),
            "debt": np.maximum(z[:, 2], 0.0),
            "height": 170 + 10 * z[:, 3],
            "weight": 70 + 12 * z[:, 4],
        }
    )
    codec = TableCodec.fit(infer_types(frame).data)
    return exact(codec, weights, means, torch.stack([first, second])), law.sample(
        DRAWS, stream(5, 77)
    )


def batches(scenario: Scenario, count: int = 800, steps: int = 30) -> list[Particles]:
    sigmas = levels(scenario.prior.covariance, steps)
    return [twisted(scenario, count, sigmas, stream(3, j)) for j in range(2)]


def log_probability(found: list[Particles]) -> float:
    return math.log(sum(math.exp(each.log_z) for each in found) / len(found))


def drawn(scenario: Scenario, found: list[Particles], count: int) -> Tensor:
    x = torch.cat([each.x for each in found])
    rows = systematic(torch.cat([each.log_weights for each in found]), count, stream(1))
    return x[rows]


@pytest.mark.parametrize(
    "text",
    [
        "2 <= income <= 3",
        "income <= 0.2 or 1 <= income < 1.5 or income > 10",
        "grade = 3 or grade in {7, 8}",
        "height >= 175 implies weight >= 80",
        "debt = 0 and grade >= 6",
        "debt > 0 and income <= 1",
        "height = 180 and weight >= 70",
        "height + weight >= 260",
        "income + height >= 190",
        "height + weight <= 230 and not (grade <= 5)",
        "height[1] > height[2] + 15",
        "income[1] <= 1 and income[2] >= 3 and grade[1] > grade[2]",
    ],
)
def test_the_conditional_law_and_its_probability(text: str) -> None:
    """Samples at their floor, and the probability within its noise."""
    model, draws = numbers()
    scenario = Scenario(model, parse(text))
    points = scenario.joined(draws)
    truth = points[scenario.satisfied(points)[0]]
    log_p = math.log(len(truth) / len(points))
    found = batches(scenario)
    assert abs(log_probability(found) - log_p) < 0.1 + 3 / math.sqrt(len(truth))
    assert min(each.ess for each in found) > 200
    count = min(800, len(truth) // 10)
    made = drawn(scenario, found, count)
    assert len(torch.unique(made, dim=0)) > 0.9 * count
    assert bool(scenario.satisfied(made)[0].all())
    *others, reference = truth.split([*[count] * 5, len(truth) - 5 * count])
    distance, *floors = (
        histogram_distance(each.numpy(), reference.numpy(), whole=False) for each in (made, *others)
    )
    assert distance.mean() < 1.3 * np.mean(floors)
    assert distance.max() < 1.5 * np.max(floors)


def test_a_rare_row() -> None:
    """An interval of one column is one of its latent, however small its probability."""
    model, _ = numbers()
    column = next(iter(model.codec.warps().values()))
    first, _ = column.interval(45.0, math.inf, False, False)
    scenario = Scenario(model, parse("income >= 45"))
    law = model.denoiser
    assert isinstance(law, MixtureDenoiser)
    tails = [
        float(w) * ndtr((float(each.mean[0]) - first) / math.sqrt(variance))
        for w, each, variance in zip(law.weights, law.components, (0.6, 0.4), strict=True)
    ]
    log_p = math.log(sum(tails))
    assert -12 < log_p < -10
    assert abs(log_probability(batches(scenario, steps=80)) - log_p) < 0.3


# --- words ----------------------------------------------------------------------------------------

SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}
MEANS = {"a": -0.6, "b": 0.2, "c": 1.2}
DEVIATIONS = {"a": 0.8, "b": 0.6, "c": 0.5}
GROUP = {"a": "east", "b": "east", "c": "west"}
LEVEL = {"a": 1, "b": 3, "c": 2}
LIMIT = 25.0


@cache
def people() -> Surrogate:
    """A number whose law depends on a word, which two columns follow from."""
    random = np.random.default_rng(0)
    race = random.choice(list(SHARES), 5_000, p=list(SHARES.values()))
    z = [MEANS[r] + DEVIATIONS[r] * e for r, e in zip(race, random.normal(size=5_000), strict=True)]
    frame = pd.DataFrame(
        {
            "group": [GROUP[each] for each in race],
            "income": np.exp(0.5 * np.array(z) + 3),
            "race": race,
            "level": [LEVEL[each] for each in race],
        }
    )
    data = infer_types(frame).data
    codec = TableCodec.fit(data)
    assert [c.name for c in codec.columns if isinstance(c, DerivedColumn)] == ["group", "level"]
    assert codec.shape == (4,)
    rows = [int((race == word).argmax()) for word in SHARES]
    means = codec.encode(data, np.array(rows), stream(0), torch.float64)
    means[:, 0] = torch.tensor(list(MEANS.values()))
    spreads = torch.zeros(3, 4, 4, dtype=torch.float64)
    spreads[:, 0, 0] = torch.tensor(list(DEVIATIONS.values())).double() ** 2
    return exact(codec, torch.tensor(list(SHARES.values())).double(), means, spreads)


def above(word: str) -> float:
    """P(income >= LIMIT | word)."""
    first, _ = people().codec.warps()["income"].interval(LIMIT, math.inf, False, False)
    return float(ndtr((MEANS[word] - first) / DEVIATIONS[word]))


def joint(words: str, income: str = "any") -> float:
    """P(word is one of some, and income as it is said to be)."""
    each = {"any": lambda p: 1.0, "above": lambda p: p, "below": lambda p: 1 - p}[income]
    return sum(SHARES[word] * each(above(word)) for word in words)


WORDS = {
    "race = b": lambda: joint("b"),
    "race = c and income >= 25": lambda: joint("c", "above"),
    "race != a and income >= 25": lambda: joint("bc", "above"),
    "race in {a, c} and income < 25": lambda: joint("ac", "below"),
    "race = c implies income >= 25": lambda: joint("ab") + joint("c", "above"),
    "group = west": lambda: joint("c"),
    "group != west and income >= 25": lambda: joint("ab", "above"),
    "group = west or income < 25": lambda: joint("c") + joint("ab", "below"),
    "level >= 2 and income < 25": lambda: joint("bc", "below"),
    "level = 1 or race = c": lambda: joint("ac"),
    "race[1] = a and race[2] = c and income[1] >= 25": lambda: joint("a", "above") * SHARES["c"],
    "group[1] = west and group[2] = east": lambda: joint("c") * joint("ab"),
}


@pytest.mark.parametrize("text", WORDS)
def test_words_and_what_follows_from_them(text: str) -> None:
    model = people()
    scenario = Scenario(model, parse(text))
    log_p = math.log(WORDS[text]())
    found = batches(scenario)
    assert abs(log_probability(found) - log_p) < 0.1
    made = drawn(scenario, found, 600)
    assert bool(scenario.satisfied(made)[0].all())
    frame = to_frame(dataset_of(scenario, made))
    assert (frame["group"] == frame["race"].map(GROUP)).all()
    assert (frame["level"] == frame["race"].map(LEVEL)).all()


def test_words_have_their_shares_given_the_scenario() -> None:
    scenario = Scenario(people(), parse("income >= 25"))
    found = batches(scenario, 2000)
    made = to_frame(dataset_of(scenario, drawn(scenario, found, 1500)))
    worth = min(1500.0, sum(each.ess for each in found))
    for word in SHARES:
        share = joint(word, "above") / joint("abc", "above")
        error = math.sqrt(share * (1 - share) / worth)
        assert abs((made["race"] == word).mean() - share) < 4 * error


# --- what the data never or always are ------------------------------------------------------------


@cache
def steps() -> Surrogate:
    """Values 0, 10 and 100, a city with its country, and a number that may be missing."""
    random = np.random.default_rng(0)
    city = random.choice(["lima", "lyon", "paris"], 900)
    frame = pd.DataFrame(
        {
            "x": random.choice([0, 10, 100], 900),
            "y": random.normal(size=900),
            "city": city,
            "country": np.where(city == "lima", "peru", "france"),
            "gap": np.where(random.uniform(size=900) < 0.3, np.nan, random.normal(size=900)),
        }
    )
    data = infer_types(frame).data
    codec = TableCodec.fit(data)
    x = codec.encode(data, slice(None), stream(0), torch.float64)
    return exact(codec, torch.ones(1).double(), x.mean(0)[None], torch.cov(x.mT)[None])


def answer(text: str, method: str = "twisted") -> xr.Dataset:
    own = FEW[method]
    return sample(steps(), 40, text, seed=1, method=method, pilot_samples=PILOT, **own).dataset


@pytest.mark.parametrize("text", ["x <= 1000", "y >= -100", "country in {peru, france}"])
def test_what_always_holds(text: str) -> None:
    data = answer(text)
    assert bool(data.satisfied.all())
    assert data.attrs["surrogate_log_probability"] == 0


@pytest.mark.parametrize("text", ["gap >= -100 and y >= 0", "gap <= 0", "gap <= 0 or y >= 1"])
def test_a_missing_number_meets_nothing(text: str) -> None:
    data = answer(text)
    assert bool(data.satisfied.all())
    gap = data["gap"].values
    if "or" not in text:
        assert np.isfinite(gap).all()
    other = answer(text, "rejection").attrs
    error = math.hypot(*(each["surrogate_log_probability_error"] for each in (data.attrs, other)))
    apart = data.attrs["surrogate_log_probability"] - other["surrogate_log_probability"]
    assert abs(apart) < 0.15 + 4 * error


@pytest.mark.parametrize("text", ["x = 5", "20 <= x <= 50", "x = 5 and y >= 0"])
def test_what_never_holds(text: str) -> None:
    with pytest.raises(ImpossibleError, match="no value in the training data satisfies"):
        answer(text)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("x != 5", "twisted"),
        ("gap <= 100", "twisted"),
        ("country in {peru, france}", "guidance"),
        ("country in {peru, france}", "universal"),
    ],
)
def test_what_says_nothing(text: str, method: str) -> None:
    assert bool(answer(text, method).satisfied.all())


def test_words_that_contradict_what_follows_from_them() -> None:
    with pytest.raises(ImpossibleError, match="city = lyon implies country = "):
        answer("country = peru and city = lyon")


# --- results of any method ------------------------------------------------------------------------

FEW = {
    "twisted": {"particles": 400, "steps": 12},
    "guidance": {"steps": 30, "langevin": 10},
    "universal": {"steps": 20, "backward": 1},
    "rejection": {"steps": 12},
}
SINGLE = "race != a and income >= 25 and level >= 2"
PAIR = "race[1] = a and group[2] = west and income[1] <= income[2]"


def ask(name: str, text: str, seed: int = 4) -> xr.Dataset:
    own = FEW[name]
    return sample(people(), 60, text, seed=seed, method=name, pilot_samples=PILOT, **own).dataset


@pytest.mark.parametrize("name", FEW)
def test_every_method_labels_rows_honestly(name: str) -> None:
    data = ask(name, SINGLE)
    assert data.sizes == {"sample": 60, "rule": 1}
    frame = to_frame(data)
    assert list(frame.columns[:4]) == ["group", "income", "race", "level"]
    met = (frame.race != "a") & (frame.income >= 25) & (frame.level >= 2)
    assert (frame.satisfied == met).all()
    assert ((frame.robustness >= 0) | ~met).all()
    told = json.loads(data.attrs["surrogate_diagnostics"])
    if name in ("twisted", "rejection"):
        assert met.all()
        error = data.attrs["surrogate_log_probability_error"]
        log_p = math.log(joint("bc", "above"))
        assert abs(data.attrs["surrogate_log_probability"] - log_p) < 0.1 + 4 * error
    else:
        assert met.mean() > 0.3
        assert met.all() or "do not meet" in told["warnings"][0]
    assert (frame["group"] == frame["race"].map(GROUP)).all()
    again = ask(name, SINGLE)
    assert all((again[n].values == data[n].values).all() for n in ("income", "race", "origin"))


def test_more_instances_than_fit_in_memory_are_refused() -> None:
    with pytest.raises(FormulaError, match="99,999 instances, and at most"):
        ask("rejection", "income[1] < income[99999]")


@pytest.mark.parametrize("name", FEW)
def test_pairs_have_a_dimension_of_their_own(name: str) -> None:
    data = ask(name, PAIR)
    assert data.sizes == {"sample": 60, "instance": 2, "rule": 1}
    assert data["instance"].values.tolist() == [1, 2]
    for column in ("group", "income", "race", "level"):
        assert data[column].dims == ("sample", "instance")
    for label in ("satisfied", "robustness", "log_weight", "origin"):
        assert data[label].dims == ("sample",)
    first, second = data.isel(instance=0), data.isel(instance=1)
    met = (first.race == "a") & (second.group == "west") & (first.income <= second.income)
    assert (data.satisfied.values == met.values).all()
    if name in ("twisted", "rejection"):
        assert met.all()
    frame = to_frame(data)
    assert list(frame.columns[:6]) == ["sample", "instance", "group", "income", "race", "level"]
    assert len(frame) == 120
    assert frame["sample"].tolist() == np.repeat(np.arange(60), 2).tolist()
    assert frame["instance"].tolist() == [1, 2] * 60
    assert (frame["income"].to_numpy().reshape(60, 2) == data["income"].values).all()
    assert (frame["satisfied"].to_numpy().reshape(60, 2) == data.satisfied.values[:, None]).all()


def test_the_answer_of_a_model_is_a_table() -> None:
    frame = people().sample(40, where=parse(SINGLE), seed=1)
    assert isinstance(frame, pd.DataFrame)
    assert frame["satisfied"].all()
    assert "surrogate_log_probability" in frame.attrs
    assert frame["level"].dtype == np.int64
    plain = people().sample(40, seed=1)
    assert list(plain.columns) == ["group", "income", "race", "level"]
    assert (plain["group"] == plain["race"].map(GROUP)).all()
