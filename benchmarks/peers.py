"""Other simulators on the same networks: bioscrape, GillesPy2 (C++ SSA), libroadrunner (gillespie).

A peer is a function `prepare(network, initial) -> draw`; `draw(n)` runs n trajectories on the
network's time grid, each from its row of `initial`, and returns their last states, shape
(n, species). All else (calibration, timing, a process of its own) is common: `measure`.
Preparation, compilers included, is not timed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path

import numpy as np
from textbook_c import Run, mass_action_constant

from simulators import rates
from simulators.network import ReactionNetwork

Draw = Callable[[int], np.ndarray]


def bioscrape(network: ReactionNetwork, initial: np.ndarray) -> Draw:
    """The Cython simulator, called without data frames, which would cost more than the run."""
    from bioscrape.simulator import ModelCSimInterface, SSASimulator
    from bioscrape.types import Model

    # numbers for parameters: its parser knows beta and gamma as special functions
    values = {name: rates.Number(value) for name, value in network.parameters.items()}
    parameters, reactions = [], []
    for j, (reaction, law) in enumerate(zip(network.reactions, network.propensities, strict=True)):
        sides = [[name for name in side for _ in range(side[name])] for side in reaction.sides]
        constant = mass_action_constant(network, j)
        if constant is None:
            reactions.append((*sides, "general", {"rate": str(rates.substitute(law, values))}))
        else:
            parameters.append((f"rate_{j}", constant))
            reactions.append((*sides, "massaction", {"k": f"rate_{j}"}))
    start = dict.fromkeys(network.species, 1)
    model = Model(
        species=list(network.species),
        reactions=reactions,
        parameters=parameters,
        initial_condition_dict=start,
    )
    order = [model.get_species2index()[name] for name in network.species]
    interface, simulator, times = ModelCSimInterface(model), SSASimulator(), network.times
    states = np.empty(initial.shape)
    states[:, order] = initial

    def draw(n: int) -> np.ndarray:
        last = np.empty((n, len(order)))
        for i in range(n):
            interface.py_set_initial_state(states[i])
            last[i] = simulator.py_simulate(interface, times).py_get_result()[-1]
        return last[:, order]

    return draw


def gillespy2(network: ReactionNetwork, initial: np.ndarray) -> Draw:
    """The C++ solver: one program for all trajectories, so all start from one state."""
    import gillespy2 as peer

    if (initial != initial[0]).any():
        raise NotImplementedError("one start for all trajectories")
    logging.getLogger("GillesPy2").setLevel(logging.ERROR)
    model = peer.Model(name=network.name)
    for name, value in network.parameters.items():
        model.add_parameter(peer.Parameter(name=name, expression=value))
    for name, start in zip(network.species, initial[0], strict=True):
        model.add_species(peer.Species(name=name, initial_value=int(start)))
    for reaction, law in zip(network.reactions, network.propensities, strict=True):
        reactants, products = reaction.sides
        model.add_reaction(
            peer.Reaction(
                name=f"reaction_{reaction.name}",
                reactants=reactants,
                products=products,
                propensity_function=str(law).replace("^", "**"),
            )
        )
    model.timespan(peer.TimeSpan(network.times))
    solver = peer.SSACSolver(model=model)

    seeds = count(1)

    def draw(n: int) -> np.ndarray:
        results = solver.run(number_of_trajectories=n, seed=next(seeds))
        return np.array([[path[name][-1] for name in network.species] for path in results])

    return draw


def libroadrunner(network: ReactionNetwork, initial: np.ndarray) -> Draw:
    """Its gillespie integrator, from SBML, one call a trajectory."""
    import roadrunner

    roadrunner.Logger.setLevel(roadrunner.Logger.LOG_ERROR)
    runner = roadrunner.RoadRunner(sbml(network, initial[0]))
    runner.setIntegrator("gillespie")
    runner.getIntegrator().setValue("variable_step_size", False)
    runner.getIntegrator().setValue("seed", 1)
    names = list(network.species)
    order = [names.index(name) for name in runner.model.getFloatingSpeciesIds()]
    states = initial[:, order].astype(float)

    def draw(n: int) -> np.ndarray:
        last = np.empty((n, len(names)))
        for i in range(n):
            runner.reset()
            runner.model.setFloatingSpeciesAmounts(states[i])
            last[i] = runner.simulate(0, network.until, network.points, names)[-1]
        return last

    return draw


def sbml(network: ReactionNetwork, initial: np.ndarray) -> str:
    """The network as SBML level 3: species in counts, one compartment of size 1."""
    import libsbml

    document = libsbml.SBMLDocument(3, 1)
    model = document.createModel()
    model.setId(network.name)
    cell = model.createCompartment()
    cell.setId("compartment_")
    cell.setConstant(True)
    cell.setSize(1)
    for name, start in zip(network.species, initial, strict=True):
        species = model.createSpecies()
        species.setId(name)
        species.setCompartment("compartment_")
        species.setInitialAmount(float(start))
        species.setHasOnlySubstanceUnits(True)
        species.setBoundaryCondition(False)
        species.setConstant(False)
    for name, value in network.parameters.items():
        parameter = model.createParameter()
        parameter.setId(name)
        parameter.setValue(value)
        parameter.setConstant(True)
    for item, law in zip(network.reactions, network.propensities, strict=True):
        reaction = model.createReaction()
        reaction.setId(f"reaction_{item.name}")
        reaction.setReversible(False)
        reaction.setFast(False)
        create = (reaction.createReactant, reaction.createProduct)
        for side, make in zip(item.sides, create, strict=True):
            for name, order in side.items():
                reference = make()
                reference.setSpecies(name)
                reference.setStoichiometry(order)
                reference.setConstant(True)
        reaction.createKineticLaw().setMath(libsbml.parseL3Formula(str(law)))
    return str(libsbml.writeSBMLToString(document))


PEERS: dict[str, Callable[[ReactionNetwork, np.ndarray], Draw]] = {
    "bioscrape": bioscrape,
    "gillespy2": gillespy2,
    "libroadrunner": libroadrunner,
}

# --- in a process of its own ----------------------------------------------------------------------


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _measure(name: str, network: ReactionNetwork, initial: np.ndarray, seconds: float) -> Run:
    draw, n = PEERS[name](network, initial), 2
    while True:  # as many trajectories as fill the time
        before = _cpu()
        draw(n)
        spent = _cpu() - before
        if spent > seconds / 4 or n >= len(initial):
            break
        n = min(len(initial), math.ceil(n * min(10.0, seconds / max(spent, seconds / 20))))
    runs = []
    for _ in range(3):
        before = _cpu()
        last = draw(n)
        runs.append((_cpu() - before, last))
    fastest = min(spent for spent, _ in runs)
    return Run.of(np.concatenate([last for _, last in runs]), n / fastest)


def measure(
    name: str, network: ReactionNetwork, initial: np.ndarray, seconds: float = 1.0
) -> tuple[Run | None, str]:
    """Best of three runs of a peer, or None and why not. It cannot take the caller down."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "initial.npy", initial)
        job = {"peer": name, "network": network.to_dict(), "seconds": seconds}
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            # GillesPy2 looks for scons on the path
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        try:
            done = subprocess.run(
                [sys.executable, __file__],
                check=False,
                input=json.dumps(job),
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60 + 60 * seconds,
            )
        except subprocess.TimeoutExpired:
            return None, "no result in time"
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return None, said[-1][:200]
    return Run(**json.loads(lines[-1].removeprefix("RESULT "))), ""


def _main() -> None:
    job = json.load(sys.stdin)
    network = ReactionNetwork.from_dict(job["network"])
    run = _measure(job["peer"], network, np.load("initial.npy"), job["seconds"])
    print("\nRESULT " + json.dumps(asdict(run)))


if __name__ == "__main__":
    _main()
