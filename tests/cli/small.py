"""`surrogate` with a network, blocks and a card so small that training takes a second.

As a program it is the console script with those settings: python -m tests.cli.small train ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from click.testing import CliRunner, Result

from cli import train
from cli.main import main
from surrogate import fitting
from surrogate.diffusion import batches as sources
from surrogate.diffusion import presets
from surrogate.errors import ModelError

SHORT = ("--iterations", "12", "--threads", "1")


def run(*words: str, code: int = 0, **settings: str) -> Result:
    done = CliRunner(env=settings).invoke(main, words)
    assert done.exit_code == code, done.output
    assert code == 0 or isinstance(done.exception, SystemExit)
    return done


def shrink(change: Callable[[object, str, object], None], seconds: float = 0.0) -> None:
    """`change` sets an attribute; `seconds` are those between checkpoints."""
    preset = presets.PRESETS["default"]
    quick = replace(preset, settings=replace(preset.settings, batch=32), depth=1)
    change(presets, "PRESETS", {**presets.PRESETS, "default": quick})
    change(fitting, "CHECKPOINT_SECONDS", seconds)
    change(fitting, "validate", _no_card)
    change(train, "FIRST_TRAJECTORIES", 200)
    change(sources, "BLOCK_SAMPLES", 256)
    change(sources, "MIN_BLOCK_SAMPLES", 256)


def _no_card(*words: object) -> None:
    raise ModelError("that takes long")


if __name__ == "__main__":
    shrink(setattr)
    main(prog_name="surrogate")
