"""How a command of the suite ends."""

from __future__ import annotations

import sys

import click

from dasec.errors import ExitStatus, Refusal


def enter(command: click.Command, name: str) -> None:
    """Run it; a user's mistake is one line and an exit status."""
    try:
        command.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(int(ExitStatus.USAGE))
    except click.Abort:
        sys.exit(int(ExitStatus.FAILED))
    except Refusal as refusal:
        for line in refusal.lines:
            click.echo(line, err=True)
        sys.exit(int(refusal.status))
