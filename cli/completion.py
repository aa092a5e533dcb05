"""surrogate completion SHELL"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from cli.sections import Command
from cli.values import Choice

PROGRAM = "surrogate"
VARIABLE = "_SURROGATE_COMPLETE"  # by which a shell asks the program, as click names it
STARTUP_FILES = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/surrogate.fish",
}


@click.command(cls=Command)
@click.argument("shell", type=Choice(list(STARTUP_FILES)))
def command(shell: str) -> None:
    """Print the script by which SHELL completes commands, options, models and files on Tab.

    Load it when the shell starts:

    \b
    echo 'eval "$(surrogate completion bash)"' >> ~/.bashrc
    echo 'eval "$(surrogate completion zsh)"' >> ~/.zshrc
    surrogate completion fish > ~/.config/fish/completions/surrogate.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    script = made(root, {}, PROGRAM, VARIABLE)
    click.echo(script.source_template % script.source_vars())
