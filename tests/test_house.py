"""The shape of the house: rooms, sizes, directions, and who may decide on what data are."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("cli", "constraints", "simulators", "surrogate")
MAX_LINES = 400
MAX_TOP_MODULES = 10
# what only kinds/ may ask: they know what data are, everyone else asks them
SWITCHES = re.compile(
    r"isinstance\([^)]*(?:TableCodec|ImageCodec|TimeSeriesCodec)|\bis_images\(|\bis_table\("
    r"|(?:model|codec|opened|kind)\.(?:kind|name|stored) (?:==|!=|in) [\"(]"
)
# names that say nothing of what they bound
VAGUE = {"MOST", "LEAST", "FEWEST", "FEW", "MANY", "EACH", "TOGETHER", "SMALL", "LARGE", "ENOUGH"}


def sources() -> list[Path]:
    return sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))


def spelled(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    long = {spelled(p): n for p in sources() if (n := len(p.read_text().splitlines())) > MAX_LINES}
    assert not long


def test_few_modules_stand_at_the_top() -> None:
    for name in ("surrogate", "constraints"):
        top = [path.name for path in (ROOT / name).glob("*.py")]
        assert len(top) <= MAX_TOP_MODULES, top


def test_only_kinds_decide_what_data_are() -> None:
    found = [
        f"{spelled(path)}:{number}: {line.strip()}"
        for path in sources()
        if "kinds" not in path.relative_to(ROOT).parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if SWITCHES.search(line)
    ]
    assert not found, "\n".join(found)


def test_imports_have_no_cycle() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    list(TopologicalSorter(imports).static_order())  # CycleError names the cycle


@pytest.mark.parametrize("package", ["constraints", "simulators", "surrogate"])
def test_no_import_hides_in_a_function(package: str) -> None:
    """Packages load lazily in their `__getattr__` alone; commands import what they run."""
    hidden = [
        f"{spelled(path)}:{inner.lineno}"
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith(PACKAGES)
    ]
    assert not hidden


def constants() -> dict[str, set[str]]:
    """Name of a constant -> modules that define it."""
    found = defaultdict(set)
    for path in sources():
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            for target in targets:
                for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(each, ast.Name) and each.id.isupper():
                        found[each.id].add(spelled(path))
    return found


def test_constants_say_what_they_bound() -> None:
    vague = {name: where for name, where in constants().items() if name in VAGUE}
    assert not vague
