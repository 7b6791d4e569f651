"""What an operator should know of this host: settings, and rivals for the same knobs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

from ...linux import cpus, procfs
from ...linux.errors import ThreadGone

RIVALS: Mapping[str, str] = {
    # By comm, which the kernel cuts at 15 bytes: nri-resource-policy-balloons, -topology-aware.
    "systemd": "daemon-reload resets cpu.shares of its units (systemd #17938)",
    "koordlet": "it rewrites cpusets, shares and quotas of pods",
    "nri-resource-po": "its policy rewrites cpusets and shares of pods",
    "numad": "it moves processes between NUMA nodes",
    "tuned": "its scheduler plugin sets affinities",
    "libvirtd": "vcpupin and schedinfo write the same knobs",
    "virtqemud": "vcpupin and schedinfo write the same knobs",
}

KUBELET, KUBELET_STATE = "kubelet", "var/lib/kubelet/cpu_manager_state"
"""Where it keeps what its CPU manager has given away, unless it was told another --root-dir."""

_REWEIGHT_BROKEN, _REWEIGHT_MENDED = (6, 13, 0), (6, 18, 45)


def warnings(proc: str = procfs.PROC, sysfs: str = cpus.SYSFS) -> Iterator[str]:
    """One line each."""
    if _setting(f"{proc}/sys/kernel/sched_autogroup_enabled") == "1":
        yield (
            "autogroup is on: threads in the top cgroup compete as sessions, not as threads "
            "(kernel.sched_autogroup_enabled)"
        )
    if _setting(f"{proc}/sys/kernel/sched_rt_runtime_us") == "-1":
        yield "real-time throttling is off: a real-time thread can keep a vCPU off its core for ever"
    if _setting(f"{sysfs}/kernel/sched_ext/state") == "enabled":
        name = _setting(f"{sysfs}/kernel/sched_ext/root/ops") or "without a name"
        yield f"a sched_ext scheduler is loaded ({name}): it may ignore weights and slices"
    isolated = sorted(cpus.isolated(sysfs))
    if isolated:
        yield f"CPUs {','.join(map(str, isolated))} are isolated: not balanced, so not used"
    yield from _rivals(proc)


def reweight_suspect(release: str) -> bool:
    """May this kernel have the reweight bug, by its version? Trying says more."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if numbers is None:
        return False
    version = (int(numbers[1]), int(numbers[2]), int(numbers[3] or 0))
    return _REWEIGHT_BROKEN <= version < _REWEIGHT_MENDED


def _rivals(proc: str) -> Iterator[str]:
    running = {_name(pid, proc): pid for pid in procfs.process_ids(proc)}
    whys = {KUBELET: _of_kubelet(running[KUBELET], proc)} if KUBELET in running else {}
    for name, why in {**whys, **RIVALS}.items():
        if name in running and why:
            yield f"{name} is running: {why}; what it writes is noticed within a period"


def _of_kubelet(pid: int, proc: str) -> str:
    """What is to be said of its CPU manager, by the state in its own file system; "" where it has no part in
    cpusets, which is its default."""
    try:
        policy = json.loads(_setting(f"{proc}/{pid}/root/{KUBELET_STATE}"))["policyName"]
    except (ValueError, KeyError, TypeError):
        return "its static CPU policy, if it has one, rewrites cpusets"
    return "its static CPU policy rewrites cpusets" if policy == "static" else ""


def _name(pid: int, proc: str) -> str:
    try:
        return os.fsdecode(procfs.read_bytes(f"{proc}/{pid}/comm")).rstrip("\n")
    except (ThreadGone, OSError):
        return ""


def _setting(path: str) -> str:
    try:
        return procfs.read_bytes(path).decode().strip()
    except (ThreadGone, OSError):
        return ""
