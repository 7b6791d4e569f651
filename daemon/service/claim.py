"""What a process must have before it writes to this host: the host's lock, a journal and a keeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import ExitStatus, Refusal
from ..log import LOGGER, Announcer
from ..model import Restored
from ..safety.groups import sweep_probes
from ..safety.host_lock import HostLock
from ..safety.journal.directory import MOMENTARY
from ..safety.journal.journal import DIRECTORY, Journal
from ..safety.keeper import Keeper
from ..safety.restore import put_all_back, recover


@dataclass(frozen=True, slots=True)
class Claim:
    """The host's lock and the journal."""

    host: HostLock
    journal: Journal

    def stands(self, announcer: Announcer) -> bool:
        """Both are where others look for them, or are now again."""
        try:
            self.host.ensure()
            self.journal.ensure()
        except OSError as error:
            announcer.state("claim", f"{error.strerror}: no knob is written: trying again every period")
            return False
        announcer.state("claim", None, "lock and journal are in place again")
        return True


@contextmanager
def claimed(directory: Path, otherwise: str = "") -> Iterator[Claim]:
    """Nobody else writes to this host, and what a dead daemon left is put back. `otherwise`: what would need
    no directory. Raises Refusal."""
    with ExitStack() as stack:
        try:
            journal, notices = Journal.open(directory)
            stack.callback(journal.close)
        except OSError as error:
            mend = f"run as root, or name another directory with --directory{otherwise}"
            raise _refused(error, directory, mend) from error
        try:
            host = HostLock.take(directory)
            stack.callback(host.close)
        except OSError as error:
            mend = f"the lock of this host is there: run as root{otherwise}"
            raise _refused(error, DIRECTORY, mend) from error
        for notice in (*notices, *_left_elsewhere(host)):
            LOGGER.warning("%s", notice)
        host.note()
        left = put_all_back(journal)
        sweep_probes()
        for line in _outcome(left, ""):
            LOGGER.warning("%s", line)
        yield Claim(host, journal)


@contextmanager
def kept(directory: Path, claim: Claim, cgroup: str = "") -> Iterator[Keeper]:
    """With a keeper, dismissed at the end if nothing is left to put back. Raises Refusal."""
    try:
        keeper = Keeper.start(directory, cgroup)
    except OSError as error:
        raise Refusal(ExitStatus.HOST, error.strerror or str(error)) from error
    try:
        yield keeper
    except Refusal:
        if not claim.journal.outstanding() and not claim.journal.groups():
            keeper.dismiss()
        raise
    keeper.dismiss()


def _left_elsewhere(host: HostLock) -> Iterator[str]:
    """Puts back what the host's last daemon left, if that had another directory; says so."""
    elsewhere = host.former()
    if elsewhere is None:
        return
    try:
        restored, notices = recover(elsewhere)
    except FileNotFoundError:
        return
    except OSError as error:
        yield f"what an earlier daemon left in {elsewhere} is not put back: {error.strerror}"
        return
    yield from map(str, notices)
    yield from _outcome(restored, f" in {elsewhere}")


def _outcome(restored: Restored, where: str) -> Iterator[str]:
    """What became of knobs and groups that an earlier daemon had left."""
    if restored.put_back:
        yield f"put back {restored.put_back} knobs that an earlier daemon had left{where}"
    yield from (f"left alone: {line}" for line in restored.left_alone)
    yield from (f"not put back yet: {line}" for line in restored.waiting)
    yield from (f"not put back: {line}" for line in restored.failed)


def _refused(error: OSError, directory: Path, mend: str) -> Refusal:
    """The safety modules' own errors say everything themselves."""
    status = ExitStatus.FAILED if error.errno in MOMENTARY else ExitStatus.HOST
    if error.filename is None and error.strerror:
        return Refusal(status, error.strerror)
    return Refusal(status, f"{directory}: {error.strerror}: {mend}")
