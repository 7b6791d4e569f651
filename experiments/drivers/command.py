"""The applications from a shell: which of them work here, and GluonCV's environment."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.driver import CONTAINER, DOCKER, GUEST, HERE, Place
from dasec.lab.kit.errors import Interrupted, interruptible
from dasec.lab.kit.needs import find_tree
from dasec.lab.kit.place import InGroup
from dasec.lab.kit.process import entered
from dasec.lab.kit.tree import Group, Tree
from dasec.lab.kit.workspace import prepared

from ..places.docker import container
from ..places.places import PLACES, Anywhere, InContainer, InGuest, unready_place
from .catalogue import DRIVERS
from .gluoncv import environment_folder, make_environment
from .selftest import test

HELP = {"help_option_names": ["-h", "--help"], "show_default": True}
TOP_NAME = "dasec-apps"
DIRECTORY = Path("/run/dasec-apps")
"""Where it is noted what of the host has to be put back."""

GUEST_VCPUS = 2
"""Of a guest that is tried, as many threads as most trials have."""


@click.group(context_settings=HELP)
def command() -> None:
    """Which applications work here, and GluonCV's environment.

    Exit status: 0 done, 1 failed or interrupted, 2 wrong usage or a wrong file, 3 this host cannot do it.
    """


@command.command(context_settings=HELP)
@click.argument("names", nargs=-1)
@click.option("--place", "place_name", type=click.Choice(list(PLACES)), default=HERE)
def selftest(names: tuple[str, ...], place_name: str) -> None:
    """Runs each application, or those named, for a second; exit status 1 if one that is there fails."""
    unknown = [name for name in names if name not in DRIVERS]
    if unknown:
        raise Refusal(
            ExitStatus.USAGE, f"selftest: {unknown[0]}: no such application: there are {', '.join(DRIVERS)}"
        )
    reason = unready_place(place_name)
    if reason is not None:
        raise Refusal(ExitStatus.HOST, f"selftest: {place_name}: {reason}")
    failed = False
    with (
        tempfile.TemporaryDirectory(prefix="dasec-apps-") as folder,
        _placed(place_name, Path(folder)) as place,
    ):
        for name in names or DRIVERS:
            tested = test(DRIVERS[name], place, Path(folder) / "orders")
            failed |= not tested.works and not tested.missing
            verdict = "works" if tested.works else "missing" if tested.missing else "FAILS"
            click.echo(f"{name:29} {verdict:8} {tested.said}")
    if failed:
        raise Refusal(ExitStatus.FAILED, "selftest: not all of them work")


@contextlib.contextmanager
def _placed(name: str, folder: Path) -> Iterator[Place]:
    """A signal ends the block, whose applications are stopped then."""
    try:
        with interruptible(), _made(name, folder) as place:
            yield place
    except Interrupted:
        raise Refusal(ExitStatus.FAILED, "selftest: interrupted: all that it had started is gone") from None


@contextlib.contextmanager
def _made(name: str, folder: Path) -> Iterator[Place]:
    if name == HERE:
        yield Anywhere()
        return
    found = find_tree()
    tree = Tree(found.version, found.top.with_name(TOP_NAME), found.name.replace(found.top.name, TOP_NAME))
    (folder / "orders").mkdir()
    with prepared(tree, DIRECTORY):
        tree.make((Group(""), Group("workload"), Group("client")))
        if name == CONTAINER:
            yield InContainer(tree, "workload", "client", folder / "bundles", (folder / "orders",))
        elif name == DOCKER:
            with container("dasec-selftest", folder / "orders", entered(tree, "client", ())) as inside:
                yield inside
        elif name == GUEST:
            yield InGuest(tree, "workload", "client", GUEST_VCPUS)
        else:
            yield InGroup(tree, "workload", "client")


@command.command(context_settings=HELP)
def gluoncv() -> None:
    """Makes GluonCV's environment, 0.8 GB, in the cache folder or where DASEC_GLUONCV says."""
    folder = environment_folder()
    make_environment(folder)
    click.echo(folder)
