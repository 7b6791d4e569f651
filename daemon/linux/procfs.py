"""What /proc says of threads. Every parser survives any `comm`: it may hold blanks, parentheses, newlines.

Files are taken apart as bytes, at what the kernel puts between the parts and at nothing else: of a name the
kernel escapes, if anything, newlines and backslashes, while Python splits lines at eight characters more.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from . import cpulist
from .errors import ThreadGone, unknown_format

PROC = "/proc"

PF_EXITING = 0x00000004
PF_USER_WORKER = 0x00004000
PF_KTHREAD = 0x00200000
"""include/linux/sched.h: the flags of threads that end, of those that the kernel has in processes of others
(6.4, 54e6842d0775), and of its own."""

_STAT_BYTES = 2048
_FIRST_LINE = 512
"""Bytes: eleven numbers."""

_STEAL = 8
"""The column of /proc/stat's first line: cpu, user, nice, system, idle, iowait, irq, softirq, steal."""

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
    def is_user_worker(self) -> bool:
        """Does it work for the kernel in a user's process?"""
        return bool(self.flags & PF_USER_WORKER)

    @property
    def has_ended(self) -> bool:
        """Has it got as far as do_exit()? Its cgroup on v1 reads as the top one then (proc_cgroup_show())."""
        return bool(self.flags & PF_EXITING)


def parse_stat(line: bytes) -> ThreadStat:
    """One stat line. The name ends at the *last* parenthesis: it may hold others. Raises OSError (EPROTO)."""
    try:
        name, rest = _around_name(line)
        flags, nice, start_ticks, core, policy = [int(rest[at]) for at in (6, 16, 19, 36, 38)]
        comm, state = name.decode("utf-8", "replace"), rest[0].decode()
        return ThreadStat(comm, state, flags, nice, start_ticks, core, policy)
    except (ValueError, IndexError) as error:
        raise unknown_format(f"no stat line: {line[:80]!r}") from error


def parse_parent(line: bytes) -> int:
    """The parent of a process, of one stat line. Raises OSError (EPROTO)."""
    try:
        return int(_around_name(line)[1][1])
    except (ValueError, IndexError) as error:
        raise unknown_format(f"no stat line: {line[:80]!r}") from error


def _around_name(line: bytes) -> tuple[bytes, list[bytes]]:
    """The name, and the fields behind it."""
    end = line.rindex(b")")
    return line[line.index(b"(") + 1 : end], line[end + 2 :].split()


def parse_schedstat(line: bytes) -> tuple[int, int, int]:
    """On-CPU ns, run-queue wait ns, dispatches. Raises OSError (EPROTO)."""
    try:
        on_cpu_ns, ready_ns, dispatches = line.split()
        return int(on_cpu_ns), int(ready_ns), int(dispatches)
    except ValueError as error:
        raise unknown_format(f"no schedstat line: {line[:80]!r}") from error


def parse_process(status: bytes) -> int:
    """The process (thread group) that a status file names. Raises OSError (EPROTO)."""
    try:
        return int(_status_field(status, b"Tgid"))
    except ValueError as error:
        raise unknown_format(f"a status file without Tgid: {status[:80]!r}") from error


def parse_cpus_allowed(status: bytes) -> frozenset[int]:
    """The mask that a status file names. Raises OSError (EPROTO)."""
    cpus = _status_field(status, b"Cpus_allowed_list").decode("ascii", "replace").strip()
    try:
        return cpulist.parse(cpus)
    except ValueError as error:
        raise unknown_format(f"a status file with CPUs {cpus[:80]!r}") from error


def _status_field(status: bytes, key: bytes) -> bytes:
    """A line of a status file, without its key. The name stands before all of them with its newlines escaped,
    so no name begins a line."""
    return status.partition(b"\n%b:" % key)[2].partition(b"\n")[0]


def read_stat(pid: int, tid: int, proc: str = PROC) -> ThreadStat:
    """The thread's stat line now. Raises ThreadGone."""
    return parse_stat(read_bytes(f"{proc}/{pid}/task/{tid}/stat"))


def thread_ids(pid: int, proc: str = PROC) -> tuple[int, ...]:
    """The threads of a process, in id order; none if it is gone."""
    try:
        return tuple(sorted(int(name) for name in os.listdir(f"{proc}/{pid}/task") if name.isdecimal()))
    except _GONE:
        return ()


def thread_ids_of(task_directory: int) -> tuple[int, ...]:
    """The same of the process whose open task directory this is, whoever has its number now."""
    try:
        return tuple(sorted(int(name) for name in os.listdir(task_directory) if name.isdecimal()))
    except _GONE:
        return ()


def start_ticks_below(task_directory: int, tid: int) -> int:
    """When a thread in this open task directory started. Raises OSError, or ThreadGone."""
    return parse_stat(read_bytes(f"{tid}/stat", task_directory)).start_ticks


def process_ids(proc: str = PROC) -> tuple[int, ...]:
    """All processes, in id order."""
    return tuple(sorted(int(name) for name in os.listdir(proc) if name.isdecimal()))


def process_of(tid: int, proc: str = PROC) -> int:
    """The process (thread group) that a thread belongs to. Raises ThreadGone."""
    return parse_process(read_bytes(f"{proc}/{tid}/status"))


def cpus_allowed(pid: int, tid: int, proc: str = PROC) -> frozenset[int]:
    """The thread's mask with the CPUs of it that are offline, which sched_getaffinity(2) hides. Raises
    ThreadGone."""
    return parse_cpus_allowed(read_bytes(f"{proc}/{pid}/task/{tid}/status"))


def tables_kib(pid: int, proc: str = PROC) -> int:
    """The size of a process's page tables; 0 where it has let its memory go. Raises ThreadGone."""
    size = _status_field(read_bytes(f"{proc}/{pid}/status"), b"VmPTE").split()
    return int(size[0]) if size else 0


def stolen_ns(proc: str = PROC) -> int:
    """How long the hypervisor has kept this machine's CPUs from running when they wanted to, together."""
    line = read_start(f"{proc}/stat", _FIRST_LINE).split(b"\n")[0]
    return int(line.split()[_STEAL]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


def read_bytes(path: str, directory: int | None = None) -> bytes:
    """A small file of a process or a group, perhaps below an open directory. Raises ThreadGone if that is
    gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        raise _gone_or(error, path) from error
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError as error:
        raise _gone_or(error, path) from error
    finally:
        os.close(descriptor)


def read_start(path: str, length: int) -> bytes:
    """What one read of so many bytes gives: of a list of thousands, no more than is asked for is made. Raises
    ThreadGone if the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _gone_or(error, path) from error
    try:
        return os.read(descriptor, length)
    except OSError as error:
        raise _gone_or(error, path) from error
    finally:
        os.close(descriptor)


def _gone_or(error: OSError, path: str) -> Exception:
    """ENODEV is what a file of a group says that was removed while it was open, or was opened."""
    gone = isinstance(error, _GONE) or error.errno == errno.ENODEV
    return ThreadGone(path) if gone else error


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

    def alive(self) -> bool:
        """Is there still a thread of this number, and none but this, or one of its process that took it over
        by execve?"""
        try:
            return bool(os.pread(self.schedstat, 1, 0))
        except ProcessLookupError:
            return False

    def close(self) -> None:
        """Let the descriptors go."""
        for descriptor in (self.schedstat, self.stat):
            if descriptor >= 0:
                os.close(descriptor)
        self.schedstat = self.stat = -1
