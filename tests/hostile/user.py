"""An unprivileged user who means harm, within his limits. Run as a program by root, which it drops first.

Arguments: seed, seconds, his group in the cpu hierarchy, his cpuset, a port with metrics. Several processes
do whatever his rights allow; he says how often he did what for each line that he gets, and at the end or when
stdin ends, and then waits to be killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import random
import resource
import select
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable

UID = 64_001
MOST_PROCESSES = 120
"""Threads and processes together (RLIMIT_NPROC)."""

SLICES_NS = (3_456_789, 9_876_543)
WEIGHT = 777
"""What nobody but he chooses."""

NAMES = (
    *(b"\rTgid:\t1", b"\rTgid:x", b"\nTgid:\t1", b") R 1 1 (", b"\x1b]0;owned\x07", b"\x1b[2J", b"\xff\xfe"),
    *(
        b"a\x0bb",
        b"a\x0cb",
        b"a\x1cb",
        "\x85".encode(),
        "\u2028".encode(),
        b"0::",
        b" - cgroup c",
        b"#",
        b"\\",
        b"%s",
    ),
)
KINDS = (
    "births",
    "classes",
    "slices",
    "nices",
    "masks",
    "names",
    "groups",
    "cpusets",
    "forks",
    "execs",
    "stalls",
)

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_NAME = 15
_SETATTR = 314
_NICEST = 20
"""As RLIMIT_NICE counts: back to nice 0, and from SCHED_IDLE back to SCHED_OTHER, is his right."""


class Counts:
    """How often, of all his processes."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 * len(KINDS) * 8)

    def add(self, worker: int, kind: str) -> None:
        at = 8 * (worker * len(KINDS) + KINDS.index(kind))
        (now,) = struct.unpack_from("Q", self._memory, at)
        struct.pack_into("Q", self._memory, at, now + 1)

    def total(self) -> dict[str, int]:
        numbers = struct.unpack(f"{8 * len(KINDS)}Q", self._memory)
        return {kind: sum(numbers[at :: len(KINDS)]) for at, kind in enumerate(KINDS)}


