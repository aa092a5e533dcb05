"""What every sampler keeps: shape, type, the seed's bytes, its input, the global random state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Generator, Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.diffusion.schedule import SCHEDULES, karras, schedule
from surrogate.errors import ModelError
from surrogate.sampling import (
    Progress,
    dpm_solver,
    heun,
    langevin,
    predictor_corrector,
    reverse_sde,
)
from tests.surrogate.analytic import gaussian, generator

Sampler = Callable[[Denoiser, Tensor, Generator, Progress | None], Tensor]

STEPS = 12
LEVELS = karras(STEPS, 0.01, 50)
COVARIANCE = Covariance(torch.eye(6))


def predictor(name: str) -> Sampler:
    def sampler(denoiser: Denoiser, x: Tensor, g: Generator, progress: Progress | None) -> Tensor:
        noise = schedule(name)
        return predictor_corrector(
            denoiser, x, noise, g, steps=STEPS, correctors=1, final=2, progress=progress
        )

    return sampler


SAMPLERS: dict[str, Sampler] = {
    "dpm_solver": lambda d, x, g, p: dpm_solver(d, x, LEVELS, progress=p),
    "heun": lambda d, x, g, p: heun(d, x, LEVELS, progress=p),
    "reverse_sde": lambda d, x, g, p: reverse_sde(d, x, LEVELS, COVARIANCE, g, progress=p),
    "langevin": lambda d, x, g, p: langevin(d, x, LEVELS[0], STEPS, g, progress=p),
} | {f"predictor_corrector {name}": predictor(name) for name in SCHEDULES}
RANDOM = [name for name in SAMPLERS if name not in ("dpm_solver", "heun")]
every = pytest.mark.parametrize("name", SAMPLERS)


def start(shape: tuple[int, ...], kind: torch.dtype = torch.float64) -> Tensor:
    return 50 * torch.randn(shape, generator=generator(3), dtype=kind)


@every
@pytest.mark.parametrize("shape", [(4, 6), (4, 2, 3), (4, 1, 2, 3), (1, 6)])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_shape_and_type(name: str, shape: tuple[int, ...], kind: torch.dtype) -> None:
    x = start(shape, kind)
    before, state = x.clone(), torch.random.get_rng_state()
    made = SAMPLERS[name](gaussian(), x, generator(), None)
    assert made.shape == shape
    assert made.dtype == kind
    assert made.isfinite().all()
    assert not made.requires_grad
    assert torch.equal(x, before)
    assert torch.equal(torch.random.get_rng_state(), state)


@every
def test_rank_is_only_a_shape(name: str) -> None:
    rows = SAMPLERS[name](gaussian(), start((4, 6)), generator(1), None)
    series = SAMPLERS[name](gaussian(), start((4, 6)).reshape(4, 2, 3), generator(1), None)
    torch.testing.assert_close(series.flatten(1), rows)


@every
def test_same_seed_same_bytes(name: str) -> None:
    runs = [SAMPLERS[name](gaussian(), start((4, 6)), generator(1), None) for _ in range(2)]
    assert torch.equal(*runs)


@pytest.mark.parametrize("name", RANDOM)
def test_another_seed_another_draw(name: str) -> None:
    runs = [SAMPLERS[name](gaussian(), start((4, 6)), generator(s), None) for s in (1, 2)]
    assert (runs[0] != runs[1]).all()


@every
def test_progress_counts_the_steps(name: str) -> None:
    done: list[int] = []
    SAMPLERS[name](gaussian(), start((4, 6)), generator(), done.append)
    assert sum(done) == STEPS


@pytest.mark.parametrize(
    "sigmas", [torch.tensor([1.0]), torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])]
)
def test_levels_must_fall(sigmas: Tensor) -> None:
    with pytest.raises(ModelError, match="noise levels must fall"):
        dpm_solver(gaussian(), start((4, 6)), sigmas)
    with pytest.raises(ModelError, match="noise levels must fall"):
        reverse_sde(gaussian(), start((4, 6)), sigmas, COVARIANCE, generator())
