"""`dasec verify` and `dasec restore`: what the host's journal holds, compared with the kernel or put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from ..errors import ExitStatus, Refusal
from ..linux.printable import printable
from ..metrics.textfile import sweep
from ..safety.groups import sweep_probes
from ..safety.host_lock import elsewhere
from ..safety.restore import restore
from ..safety.verify import verify


def compare(directory: Path) -> None:
    """Print what is not as it should be. Refuses (status 1) if there is anything, (3) if nobody can look."""
    *_, place = _places(directory)
    try:
        findings = verify(place)
    except OSError as error:
        raise _refused(error, place) from error
    for finding in findings:
        click.echo(printable(str(finding)))
    if findings:
        raise Refusal(ExitStatus.FAILED, f"{len(findings)} findings: {place}: see above")
    unseen = "" if place.exists() else f" (no journal: {place} does not exist)"
    click.echo(printable(f"clean: the kernel holds what it should{unseen}"))


def put_back(directory: Path, *, force: bool) -> None:
    """Print what was put back. Refuses (status 1) where that failed, (3) if it cannot be tried."""
    sweep_probes()
    for place in _places(directory):
        if place.exists():
            _put_back(place, force=force)
        else:
            click.echo(printable(f"nothing to put back: {place} does not exist"))


def _put_back(place: Path, *, force: bool) -> None:
    try:
        restored, notices = restore(place, force=force)
    except OSError as error:
        raise _refused(error, place) from error
    sweep(place)
    for line in (*map(str, notices), *restored.left_alone, *restored.waiting, *restored.failed):
        click.echo(printable(line))
    held = f", {len(restored.waiting)} still held: repeat this then" if restored.waiting else ""
    click.echo(f"{restored.put_back} knobs put back, {restored.vanished} of threads that are gone{held}")
    if restored.failed:
        raise Refusal(ExitStatus.FAILED, f"{len(restored.failed)} knobs not put back: see above")


def _places(directory: Path) -> Iterator[Path]:
    """This one, and after it that of the host's last daemon, if that had another one and nobody names any."""
    yield directory
    if (found := elsewhere(directory)) is not None:
        told = f"dasec: the host's last daemon had its journal in {found}"
        click.echo(printable(told), err=True)
        yield found


def _refused(error: OSError, directory: Path) -> Refusal:
    """An error of the state directory as one line; the safety modules' own say everything themselves."""
    said = error.strerror or str(error)
    if error.filename is not None:
        said = f"{directory}: {error.strerror}: run as root, or name another with --directory"
    return Refusal(ExitStatus.HOST, said)
