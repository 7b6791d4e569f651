"""Fake /proc, /sys and cgroup trees of plain files, and threads in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NUMBER_OF_FIELDS = 52


def stat_line(
    tid: int,
    comm: str = "vcpu",
    state: str = "S",
    *,
    flags: int = 0,
    nice: int = 0,
    start: int = 1000,
    core: int = 0,
    policy: int = 0,
) -> bytes:
    """A line as the kernel writes it: 52 fields, the name between parentheses."""
    fields = ["0"] * (NUMBER_OF_FIELDS - 2)
    for number, value in ((3, state), (9, flags), (19, nice), (22, start), (39, core), (41, policy)):
        fields[number - 3] = str(value)
    return f"{tid} ({comm}) {' '.join(fields)}\n".encode()


@dataclass(frozen=True)
class Tree:
    """A machine made of files below one directory."""

    root: Path

    @property
    def proc(self) -> str:
        return str(self.root / "proc")

    @property
    def sysfs(self) -> str:
        return str(self.root / "sys")

    @property
    def cgroup(self) -> Path:
        return self.root / "sys/fs/cgroup"

    def mounts(self, *lines: str) -> None:
        """mountinfo; `{cgroup}` stands for the tree's own cgroup directory."""
        self.write("proc/self/mountinfo", "".join(f"{line.format(cgroup=self.cgroup)}\n" for line in lines))

    def v1(self) -> None:
        self.mounts(
            "22 1 8:1 / / rw - ext4 /dev/root rw",
            "32 31 0:29 / {cgroup}/cpuset rw - cgroup cgroup rw,cpuset",
            "33 31 0:30 / {cgroup}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
        )

    def hybrid(self) -> None:
        """cpu on v1 although v2 is mounted, and mounted first."""
        self.mounts(
            "30 31 0:28 / {cgroup}/unified rw - cgroup2 cgroup2 rw",
            "33 31 0:30 / {cgroup}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
        )
        self.write("sys/fs/cgroup/unified/cgroup.controllers", "memory io\n")

    def v2(self, root: str = "/") -> None:
        self.mounts(f"30 31 0:28 {root} {{cgroup}} rw - cgroup2 cgroup2 rw")
        self.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n")
        self.write("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n")

    def thread(
        self, pid: int, tid: int, stat: bytes | None = None, schedstat: str = "0 0 0", groups: str = "0::/\n"
    ) -> None:
        place = f"proc/{pid}/task/{tid}"
        self.write(f"{place}/stat", (stat or stat_line(tid)).decode("utf-8", "surrogateescape"))
        self.write(f"{place}/schedstat", f"{schedstat}\n")
        self.write(f"{place}/cgroup", groups)
        self.write(f"proc/{tid}/status", f"Name:\tx\nTgid:\t{pid}\n")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        return file


DASEC_COLUMNS = (
    "tid state granularity_ns weight run_ns ready_ns voluntary involuntary wakeups late external other wakers"
)


def dasec_line(
    tid: int,
    state: str = "S",
    *,
    granularity: str = "default",
    weight: str = "default",
    run_ns: int = 0,
    ready_ns: int = 0,
    voluntary: int = 0,
    involuntary: int = 0,
    late: int = 0,
    wakeups: int | None = None,
    external: int = 0,
    wakers: str = "-",
) -> bytes:
    """A thread's line of the kernel patch's file."""
    woken = late if wakeups is None else wakeups
    numbers = f"{run_ns} {ready_ns} {voluntary} {involuntary} {woken} {late} {external} 0"
    return f"{tid} {state} {granularity} {weight} {numbers} {wakers}".encode()


def dasec_text(*lines: bytes) -> bytes:
    """The whole file."""
    return b"\n".join([b"dasec 1", b"clock_ns 123", DASEC_COLUMNS.encode(), *lines, b""])


def with_timers(text: bytes, timers: int) -> bytes:
    """The same as a kernel shows it that counts timers apart: so many for each thread without wakers."""
    return text.replace(b" wakers", b" timers wakers").replace(b" -\n", b" %d -\n" % timers)
