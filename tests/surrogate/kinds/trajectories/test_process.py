"""What a simulation's description proves: Markov, homogeneous; and decoders that know it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from simulators import Event, Reaction, ReactionNetwork, simulate
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.decoder import TrajectoryDecoder
from tests.surrogate.analytic import generator
from tests.surrogate.kinds.trajectories.decoders import decoder_of, drawn


def network(rate: str = "5", events: tuple[Event, ...] = ()) -> ReactionNetwork:
    return ReactionNetwork(
        name="births",
        species={"X": 20},
        parameters={"k": 0.5},
        reactions=[Reaction("birth", "-> X", rate), Reaction("death", "X ->", "k*X")],
        events=list(events),
        until=3,
        points=7,
    )


def codec(net: ReactionNetwork) -> TimeSeriesCodec:
    return TimeSeriesCodec.fit(simulate(net, samples=200, seed=0))


def test_rates_without_time_are_homogeneous() -> None:
    found = codec(network())
    assert found.markov
    assert found.homogeneous


def test_a_rate_that_names_time_is_not() -> None:
    found = codec(network("piecewise(5, time < 1, 8)"))
    assert found.markov
    assert not found.homogeneous


def test_what_an_event_sets_is_part_of_the_state() -> None:
    data = simulate(network(events=(Event("more", "X > 25", {"k": 0.1}),)), samples=200, seed=0)
    assert TimeSeriesCodec.fit(data).markov
    assert not TimeSeriesCodec.fit(data).homogeneous
    assert not TimeSeriesCodec.fit(data.drop_vars("k")).markov


def test_an_uneven_grid_is_not_homogeneous() -> None:
    data = simulate(network(), samples=200, seed=0)
    assert not TimeSeriesCodec.fit(data.isel(time=[0, 1, 3, 4])).homogeneous


def test_data_that_were_not_simulated_prove_nothing() -> None:
    data = simulate(network(), samples=200, seed=0).assign_attrs(surrogate_config="")
    found = TimeSeriesCodec.fit(data)
    assert not found.markov
    assert not found.homogeneous


@pytest.mark.parametrize(("rate", "same"), [("5", True), ("piecewise(5, time < 1, 8)", False)])
def test_without_a_noisy_point_a_homogeneous_step_has_one_law(rate: str, same: bool) -> None:
    """With random weights, the values of a step given equal ones before it: at steps 2 and 5."""
    own = codec(network(rate))
    torch.manual_seed(0)
    decoder = TrajectoryDecoder(own)
    data = simulate(network(rate), samples=200, seed=0)
    clean = own.encode(data, np.arange(200), generator(0))
    decoder.measure(clean)
    with torch.no_grad():
        for weight in decoder.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator(1))
    level = decoder.sites.values(clean)["X"].clone()
    level[:, 1] = level[:, 4] = 18.0
    conditionals, features = decoder.conditionals, decoder.conditionals.features
    told = torch.zeros(1) if conditionals.blind_context is not None else torch.ones(1)
    context, shrunk = conditionals.context(torch.zeros_like(clean[:1]), torch.tensor([1e6]))
    found = []
    with torch.no_grad():
        for t in (2, 5):
            before = {"X": level[:1, t - 1]}
            noisy = {"X": shrunk[:, :, t]}
            seen = conditionals.step_input(context[:, t], [], before, [], noisy, told, t)
            law = conditionals.distribution(
                decoder.sites.series[0], conditionals.heads[0](seen), before["X"], t
            )
            like = torch.full((1,), 15.0, dtype=torch.float64)
            everything = torch.zeros_like(like), like + math.inf
            found.append(float(law.log_likelihood(like, everything)))
    assert features.level_sd[0].unique().numel() == (1 if same else 7)
    assert (found[0] == pytest.approx(found[1])) == same


@pytest.mark.parametrize("seed", [1, 2])
def test_samples_of_any_weights_keep_what_events_prove(seed: int) -> None:
    """A lockdown at I > 20 and a vaccination at time 3, which keeps the head count."""
    net = ReactionNetwork(
        name="epidemic",
        species={"S": 90, "I": 10, "R": 0, "V": 0},
        parameters={"beta": 1.0, "gamma": 0.3},
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/100"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        events=[
            Event("lockdown", "I > 20", {"beta": 0.1}),
            Event("vaccination", "time >= 3", {"S": "S - floor(S/2)", "V": "V + floor(S/2)"}),
        ],
        until=6,
        points=13,
    )
    data = simulate(net, samples=200, seed=0)
    made = decoder_of(data, seed)
    found = made.sites.codec.to_dataset(drawn(made, 100)[0])
    total = sum(found[name].values.astype(int) for name in "SIRV")
    assert (total == 100).all()
    locked = found.I.values > 20
    assert locked.any()
    assert (found.beta.values[locked] == 0.1).all()
    assert (found.beta.values[~locked] == 1.0).any()


def test_a_species_that_no_reaction_changes_is_restored() -> None:
    net = ReactionNetwork(
        name="source",
        species={"A": 7, "X": 20},
        parameters={"k": 0.5},
        reactions=[Reaction("birth", "A -> A + X", "1"), Reaction("death", "X ->", "k*X")],
        until=3,
        points=7,
    )
    made = decoder_of(simulate(net, samples=200, seed=0))
    found = made.sites.codec.to_dataset(drawn(made, 20)[0])
    assert (found.A.values == 7).all()
