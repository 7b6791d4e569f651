"""What /proc says of threads. Every parser survives any `comm`: it may hold blanks, parentheses, newlines."""

from __future__ import annotations

import os
from typing import NamedTuple

from .errors import ThreadGone

PROC = "/proc"

PF_EXITING = 0x00000004
PF_KTHREAD = 0x00200000
"""include/linux/sched.h: the flags of threads that end, and of kernel threads."""

_STAT_BYTES = 2048
_GONE = (ProcessLookupError, FileNotFoundError, NotADirectoryError)


class ThreadStat(NamedTuple):
    """What we use of one stat line (proc(5)). `state` is the kernel's letter."""

    comm: str
    state: str
    flags: int
    nice: int
    start_ticks: int
    core: int
    policy: int

    @property
    def is_kernel_thread(self) -> bool:
        """Does it belong to the kernel itself?"""
        return bool(self.flags & PF_KTHREAD)

    @property
    def has_ended(self) -> bool:
        """Has it got as far as do_exit()? Its cgroup on v1 reads as the top one then (proc_cgroup_show())."""
        return bool(self.flags & PF_EXITING)


def parse_stat(line: bytes) -> ThreadStat:
    """One stat line. The name ends at the *last* parenthesis: it may hold others."""
    end = line.rindex(b")")
    rest = line[end + 2 :].split()
    name = line[line.index(b"(") + 1 : end].decode("utf-8", "replace")
    return ThreadStat(
        name, rest[0].decode(), int(rest[6]), int(rest[16]), int(rest[19]), int(rest[36]), int(rest[38])
    )


def parse_schedstat(line: bytes) -> tuple[int, int, int]:
    """On-CPU ns, run-queue wait ns, dispatches."""
    on_cpu_ns, ready_ns, dispatches = line.split()
    return int(on_cpu_ns), int(ready_ns), int(dispatches)


def read_stat(pid: int, tid: int, proc: str = PROC) -> ThreadStat:
    """The thread's stat line now. Raises ThreadGone."""
    return parse_stat(read_bytes(f"{proc}/{pid}/task/{tid}/stat"))


def thread_ids(pid: int, proc: str = PROC) -> tuple[int, ...]:
    """The threads of a process, in id order; none if it is gone."""
    try:
        return tuple(sorted(int(name) for name in os.listdir(f"{proc}/{pid}/task") if name.isdigit()))
    except _GONE:
        return ()


def process_ids(proc: str = PROC) -> tuple[int, ...]:
    """All processes, in id order."""
    return tuple(sorted(int(name) for name in os.listdir(proc) if name.isdigit()))


def process_of(tid: int, proc: str = PROC) -> int:
    """The process (thread group) that a thread belongs to. Raises ThreadGone."""
    for line in read_bytes(f"{proc}/{tid}/status").splitlines():
        if line.startswith(b"Tgid:"):
            return int(line.split()[1])
    raise ThreadGone(f"{proc}/{tid}/status")


def read_bytes(path: str) -> bytes:
    """A small file of a process. Raises ThreadGone if the process is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _GONE as error:
        raise ThreadGone(path) from error
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except _GONE as error:
        raise ThreadGone(path) from error
    finally:
        os.close(descriptor)


def read_start(path: str, length: int) -> bytes:
    """What one read of so many bytes gives: of a list of thousands, no more than is asked for is made. Raises
    ThreadGone if the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _GONE as error:
        raise ThreadGone(path) from error
    try:
        return os.read(descriptor, length)
    except _GONE as error:
        raise ThreadGone(path) from error
    finally:
        os.close(descriptor)


class KeptThread:
    """A thread's `schedstat` and `stat`, held open.

    Both descriptors belong to the thread itself, not to its number: once it has ended they
    fail with ESRCH for ever, so a successful read proves the identity.
    """

    __slots__ = ("first_stat", "schedstat", "stat")

    def __init__(self, pid: int, tid: int, proc: str = PROC) -> None:
        try:
            directory = os.open(f"{proc}/{pid}/task/{tid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except _GONE as error:
            raise ThreadGone(f"{pid}/{tid}") from error
        self.schedstat = self.stat = -1
        try:
            self.schedstat = os.open("schedstat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
            self.stat = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
            self.first_stat = parse_stat(os.pread(self.stat, _STAT_BYTES, 0))
        except BaseException as error:
            self.close()
            if isinstance(error, _GONE):
                raise ThreadGone(f"{pid}/{tid}") from error
            raise
        finally:
            os.close(directory)

    def close(self) -> None:
        """Let the descriptors go."""
        for descriptor in (self.schedstat, self.stat):
            if descriptor >= 0:
                os.close(descriptor)
        self.schedstat = self.stat = -1
