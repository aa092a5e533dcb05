"""The registry of kernels: one entry is all that a new algorithm needs."""

# ruff: noqa: F821
# mypy: ignore-errors
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from constraints import FormulaError
from constraints.physics.rules import from_network
from simulators import Event, InputError, Reaction, ReactionNetwork, models, simulate
from simulators.dataset import attributes
from simulators.ensemble import make_engine
from simulators.kernels import Kernel, kernels, methods, register, unregister
from simulators.kernels.codegen.scalar import code


def follow(w, size, counts, stream, times, out, limit, stop, events, tables, own):
    """Gillespie's first-reaction method (1976): the reaction with the least waiting time fires."""
    kinds, leaves, change_at, change_what, change_by, _, _ = tables
    t, k = times[0], 0
    while True:
        first, soonest = -1, np.inf
        for j in range(kinds.size):
            after = t + exponential(next_bits(stream, 0)) / rate(j, t, w, kinds, leaves)
            if after < soonest:
                first, soonest = j, after
        while k < times.size and times[k] < soonest:
            out[:, k] = w[:size]
            k += 1
        if k == times.size:
            return 0, t
        t = soonest
        for at in range(change_at[first], change_at[first + 1]):
            w[change_what[at]] += change_by[at]


FIRST_REACTION = Kernel(
    name="first_reaction",
    method="first-reaction",
    exact=True,
    discrete=True,
    summary="a waiting time for every reaction",
    generate=lambda job: code(job, (follow,)),
    refusal=lambda network, program: None if program.autonomous else "it takes no events",
)


@pytest.fixture
def first_reaction() -> Iterator[str]:
    register(FIRST_REACTION)
    yield FIRST_REACTION.method
    unregister(FIRST_REACTION)


def test_a_new_exact_kernel_simulates_and_keeps_the_physics_rules(first_reaction: str) -> None:
    network = models.sir()
    data = simulate(network, 2_000, seed=1, times=[0, 7, 14], method=first_reaction)
    direct = simulate(network, 2_000, seed=2, times=[0, 7, 14])
    assert data.I.dtype == direct.I.dtype == np.int16
    for step in (1, 2):
        assert stats.ks_2samp(data.R[:, step], direct.R[:, step]).pvalue > 1e-3
    config, other = (json.loads(each.attrs["surrogate_config"]) for each in (data, direct))
    assert config["method"] == first_reaction
    assert config["exact"]
    assert config["discrete"]
    rules = from_network(config)
    assert list(rules) == list(from_network(other))
    assert {"S >= 0", "S + I + R = 763", "S never rises", "R never falls", "I stays 0"} <= set(
        rules
    )


def test_a_new_kernel_appears_among_the_methods_and_in_the_help(first_reaction: str) -> None:
    assert list(methods()) == ["direct", "first-reaction", "tau", "ode"]
    with pytest.raises(InputError, match=r"unknown method 'first'.*direct, first-reaction"):
        simulate(models.sir(), 1, method="first")


def test_a_kernel_refuses_networks_it_cannot_handle_and_names_a_method_that_can(
    first_reaction: str,
) -> None:
    network = ReactionNetwork(
        "n", {"X": 9}, {}, [Reaction("d", "X -> 0", 1)], events=[Event("e", "X < 5", {"X": 9})]
    )
    with pytest.raises(InputError, match=r"it takes no events; use method='direct'") as caught:
        simulate(network, 1, method=first_reaction)
    assert caught.value.render("command").endswith("use --method direct")
    for method in ("tau", "ode"):
        with pytest.raises(InputError, match=r"'e' is triggered by the state.*method='direct'"):
            simulate(network, 1, method=method)


def test_names_are_unique_and_kernels_of_a_method_agree(first_reaction: str) -> None:
    with pytest.raises(ValueError, match="already registered"):
        register(FIRST_REACTION)
    with pytest.raises(ValueError, match="disagree on 'ode'"):
        register(Kernel("x", "ode", True, True, "", FIRST_REACTION.generate))


@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: kernel.name)
def test_every_kernel_states_what_it_is(kernel: Kernel) -> None:
    assert kernel.summary
    assert kernel.discrete or not kernel.exact
    assert kernel in kernels(kernel.method)


def test_listing_methods_does_not_load_numba() -> None:
    program = "import sys, simulators.kernels as k; print(*k.methods(), 'numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["direct", "tau", "ode", "False"]


@pytest.mark.parametrize(
    ("method", "kept"), [("direct", "S never rises"), ("tau", "S >= 0"), ("ode", "S + I + R = 763")]
)
def test_files_written_before_the_facts_were_recorded_keep_their_rules(
    method: str, kept: str
) -> None:
    network = models.sir()
    engine = make_engine(network, 1, method=method)
    config = json.loads(attributes(engine)["surrogate_config"])
    rules = from_network(config)
    assert kept in rules
    del config["exact"], config["discrete"]
    assert list(from_network(config)) == list(rules)


def test_facts_that_are_not_true_or_false_are_refused() -> None:
    config = json.loads(attributes(make_engine(models.sir(), 1))["surrogate_config"])
    with pytest.raises(FormulaError, match="exact is true or false, not 'yes'"):
        from_network({**config, "exact": "yes"})
