"""surrogate models"""

from __future__ import annotations

import json

import click

from cli import complete, options
from cli.networks import find
from cli.sections import Command
from simulators import models


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=complete.simulator_models)
@options.as_json
def command(name: str | None, as_json: bool) -> None:
    """List the built-in models, or show one in full: NAME is a model or an SBML file."""
    chosen = [find(name)] if name else [models.get(each) for each in models.MODELS]
    if as_json:
        described = {network.name: network.to_dict() for network in chosen}
        click.echo(json.dumps(described, indent=2))
    elif name is not None:
        click.echo(chosen[0])
        if chosen[0].reference:
            click.echo(f"  reference   {chosen[0].reference}")
    else:
        wide = max(len(network.name) for network in chosen)
        for network in chosen:
            click.echo(f"{network.name:<{wide}}  {network.title}")
            click.echo(f"{'':<{wide}}    species     {', '.join(network.species)}")
            pairs = ", ".join(f"{key}={value:g}" for key, value in network.parameters.items())
            click.echo(f"{'':<{wide}}    parameters  {pairs}")
        click.echo("\nSimulate one: surrogate simulate esirs --param beta=3", err=True)
