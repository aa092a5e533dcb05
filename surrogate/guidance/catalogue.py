"""All settings of all methods, merged by name: for the command line and for the README.

A name means the same wherever it occurs; bounds and defaults may differ by method. Nothing here
imports torch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surrogate.guidance.method import AUTO, common_names, methods
from surrogate.settings import Option, options_of


@dataclass(frozen=True)
class Listed:
    """A setting, and the methods that have it."""

    name: str
    option: Option  # of the first method that has it
    options: dict[str, Option]  # by method
    common: bool  # whether every method has it

    @property
    def owners(self) -> list[str]:
        """The methods that have it."""
        return list(self.options)

    @property
    def help(self) -> str:
        """What it does; where methods differ, of which method."""
        return self._merged({name: each.help for name, each in self.options.items()}, " ")

    @property
    def default_text(self) -> str:
        """The default in words; where methods differ, of which method."""
        return self._merged({name: each.default_text for name, each in self.options.items()}, "; ")

    def _merged(self, texts: dict[str, str], between: str) -> str:
        """A text that all methods share, or each text with its methods."""
        owners: dict[str, list[str]] = {}
        for method, text in texts.items():
            owners.setdefault(text, []).append(method)
        if len(owners) == 1:
            return next(iter(owners))
        return between.join(f"{text} ({', '.join(names)})" for text, names in owners.items())


def catalogue() -> list[Listed]:
    """The settings of all registered methods, those that all methods have first."""
    found: dict[str, dict[str, Option]] = {}
    for method in methods():
        for name, option in options_of(method.settings).items():
            found.setdefault(name, {})[method.name] = option
    every, common = len(methods()), common_names()
    made = [
        Listed(name, next(iter(own.values())), own, name in common or len(own) == every)
        for name, own in found.items()
    ]
    return sorted(made, key=lambda each: not each.common)


# --- the README -----------------------------------------------------------------------------------

AUTO_SUMMARY = (
    "estimates the acceptance rate with plain draws, chooses rejection or twisted particles, and "
    "says why; for images it is `moments`"
)


def methods_table() -> str:
    """The methods as a table of Markdown."""
    rows = [(f"`{AUTO}`", AUTO_SUMMARY)]
    rows += [(f"`{method.name}`", method.summary) for method in methods()]
    return _table(("method", "what it does"), rows)


def settings_table() -> str:
    """The settings of methods as a table of Markdown."""
    rows = [
        (
            f"`{each.name}`",
            "all" if each.common else ", ".join(f"`{name}`" for name in each.owners),
            each.default_text,
            each.help,
        )
        for each in catalogue()
    ]
    return _table(("setting", "methods", "default", "what it does"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def with_tables(text: str) -> str:
    """A text with its tables made again: each stands between <!-- methods --> or <!-- settings -->
    and <!-- end -->."""
    for name, table in (("methods", methods_table()), ("settings", settings_table())):
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if mark and end:
            text = f"{before}{mark}{table}\n{end}{after}"
    return text


if __name__ == "__main__":  # python -m surrogate.guidance.catalogue README.md
    for place in map(Path, sys.argv[1:]):
        place.write_text(with_tables(place.read_text()))
