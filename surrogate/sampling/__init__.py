"""Unconditional samplers: from noise to data with any denoiser.

All take a denoiser and a batch x (B, *shape) at the highest noise level, x ≈ σ_max n, and return
data like x. `dpm_solver` is the default: the best draws for a few evaluations of the denoiser.
"""

from __future__ import annotations

from surrogate.sampling.langevin import langevin as langevin
from surrogate.sampling.likelihood import log_likelihood as log_likelihood
from surrogate.sampling.ode import dpm_solver as dpm_solver
from surrogate.sampling.ode import heun as heun
from surrogate.sampling.predictor_corrector import predictor_corrector as predictor_corrector
from surrogate.sampling.sde import reverse_sde as reverse_sde
from surrogate.sampling.steps import Progress as Progress
