"""In the guest: what workloads that nobody opted in get beside VMs, under each way of scheduling the host.

python -m experiments.studies.sched_ext.beside SECONDS

Each arm and scene is a line of JSON. VMs are two groups below machine.slice; what is not ours lies below
system.slice, and in a group of the top level. All of them are made anew for each run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dasec.bpf.scx import Scheduler, options
from dasec.linux import schedattr

from ...places.counted.inside import RUN

TOP = Path("/sys/fs/cgroup")
VMS = ("machine.slice/one.scope", "machine.slice/two.scope")
LIGHT, HEAVY, LONE = "system.slice/light.service", "system.slice/heavy.service", "lone"
HEAVY_WEIGHT = 300
ARMS = ("EEVDF", "EEVDF again", "whole host", "partial")
WARM_S = 1.0

HOG = "while True: pass"
HALF = """
import time
while True:
    ends = time.monotonic() + 0.005
    while time.monotonic() < ends: pass
    time.sleep(0.005)
"""
SERVICE = """
import os, sys, time
here, there = os.pipe(), os.pipe()
if os.fork() == 0:
    while True:
        asked = os.read(here[0], 1)
        for _ in range(2000): pass
        os.write(there[1], asked)
done, slowest, asked_at = 0, [], 0.0
while True:
    asked_at = time.monotonic()
    os.write(here[1], b"x"); os.read(there[0], 1)
    done += 1
    slowest.append(time.monotonic() - asked_at)
    if done % 20 == 0:
        open(sys.argv[1], "w").write(f"{done} {sorted(slowest[-200:])[-2] * 1e3:.2f}")
"""
"""A database with one client: short work in turns, in two processes."""

COMPILER = """
import os, sys
done = 0
while True:
    child = os.fork()
    if child == 0:
        for _ in range(60000): pass
        os._exit(0)
    os.waitpid(child, 0)
    done += 1
    open(sys.argv[1], "w").write(f"{done} 0")
"""
"""A process for each file, one after the other."""

SCENES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "hogs beside saturated VMs": {
        **dict.fromkeys(VMS, (HOG, HOG)),
        **{LIGHT: (HOG,), HEAVY: (HOG,), LONE: (HOG, HOG)},
    },
    "hogs beside half busy VMs": {**dict.fromkeys(VMS, (HALF,)), LIGHT: (HOG,), HEAVY: (HOG,)},
    "one hog beside saturated VMs": {**dict.fromkeys(VMS, (HOG, HOG)), LIGHT: (HOG,)},
    "a database beside saturated VMs": {**dict.fromkeys(VMS, (HOG, HOG)), LIGHT: (SERVICE,)},
    "a compiler beside saturated VMs": {**dict.fromkeys(VMS, (HOG, HOG)), LIGHT: (COMPILER,)},
    "a database beside half busy VMs": {**dict.fromkeys(VMS, (HALF,)), LIGHT: (SERVICE,)},
    "a compiler beside half busy VMs": {**dict.fromkeys(VMS, (HALF,)), LIGHT: (COMPILER,)},
}
"""What runs in each group."""


class Programs:
    """Those of a scene, in their groups."""

    def __init__(self, scene: Mapping[str, tuple[str, ...]], cpus: frozenset[int]) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        self.groups = tuple(scene)
        for number, (name, programs) in enumerate(scene.items()):
            group = TOP / name
            group.mkdir(parents=True)
            for above in reversed(group.relative_to(TOP).parents):
                (TOP / above / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.weight").write_text(str(HEAVY_WEIGHT if name == HEAVY else 100))
            for program in programs:
                self._start(group, program, cpus, Path(f"/tmp/done-{number}"))

    def _start(self, group: Path, program: str, cpus: frozenset[int], done: Path) -> None:
        done.write_text("0 0")

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))
            os.sched_setaffinity(0, cpus)
            os.setsid()

        self._started.append(
            subprocess.Popen([sys.executable, "-S", "-c", program, str(done)], preexec_fn=enter)
        )

    def pids(self, group: str) -> list[int]:
        """Of its processes."""
        return [int(line) for line in (TOP / group / "cgroup.procs").read_text().split()]

    def used_s(self) -> dict[str, float]:
        """CPU time by group."""
        return {name: _used_s(TOP / name) for name in self.groups}

    def done(self) -> tuple[int, float]:
        """What the program that counts has done, and its slowest of late in ms."""
        last = Path(f"/tmp/done-{len(self.groups) - 1}").read_text().split()
        return int(last[0]), float(last[1])

    def end(self) -> None:
        """All of them, and their groups."""
        for program in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        paths = {TOP / name for name in self.groups} | {(TOP / name).parent for name in self.groups}
        for path in sorted(paths - {TOP}, key=lambda one: -len(one.parts)):
            while path.exists():
                with contextlib.suppress(OSError):
                    path.rmdir()


def _used_s(group: Path) -> float:
    said = (group / "cpu.stat").read_text().split()
    return int(said[said.index("usage_usec") + 1]) / 1e6


@contextlib.contextmanager
def scheduled(arm: str, programs: Programs) -> Iterator[None]:
    """The host under this arm."""
    if arm.startswith("EEVDF"):
        yield
        return
    partial = arm == "partial"
    with Scheduler(options(2), partial=partial) as scheduler:
        if partial:
            for pid in (pid for vm in VMS for pid in programs.pids(vm)):
                schedattr.change_policy(pid, schedattr.SCHED_EXT, 0)
        yield
        if (why := scheduler.ended()) is not None:
            raise RuntimeError(f"{arm}: {why}")


def measure(scene: str, arm: str, seconds: float) -> dict[str, object]:
    """One run."""
    last = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {last})
    programs = Programs(SCENES[scene], frozenset(range(last)))
    try:
        with scheduled(arm, programs):
            time.sleep(WARM_S)
            before, done = programs.used_s(), programs.done()[0]
            time.sleep(seconds)
            after, (finished, slowest_ms) = programs.used_s(), programs.done()
    finally:
        programs.end()
    os.sched_setaffinity(0, range(last + 1))
    used = {name: round(after[name] - before[name], 3) for name in before}
    return {"scene": scene, "arm": arm, "cores": used, "done": finished - done, "slowest_ms": slowest_ms}


def main() -> None:
    """All scenes under all arms."""
    (TOP / "cgroup.subtree_control").write_text("+cpu")
    for scene in SCENES:
        for arm in ARMS:
            print(RUN + json.dumps(measure(scene, arm, float(sys.argv[1]))), flush=True)


if __name__ == "__main__":
    main()
