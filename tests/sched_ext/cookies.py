"""Core scheduling beside our scheduler: threads with cookies (PR_SCHED_CORE) under the kernel's own and ours.

    python -m tests.sched_ext.cookies SECONDS [SCENE…]

In a guest whose kernel has CONFIG_SCHED_CORE and whose CPUs are siblings (tests/vm/scx_cookies.py boots one).
A line of JSON for each scheduler and scene, then one on loading and unloading, and one with what the kernel
complained of, which docs/sched-ext.md explains; exit status 1 if it put ours out.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dasec.bpf.scx import CGROUPS
from dasec.linux.sched_ext import state

from .machine import HOG, LOADS, SLICE, Vm, wait_for
from .stress import PATIENCE_S, complaints
from .switches import IDLE, read, together_s

CPUS = Path("/sys/devices/system/cpu")
TRACING = Path("/sys/kernel/tracing")
TRACED_KIB_A_CPU = 16384
SETTLE_S = 1.0
TOUCHES_S = 1e-3
"""What is longer than this is no moment of switching."""

PR_SCHED_CORE, GET, CREATE, SHARE_TO = 62, 0, 1, 2
TAG = f"""
import ctypes, sys
prctl = ctypes.CDLL(None, use_errno=True).prctl
def do(*words):
    assert prctl({PR_SCHED_CORE}, *words, 0, 0) == 0, ctypes.get_errno()
do({CREATE}, 0)
for pid in sys.argv[1:]: do({SHARE_TO}, int(pid))
"""
"""Gives some threads one cookie."""

SLEEPER = "import time\nwhile True:\n    time.sleep(0.01)\n    for _ in range(500): pass"
LOADED, TIMES = 2.0, 6


@dataclass(frozen=True, slots=True)
class Part:
    """A VM of a scene."""

    name: str
    threads: int
    cookies: int = 1
    """0: none; one for all its threads; or one for each of them."""
    program: str = HOG
    weight: int = 100


A, B, PLAIN = Part("a", 4), Part("b", 4), Part("plain", 4, 0)
SLEEPERS = Part("a", 2, program=SLEEPER)
SCENES = {
    "no cookies": (Part("a", 4, 0), Part("b", 4, 0), PLAIN),
    "two cookies": (A, B, PLAIN),
    "nobody without": (A, B),
    "weights": (A, Part("b", 4, weight=300)),
    "one cookie": (A, PLAIN),
    "a cookie each": (Part("a", 4, 4), PLAIN),
    "sleepers, no cookies": (Part("a", 2, 0, SLEEPER), Part("b", 4, 0)),
    "sleepers": (SLEEPERS, B),
    "sleepers, untagged": (Part("a", 2, 0, SLEEPER), B),
}


@contextmanager
def ours() -> Iterator[None]:
    """`dasec scx`, which must be there until the end."""
    command = subprocess.Popen([sys.executable, "-P", "-m", "dasec", "scx"], stdout=subprocess.DEVNULL)
    try:
        wait_for("enabled", PATIENCE_S)
        loads = LOADS.read_text()
        yield
        assert (state(), LOADS.read_text()) == ("enabled", loads), "it was put out"
    finally:
        command.terminate()
        status = command.wait(PATIENCE_S)
    assert status == 0, status
    wait_for("disabled")


@contextmanager
def plain() -> Iterator[None]:
    """The kernel's own."""
    yield


def pids_of(vm: Vm) -> list[int]:
    """Its processes, which have one thread each."""
    return [int(pid) for pid in (vm.path / "cgroup.procs").read_text().split()]


def tag(pids: list[int]) -> None:
    """With a new cookie."""
    subprocess.run([sys.executable, "-I", "-S", "-c", TAG, *map(str, pids)], check=True)


def cookie_of(pid: int) -> int:
    """As the kernel shows it: 0 is none."""
    found = ctypes.c_uint64()
    assert ctypes.CDLL(None).prctl(PR_SCHED_CORE, GET, pid, 0, ctypes.byref(found)) == 0
    return found.value


@contextmanager
def vms_of(scene: tuple[Part, ...]) -> Iterator[dict[str, Vm]]:
    """All of them, tagged."""
    vms = {part.name: Vm(part.name, part.weight) for part in scene}
    try:
        for part in scene:
            vms[part.name].run(part.program, set(range(os.cpu_count() or 1)), part.threads)
            pids = pids_of(vms[part.name])
            each = len(pids) // part.cookies if part.cookies else 0
            for at in range(part.cookies):
                tag(pids[at * each : (at + 1) * each])
        yield vms
    finally:
        for vm in vms.values():
            vm.end()


