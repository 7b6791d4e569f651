"""The kernel patch's file of a process: statistics and knobs of all its threads, in one read and one write.

`/proc/PID/dasec` (CONFIG_SCHED_DASEC, kvm-patches/README.md) says the format's version, the
kernel's clock and the names of the columns, each on a line of its own, then has one line a
thread. Columns go by their names: a later kernel may add some. `/proc/PID/task/TID/dasec` is
the same for one thread. A write is one transaction: a bad line leaves everything as it was.

Parsing is by columns and of changed lines only: a sleeper's line stays the same and costs one
comparison of bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from operator import sub
from typing import NamedTuple

from . import procfs
from .errors import ThreadGone, unknown_format

VERSION = b"dasec 1"
DEFAULT = "default"
"""What a knob holds that nobody has set: the sysctl's granularity, nice's weight."""

GRANULARITY, WEIGHT = "granularity_ns", "weight"
GRANULARITY_RANGE_NS = (0, 1_000_000_000)
WEIGHT_RANGE = (2, 262_144)
"""What the kernel takes; anything else is ERANGE (kvm-patches/README.md)."""

RUNNING, QUEUED = b"R", b"Q"

LARGEST_WRITE = 65_536
"""Bytes in one transaction; one more is E2BIG."""

_FIRST_BYTES = 16_384
"""About 100 threads; the buffer doubles when a process needs more."""
_DOUBLINGS = 14
_HEADER_LINES = 3
_NEEDED = (
    *("tid", "state", GRANULARITY, WEIGHT, "run_ns", "ready_ns"),
    *("voluntary", "involuntary", "late", "wakers"),
)
_CORE = "cpu"
"""Not in the first version of the patch; without it the core is read elsewhere."""
_WAKEUPS = ("wakeups", "external", "timers")
"""All wake-ups, those from outside the process, and which of these were by timers; the last is not in the
first version of the patch, and without it nobody can tell a client from a timer."""

_GONE = (ProcessLookupError, FileNotFoundError, NotADirectoryError)

KnobWord = int | str
"""A number, or DEFAULT."""


class Setting(NamedTuple):
    """One line of a write: GRANULARITY or WEIGHT of one thread."""

    tid: int
    key: str
    value: KnobWord


class Wakeups(NamedTuple):
    """How often threads were woken; of these, how often from outside the process and not by a timer."""

    all: list[int]
    outside: list[int]


class Columns(NamedTuple):
    """Some lines, taken apart. Knobs and wakers stay words: most of them are only compared."""

    tids: list[int]
    states: list[bytes]
    granularities: list[bytes]
    weights: list[bytes]
    run_ns: list[int]
    ready_ns: list[int]
    voluntary: list[int]
    involuntary: list[int]
    late: list[int]
    wakers: list[bytes]
    cores: list[int] | None
    wakeups: Wakeups | None


class Table(NamedTuple):
    """One reading: the line that names the columns, and the lines of the threads."""

    names: bytes
    lines: list[bytes]

    def columns(self, lines: Sequence[bytes]) -> Columns:
        """These of its lines, by columns. Raises OSError (EPROTO) where they do not fit the names."""
        names = self.names.decode("ascii", "replace").split()
        width = len(names)
        words = b" ".join(lines).split()
        if len(words) != width * len(lines):
            raise _unknown_format(f"{len(lines)} lines have {len(words)} words under {width} names")
        try:
            at = {name: names.index(name) for name in _NEEDED}
        except ValueError as error:
            raise _unknown_format(f"a column is missing: {error}") from error

        def numbers(name: str) -> list[int]:
            return list(map(int, words[names.index(name) :: width]))

        def wakeups() -> Wakeups | None:
            if not set(_WAKEUPS) <= set(names):
                return None
            woken, external, timers = map(numbers, _WAKEUPS)
            return Wakeups(woken, list(map(sub, external, timers)))

        try:
            return Columns(
                numbers("tid"),
                words[at["state"] :: width],
                words[at[GRANULARITY] :: width],
                words[at[WEIGHT] :: width],
                numbers("run_ns"),
                numbers("ready_ns"),
                numbers("voluntary"),
                numbers("involuntary"),
                numbers("late"),
                words[at["wakers"] :: width],
                list(map(int, words[names.index(_CORE) :: width])) if _CORE in names else None,
                wakeups(),
            )
        except ValueError as error:
            raise _unknown_format(f"a column holds what is no number: {error}") from error


def parse(text: bytes) -> Table:
    """One reading as a table. Raises OSError (EPROTO) where this is no format that we know."""
    lines = text.removesuffix(b"\n").split(b"\n")
    if len(lines) < _HEADER_LINES or lines[0] != VERSION:
        first = lines[0][:80].decode("ascii", "replace")
        raise _unknown_format(f"it begins with {first!r}, not with {VERSION.decode()!r}")
    return Table(lines[2], lines[_HEADER_LINES:])


def knob_word(word: bytes) -> KnobWord:
    """A knob's word as a value. Raises OSError (EPROTO)."""
    try:
        return DEFAULT if word == DEFAULT.encode() else int(word)
    except ValueError as error:
        raise _unknown_format(f"a knob holds {word[:80]!r}") from error


