"""The journal: what every knob held before we touched it, written before we touch it.

`begin` appends before any knob is written, so a crash at any instant finds the kernel
holding either the prior value or one that the journal names as ours:

- killed before the append: no knob was written. Killed inside it: the torn tail is
  dropped, and no knob of that batch was written yet.
- killed between the append and the writes: some knobs still hold what we wrote last time,
  so the last value *and the one before* count as ours; of a batch that writes one knob
  several times, each value does. After a refused write the host says so
  (`rejected`), so that refused values do not push out the one that the kernel holds.

No fsync anywhere: the page cache outlives every process, and a host crash takes the knobs
with it, so that the journal of another boot is void. Size is bounded by rewriting the
file from memory (new file, atomic rename) and by `MAX_HELD`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from ...knobs.knob import KnobRef, NativeValue, Write
from ...linux.cgroupfs import is_shown_from_inside
from ...linux.namespaces import own_namespaces
from ..heirs import Heirs
from . import codec
from .directory import Directory, Notice, unreadable
from .ledger import Holding, Ledger, Outstanding
from .salvage import Salvage, salvage

__all__ = ["Journal", "Notice", "Outstanding", "Write", "peek"]

DIRECTORY = Path("/run/dasec")

NAME = "journal"
_NEW = "journal.new"

COMPACT_BYTES = 1 << 19
"""Growth after which the file is rewritten: about every 20 periods of 256 writes, for 2 ms each,
and never more than 0.1 s to read it all (docs/measurements.md)."""

MAX_HELD = 65_536
"""Knobs held at once: four for each of 16 384 vCPUs. Who has more to enter asks `without_room` which to leave
out; beyond it `begin` refuses."""

FROM_INSIDE = (
    "this process sees the host's cgroups from a namespace of its own, where they have other names:"
    " start it with `nsenter --cgroup=/proc/1/ns/cgroup`, or the container with the host's (docs/fleet.md)"
)

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Journal:
    """The open journal of this process. One process at a time has it (a lock on the directory)."""

    def __init__(self, directory: Directory, origin: codec.Origin, ledger: Ledger) -> None:
        """Use `Journal.open`."""
        self._directory = directory
        self._origin = origin
        self._seed = codec.line_seed(origin.boot_id)
        self._ledger = ledger
        self._heirs = Heirs(ledger)
        self._sequence = 1
        self._fd = -1
        self._size = 0
        self._compact_at = 0
        self.unreadable = ""
        """Why nothing can be entered: the file is another version's or namespace's, and stays as it is."""

    @classmethod
    def open(
        cls, directory: Path = DIRECTORY, *, wait_s: float = 2.0, create: bool = True, at: int | None = None
    ) -> tuple[Journal, tuple[Notice, ...]]:
        """Lock and read the journal. `wait_s` lets the keeper of a dead daemon finish. Without `create`
        nothing is made where there is nothing. `at`: a descriptor of the directory.

        Bad content never raises: it is set aside and reported, and its intact entries count.
        Raises JournalBusy (two daemons), or OSError where the directory itself cannot be used or
        the journal cannot be read now, or where groups have other names than on the host.
        """
        if is_shown_from_inside():
            raise OSError(errno.EXDEV, FROM_INSIDE)
        place = Directory(directory, create=create, at=at)
        try:
            place.lock(wait_s)
            origin = _origin()
            found = _read(place, origin)
            notices = found.notices
            journal = cls(place, origin, found.ledger)
            if found.alien:
                journal.unreadable = str(notices[0])
                return journal, notices
            if notices:
                notices += journal._set_aside()
            if create:
                notices += journal._start()
        except BaseException:
            place.close()
            raise
        return journal, notices

    def without_room(self, writes: Sequence[Write]) -> frozenset[KnobRef]:
        """The knobs of these writes that may not be entered, as there would be more than MAX_HELD: never one
        that is held already, and of the others the last ones."""
        held = self._ledger.held
        if len(held) + len(writes) <= MAX_HELD:
            return frozenset()
        new = dict.fromkeys(write.ref for write in writes if write.ref not in held)
        return frozenset(islice(new, max(0, MAX_HELD - len(held)), None))

    def begin(self, writes: Sequence[Write]) -> None:
        """Enter these writes with one append. Only when this has returned may a knob be written.

        Raises OSError (a full file system, too many knobs): then write none of them.
        """
        at_ticks = boot_ticks()
        held = self._ledger.held
        batch: dict[KnobRef, tuple[Holding, tuple[NativeValue, ...], bool]] = {}
        for ref, prior, new in writes:
            if ref in batch:
                holding, ours, _ = batch[ref]
                batch[ref] = (holding, (*ours, new), False)
            elif (known := held.get(ref)) is not None:
                base = known.base
                batch[ref] = (known, base if base == (new,) else (*base, new), True)
            else:
                first = self._first(ref, prior, new)
                batch[ref] = (first, first.ours, True)
        if len(held) + len(batch) > MAX_HELD and len(held.keys() | batch.keys()) > MAX_HELD:
            raise OSError(errno.EDQUOT, f"journal: {self._directory.path} is full with {len(held)} knobs")
        self._append([codec.encode_held(one.head, at_ticks, ours) for one, ours, _ in batch.values()])
        for ref, (one, ours, once) in batch.items():
            one.begun(ours, once=once)
            self._ledger.hold(ref, one, ours, at_ticks)

    def rejected(self, refs: Iterable[KnobRef]) -> None:
        """After the writes of a batch: the kernel refused the one to these knobs. Never raises.

        Without this the values of refused writes would push out the one that the kernel holds.
        """
        payloads = []
        at_ticks = boot_ticks()
        for ref in refs:
            known = self._ledger.held.get(ref)
            if known is not None:
                known.refused()
                payloads.append(codec.encode_held(known.head, at_ticks, known.ours))
        self._note(payloads)

    def settle(self, refs: Iterable[KnobRef]) -> None:
        """Forget knobs that were put back, vanished, or yielded to somebody else. Never raises."""
        known = [ref for ref in refs if ref in self._ledger.held]
        for ref in known:
            self._ledger.settle(ref)
        self._note([codec.encode(codec.Settled(ref)) for ref in known])

    def group_made(self, path: str) -> None:
        """Enter a cgroup directory of ours. Call this *before* mkdir. Raises OSError: then do not mkdir."""
        self._append([codec.encode(codec.GroupMade(path))])
        self._ledger.groups[path] = None

    def group_gone(self, path: str) -> None:
        """Forget a cgroup directory. Never raises."""
        if path in self._ledger.groups:
            self._ledger.drop_group(path)
            self._note([codec.encode(codec.GroupGone(path))])

    def inherited(self, ref: KnobRef, found: NativeValue) -> NativeValue | None:
        """The prior value that a newcomer's knob really has, if what was found in it is a value
        of ours that it was born with; else None. `begin` asks this by itself."""
        return self._heirs.prior(ref, found)

    def outstanding(self) -> tuple[Outstanding, ...]:
        """Every knob that we may have written and have not settled, oldest first."""
        return self._ledger.outstanding()

    def groups(self) -> tuple[str, ...]:
        """Every cgroup directory that is ours, oldest first."""
        return tuple(self._ledger.groups)

    def bequests(self) -> tuple[codec.Bequest, ...]:
        """Every value of ours that a thread which we never held may have been born with."""
        return self._ledger.bequests()

    def ensure(self) -> None:
        """Is the journal where others look for it? Where somebody has removed or replaced its directory or
        its file, write it anew: all that is held. Raises OSError: then write no knob."""
        if self.unreadable:
            return
        if not self._directory.in_place():
            anew = Directory(self._directory.path)
            try:
                anew.lock(0.0)
            except OSError:
                anew.close()
                raise
            self._directory.close()
            self._directory = anew
            self._compact()
        elif self._fd >= 0 and self._directory.inode(NAME) != os.fstat(self._fd).st_ino:
            self._compact()

    def close(self) -> None:
        """Let go of the file and the lock. What is outstanding stays so; where nothing is, no file stays."""
        if not (self.unreadable or self._ledger.held or self._ledger.groups):
            with contextlib.suppress(OSError):
                self._directory.remove(NAME)
        self._drop_file()
        self._directory.close()

    def _first(self, ref: KnobRef, prior: NativeValue, new: NativeValue) -> Holding:
        born_with = self._heirs.prior(ref, prior)
        if born_with is None:
            return Holding(ref, prior, (new,))
        return Holding(ref, born_with, (prior, new))

    def _append(self, payloads: Sequence[str]) -> None:
        """All lines with one write, or none of them and an OSError."""
        if not payloads:
            return
        if self.unreadable:
            raise OSError(errno.EROFS, self.unreadable)
        if self._fd < 0 or self._size > self._compact_at:
            self._compact()
        data = codec.frames(payloads, self._sequence, self._seed).encode()
        try:
            written = os.write(self._fd, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, f"journal: {self._directory.path} is full: make room there")
        except OSError:
            self._cut_tail()
            raise
        self._size += written
        self._sequence += len(payloads)

    def _note(self, payloads: Sequence[str]) -> None:
        """Append what may be lost: an entry too many is harmless, since restore compares first."""
        try:
            self._append(payloads)
        except OSError:
            self._drop_file()

    def _cut_tail(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._drop_file()

    def _compact(self) -> None:
        """Write the state to a new file and put it in the place of the old one."""
        payloads = [codec.encode(one) for one in self._ledger.entries(boot_ticks())]
        lines = codec.frames(payloads, self._sequence, self._seed)
        data = codec.encode_header(self._origin) + lines.encode()
        fd = self._directory.create(_NEW)
        try:
            if os.write(fd, data) < len(data):
                raise OSError(errno.ENOSPC, f"journal: {self._directory.path} is full: make room there")
            self._directory.rename(_NEW, NAME)
        except OSError:
            os.close(fd)
            self._directory.remove(_NEW)
            raise
        self._drop_file()
        self._fd, self._size = fd, len(data)
        self._sequence += len(payloads)
        self._compact_at = 2 * self._size + COMPACT_BYTES

    def _start(self) -> tuple[Notice, ...]:
        try:
            self._compact()
        except OSError as error:
            where = str(self._directory.path)
            advice = "nothing will be changed on this host until the journal can be written"
            return (Notice(f"journal cannot be written ({error.strerror})", where, advice),)
        return ()

    def _set_aside(self) -> tuple[Notice, ...]:
        where = str(self._directory.path / NAME)
        if self._directory.inode(NAME) is None:
            return ()
        try:
            aside = self._directory.set_aside(NAME)
        except OSError as error:
            return (Notice(f"journal cannot be set aside ({error.strerror})", where, "move it away"),)
        return (Notice("journal set aside", where, f"kept as {aside}; delete it when you have looked"),)

    def _drop_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def peek(directory: Path = DIRECTORY) -> Salvage:
    """What the journal says now, without its lock and without changing anything.

    Raises OSError where there is no directory to look into (FileNotFoundError: never run).
    """
    place = Directory(directory, create=False)
    try:
        return _read(place, _origin())
    finally:
        place.close()


def boot_ticks() -> int:
    """Now, in the unit of a thread's start time (proc(5) stat field 22)."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * _TICKS_PER_S // 1_000_000_000


def read_boot_id() -> str:
    """Which boot of the kernel this is. Raises OSError."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError as error:
        raise unreadable(_BOOT_ID, error) from error


def _origin() -> codec.Origin:
    return codec.Origin(read_boot_id(), own_namespaces())


def _read(place: Directory, origin: codec.Origin) -> Salvage:
    data, wrong = place.read(NAME)
    if wrong is not None:
        return Salvage(Ledger(), (wrong,))
    return salvage(data or b"", origin, str(place.path / NAME), exists=data is not None)
