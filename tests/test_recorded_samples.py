"""The bundled models and the simulator give the samples that they always gave for a seed.

Digests in `recorded_samples.json` hold for one build of torch and one arithmetic: on processors of
the same instruction set the libraries behind torch choose other kernels, the last bit of a float
differs, and so may a count that it rounds to. `arithmetic` tells such machines apart.
Record again, after a change that is meant to change samples: python -m tests.test_recorded_samples
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import surrogate as sg
from constraints import parse
from simulators import MasterEquation, models, simulate

RECORD = Path(__file__).with_name("recorded_samples.json")
BRIDGE = "S(0) = 95 and I(0) = 5 and S(25) = 30"


def _esirs(samples: int, where: str | None = None, **settings: Any) -> xr.Dataset:
    formula = None if where is None else parse(where)
    return sg.pretrained("esirs").sample(samples, seed=3, where=formula, **settings)


def _digits(samples: int, where: str | None = None, **settings: Any) -> xr.Dataset:
    formula = None if where is None else parse(where)
    return sg.pretrained("digits").sample(samples, seed=3, where=formula, **settings)


CASES: dict[str, Callable[[], xr.Dataset]] = {
    "simulate esirs": lambda: simulate(models.esirs(), 200, seed=5),
    "simulate sir by tau-leaping": lambda: simulate(models.sir(), 50, seed=5, method="tau"),
    "simulate toggle_switch": lambda: simulate(models.toggle_switch(), 50, seed=5),
    "master equation": lambda: MasterEquation(models.birth_death()).draw(50, seed=5),
    "esirs": lambda: _esirs(200),
    "esirs by the reverse SDE": lambda: _esirs(50, solver="sde"),
    "esirs by Heun": lambda: _esirs(50, solver="heun", steps=15),
    "esirs by predictor-corrector": lambda: _esirs(20, solver="predictor-corrector", steps=100),
    "esirs bridge": lambda: _esirs(200, BRIDGE, method="twisted", particles=800, steps=20),
    "esirs bridge, weighted": lambda: _esirs(
        100, BRIDGE, method="twisted", particles=400, steps=15, weighted=True
    ),
    "esirs bound": lambda: _esirs(
        100, "forall t: I(t) <= 25", method="twisted", particles=400, steps=20
    ),
    "esirs eventually, network Jacobian": lambda: _esirs(
        50,
        "exists t in [10, 20]: S(t) >= 60",
        method="twisted",
        particles=200,
        steps=15,
        jacobian="network",
    ),
    "esirs by the paper's guidance": lambda: _esirs(
        20, "S(25) >= 40", method="guidance", steps=30, langevin=10
    ),
    "esirs by universal guidance": lambda: _esirs(
        20, "S(25) >= 40", method="universal", steps=20, backward=1, recurrence=2
    ),
    "esirs by moments": lambda: _esirs(
        20, "S(25) >= 40", method="moments", steps=20, jacobian="gaussian"
    ),
    "digits": lambda: _digits(4, steps=10),
    "digits of a class": lambda: _digits(2, "class(image, 3)", steps=12, jacobian="gaussian"),
    "digits with a heavy upper half": lambda: _digits(
        2, "mean(upper) = mean(lower) + 0.05 +- 0.01", steps=12, jacobian="gaussian"
    ),
}


def digest(data: xr.Dataset) -> str:
    """Of all variables, by name."""
    found = hashlib.sha256()
    for name in sorted(str(each) for each in data.data_vars):
        values = np.ascontiguousarray(data[name].values)
        found.update(f"{name} {data[name].dims} {values.shape}".encode())
        if values.dtype.kind in "iub":
            found.update(values.astype(np.int64).tobytes())
        elif values.dtype.kind == "f":
            found.update(values.astype(np.float64).tobytes())
        else:
            found.update("\0".join(map(str, values.flat)).encode())
    return found.hexdigest()[:16]


def arithmetic() -> str:
    """A digest of what fixed tensors give in the operations that samplers use, on one thread."""
    found, threads = hashlib.sha256(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for kind, size in product((torch.float32, torch.float64), (7, 58, 60, 256)):
            x = torch.randn((800, size), generator=torch.Generator().manual_seed(size), dtype=kind)
            square = x.mT @ x / 800 + torch.eye(size, dtype=kind)
            values, vectors = torch.linalg.eigh(square)
            made = (
                x @ square,
                x[:50] @ square,
                x[0] @ square,
                torch.nn.functional.linear(x, square, x[0]),
                torch.linalg.cholesky(square),
                torch.linalg.solve(square, x[0]),
                torch.cholesky_solve(x.mT, torch.linalg.cholesky(square)),
                values,
                vectors,
                torch.exp(x),
                torch.log(x.abs()),
                torch.special.ndtr(x),
                torch.softmax(x, 1),
                torch.nn.functional.silu(x),
                torch.logsumexp(x, 0),
                x.square().mean(1).sqrt(),
            )
            for each in made:
                found.update(np.ascontiguousarray(each.numpy()).tobytes())
    finally:
        torch.set_num_threads(threads)
    return found.hexdigest()[:16]


def platform() -> dict[str, str]:
    """What digests depend on beside the code."""
    return {
        "torch": torch.__version__,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "arithmetic": arithmetic(),
    }


def test_the_digest_of_arithmetic_repeats() -> None:
    assert arithmetic() == arithmetic()


@pytest.mark.parametrize("name", CASES)
def test_a_seed_gives_the_samples_that_were_recorded(name: str) -> None:
    record = json.loads(RECORD.read_text())
    here = platform()
    if record["platform"] != here:
        pytest.skip(f"recorded on {record['platform']}, and this is {here}")
    assert digest(CASES[name]()) == record["digests"][name]


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = {name: digest(made()) for name, made in CASES.items()}
    RECORD.write_text(json.dumps({"platform": platform(), "digests": found}, indent=1) + "\n")
