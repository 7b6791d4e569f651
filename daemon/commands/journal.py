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
from ..safety.journal.directory import Directory
from ..safety.restore import restore
from ..safety.verify import verify


def compare(directory: Path) -> None:
    """Print what is not as it should be. Refuses (status 1) if there is anything, (3) if nobody can look."""
    places = tuple(_places(directory))
    try:
        findings = verify(*places)
    except OSError as error:
        raise _refused(error, directory) from error
    for finding in findings:
        click.echo(printable(str(finding)))
    told = " and ".join(map(str, places))
    if findings:
        raise Refusal(ExitStatus.FAILED, f"{len(findings)} findings: {told}: see above")
    unseen = "" if any(place.exists() for place in places) else f" (no journal: {told} does not exist)"
    click.echo(printable(f"clean: the kernel holds what it should{unseen}"))


def put_back(directory: Path, *, force: bool) -> None:
    """Print what was put back. Refuses (status 1) where that failed, (3) if it cannot be tried."""
    sweep_probes()
    refusals = []
    for place in _places(directory):
        try:
            _put_back(place, force=force)
        except FileNotFoundError:
            click.echo(printable(f"nothing to put back: {place} does not exist"))
        except Refusal as refusal:  # what is in another place is put back all the same
            refusals.append(refusal)
    if refusals:
        lines = [line for one in refusals for line in one.lines]
        raise Refusal(ExitStatus(max(one.status for one in refusals)), *lines)


def _put_back(place: Path, *, force: bool) -> None:
    try:
        restored, notices = restore(place, force=force)
    except FileNotFoundError:
        raise
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
    """This one. If it is the default, also that of the host's last daemon, if that had another one."""
    yield directory
    found = elsewhere(directory)
    if found is None:
        return
    if (why := _unusable(found)) is not None:
        told = f"the host's last daemon had its journal in {found}, where nobody can look now: {why}"
    else:
        told = f"the host's last daemon had its journal in {found}"
        yield found
    click.echo(printable(f"dasec: {told}"), err=True)


def _unusable(place: Path) -> str | None:
    """Somebody else may have made it anew."""
    try:
        Directory(place, create=False).close()
    except OSError as error:
        return error.strerror
    return None


def _refused(error: OSError, directory: Path) -> Refusal:
    """An error of the state directory as one line; the safety modules' own say everything themselves."""
    said = error.strerror or str(error)
    if error.filename is not None:
        said = f"{directory}: {error.strerror}: run as root, or name another with --directory"
    return Refusal(ExitStatus.HOST, said)
