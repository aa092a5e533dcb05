"""Entry point: loads only the command that is run, turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from constraints.errors import SurrogateError
from simulators.errors import unknown

COMMANDS = {
    "models": "list the built-in models",
    "simulate": "simulate a model and write its trajectories",
    "train": "learn a surrogate of trajectories, of a table or of images",
    "classifier": "learn which class an image is of, to guide or judge a model of images",
    "sample": "draw trajectories, rows or images from a surrogate",
    "plot": "draw trajectories as a fan chart, a table by column, images on a sheet",
    "report": "one page about samples: pictures, distances, provenance",
    "check": "judge a dataset by rules and explain the verdicts",
    "evaluate": "measure how far samples are from reference data",
    "reference": "the true answer to a scenario, by exact draws or simulation",
}


class Refusal(click.ClickException):
    """An error a person can act on; its exit code says of which kind."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        setattr(self, "exit_code", code)  # noqa: B010 - click declares it for the class


class Commands(click.Group):
    """Commands live in modules of their own name, imported when run, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise Refusal(str(unknown("command", args[0], COMMANDS)), 2)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SurrogateError as problem:
            raise Refusal(problem.render("command"), problem.exit_code) from problem
        except RuntimeError as problem:
            if "allocate memory" in str(problem):  # torch's own way to say so
                raise Refusal("out of memory: ask for fewer samples or steps", 1) from problem
            raise
        except KeyboardInterrupt:
            raise Refusal("interrupted; no file was written or changed", 1) from None
        except MemoryError as problem:
            raise Refusal("out of memory: ask for fewer samples or steps", 1) from problem
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Refusal("the output was closed before everything was written", 1) from None
        except OSError as problem:
            raise Refusal(str(problem), 1) from problem


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="First steps: surrogate simulate esirs, then surrogate plot trajectories.nc; with a "
    "table: surrogate train mine.csv",
)
@click.version_option(version("surrogate-toolkit"), prog_name="surrogate")
def main() -> None:
    """Simulate stochastic systems, learn them, tables or images, and ask for scenarios."""
