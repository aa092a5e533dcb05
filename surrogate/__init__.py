"""Surrogates of simulations, tables and images: fit them, and sample them under scenarios.

import surrogate as sg

model = sg.fit(data, preset="quick")   # trajectories (Dataset), rows (DataFrame), images (array)
model.save("model")
draws = sg.load("model").sample(5_000, seed=1)     # or sg.pretrained("esirs"), "digits"
guided = model.sample(1_000, where="alcohol >= 12 and colour = red")
sg.evaluate(draws, against=data)
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrogate.calibration.run import calibrate as calibrate
    from surrogate.data import evaluate as evaluate
    from surrogate.data import plot as plot
    from surrogate.data import report as report
    from surrogate.data import summary as summary
    from surrogate.errors import ModelError as ModelError
    from surrogate.errors import SurrogateError as SurrogateError
    from surrogate.errors import TrainingError as TrainingError
    from surrogate.fitting import fit as fit
    from surrogate.kinds.opening import read as read
    from surrogate.kinds.opening import write as write
    from surrogate.kinds.trajectories.rule import rule as rule
    from surrogate.model import Surrogate as Surrogate
    from surrogate.model import load as load
    from surrogate.model import pretrained as pretrained

# loaded when first used: torch takes seconds that `surrogate plot` need not pay
_HOMES = {
    "ModelError": "errors",
    "Surrogate": "model",
    "SurrogateError": "errors",
    "TrainingError": "errors",
    "calibrate": "calibration.run",
    "evaluate": "data",
    "fit": "fitting",
    "load": "model",
    "plot": "data",
    "pretrained": "model",
    "read": "kinds.opening",
    "report": "data",
    "rule": "kinds.trajectories.rule",
    "summary": "data",
    "write": "kinds.opening",
}
__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("surrogate-toolkit")
    if name not in _HOMES:
        raise AttributeError(f"module 'surrogate' has no attribute {name!r}")
    return getattr(import_module(f"surrogate.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
