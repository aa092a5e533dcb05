"""Which Jacobian of the denoiser a method uses: the network's own, or a Gaussian's.

σ² ∂D/∂x is the covariance of the clean point given the noisy one. "network" multiplies by it with a
backward pass; "gaussian" replaces it by C_σ, from the covariance C of the data, for free. "auto" is
resolved once, before sampling starts, and the files record the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surrogate.settings import option

if TYPE_CHECKING:
    from surrogate.guidance.scenario import Scenario

JACOBIANS = ("auto", "gaussian", "network")
MAX_SOLVED_EQUATIONS = 2_000  # up to which the Gaussian solves them all at once
HELP = (
    "Covariance of the clean point given the noisy one: from the covariance of the data "
    "(gaussian), or from the Jacobian of the network (network), at twice the cost or more."
)


def jacobian_option(auto: str) -> Any:
    """The setting `jacobian` of a method; `auto` says what "auto" means there."""
    return option("auto", choices=JACOBIANS, help=HELP, shown=f"auto, {auto}")


def jacobian_of_data(scenario: Scenario, chosen: str) -> str:
    """ "gaussian" or "network"; "auto" is what suits the data: the network's for images, whose
    dependence on noise is far from a Gaussian's."""
    if chosen != "auto":
        return chosen
    return "network" if scenario.prior.kind.network_jacobian else "gaussian"


def jacobian_of_formula(scenario: Scenario, chosen: str) -> str:
    """ "gaussian" or "network"; "auto" is what suits the formula: with linear rules the Gaussian
    serves as well (measured on digits: all rules met, at a sixth of the time); towards classes and
    other nonlinear terms it hardly guides."""
    if chosen != "auto":
        return chosen
    few = scenario.equation_count <= MAX_SOLVED_EQUATIONS
    return "gaussian" if few and scenario.linear else "network"
