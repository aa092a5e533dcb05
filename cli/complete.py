"""What the shell offers on Tab, beside options and choices: models, files, folders.

These functions run on every press of the key, so they import nothing heavy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Items: TypeAlias = "list[CompletionItem[str]]"  # quoted: older click has no such generic


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Files and folders, which the shell itself lists."""
    return [CompletionItem(incomplete, type="file")]


def simulator_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Built-in simulators, and SBML files."""
    from simulators import models

    named = [
        CompletionItem(name, help=models.get(name).title)
        for name in models.MODELS
        if name.startswith(incomplete)
    ]
    return named or files(ctx, param, incomplete)


def surrogate_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Model folders in the working directory and bundled models; else any folder."""
    from surrogate.io.model_folder import CONFIG, bundled

    beside = [place for place in Path().iterdir() if (place / CONFIG).is_file()]
    items = [CompletionItem(place.name, help="a model folder") for place in sorted(beside)]
    items += [CompletionItem(name, help="comes with the package") for name in bundled()]
    named = [item for item in items if item.value.startswith(incomplete)]
    return named or [CompletionItem(incomplete, type="dir")]
