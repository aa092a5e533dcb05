"""`--help`: options in sections, those that matter first, and without a heavy library."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from cli.main import COMMANDS, main
from cli.sections import HELP_SECTIONS, Command, section


def shown(*words: str) -> str:
    done = CliRunner().invoke(main, [*words])
    assert done.exit_code == 0, done.output
    return done.output


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)  # type: ignore[attr-defined]
    assert isinstance(found, click.Command)
    return found


def options(name: str) -> list[click.Option]:
    return [each for each in command(name).params if isinstance(each, click.Option)]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_lists_its_options_in_sections(name: str) -> None:
    text = shown(name, "-h")
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert "Options" not in headings
    sections = [heading.partition(":")[0] for heading in headings]
    assert {*sections} <= set(HELP_SECTIONS)
    ranks = [HELP_SECTIONS.index(section) for section in sections]
    assert ranks == sorted(ranks)
    for option in options(name):
        if not option.hidden:
            assert option.opts[0] in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_an_option_begins_with_what_it_does(name: str) -> None:
    for option in options(name):
        assert option.help is not None
        assert not option.help.startswith("Of "), option.opts
        assert option.help[0].isupper(), option.opts


def test_the_six_options_that_matter_come_first_in_sample() -> None:
    text = shown("sample", "--help").partition("What:")[2]
    words = ("--samples", "--seed", "--where", "--bridge", "--out", "--force")
    places = [text.index(f" {word} ") for word in words]
    assert places == sorted(places)
    others = {max(option.opts, key=len) for option in options("sample")} - {*words}
    assert all(text.index(f" {other}") > places[-1] for other in others)


def test_settings_of_methods_are_grouped_by_method_and_shared_ones_listed_once() -> None:
    text = shown("sample", "--help")
    parts = text.split("\nMethod: ")
    sections = {part.partition(":")[0]: part for part in parts[1:]}
    named = ["guidance", "moments", "rejection", "sequential", "twisted", "universal"]
    assert [name for name in sections if name != "several"] == named
    assert "--weighted " in sections["several"]  # of sequential and twisted
    assert "--keep-degenerate " in sections["twisted"]
    assert "--schedule " in sections["guidance"]
    for shared in ("--particles INTEGER", "--strength FLOAT", "--recurrence INTEGER"):
        assert shared in sections["several"]
        assert text.count(shared) == 1
    assert "Takes --steps, --particles, --jacobian, --weighted." in " ".join(
        sections["twisted"].split()
    )


def test_a_section_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no section of --help is named 'Misc'"):
        section("Misc")


def test_options_without_a_section_are_advanced() -> None:
    @click.command(cls=Command)
    @click.option("--odd", help="An odd thing.")
    @section("Output", click.option("--plain", help="A plain thing."))
    def made(odd: str, plain: str) -> None: ...

    text = CliRunner().invoke(made, ["--help"]).output
    assert text.index("Output:") < text.index("--plain") < text.index("Advanced:")
    assert text.index("Advanced:") < text.index("--odd")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version_options_print_the_version(option: str) -> None:
    assert shown(option).startswith("surrogate, version ")


def test_exit_codes_are_documented() -> None:
    text = shown("-h")
    for line in ("0  done", "1  a run failed", "2  a command, option", "3  a scenario that"):
        assert line in text


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("smaple",), "did you mean 'sample'?"),
        (("sample", "--sampels", "3"), "'--samples'"),
        (("simulate", "esirs", "--popul", "3"), "--population"),
    ],
)
def test_an_unknown_word_names_the_nearest(words: tuple[str, ...], near: str) -> None:
    done = CliRunner().invoke(main, [*words])
    assert done.exit_code == 2
    assert near in done.output


def test_the_number_of_grid_points_was_named_steps_and_still_may_be() -> None:
    assert "--steps" not in shown("simulate", "--help") + shown("reference", "--help")
    for option in ("--points", "--steps"):
        done = CliRunner().invoke(main, ["simulate", "esirs", "-n", "5", option, "0"])
        assert done.exit_code == 2
        assert "--points must be a whole number from 2" in done.output


def test_help_loads_no_heavy_library() -> None:
    heavy = "numpy", "numba", "torch", "xarray", "pandas", "matplotlib"
    code = f"import sys, cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