def traced(seconds: float) -> list[str]:
    """The lines of the kernel's trace of so long."""
    (TRACING / "trace").write_text("")
    (TRACING / "tracing_on").write_text("1")
    time.sleep(seconds)
    (TRACING / "tracing_on").write_text("0")
    return (TRACING / "trace").read_text().splitlines()


def prepare() -> list[list[int]]:
    """Groups, a trace that is off, and the CPUs of each core."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    SLICE.mkdir(exist_ok=True)
    (SLICE / "cgroup.subtree_control").write_text("+cpu")
    subprocess.run(["mount", "-t", "tracefs", "tracefs", str(TRACING)], check=True)
    settings = {"tracing_on": "0", "trace_clock": "mono", "buffer_size_kb": str(TRACED_KIB_A_CPU)}
    for name in ("sched_switch", "sched_waking"):
        settings[f"events/sched/{name}/enable"] = "1"
    for name, value in settings.items():
        (TRACING / name).write_text(value)
    lists = {path.read_text() for path in CPUS.glob("cpu[0-9]*/topology/thread_siblings_list")}
    cores = [[int(cpu) for cpu in one.replace("-", ",").split(",")] for one in sorted(lists)]
    assert all(len(core) == 2 for core in cores), f"no pairs of siblings: {cores}"
    return cores


def figures(scene: tuple[Part, ...], cores: list[list[int]], seconds: float) -> dict[str, object]:
    """Of this scene, on what schedules now."""
    with vms_of(scene) as vms:
        time.sleep(SETTLE_S)
        pids = {name: pids_of(vm) for name, vm in vms.items()}
        all_pids = [pid for some in pids.values() for pid in some]
        cookies = {pid: cookie_of(pid) for pid in all_pids if any(part.cookies for part in scene)}
        lines = traced(seconds)
    trace = read(lines, all_pids)
    together = together_s(trace, cores, cookies)
    lasted = max(sum(ran.until_s - ran.since_s for ran in runs) for runs in trace.cpus.values())
    wakes = sorted(wake for pid in pids["a"] for wake in trace.wakes_s[pid])
    return {
        "cookies": len(set(cookies.values()) - {0}),
        "seconds": round(lasted, 2),
        "cpus": {name: round(sum(map(trace.ran_s, some)) / lasted, 2) for name, some in pids.items()},
        "idle": round(trace.ran_s(IDLE) / lasted, 2),
        "least of a thread": {
            name: round(min(map(trace.ran_s, some)) / lasted, 3) for name, some in pids.items()
        },
        "longest wait, ms": {
            name: round(1e3 * max(max(trace.waits_s[pid], default=0) for pid in some), 1)
            for name, some in pids.items()
        },
        "together, part": round(sum(together) / lasted / len(cores), 5),
        "together, longest ms": round(1e3 * max(together, default=0), 3),
        "together, times": len(together),
        "longer than a moment": sum(one > TOUCHES_S for one in together),
        "wakes": len(wakes),
        "wake, mean ms": round(1e3 * sum(wakes) / max(1, len(wakes)), 2),
        "wake, p99 ms": round(1e3 * wakes[int(0.99 * len(wakes))], 2) if wakes else None,
    }


def loads_meanwhile(seconds: float) -> dict[str, object]:
    """Ours comes and goes while threads have cookies, and get others."""
    retagged, loads = 0, int(LOADS.read_text())
    with vms_of((A, B, PLAIN)) as vms:
        for _ in range(TIMES):
            with ours():
                ends = time.monotonic() + seconds
                while time.monotonic() < ends:
                    tag(pids_of(vms["a"])[:2])
                    retagged += 1
            tag(pids_of(vms["a"]))
        before = {pid: time_of(pid) for vm in vms.values() for pid in pids_of(vm)}
        time.sleep(seconds)
        went_on = [pid for pid, ns in before.items() if time_of(pid) > ns]
    return {
        "loads": int(LOADS.read_text()) - loads,
        "tagged": retagged,
        "went on": len(went_on),
        "of": len(before),
    }


def time_of(pid: int) -> int:
    """CPU time in ns."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def main() -> None:
    """All scenes, or those that are named."""
    seconds, wanted = float(sys.argv[1]), sys.argv[2:] or [*SCENES, "loads"]
    cores = prepare()
    for scheduler in (plain, ours):
        with scheduler():
            for name in wanted:
                if name != "loads":
                    found = figures(SCENES[name], cores, seconds)
                    print(json.dumps({"scene": name, "scheduler": scheduler.__name__} | found), flush=True)
    if "loads" in wanted:
        print(json.dumps({"scene": "loads"} | loads_meanwhile(LOADED)), flush=True)
    print(json.dumps({"the kernel complained": complaints()}), flush=True)


if __name__ == "__main__":
    main()
