"""What the machine is, what stands in the way of a clean measurement, and its own counters."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("dasec", "hdrhistogram", "matplotlib", "numpy", "scipy")
QUIET_LOAD = 0.5
IDLE_FIELDS, STEAL_FIELD, ACCOUNTED_FIELDS = (3, 4), 7, 8
"""Positions in the `cpu` line of /proc/stat (proc_stat(5)): idle and iowait, steal; guest time is
already in user time, so the fields behind steal do not count."""


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """The machine's CPU time since boot, in clock ticks."""

    total: int
    idle: int
    stolen: int


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What became of the machine's CPU time between two looks, as parts of it."""

    busy: float
    """Not idle: used by us or by others, or stolen."""
    stolen: float
    """Taken by the hypervisor."""

    @classmethod
    def between(cls, begin: CpuTicks, end: CpuTicks) -> CpuUse:
        """Of looks at the same machine."""
        total = max(1, end.total - begin.total)
        return cls(1 - (end.idle - begin.idle) / total, (end.stolen - begin.stolen) / total)

    def other_cores(self, cores: int, ours: float) -> float:
        """How many of these cores were used by others, where `ours` were by us."""
        return max(0.0, (self.busy - self.stolen) * cores - ours)


def cpu_ticks(proc: Path = Path("/proc")) -> CpuTicks:
    """The machine's CPU time since boot."""
    ticks = [int(word) for word in _text(proc / "stat").splitlines()[0].split()[1 : ACCOUNTED_FIELDS + 1]]
    return CpuTicks(sum(ticks), sum(ticks[field] for field in IDLE_FIELDS), ticks[STEAL_FIELD])


def cpu_time_s(pids: Iterable[int], proc: Path = Path("/proc")) -> float:
    """CPU time that the living threads of these processes have used; a vanished one counts nothing."""
    used_s = 0.0
    for pid in pids:
        for thread in (proc / str(pid) / "task").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                used_s += thread_cpu_s(pid, int(thread.name), proc)
    return used_s


def thread_cpu_s(pid: int, tid: int, proc: Path = Path("/proc")) -> float:
    """CPU time of one thread. Raises OSError if it is gone."""
    return int((proc / str(pid) / "task" / str(tid) / "schedstat").read_text().split()[0]) / 1e9


def warnings(cores: int) -> tuple[str, ...]:
    """What is wrong with this moment for a measurement; the demo goes on."""
    load = os.getloadavg()[0]
    found = []
    if load > QUIET_LOAD:
        found.append(f"load average {load:.2f} before the start: other work will blur the result")
    if cores < 2:
        found.append("one core only: nothing can be moved between cores")
    return tuple(found)


def metadata() -> dict[str, object]:
    """What the machine is, for the JSON."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_model": _cpu_model(),
        "load_average": os.getloadavg(),
        "autogroup": _text(Path("/proc/sys/kernel/sched_autogroup_enabled")).strip() or "not built in",
        "governor": _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")).strip() or "none",
        "clocksource": _text(
            Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        ).strip(),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def version_line(command: Iterable[str]) -> str:
    """The first line that a program prints about its version."""
    done = subprocess.run(list(command), capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).partition("\n")[0]


def _cpu_model() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "CPU part"):
            return value.strip()
    return "unknown"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
