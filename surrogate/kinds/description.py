"""What simulated data say of the network that made them."""

from __future__ import annotations

import json
from typing import Any


def described_in(text: object) -> dict[str, Any]:
    """The description in an attribute `surrogate_config`; empty where there is none."""
    try:
        about = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return {}
    return about if isinstance(about, dict) and isinstance(about.get("network"), dict) else {}
