"""The interface of methods: registry, settings, and a method that a user adds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import surrogate as sg
from cli.main import main
from surrogate.errors import ModelError
from surrogate.guidance import method as registry
from surrogate.guidance.catalogue import catalogue, with_tables
from surrogate.guidance.method import Method, method_named, method_settings, methods
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.settings import Settings
from surrogate.settings import option
from tests.surrogate.guidance.bed import Bed

README = Path(__file__).parents[3] / "README.md"


@dataclass(frozen=True)
class ToySettings(Settings):
    """Settings of a toy."""

    draws: int = option(200, low=1, high=5_000, help="Plain draws to choose from.")


class Toy(Method[ToySettings]):
    """The plain draws that meet the scenario, again and again."""

    name = "toy"
    summary = "the plain draws that meet the scenario, repeated"
    settings = ToySettings

    def answer(self, question: Question[ToySettings]) -> Outcome:
        scenario, draws = question.scenario, question.settings.draws
        x = scenario.joined(scenario.prior.draw(draws, question.seed).double())
        kept = x[scenario.satisfied(x)[0]]
        rows = torch.arange(question.samples) % len(kept)
        return Outcome.even(kept[rows], steps=40, evaluations=40 * draws)


@pytest.fixture
def toy() -> Iterator[Toy]:
    made = Toy()
    registry.register(made)
    yield made
    registry.unregister(made)


def test_a_new_method_appears_in_the_help_of_sample(toy: Toy) -> None:
    shown = " ".join(CliRunner().invoke(main, ["sample", "--help"]).output.split())
    assert "universal|toy]" in shown
    assert "--draws INTEGER Plain draws to choose from. [default: 200]" in shown
    assert f"Method: toy: {toy.summary.capitalize()}." in shown


def test_a_new_method_can_be_used_by_its_name(toy: Toy) -> None:
    model = Bed("a", 5).model
    data = model.sample(20, where="a(2) >= 0", method="toy", draws=100, seed=1)
    assert bool(data.satisfied.all())
    assert data.attrs["surrogate_method"] == "toy"
    with pytest.raises(ModelError, match="draws must be a whole number from 1 to 5,000"):
        model.sample(20, where="a(2) >= 0", method="toy", draws=0)


def test_an_option_of_another_method_is_refused_on_the_command_line(toy: Toy) -> None:
    done = CliRunner().invoke(main, ["sample", "--bridge", "S25=30", "--draws", "3"])
    assert done.exit_code == 2
    assert "--draws is no setting of --method auto; choose --method toy" in done.output


def test_a_name_is_registered_once(toy: Toy) -> None:
    with pytest.raises(ModelError, match="registered already"):
        registry.register(Toy())


def test_listing_methods_and_settings_does_not_import_torch() -> None:
    code = "import cli.sample, sys; from surrogate.guidance.catalogue import catalogue; "
    code += "assert len(catalogue()) > 10; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_method_names_the_nearest() -> None:
    with pytest.raises(ModelError, match="did you mean method='twisted'") as problem:
        method_named("twistd")
    assert "twisted" in problem.value.allowed


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("twisted", {"particels": 800}, "did you mean particles?"),
        ("twisted", {"strength": 2.0}, "belongs to the methods guidance, moments and universal"),
        ("auto", {"weigthed": True}, "did you mean weighted?"),
        ("rejection", {"langevine": 3}, "langevin, a setting of the methods guidance"),
        ("twisted", {"particles": 7}, "particles must be a whole number from 8 to 10,000,000"),
        ("moments", {"particles": 0}, "particles must be a whole number from 1"),
        ("twisted", {"jacobian": "exact"}, "(have: auto, gaussian, network)"),
        ("guidance", {"strength": 0.0}, "strength must be a finite number > 0"),
        ("universal", {"forward": False}, "both are off; turn on forward=True or backward=10"),
    ],
)
def test_settings_that_a_method_does_not_take_are_refused(
    method: str, given: dict[str, object], says: str
) -> None:
    with pytest.raises(ModelError) as problem:
        method_settings(method, **given)
    assert says in str(problem.value)


def test_every_setting_says_what_it_does_and_has_a_legal_default() -> None:
    for method in methods():
        method.settings()
        assert method.summary
    for each in catalogue():
        assert each.help[0].isupper(), each.name
        assert each.help.endswith("."), each.name


def test_the_tables_of_the_readme_are_those_of_the_fields() -> None:
    """Made again by: python -m surrogate.guidance.catalogue README.md"""
    text = README.read_text()
    assert "<!-- methods -->" in text
    assert "<!-- settings -->" in text
    assert with_tables(text) == text


def test_rules_are_formulas_texts_lists_or_dicts() -> None:
    model = Bed("a", 5).model
    one = model.sample(10, where="a(2) >= 0", seed=1, method="rejection")
    two = model.sample(10, where={"late": "a(4) >= 0", "early": "a(1) >= 0"}, method="rejection")
    assert one["rule"].values.tolist() == ["a(2) >= 0"]
    assert two["rule"].values.tolist() == ["late", "early"]
    with pytest.raises(sg.ModelError, match="where holds no rule"):
        model.sample(10, where=[])
