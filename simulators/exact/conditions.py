"""Conditions on trajectories: a predicate over the state at each grid step, and on whole paths.

    {0: "S = 95 and I = 5", 25: "S = 30 or S = 40", "all": "I <= 60"}
    {"path": exists("I >= 30", 3, 9) & ~reaches("I >= 60", 0, 1.5), 25: "S = 30"}

    C = {x : every predicate of step k holds for x(t_k), for all k, and every condition on paths}.

Predicates are conditions in the rate-law language, functions of the named values, or lists of these
(all must hold). An exact solver and a rejection sampler read the same `Conditions`. A `Likelihood`
in place of a predicate weighs states instead of choosing among them, which the exact solver can do:

    {3: Likelihood(lambda values: binom.pmf(7, values["I"], 0.5))}

What is under "path" is a `monitors.Monitor`, or a `monitors.Condition` that makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulators import rates
from simulators.errors import InputError, unknown
from simulators.exact.monitors import Condition, Memory, Monitor, joined
from simulators.network import ReactionNetwork
from simulators.rates import Expression

Values = Mapping[str, Any]
Function = Callable[[dict[str, np.ndarray]], Any]
Predicate = str | Function | Sequence[Any]  # or a Likelihood, which is a function
PATH = "path"


@dataclass(frozen=True)
class _Written:
    """A predicate from text, rules written out so that only variables and parameters remain."""

    condition: Expression
    plain: Expression

    def __call__(self, values: Values) -> Any:
        return rates.evaluate(self.plain, values)

    def __str__(self) -> str:
        return str(self.condition)


@dataclass(frozen=True)
class _Computed:
    """A predicate given as a function."""

    function: Function

    def __call__(self, values: Values) -> Any:
        answer = np.asarray(self.function(dict(values)))
        if answer.dtype != np.bool_:
            raise InputError(
                f"the predicate {self} must return booleans, one per state, not {answer.dtype}",
                value=answer.dtype,
                remedy="compare with <, <=, ==, ...",
            )
        return answer

    def __str__(self) -> str:
        return f"<{getattr(self.function, '__name__', type(self.function).__name__)}>"


@dataclass(frozen=True)
class Likelihood:
    """A factor: how probable what was observed is in each state, a number >= 0."""

    function: Function

    def __call__(self, values: Values) -> Any:
        weights = np.asarray(self.function(dict(values)), dtype=np.float64)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InputError(
                f"the likelihood {self} must be finite and not negative, one number per state",
                value=weights,
            )
        return weights

    def __str__(self) -> str:
        return f"<likelihood {getattr(self.function, '__name__', type(self.function).__name__)}>"


@dataclass(frozen=True)
class _Several:
    """All of several predicates."""

    tests: tuple[Any, ...]

    def __call__(self, values: Values) -> Any:
        return np.logical_and.reduce(np.broadcast_arrays(*(test(values) for test in self.tests)))

    def __str__(self) -> str:
        return " and ".join(f"({test})" for test in self.tests)


_Test = _Written | _Computed | _Several | Likelihood


class Conditions:
    """`where`: mapping grid step (0-based), "all" or "path" -> predicate; `times`: the grid, (T,).

    `parameters`: fixed values that differ from the network's. False if there are no predicates.
    """

    def __init__(
        self,
        where: Mapping[Any, Predicate | Condition | Monitor] | None,
        network: ReactionNetwork,
        times: np.ndarray | None = None,
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        self.network = network
        self.times = np.asarray(network.times if times is None else times, dtype=np.float64)
        self._parameters = {**network.parameters, **(parameters or {})}
        self._always: list[_Test] = []
        self._at: dict[int, list[_Test]] = {}
        self._paths: list[Monitor] = []
        if where is not None and not isinstance(where, Mapping):
            raise InputError(
                f'conditions are a mapping such as {{25: "S = 30", "all": "I <= 20"}}, '
                f"not {where!r}",
                value=where,
            )
        for step, predicate in (where or {}).items():
            if isinstance(step, str) and step == PATH:
                self._paths += self._read_paths(predicate)
                continue
            tests = self._read(predicate, step)
            if isinstance(step, str) and step == "all":
                self._always += tests
            elif tests:
                self._at.setdefault(self._step(step), []).extend(tests)

    @classmethod
    def read(
        cls,
        where: Conditions | Mapping[Any, Predicate | Condition | Monitor] | None,
        network: ReactionNetwork,
        times: np.ndarray,
        parameters: Mapping[str, float] | None = None,
    ) -> Conditions:
        """`where` for this network and grid, given as a mapping or as `Conditions`."""
        if not isinstance(where, Conditions):
            return cls(where, network, times, parameters)
        if where.network != network or not np.array_equal(where.times, times):
            raise InputError(
                "these conditions were written for another network or time grid",
                value=where,
                remedy="write them for this one, as a mapping step -> predicate",
            )
        fitted = copy(where)
        fitted._parameters = {**where._parameters, **(parameters or {})}
        return fitted

    # --- evaluation ------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self._always or self._at or self._paths)

    @property
    def monitor(self) -> Monitor | None:
        """The conditions on whole paths, as one; None without any."""
        return joined(self._paths) if self._paths else None

    def active(self, step: int) -> bool:
        """Whether there is a predicate for this step."""
        return bool(self._always) or step in self._at

    @property
    def last(self) -> int:
        """The last step that has a predicate; -1 if none has."""
        return len(self.times) - 1 if self._always else max(self._at, default=-1)

    def mask(self, step: int, values: Values) -> np.ndarray:
        """Where the predicates of `step` hold; arrays (n,) in, booleans (n,) out, or the product of
        the likelihoods, where there are any.

        `values` has the variables, and any parameters that differ from the network's.
        """
        size = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
        holds = np.ones(size, dtype=bool)
        if not self.active(step):
            return holds
        everything = self.given(step, values)
        for test in (*self._always, *self._at.get(step, ())):
            answer = np.asarray(test(everything))
            if answer.shape not in ((), size):
                raise InputError(
                    f"the predicate {test} returned shape {answer.shape}, not {size}",
                    value=answer.shape,
                    remedy="return one boolean for each state",
                )
            holds = holds & answer if holds.dtype == answer.dtype == np.bool_ else holds * answer
        return holds

    def given(self, step: int, values: Values) -> dict[str, np.ndarray]:
        """All that predicates read at a step: parameters, the time, rules, `values` as float64."""
        # small unsigned counts, as files hold them, would wrap around in S - I
        given = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        known = {name: np.asarray(value) for name, value in self._parameters.items()}
        everything = {"time": np.asarray(self.times[step]), **known, **given}
        rules = self.network.inlined_rules
        return {**everything, **{k: rates.evaluate(law, everything) for k, law in rules.items()}}

    def holds(self, trajectories: Any) -> np.ndarray:
        """Which trajectories meet all conditions, shape (sample,).

        `trajectories`: a dataset with dims (sample, time), or a mapping of arrays, (sample, time)
        for what varies in time, (sample,) for parameters.
        """
        tests = (*self._always, *(test for tests in self._at.values() for test in tests))
        if any(isinstance(test, Likelihood) for test in tests):
            raise InputError(
                "a likelihood weighs trajectories: it neither holds nor fails",
                value=str(self),
                remedy="use MasterEquation",
            )
        columns = _columns(trajectories)
        for name in self.network.variables:
            if name not in columns:
                raise unknown("variable", name, columns)
        shape = columns[next(iter(self.network.species))].shape
        if len(shape) != 2 or shape[1] != len(self.times):
            raise InputError(
                f"trajectories of shape {shape} do not fit a grid of {len(self.times)} times",
                value=shape,
                remedy="give arrays (sample, time)",
            )
        named = {*self.network.variables, *self.network.parameters} & columns.keys()
        verdict = np.ones(shape[0], dtype=bool)
        path = self._started(shape[0])
        for step in range(len(self.times)):
            if self.active(step) or path:
                now = {
                    k: columns[k][:, step] if columns[k].ndim == 2 else columns[k] for k in named
                }
                verdict &= self.mask(step, now)
                path = self._moved(path, step, now)
        return verdict & path.get(True, np.zeros_like(verdict)) if self._paths else verdict

    def _started(self, count: int) -> dict[Memory, np.ndarray]:
        """Which of `count` trajectories have each memory of the conditions on paths."""
        monitor = self.monitor
        if monitor is None:
            return {}
        if monitor.passages:
            raise InputError(
                f"trajectories on a grid do not show whether {self} between its times",
                value=str(self),
                remedy="use MasterEquation",
            )
        return {monitor.start(): np.ones(count, dtype=bool)}

    def _moved(
        self, path: dict[Memory, np.ndarray], step: int, now: Values
    ) -> dict[Memory, np.ndarray]:
        """The memories after a step."""
        then: dict[Memory, np.ndarray] = {}
        for memory, mine in path.items():
            assert self.monitor is not None
            options, which = self.monitor.read(memory, step, self.given(step, now))
            for place, option in enumerate(options):
                then[option] = then.get(option, np.zeros_like(mine)) | (mine & (which == place))
        return then

    def describe(self) -> dict[str, list[str]]:
        """JSON-ready: step or "all" -> its predicates as text."""
        listed = {str(step): [str(t) for t in self._at[step]] for step in sorted(self._at)}
        always = {"all": [str(test) for test in self._always]} if self._always else {}
        paths = {PATH: [str(monitor) for monitor in self._paths]} if self._paths else {}
        return {**listed, **always, **paths}

    def __str__(self) -> str:
        parts = []
        for step, tests in self.describe().items():
            named = {"all": "every step", PATH: "path"}
            label = named.get(step, f"step {step}")
            parts.append(f"{label}: {' and '.join(f'({t})' if ' or ' in t else t for t in tests)}")
        return "; ".join(parts) or "nothing"

    def __repr__(self) -> str:
        return f"Conditions({self})"

    # --- reading ----------------------------------------------------------------------------------

    def _step(self, step: Any) -> int:
        last = len(self.times) - 1
        if isinstance(step, bool) or not isinstance(step, int | np.integer):
            raise InputError(
                f'a condition is for a grid step 0..{last} or "all", not {step!r}', value=step
            )
        if not 0 <= step <= last:
            raise InputError(f"step {step} is not on the grid: steps are 0..{last}", value=step)
        return int(step)

    def _read_paths(self, given: Any) -> list[Monitor]:
        """Conditions on whole paths, bound to the network."""
        if isinstance(given, Sequence) and not isinstance(given, str):
            return [monitor for each in given for monitor in self._read_paths(each)]
        if isinstance(given, Condition):
            return [given.bound(self._read_path_predicate, len(self.times))]
        if isinstance(given, Monitor):
            return [given]
        raise InputError(
            f'under "path" there are conditions on whole paths, such as exists("I >= 30", 3, 9), '
            f"not {given!r}",
            value=given,
            remedy='state what is about single steps with a step or "all"',
        )

    def _read_path_predicate(self, predicate: Predicate) -> _Test:
        tests = self._read(predicate, PATH)
        if any(isinstance(test, Likelihood) for test in tests):
            raise InputError("a likelihood is no condition on paths", value=str(predicate))
        return tests[0] if len(tests) == 1 else _Several(tuple(tests))

    def _read(self, predicate: Any, step: Any) -> list[_Test]:
        """A predicate, or a list of them, as tests that can be run."""
        if isinstance(predicate, Likelihood):
            return [predicate]
        if isinstance(predicate, str):
            return [self._parse(predicate, step)]
        if callable(predicate):
            return [_Computed(predicate)]
        if isinstance(predicate, Sequence):
            return [test for part in predicate for test in self._read(part, step)]
        raise InputError(
            f'the condition for step {step!r} is text such as "S = 30", a function or a list '
            f"of these, not {predicate!r}",
            value=predicate,
        )

    def _parse(self, text: str, step: Any) -> _Written:
        network = self.network
        condition = rates.parse(text)
        known = (*network.variables, *network.parameters, *network.rules)
        for name in sorted(rates.names(condition)):
            if name != "time" and name not in known:
                raise unknown("name", name, dict.fromkeys(known)).at(f"in {text!r}")
        if rates.kind(condition) != "bool":
            raise InputError(
                f"{text!r} for step {step!r} is a number, not a condition",
                value=text,
                remedy="compare it with something, such as '<= 20'",
            )
        return _Written(condition, rates.substitute(condition, network.inlined_rules))


def _columns(trajectories: Any) -> dict[str, np.ndarray]:
    """Arrays by name, time last, from a dataset or a mapping."""
    if not hasattr(trajectories, "data_vars"):
        return {name: np.asarray(value) for name, value in trajectories.items()}
    columns = {}
    for name, variable in trajectories.data_vars.items():
        dims = [dim for dim in ("sample", "time") if dim in variable.dims]
        if "sample" in dims and len(dims) == variable.ndim:
            columns[str(name)] = variable.transpose(*dims).values
    return columns
