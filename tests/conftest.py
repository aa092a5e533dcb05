"""Every test process computes on one thread: they run side by side."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks and the README first: they take longest, and no process should wait for them."""
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)
