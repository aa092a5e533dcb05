"""What is given beside a scenario: observed data, joined to it as statements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.kind import Kind
from surrogate.kinds.observed import RECORD
from surrogate.kinds.opening import read
from surrogate.kinds.rule_options import Where
from surrogate.kinds.rules import rules_from

if TYPE_CHECKING:
    from surrogate.kinds.codec import Codec

NOISE_EXAMPLE = 'write noise="poisson(0.9*I)", or noise={"B": "poisson(0.9*I)"}'
OPTIONS = tuple(field.name for field in fields(ObservationOptions))


def with_given(
    kind: Kind, codec: Codec, where: Where | None, arguments: Mapping[str, Any]
) -> tuple[Where | None, dict[str, Any], dict[str, str]]:
    """The scenario with the data that are `given`, the arguments that are not about them, and
    attributes that record how they were read."""
    rest = {name: value for name, value in arguments.items() if name not in ("given", *OPTIONS)}
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    data = arguments.get("given")
    if data is None:
        if options:
            raise ModelError(
                f"{next(iter(options))} is about observed data, and there are none",
                value=list(options),
                remedy=("give them: ", Setting("given")),
            )
        return where, rest, {}
    if isinstance(data, (str, Path)):
        data = read(data)
    options["noise"] = distributions(options.get("noise", ()))
    columns = options.get("columns")
    if columns is not None and not isinstance(columns, Mapping):
        raise ModelError(
            f"columns is a dict of columns and what they observe, not {columns!r}",
            value=columns,
            remedy='write columns={"B": "I"}',
        )
    observing = ObservationOptions(**options)
    if "observed" in kind.formula_names:
        rest["observed"] = data, observing
    known = {name: rest[name] for name in kind.formula_names if name in rest}
    layout = codec.knowing(**known).layout() if known else codec.layout()
    found = kind.observed(data, layout, observing)
    stated = {} if where is None else rules_from(where, layout)
    rest["observations"] = tuple(found.statements)
    return {**stated, **found.statements}, rest, {RECORD: json.dumps(found.record)}


def distributions(noise: Any) -> tuple[str, ...]:
    """Distributions as texts: one, several, or a dict of one for each column."""
    if isinstance(noise, str):
        return (noise,)
    if isinstance(noise, Mapping):
        noise = [f"{column} ~ {text}" for column, text in noise.items()]
    if not isinstance(noise, (list, tuple)) or not all(isinstance(each, str) for each in noise):
        raise ModelError(f"noise cannot be {noise!r}", value=noise, remedy=NOISE_EXAMPLE)
    return tuple(noise)
