"""Solvers of plain samples, by name: from noise at `SIGMA_MAX` to data, or to a decoder's level."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.diffusion.schedule import VE, karras
from surrogate.errors import ModelError, whole_number
from surrogate.sampling.ode import dpm_solver, heun
from surrogate.sampling.predictor_corrector import predictor_corrector
from surrogate.sampling.sde import reverse_sde
from surrogate.sampling.steps import SIGMA_MAX, SIGMA_MIN

AUTOREGRESSIVE = "autoregressive"
SOLVERS = {
    AUTOREGRESSIVE: "value by value, by the decoder alone; the default of most models with one",
    "ode": "DPM-Solver++, few steps",
    "heun": "Heun, two evaluations a step",
    "sde": "the reverse SDE, with the data's covariance",
    "predictor-corrector": "Euler-Maruyama and Langevin, many steps",
}
MAX_STEPS = 100_000  # of a solver
DEFAULT_STEPS = 40
SOLVER_STEPS = {"predictor-corrector": 1000}  # where it is not DEFAULT_STEPS


def solver_named(name: str, decoder: bool) -> str:
    """The name itself; ModelError unless a model, which may have a decoder, can be so solved."""
    if name == AUTOREGRESSIVE and not decoder:
        raise ModelError(
            f"this model has no decoder, which the solver {name} needs",
            value=name,
            allowed=[other for other in SOLVERS if other != AUTOREGRESSIVE],
        )
    if name not in tuple(SOLVERS):
        raise ModelError(f"unknown solver {name!r}", value=name, allowed=SOLVERS)
    return name


def steps_of(solver: str, steps: int | None) -> int:
    """The number of steps that was requested, or the default of a solver."""
    steps = SOLVER_STEPS.get(solver, DEFAULT_STEPS) if steps is None else steps
    return whole_number(steps, "steps", least=2, most=MAX_STEPS)


@torch.no_grad()
def solve(
    solver: str,
    denoiser: Denoiser,
    x: Tensor,
    steps: int,
    covariance: Covariance,
    generator: Generator,
    handover: float | None = None,
) -> Tensor:
    """Data (B, *shape) from noise x = `SIGMA_MAX` n, or data with noise of the level `handover`."""
    if solver == "predictor-corrector":
        schedule = VE(sigma_max=SIGMA_MAX)
        last = schedule.sigma_min if handover is None else handover
        made = predictor_corrector(
            denoiser, x, schedule, generator, steps=steps, correctors=1, least=last
        )
        # without the noise that is left
        return denoiser(made, torch.tensor(last)) if handover is None else made
    levels = karras(steps, SIGMA_MIN, SIGMA_MAX).to(x.device, torch.float32)
    if handover is not None:
        levels = karras(steps, handover, SIGMA_MAX).to(levels)[:-1]
    if solver == "sde":
        return reverse_sde(denoiser, x, levels, covariance, generator)
    return (heun if solver == "heun" else dpm_solver)(denoiser, x, levels)
