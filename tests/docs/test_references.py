"""Functions, modules and files that the documentation names exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THEORY = sorted((ROOT / "docs" / "theory").glob("*.md"))
NAMED = re.compile(r"`((?:surrogate|constraints|simulators|cli)(?:\.\w+)+)`")
FILES = re.compile(r"`((?:\w+/)+(?:[\w.]+\.(?:py|txt|md))?)`")


def resolve(name: str) -> object:
    """The module, or the attribute of one, that a dotted name stands for."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


def references(page: Path, pattern: re.Pattern[str]) -> list[str]:
    return sorted(set(pattern.findall(page.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("page", THEORY, ids=lambda page: page.stem)
def test_named_functions_exist(page: Path) -> None:
    names = references(page, NAMED)
    assert len(names) >= (0 if page.stem == "README" else 5)
    for name in names:
        resolve(name)


@pytest.mark.parametrize(
    "page", [*THEORY, ROOT / "CONTRIBUTING.md", ROOT / "README.md"], ids=lambda page: page.stem
)
def test_named_files_and_links_exist(page: Path) -> None:
    for name in references(page, FILES):
        assert (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_a_name_that_is_not_there_is_found_out() -> None:
    with pytest.raises(AttributeError):
        resolve("surrogate.diffusion.schedule.no_such")
