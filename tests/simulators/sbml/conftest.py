"""A reader of SBML text, for all tests of the importer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simulators import ReactionNetwork, read_sbml


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], ReactionNetwork]:
    def from_text(content: str) -> ReactionNetwork:
        path = tmp_path / "model.xml"
        path.write_text(content, encoding="utf-8")
        return read_sbml(path)

    return from_text