def wakers(word: bytes) -> Iterator[tuple[int, int]]:
    """Who woke the thread, and how often since it began: (tid, count). Raises OSError (EPROTO)."""
    try:
        for pair in word.split(b",") if word != b"-" else ():
            tid, _, times = pair.partition(b":")
            yield int(tid), int(times)
    except ValueError as error:
        raise _unknown_format(f"wakers are {word[:80]!r}") from error


class DasecFile:
    """The file of one process, held open. The descriptor belongs to the process itself, not to its
    number: once it has ended, every call raises ThreadGone."""

    __slots__ = ("_bytes", "_descriptor", "path")

    def __init__(self, pid: int, proc: str = procfs.PROC) -> None:
        self.path = f"{proc}/{pid}/dasec"
        self._bytes = _FIRST_BYTES
        self._descriptor = _open(self.path)

    def read(self) -> Table:
        """All threads now. Raises ThreadGone, or OSError."""
        try:
            text = self._read()
        except _GONE as error:
            raise ThreadGone(self.path) from error
        if not text:
            raise ThreadGone(self.path)
        return parse(text)

    def write(self, lines: bytes) -> None:
        """One transaction, as `transactions` makes them. Raises ThreadGone, or OSError: then nothing
        of it was written."""
        _write(self._descriptor, lines, self.path)

    def close(self) -> None:
        """Let the descriptor go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _read(self) -> bytes:
        for _ in range(_DOUBLINGS):
            text = os.pread(self._descriptor, self._bytes, 0)
            if len(text) < self._bytes:
                return text
            self._bytes *= 2
        raise OSError(errno.EFBIG, f"{self.path} is larger than {self._bytes >> 20} MiB")


def transactions(settings: Iterable[Setting]) -> Iterator[tuple[bytes, int]]:
    """The writes for these settings, and how many settings each of them holds; mostly it is one."""
    batch, held = b"", 0
    for tid, key, value in settings:
        line = f"{tid} {key} {value}\n".encode()
        if len(batch) + len(line) > LARGEST_WRITE:
            yield batch, held
            batch, held = b"", 0
        batch += line
        held += 1
    if held:
        yield batch, held


def read_knob(pid: int, tid: int, key: str, proc: str = procfs.PROC) -> KnobWord:
    """GRANULARITY or WEIGHT of one thread. Raises ThreadGone, or OSError."""
    path = f"{proc}/{pid}/task/{tid}/dasec"
    table = parse(procfs.read_bytes(path))
    columns = table.columns(table.lines)
    if columns.tids != [tid]:
        raise ThreadGone(path)
    return knob_word((columns.granularities if key == GRANULARITY else columns.weights)[0])


def write_knob(pid: int, tid: int, key: str, value: KnobWord, proc: str = procfs.PROC) -> None:
    """Set GRANULARITY or WEIGHT of one thread. Raises ThreadGone, or OSError."""
    path = f"{proc}/{pid}/task/{tid}/dasec"
    descriptor = _open(path)
    try:
        _write(descriptor, f"{key} {value}\n".encode(), path)
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except _GONE as error:
        raise ThreadGone(path) from error


def _write(descriptor: int, lines: bytes, path: str) -> None:
    try:
        os.write(descriptor, lines)
    except _GONE as error:
        raise ThreadGone(path) from error
    except OSError as error:
        why = _WHY.get(error.errno or 0, error.strerror)
        raise OSError(error.errno, f"{path}: {why}") from error


_WHY = {
    errno.EINVAL: "refused: a thread is real-time, deadline or idle class, or a line is malformed",
    errno.ERANGE: f"refused: a weight outside {WEIGHT_RANGE} or a granularity outside {GRANULARITY_RANGE_NS}",
    errno.EPERM: "refused: needs CAP_SYS_NICE over the process",
    errno.E2BIG: f"refused: more than {LARGEST_WRITE} bytes",
}


def _unknown_format(what: str) -> OSError:
    return unknown_format(f"the dasec file of this kernel is of another format: {what}")
