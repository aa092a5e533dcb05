"""The benchmarks can be started: what they import exists, and no name of theirs hides a package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
PACKAGES = ("cli", "constraints", "simulators", "surrogate")
IMPORT_ALL = """
import importlib, sys
sys.path[:0] = sys.argv[1:3]
for name in sys.argv[3:]:
    importlib.import_module(name)
"""


def test_no_script_has_the_name_of_a_package() -> None:
    """`python benchmarks/simulator.py` puts this folder first on the path."""
    assert not [name for name in PACKAGES if (BENCHMARKS / f"{name}.py").exists()]


def test_scripts_import() -> None:
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    words = [sys.executable, "-c", IMPORT_ALL, str(BENCHMARKS), str(ROOT), *names]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
