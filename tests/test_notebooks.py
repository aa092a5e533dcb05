"""The notebooks run from clean kernels, and what they show is committed with them.

Each is run on its own code, only smaller. To run them in full and keep their pictures:

python notebooks/execute.py
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(place.stem for place in FOLDER.glob("*.ipynb"))
SHORT_RUN = {"SURROGATE_SAMPLES": "100", "SURROGATE_ITERATIONS": "20", "OMP_NUM_THREADS": "1"}
MAX_NOTEBOOK_BYTES = 600_000  # bytes of a committed notebook


def code_cells(place: Path) -> list[dict[str, Any]]:
    cells = json.loads(place.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def check_shown(place: Path) -> None:
    """Every cell ran, in order, without errors or warnings, and pictures were made."""
    cells = code_cells(place)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    pictures = [
        base64.b64decode(output["data"]["image/png"])
        for output in outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 3
    assert all(len(picture) > 5_000 for picture in pictures)
    drawn = "\n".join("".join(cell["source"]) for cell in cells)
    shown = re.findall(r"^(?:sg\.plot|plt\.show|found\.plot)\(", drawn, re.MULTILINE)
    assert len(pictures) == len(shown)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS == [
        "bring_your_own_simulator",
        "calibrate",
        "images_constraints",
        "infer_from_an_outbreak",
        "scenario_bridging",
        "scenario_capped_epidemic",
        "scenario_rare_events",
        "tabular_constraints",
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_is_committed(name: str) -> None:
    place = FOLDER / f"{name}.ipynb"
    check_shown(place)
    assert place.stat().st_size < MAX_NOTEBOOK_BYTES
    text = "".join(json.dumps({**cell, "id": ""}) for cell in code_cells(place))
    assert not re.search(r"/(?:home|root|tmp|work|Users|var)/", text)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs_from_a_clean_kernel(name: str, tmp_path: Path) -> None:
    before = (FOLDER / f"{name}.ipynb").read_bytes()
    done = subprocess.run(
        [sys.executable, FOLDER / "execute.py", name, "--out", tmp_path],
        env={**os.environ, **SHORT_RUN},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = tmp_path / f"{name}.ipynb"
    check_shown(made)
    assert [cell["source"] for cell in code_cells(made)] == [
        cell["source"] for cell in code_cells(FOLDER / f"{name}.ipynb")
    ]
    assert (FOLDER / f"{name}.ipynb").read_bytes() == before


def test_unknown_notebook_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "execute.py", "no_such"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no notebook 'no_such' (have: bring_your_own_simulator" in done.stderr


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_imports_are_public(name: str) -> None:
    code = "\n".join("".join(cell["source"]) for cell in code_cells(FOLDER / f"{name}.ipynb"))
    assert not re.findall(r"(?:from|import) (?:cli|constraints|simulators|surrogate)\.\S+", code)
