"""Text, layouts and proofs without torch, in fresh interpreters."""

from __future__ import annotations

import subprocess
import sys

import pytest

TORCH_FREE = {
    "parsing and printing": """
formula = constraints.parse("forall t: I(t) <= 20")
assert str(formula) == "forall t: I(t) <= 20"
""",
    "a syntax error": """
try:
    constraints.parse("forall t I(t) <= 20")
except constraints.FormulaError as problem:
    assert "expected :" in str(problem), problem
else:
    raise AssertionError
""",
    "a bridge": """
assert constraints.bridge("S0=95, S25=30") == constraints.parse("S(0) = 95 and S(25) = 30")
""",
    "a layout and its names": """
from constraints.compile.resolve import resolve
layout = constraints.Layout.series("S I", 30, integer=True, low=0, high=100)
resolve(constraints.parse("forall t: S(t) + I(t) <= 100 and max(I) >= 3"), layout)
try:
    resolve(constraints.parse("forall t: Q(t) <= 20"), layout)
except constraints.FormulaError as problem:
    assert "unknown signal" in str(problem), problem
else:
    raise AssertionError
""",
    "physics": """
constraints.rules.non_negative("S", "I")
""",
    "a contradiction": """
from constraints.prove.contradictions import refuse_impossible
layout = constraints.Layout.series("S I R", 30, integer=True, low=0, high=100)
total = constraints.rules.conserved_total("S I R", 100)
try:
    refuse_impossible(constraints.bridge("S25=300"), layout, [total])
except constraints.ImpossibleError as problem:
    assert "S(25)" in str(problem), problem
else:
    raise AssertionError
""",
}


@pytest.mark.parametrize("what", TORCH_FREE)
def test_torch_is_not_loaded_for(what: str) -> None:
    code = f"import sys\nimport constraints\n{TORCH_FREE[what]}\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
