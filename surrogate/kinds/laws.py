"""Laws: the rules that all data of a system obey, and the share of samples that obey them.

Data carry their rules in attributes (`io.rules`); `share_obeying` judges samples by them without
adding any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from constraints import Formula, FormulaError, Layout, Program, compiled
from constraints.explanation import chunk_size
from surrogate.evaluation.metrics import Laws
from surrogate.evaluation.weights import Array
from surrogate.io.attributes import simulation
from surrogate.io.rules import rules_in


def laws(
    samples: Mapping[Any, Any],
    reference: Mapping[Any, Any],
    layout: Layout,
    tensors: Mapping[str, Tensor],
    weights: Array,
) -> Laws:
    """How many samples obey the rules that they, or else the reference, carry in their attributes.

    `tensors`: the signals of the samples, as `layout` has them; `weights` (n,).
    """
    rules = rules_in(samples) or rules_in(reference)
    share, count = share_obeying(rules, layout, tensors, weights)
    return Laws(share, count, bool(simulation(samples) or simulation(reference)))


def share_obeying(
    rules: Mapping[str, Formula], layout: Layout, tensors: Mapping[str, Tensor], weights: Array
) -> tuple[float | None, int]:
    """The share of samples that obey all rules, and the number of rules: those about signals that
    the samples lack do not count. None where no rule is left."""
    programs: list[Program] = []
    for rule in rules.values():
        try:
            programs.append(compiled(rule, layout))
        except FormulaError:  # about a variable that the data leave out
            continue
    if not programs:
        return None, 0
    verdicts: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(weights), size := chunk_size(programs)):
            batch = {name: value[start : start + size] for name, value in tensors.items()}
            verdicts.append(torch.stack([each.verdict(batch) for each in programs]).all(0))
    obeyed = torch.cat(verdicts).double().numpy()
    return float(np.average(obeyed, weights=weights)), len(programs)
