"""Entry point: loads only the command that is run, renders errors and sets exit codes.

Imports wait for their use in two places, so that `--help`, completion and mistakes are answered at
once: here, where a command's module is imported when it is run, and inside the functions of those
modules, which check what can be checked (options, syntax of rules, files, models) before they
import what loads torch. The `__init__` of each package does the same for its public names.

A new command is a module cli/NAME.py with a `command`, and an entry of COMMANDS.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from cli.errors import unknown
from constraints.errors import SurrogateError

COMMANDS = {
    "models": "list the built-in simulators",
    "simulate": "simulate a model and write its trajectories",
    "train": "learn a surrogate of trajectories, of a table or of images",
    "classifier": "learn the classes of images, to guide or judge a model of images",
    "sample": "draw trajectories, rows or images from a surrogate",
    "plot": "plot trajectories as a fan chart, a table by column, images on a sheet",
    "report": "write one page about samples: figures, distances, provenance",
    "check": "judge a dataset by rules and explain the verdicts",
    "evaluate": "measure the distance of samples from reference data",
    "calibrate": "test whether samples given data hold the truth as often as they say",
    "reference": "the true answer to a scenario, by exact draws or by simulation",
    "completion": "print the script that completes commands in your shell",
}
OUT_OF_MEMORY = "out of memory: draw fewer samples, or use fewer steps"
EPILOG = """
\b
First steps:
  surrogate simulate esirs, then surrogate plot trajectories.nc
  surrogate train mine.csv, then surrogate sample

\b
Exit codes:
  0  done
  1  a run failed or was interrupted
  2  a command, option, rule or file that cannot be used
  3  a scenario that nothing can satisfy
  4  a degenerate run, whose samples are written only with --keep-degenerate
"""


class Refusal(click.ClickException):
    """An error that a person can act on, with its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        setattr(self, "exit_code", code)  # noqa: B010 - click declares it for the class


class Commands(click.Group):
    """Commands in modules of their own name, each imported when it is run."""

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
            raise Refusal(unknown("command", args[0], COMMANDS).render("command"), 2)
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
            if "allocate memory" in str(problem):  # torch raises no class of its own
                raise Refusal(OUT_OF_MEMORY, 1) from problem
            raise
        except KeyboardInterrupt:
            raise Refusal("interrupted; no file was written or changed", 1) from None
        except MemoryError as problem:
            raise Refusal(OUT_OF_MEMORY, 1) from problem
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Refusal("the output was closed before everything was written", 1) from None
        except OSError as problem:
            raise Refusal(str(problem), 1) from problem


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(version("surrogate-toolkit"), "-V", "--version", prog_name="surrogate")
def main() -> None:
    """Simulate stochastic systems; learn surrogates of them, of tables and of images; sample
    scenarios."""


if __name__ == "__main__":  # python -m cli.main
    main(prog_name="surrogate")
