"""The interface of a guidance method, and the registry of methods.

A method turns a `Question` (a scenario, a number of samples, a seed, settings) into an `Outcome`
(samples, weights, diagnostics). Its settings are a dataclass whose fields carry help, bounds and
choices; the command line's options, their validation and the tables of the README are made from
these fields. A new method is one class and one call of `register`:

@dataclass(frozen=True)
class NearestSettings(Settings):
    draws: int = option(1_000, help="Plain draws to choose from.", low=1)

class Nearest(Method[NearestSettings]):
    name, summary, settings = "nearest", "the plain draws closest to the scenario", NearestSettings
    def answer(self, question): ...

register(Nearest())

Listing methods and their settings does not import torch, so that `surrogate sample --help` is fast:
the package's own methods are declared in `surrogate.guidance.methods`, one file each, and their
algorithms are imported when they are first used (`Deferred`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from constraints.errors import Setting, nearest
from surrogate.errors import ModelError
from surrogate.guidance.settings import Settings

if TYPE_CHECKING:
    from surrogate.guidance.outcome import Outcome, Question
    from surrogate.guidance.scenario import Scenario

AUTO = "auto"  # not a method: the choice of one
DEFAULT_METHOD = "twisted"  # what "auto" chooses where rejection does not pay
BUILT_IN = "surrogate.guidance.methods"

S = TypeVar("S", bound=Settings)


class Method(ABC, Generic[S]):
    """One way to sample a scenario."""

    name: ClassVar[str]  # in `method="..."` and `--method ...`
    summary: ClassVar[str]  # what it does, in a line
    settings: ClassVar[type[Settings]] = Settings
    needs_pilot: ClassVar[bool] = False  # whether plain draws first estimate the acceptance rate
    guided: ClassVar[bool] = False  # whether it follows gradients of a soft formula: some miss it

    @abstractmethod
    def answer(self, question: Question[S]) -> Outcome:
        """Samples of the question's scenario."""

    def resolve(self, settings: S, scenario: Scenario) -> S:
        """Settings with every "auto" replaced by what it means for this scenario."""
        return settings


class Deferred(Method[S]):
    """A method whose algorithm is the function `answer` of a module that imports torch.

    This is the one place that loads algorithms late.
    """

    algorithm: ClassVar[str]  # the module

    def answer(self, question: Question[S]) -> Outcome:
        made: Outcome = import_module(self.algorithm).answer(question)
        return made


_METHODS: dict[str, Method[Any]] = {}


def register(method: Method[Any]) -> None:
    """Make a method known under its name."""
    if method.name in (AUTO, *_METHODS):
        raise ModelError(
            f"a method named {method.name!r} is registered already",
            value=method.name,
            remedy="give it another name",
        )
    _METHODS[method.name] = method


def unregister(method: Method[Any]) -> None:
    """Forget a method."""
    del _METHODS[method.name]


def methods() -> tuple[Method[Any], ...]:
    """All methods: the package's own in the order of their files, then those of users."""
    package = import_module(BUILT_IN)
    for module in iter_modules(package.__path__):  # each registers its method when imported
        import_module(f"{BUILT_IN}.{module.name}")
    own = {name for name, method in _METHODS.items() if _built_in(method)}
    ordered = sorted(own, key=lambda name: type(_METHODS[name]).__module__)
    return tuple(_METHODS[name] for name in (*ordered, *(n for n in _METHODS if n not in own)))


def _built_in(method: Method[Any]) -> bool:
    return type(method).__module__.startswith(f"{BUILT_IN}.")


def method_names() -> tuple[str, ...]:
    """What `method` may be: "auto" and the names of the methods."""
    return AUTO, *(method.name for method in methods())


def method_named(name: str) -> Method[Any]:
    """The method of this name; ModelError with the nearest name if there is none."""
    found = {method.name: method for method in methods()}
    if not isinstance(name, str) or name not in found:
        near = nearest(str(name), found)
        raise ModelError(
            f"unknown method {name!r}",
            value=name,
            allowed=[AUTO, *found],
            remedy=() if near is None else ["did you mean ", Setting("method", near), "?"],
        )
    return found[name]


# --- settings by name -----------------------------------------------------------------------------


def method_settings(method: str, /, **given: Any) -> Settings:
    """The settings of a method, checked; those of "auto" are those of its default.

    A name that the method does not know is refused with the methods it belongs to, or with the
    nearest name.
    """
    chosen = method_named(DEFAULT_METHOD if method == AUTO else method)
    check_names(method, given)
    return chosen.settings(**given)


def check_names(method: str, given: Iterable[str]) -> None:
    """ModelError for names that are not settings of this method."""
    own = names_of(method_named(DEFAULT_METHOD if method == AUTO else method))
    for name in given:
        if name in own:
            continue
        owners = owners_of(name)
        if owners:
            raise ModelError(
                f"the setting {name} belongs to {_either(owners)}, not to the method {method}",
                value=name,
                allowed=own,
                remedy=["choose ", Setting("method", owners[0]), ", or leave it out"],
            )
        every = dict.fromkeys([*own, *(each for other in methods() for each in names_of(other))])
        near = nearest(name, own) or nearest(name, every)
        hint = [] if near is None else [f"did you mean {near}"]
        if near is not None and near not in own:
            hint.append(f", a setting of {_either(owners_of(near))}")
        raise ModelError(
            f"unknown setting {name!r} of the method {method}",
            value=name,
            allowed=own,
            remedy=[*hint, "?"] if hint else (),
        )


def names_of(method: Method[Any]) -> tuple[str, ...]:
    """The names of a method's settings."""
    return tuple(field.name for field in fields(method.settings))


def common_names() -> tuple[str, ...]:
    """The names of the settings that all methods have."""
    return tuple(field.name for field in fields(Settings))


def owners_of(name: str) -> list[str]:
    """The methods that have a setting of this name."""
    return [method.name for method in methods() if name in names_of(method)]


def _either(names: list[str]) -> str:
    """the method a; the methods a, b and c"""
    if len(names) == 1:
        return f"the method {names[0]}"
    return f"the methods {', '.join(names[:-1])} and {names[-1]}"
