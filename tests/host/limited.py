"""Services that a CPU limit or quotas stop, and the daemon that caps and lends beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .running import loaded

CAPS = """
period_ms = 80
[bandwidth]
caps = true
[guard]
enabled = false
"""
OWN_GROUPS = """
[host]
own_cgroups = true
weights = "on"
"""
WORKLOAD = """
[[workload]]
name = "{name}"
pids = [{pid}]
"""
ALWAYS = "--background-burst-us 20000 --background-rate 60"
SERVES = "--rate 60 --helpers 1 --serial-us 1000 --helper-us 500"
LIMITED = f"{SERVES} --background 3 {ALWAYS}"
"""A few requests beside three threads that always compute."""

Threads = dict[str, int]


@contextmanager
def serving(options: str, place: Path) -> Iterator[tuple[int, Threads]]:
    """A service's process, and its threads by name."""
    with loaded("service", "--seconds", "60", *options.split(), "--out", str(place)) as (process, ready):
        yield process.pid, ready["threads"]


def used_ns(tid: int) -> int:
    """On CPUs."""
    return int(Path(f"/proc/{tid}/schedstat").read_text().split()[0])
