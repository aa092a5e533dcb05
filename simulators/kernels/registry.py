"""The registry of simulation algorithms: what each is, which networks it takes, how it is built.

A `method` is what a user chooses: "direct", "tau", "ode". A `Kernel` is one implementation of a
method, in one file that registers it; a method may have several, for different networks. Everything
that depends on the algorithm follows from the facts stated here, above all

    exact     trajectories have the law of the jump process, event by event
    discrete  species are whole numbers >= 0

Nothing here imports numba: a kernel states its source, and the engine compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulators.errors import InputError, Setting, unknown
from simulators.kernels.codegen.code import Code, Job
from simulators.kernels.codegen.program import Program
from simulators.network import ReactionNetwork


def _takes_all(network: ReactionNetwork, program: Program) -> str | None:
    return None


def _always_checks(program: Program, constants: np.ndarray) -> bool:
    return True


@dataclass(frozen=True)
class Kernel:
    """An algorithm.

    `generate` writes its code for a network. `refusal` says why it cannot take a network, or
    returns None. `needs_checks` says whether rates must be tested at run time with these constants,
    (1 or n, C). Of a method's kernels that take a network, the one with the highest `preference` is
    chosen. A kernel that is not exact reports counts past 2^53 itself. `latches`: it visits every
    state, and records the greatest value of a program's latches between grid times.
    """

    name: str
    method: str
    exact: bool
    discrete: bool
    summary: str
    generate: Callable[[Job], Code]
    refusal: Callable[[ReactionNetwork, Program], str | None] = _takes_all
    needs_checks: Callable[[Program, np.ndarray], bool] = _always_checks
    preference: int = 0
    latches: bool = False

    def can_handle(self, network: ReactionNetwork, program: Program) -> bool:
        return self.refuses(network, program) is None

    def refuses(self, network: ReactionNetwork, program: Program) -> str | None:
        """Why it cannot take the network, or None."""
        if program.latches and not self.latches:
            return (
                "it does not visit every state, so it cannot tell what happens between grid times"
            )
        return self.refusal(network, program)


_KERNELS: dict[str, Kernel] = {}


def register(kernel: Kernel) -> None:
    """Add a kernel; the kernels of one method must agree on what the method is."""
    if kernel.name in _KERNELS:
        raise ValueError(f"a kernel named {kernel.name!r} is already registered")
    for other in kernels(kernel.method):
        if (other.exact, other.discrete) != (kernel.exact, kernel.discrete):
            raise ValueError(f"{kernel.name!r} and {other.name!r} disagree on {kernel.method!r}")
    _KERNELS[kernel.name] = kernel


def unregister(kernel: Kernel) -> None:
    """Remove a kernel."""
    del _KERNELS[kernel.name]


def kernels(method: str | None = None) -> tuple[Kernel, ...]:
    """All kernels, or those of one method, the preferred ones first."""
    found = (kernel for kernel in _KERNELS.values() if method in (None, kernel.method))
    return tuple(sorted(found, key=lambda kernel: (-kernel.preference, kernel.name)))


def methods() -> dict[str, Kernel]:
    """The methods, exact ones first, each with a kernel that has its facts."""
    ranked = sorted(kernels(), key=lambda each: (not each.exact, not each.discrete, each.method))
    found: dict[str, Kernel] = {}
    for kernel in ranked:
        found.setdefault(kernel.method, kernel)
    return found


def facts(method: str) -> Kernel:
    """A kernel of this method, for what its kernels have in common; InputError if there is none."""
    known = methods()
    if not isinstance(method, str) or method not in known:
        raise unknown("method", str(method), known)
    return known[method]


def choose(
    method: str, network: ReactionNetwork, program: Program, name: str | None = None
) -> Kernel:
    """The kernel for a network: the preferred one of the method, or the one of this name."""
    candidates = kernels(method)
    if name is not None:
        candidates = tuple(kernel for kernel in candidates if kernel.name == name)
        if not candidates:
            raise unknown("kernel", name, [kernel.name for kernel in kernels(method)])
    reasons = [kernel.refuses(network, program) for kernel in candidates]
    for kernel, reason in zip(candidates, reasons, strict=True):
        if reason is None:
            return kernel
    able = [
        other
        for other in methods()
        if any(each.can_handle(network, program) for each in kernels(other))
    ]
    raise InputError(
        f"method {method!r} cannot simulate {network.name!r}: {reasons[-1]}",
        value=method,
        remedy=("use ", Setting("method", able[0])) if able else (),
    )
