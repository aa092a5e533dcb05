"""Rules that samples obey, as datasets and models carry them.

Those of a reaction network follow from its description (attribute `surrogate_config`). Those that
were declared, or found in data, stand as texts by name in the attribute `surrogate_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from constraints import Formula, FormulaError, parse
from constraints.physics.rules import from_network
from surrogate.io.attributes import json_object, simulation_in

RULES = "surrogate_rules"  # attribute of datasets: JSON of name -> text


def rules_in(attrs: Mapping[Any, Any]) -> dict[str, Formula]:
    """All rules that the attributes of data carry, by name; FormulaError for a network that cannot
    be read."""
    return all_rules(attrs.get("surrogate_config"), stated_in(attrs))


def all_rules(description: Any, stated: Mapping[Any, Any]) -> dict[str, Formula]:
    """The rules of a described network (its JSON), and those that are stated as texts."""
    return {**from_network(simulation_in(description)), **parsed(stated)}


def stated_in(attrs: Mapping[Any, Any]) -> dict[str, str]:
    """Texts of rules that were declared or found, by name."""
    found = json_object(attrs.get(RULES))
    return {name: text for name, text in found.items() if isinstance(text, str)}


def parsed(stated: Mapping[Any, Any]) -> dict[str, Formula]:
    """Formulas of texts, without those that cannot be read: of another version, or a stranger's."""
    found = {}
    for name, text in stated.items():
        try:
            found[str(name)] = parse(str(text))
        except FormulaError:
            continue
    return found


def attribute(stated: Mapping[str, str]) -> dict[str, str]:
    """The attributes that carry stated rules; none where there are none."""
    return {RULES: json.dumps(dict(stated), ensure_ascii=False)} if stated else {}
