"""What the machine is, and what stands in the way of a clean measurement."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

LIBRARIES = ("dasec", "hdrhistogram", "matplotlib", "numpy", "scipy")
QUIET_LOAD = 0.5


def warnings(cores: int) -> tuple[str, ...]:
    """What is wrong with this moment for a measurement, which goes on."""
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