class Worker:
    """One of his processes. Only the last sets masks, so that it is known what the others' must be."""

    def __init__(self, number: int, seed: int, cpu: str, cpuset: str, counts: Counts) -> None:
        self.number = number
        self.chance = random.Random(seed * 10 + number)
        self._cpu, self._cpuset = os.fsencode(cpu), os.fsencode(cpuset)
        self._counts = counts

    def did(self, kind: str) -> None:
        self._counts.add(self.number, kind)

    def threads(self, *, masks: bool) -> None:
        """Threads come and go, and each does what it likes."""
        while True:
            if threading.active_count() < MOST_PROCESSES // 6:
                with contextlib.suppress(RuntimeError):
                    threading.Thread(target=self._live, args=(masks, self.chance.uniform(0, 0.6))).start()
                    self.did("births")
            time.sleep(self.chance.uniform(0, 0.01))

    def _live(self, masks: bool, seconds: float) -> None:
        own, until = threading.get_native_id(), time.monotonic() + seconds
        acts: list[Callable[[int], None]] = [self._class, self._slice, self._nice, self._name, self._enter]
        if masks:
            acts.append(self._mask)
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.chance.choice(acts)(own)
            busy = time.monotonic() + 0.0005
            while time.monotonic() < busy:
                pass
            time.sleep(self.chance.uniform(0, 0.02))

    def _class(self, own: int) -> None:
        os.sched_setscheduler(own, self.chance.choice((0, 0, 3, 5)), os.sched_param(0))
        self.did("classes")

    def _slice(self, own: int) -> None:
        slice_ns = self.chance.choice((0, *SLICES_NS))
        attr = struct.pack(
            "IIQiIQQQII", 56, 0, 0x08, os.getpriority(os.PRIO_PROCESS, own), 0, slice_ns, 0, 0, 0, 0
        )
        if _libc.syscall(_SETATTR, own, attr, 0) == 0:
            self.did("slices")

    def _nice(self, own: int) -> None:
        os.setpriority(os.PRIO_PROCESS, own, self.chance.choice((0, 0, 1, 19)))
        self.did("nices")

    def _mask(self, own: int) -> None:
        os.sched_setaffinity(own, self.chance.choice(({0}, {1}, {0, 1})))
        self.did("masks")

    def _name(self, own: int) -> None:  # noqa: ARG002
        _libc.prctl(_PR_SET_NAME, self.chance.choice(NAMES)[:15], 0, 0, 0)
        self.did("names")

    def _enter(self, own: int) -> None:
        """Another group, also one of the daemon's."""
        groups = [entry.path for entry in os.scandir(self._cpu) if entry.is_dir()]
        self._write(self.chance.choice([*groups, self._cpu]) + b"/tasks", b"%d" % own)

    def _write(self, path: bytes, text: bytes) -> None:
        with open(path, "wb", buffering=0) as file:
            file.write(text)

    def groups(self) -> None:
        """Groups with such names and weights, one in the other; narrow cpusets with his threads in them."""
        while True:
            for act in (self._make, self._weigh, self._remove, self._nest, self._narrow):
                with contextlib.suppress(OSError, IndexError):
                    act()
            time.sleep(self.chance.uniform(0, 0.05))

    def _make(self) -> None:
        name = self.chance.choice(NAMES).translate(None, b"\n/") + b"%d" % self.chance.randrange(30)
        os.mkdir(self._cpu + b"/" + name)
        self.did("groups")

    def _weigh(self) -> None:
        own = [entry.path for entry in os.scandir(self._cpu) if entry.is_dir() and entry.stat().st_uid == UID]
        self._write(self.chance.choice(own) + b"/cpu.shares", b"%d" % WEIGHT)

    def _remove(self) -> None:
        """Any that is empty, also the daemon's."""
        os.rmdir(self.chance.choice([entry.path for entry in os.scandir(self._cpu) if entry.is_dir()]))

    def _nest(self) -> None:
        """A bit deeper each time, until nobody can name it any more; then from the top again."""
        at = os.open(self._cpu, os.O_RDONLY)
        for _ in range(1200):
            with contextlib.suppress(FileExistsError):
                os.mkdir("deep", dir_fd=at)
            inner = os.open("deep", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        os.close(at)

    def _narrow(self) -> None:
        place = self._cpuset + b"/narrow"
        with contextlib.suppress(FileExistsError):
            os.mkdir(place)
        self._write(place + b"/cpuset.mems", b"0")
        self._write(place + b"/cpuset.cpus", self.chance.choice((b"0", b"1", b"0-1")))
        tids = [int(tid) for pid in _own_pids(self._cpu) for tid in os.listdir(f"/proc/{pid}/task")]
        for tid in self.chance.sample(tids, min(4, len(tids))):
            with contextlib.suppress(OSError):
                self._write(self.chance.choice((place, self._cpuset)) + b"/tasks", b"%d" % tid)
        self.did("cpusets")

    def forks(self) -> None:
        """As many processes as he may have, at once; and processes whose threads turn into programs."""
        while True:
            children: list[int] = []
            with contextlib.suppress(OSError):
                while len(children) < MOST_PROCESSES:
                    pid = os.fork()
                    if pid == 0:
                        time.sleep(self.chance.uniform(0, 0.2))
                        os._exit(0)
                    children.append(pid)
                    self.did("forks")
            for pid in children:
                os.waitpid(pid, 0)
            with contextlib.suppress(OSError):
                pid = os.fork()
                if pid == 0:
                    self._turn_into_a_program()
                time.sleep(0.1)
                os.waitpid(pid, 0)
                self.did("execs")

    def _turn_into_a_program(self) -> None:
        """By a thread that is not the main one: it takes over the main one's number."""
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=os.execv, args=("/bin/sleep", ["sleep", "0.4"])).start()
            time.sleep(5)
        os._exit(0)

    def stall(self, port: int) -> None:
        """Connections that say nothing, or very slowly something, or do not read."""
        kept: list[socket.socket] = []
        while True:
            with contextlib.suppress(OSError):
                one = socket.socket()
                one.settimeout(0.2)
                one.connect(("127.0.0.1", port))
                one.send(self.chance.choice((b"G", b"GET /metrics HTTP/1.0\r\n\r\n", b"\r", b"\0" * 100)))
                kept.append(one)
                self.did("stalls")
            for one in kept:
                with contextlib.suppress(OSError):
                    one.send(b"x")
            if len(kept) > 100:
                kept.pop(0).close()
            time.sleep(self.chance.uniform(0, 0.1))


def _own_pids(cpu: bytes) -> list[int]:
    with open(cpu + b"/cgroup.procs", "rb") as file:
        return [int(line) for line in file]


def _become_unprivileged() -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
    with contextlib.suppress(ValueError):  # without: once nicer or idle, for ever
        resource.setrlimit(resource.RLIMIT_NICE, (_NICEST, _NICEST))
    os.setgroups([])
    os.setgid(UID)
    os.setuid(UID)


def main() -> None:
    seed, port = int(sys.argv[1]), int(sys.argv[5])
    seconds, cpu, cpuset = float(sys.argv[2]), sys.argv[3], sys.argv[4]
    _become_unprivileged()
    counts = Counts()
    workers = [Worker(number, seed, cpu, cpuset, counts) for number in range(6)]
    jobs: list[Callable[[], None]] = [
        *(lambda: workers[0].threads(masks=False), lambda: workers[1].threads(masks=False)),
        *(workers[2].groups, workers[3].forks),
        *(lambda: workers[4].stall(port), lambda: workers[5].threads(masks=True)),
    ]
    pids = []
    for number, job in enumerate(jobs):
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            _libc.prctl(_PR_SET_NAME, b"hostile-%d" % number, 0, 0, 0)
            try:
                job()
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        pids.append(pid)
    until_s = time.monotonic() + seconds
    while (
        select.select([sys.stdin], [], [], max(0.0, until_s - time.monotonic()))[0] and sys.stdin.readline()
    ):
        print(json.dumps(counts.total()), flush=True)
    print(json.dumps(counts.total()), flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
