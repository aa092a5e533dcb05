"""Names of labels: what a verdict adds to data, and the category of a missing word."""

from __future__ import annotations

import pandas as pd

LABEL_MEANINGS = {  # of what `label` adds
    "satisfied": "whether the sample satisfies all rules",
    "robustness": "margin by which the sample satisfies all rules",
    "rule_satisfied": "whether the sample satisfies the rule",
    "rule_robustness": "margin by which the sample satisfies the rule",
}
LOG_LIKELIHOOD = "log_likelihood"  # of the observations, which have no verdicts
LABELS = (*LABEL_MEANINGS, "log_weight", "origin", LOG_LIKELIHOOD)
ABSENT = "(missing)"  # the category of a missing word
RULE_PREFIX = "satisfied: "  # begins the column of a single rule in a table


def label_columns(data: pd.DataFrame) -> list[str]:
    """The label columns of a table; a column that only has the name of one is a signal."""
    if not {"satisfied", "robustness"} <= set(data.columns) or data["satisfied"].dtype.kind != "b":
        return []
    own = [*LABEL_MEANINGS, "log_weight", LOG_LIKELIHOOD]
    return [*own, *(str(name) for name in data.columns if str(name).startswith(RULE_PREFIX))]
