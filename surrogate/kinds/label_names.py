"""Names of labels: what a verdict adds to data, and the category of a missing word."""

from __future__ import annotations

import pandas as pd

LABELS = ("satisfied", "robustness", "rule_satisfied", "rule_robustness", "log_weight", "origin")
ABSENT = "(missing)"  # the category of a missing word
RULE_PREFIX = "satisfied: "  # begins the column of a single rule in a table


def label_columns(data: pd.DataFrame) -> list[str]:
    """The label columns of a table; a column that only has the name of one is a signal."""
    if not {"satisfied", "robustness"} <= set(data.columns) or data["satisfied"].dtype.kind != "b":
        return []
    return [*LABELS[:5], *(str(name) for name in data.columns if str(name).startswith(RULE_PREFIX))]
