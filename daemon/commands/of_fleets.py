"""`dasec fleet`: the commands that look at many hosts at once."""

from __future__ import annotations

import re

import click

from ..config.amount import Amount
from ..errors import ExitStatus, Refusal
from .options import json_option

PORT = re.compile(r"[0-9]{1,5}")

prometheus = click.option(
    "--prometheus", "url", required=True, metavar="URL", help="The fleet's, with dasec-fleet.rules.yml."
)
patience = click.option(
    "--timeout",
    type=Amount(0.1, 600),
    default=10.0,
    show_default=True,
    help="Seconds for each question.",
)


@click.group()
def fleet() -> None:
    """Look at many hosts at once."""


@fleet.command()
@prometheus
@patience
@click.option(
    "--reservation",
    "reservations",
    multiple=True,
    metavar="ASK",
    help="What `dasec reserve` takes: that workload has CPUs of its own.",
)
@click.option("--keep", multiple=True, metavar="PATTERN", help="Never move these, for instance 'db-*'.")
@json_option
def hint(
    url: str, timeout: float, reservations: tuple[str, ...], keep: tuple[str, ...], as_json: bool
) -> None:
    """Show the hosts of a fleet, and at most one move that a simulation likes. It moves nothing."""
    from .fleet import HintWanted, answer

    click.echo(answer(HintWanted(url, timeout, reservations, keep), as_json=as_json))


@fleet.command()
@prometheus
@click.option("--listen", default="127.0.0.1:8888", show_default=True, metavar="ADDRESS:PORT")
@click.option("--every", type=Amount(1, 3600), default=15.0, show_default=True, help="Seconds.")
@click.option(
    "--timeout",
    type=Amount(0.1, 1.5),
    default=1.0,
    show_default=True,
    help="Seconds for each of three questions; kube-scheduler waits five for the answer to its own.",
)
def extender(url: str, listen: str, every: float, timeout: float) -> None:
    """Serve kube-scheduler as an extender: which nodes may have a pod, and which would do best."""
    from .fleet_extender import ExtenderWanted, serve

    address, _, port = listen.rpartition(":")
    if not address or PORT.fullmatch(port) is None or int(port) > 65535:
        raise Refusal(ExitStatus.USAGE, f"--listen: {listen}: write it as 127.0.0.1:8888")
    serve(ExtenderWanted(url, address.strip("[]"), int(port), every, timeout), click.echo)


@fleet.command()
@prometheus
@click.option(
    "--keep",
    type=click.IntRange(0, 4096),
    default=1,
    show_default=True,
    help="Cores of each node that no pod may have alone; 0 only where `apart = true`.",
)
@click.option(
    "--api",
    metavar="URL",
    help="Tell that API server, and go on until a signal: a URL as of `kubectl proxy`, or in-cluster.",
)
@click.option("--every", type=Amount(1, 3600), default=60.0, show_default=True, help="Seconds.")
@patience
@click.option("--remove", is_flag=True, help="No node offers any more.")
def cores(url: str, keep: int, api: str | None, every: float, timeout: float, remove: bool) -> None:
    """Show the lines that let Kubernetes count whole cores as dasec.io/core, or tell the cluster itself."""
    from .fleet_cores import CoresWanted, commands_of, tell

    told = CoresWanted(url, keep, timeout, remove)
    if api is None:
        click.echo(commands_of(told))
    else:
        tell(told, api, every, lambda line: click.echo(line, err=True))
