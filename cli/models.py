"""surrogate models"""

from __future__ import annotations

import json

import click

from cli import options
from simulators import models
from simulators.errors import unknown


@click.command()
@click.argument("name", required=False)
@options.as_json
def command(name: str | None, as_json: bool) -> None:
    """List the built-in models, or show the model NAME in full."""
    if name is not None and name not in models.MODELS:
        raise unknown("model", name, models.MODELS)
    chosen = [models.get(each) for each in (models.MODELS if name is None else [name])]
    if as_json:
        described = {network.name: network.to_dict() for network in chosen}
        click.echo(json.dumps(described, indent=2))
    elif name is not None:
        click.echo(chosen[0])
        click.echo(f"  reference   {chosen[0].reference}")
    else:
        wide = max(len(network.name) for network in chosen)
        for network in chosen:
            click.echo(f"{network.name:<{wide}}  {network.title}")
            click.echo(f"{'':<{wide}}    species     {', '.join(network.species)}")
            pairs = ", ".join(f"{key}={value:g}" for key, value in network.parameters.items())
            click.echo(f"{'':<{wide}}    parameters  {pairs}")
        click.echo("\nSimulate one: surrogate simulate esirs --param beta=3", err=True)
