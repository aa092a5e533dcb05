"""surrogate calibrate: sources of truths, outputs, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.small import run

DESIGN = ("--noise", "poisson(I)", "--steps-observed", "10", "--quantity", "I(12)")
FAST = ("--samples", "10", "--particles", "60", "--method", "sequential", "--threads", "1")


def test_a_bundled_model_is_calibrated_with_its_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("calibrate", "esirs", *DESIGN, *FAST, "-o", "ranks.csv")
    done = run(*words, "--replicates", "1", "-o", "page.html", "--json")
    found = json.loads(done.stdout)
    assert found["replicates"] == 1
    assert found["truths"] == "given"
    assert [each["quantity"] for each in found["quantities"]] == ["I(12)", "log likelihood"]
    assert "Only 1 replicates" in found["verdict"]["against"][0]
    assert "Calibration of esirs" in Path("page.html").read_text()
    run(*words, "--replicates", "2", "--resume")
    assert pd.read_csv("ranks.csv")["replicate"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--own-samples", "--param", "beta=2"), "--param is about a simulator"),
        (("--own-samples", "--simulate", "sir"), "both say where truths come from"),
        (("--steps-observed", "a"), "'a' are no steps"),
        (("--steps-observed", "99"), "there is no step 99 (have: 0 to 29)"),
        (("--noise", "poisson(rho*I)"), "the model has no 'rho'"),
        (("--quantity", "max(Q)"), "unknown signal"),
        (("--resume",), "name it: -o ranks.csv"),
        (("-o", "ranks.doc"), "ranks.doc"),
        (("--data", "nothing.nc"), "nothing.nc"),
        (("--simulate", "nosuch"), "nosuch"),
    ],
)
def test_mistakes_are_explained_before_the_work(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("calibrate", "esirs", *words, code=2)
    assert message in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())
