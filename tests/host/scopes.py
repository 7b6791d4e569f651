"""A domain's cgroups as systemd and libvirt make them together, around a process that looks like QEMU.

machine.slice/machine-qemu\\x2d1\\x2dNAME.scope is systemd's and has the share. Since 7.1 libvirt makes a
group `libvirt` in it, which has the quota (virCgroupGetNested()), and emulator, iothreadN, vcpuN below that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dasec.linux import cgroupfs, procfs
from guests.waiting import wait_for

VCPUS = 2
SLICE = "machine.slice"

LIKE_QEMU = f"""
import threading, time
def thread(name):
    with open(f"/proc/self/task/{{threading.get_native_id()}}/comm", "w") as file:
        file.write(name)
    time.sleep(1000)
for name in ("worker", "IO iothread1", *(f"CPU {{number}}/KVM" for number in range({VCPUS}))):
    threading.Thread(target=thread, args=(name,), daemon=True).start()
time.sleep(1000)
"""


class Scope:
    """One such domain; it lives in the `with` of `machine_scope`."""

    def __init__(self, folder: Path, *, nested: bool) -> None:
        self.name = f"dasec-{os.getpid()}"
        self.uuid = str(uuid.uuid4())
        self.hierarchy = cgroupfs.find_hierarchy()
        top = self.hierarchy.root.rstrip("/")
        self.slice = f"{top}/{SLICE}"
        escaped = self.name.replace("-", "\\x2d")
        self.scope = f"{self.slice}/machine-qemu\\x2d1\\x2d{escaped}.scope"
        self.around = f"{self.scope}/libvirt" if nested else self.scope
        self.process = subprocess.Popen([sys.executable, "-S", "-c", LIKE_QEMU, "-uuid", self.uuid])
        wait_for(lambda: len(self.vcpus()) == VCPUS and len(self.others()) == 2)
        self._handed_on: list[Path] = []
        self._had_slice = self._directory(self.slice).is_dir()
        self._build()
        (folder / f"{self.name}.xml").write_text(self._status())

    def vcpus(self) -> list[int]:
        """The threads that are called as vCPUs are, in order."""
        names = self._names()
        return sorted((tid for tid in names if names[tid].startswith("CPU ")), key=names.__getitem__)

    def others(self) -> dict[str, int]:
        """By name, the worker and the I/O thread."""
        names = {name: tid for tid, name in self._names().items()}
        return {name: names[name] for name in ("worker", "IO iothread1") if name in names}

    def _names(self) -> dict[int, str]:
        pid = self.process.pid
        return {tid: procfs.read_stat(pid, tid).comm for tid in procfs.thread_ids(pid)}

    def limit(self, cores: float) -> None:
        """A quota, where libvirt puts it."""
        self._limit(self.around, cores)

    def limit_vcpu(self, number: int, cores: float) -> None:
        """A quota for one vCPU."""
        self._limit(f"{self.around}/vcpu{number}", cores)

    @contextmanager
    def stranger(self) -> Iterator[None]:
        """A process that is none of QEMU's sits in the group of its main thread meanwhile."""
        process = subprocess.Popen(["sleep", "1000"])
        file = self.hierarchy.members_file(f"{self.around}/emulator")
        if self.hierarchy.version == 2:  # into a threaded group a process comes by way of its domain
            (self._directory(self.around) / "cgroup.procs").write_text(str(process.pid))
        Path(file).write_text(str(process.pid))
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """Process and groups."""
        self.process.kill()
        self.process.wait()
        scope = self._directory(self.scope)
        groups = [*sorted(scope.glob("**/"), reverse=True), scope]
        if not self._had_slice:
            groups.append(self._directory(self.slice))
        for group in dict.fromkeys(groups):
            wait_for(lambda group=group: cgroupfs.remove_group(str(group)), every_s=0.01)  # type: ignore[misc]
        for directory in reversed(self._handed_on):
            if directory.is_dir():
                cgroupfs.hand_on_cpu(f"{directory}/cgroup.subtree_control", on=False)

    def _limit(self, group: str, cores: float) -> None:
        quota = int(cores * 100_000)
        if self.hierarchy.version == 2:
            (self._directory(group) / "cpu.max").write_text(f"{quota} 100000")
        else:
            (self._directory(group) / "cpu.cfs_quota_us").write_text(str(quota))

    def _build(self) -> None:
        pid = self.process.pid
        for group in (self.slice, self.scope, self.around):
            self._directory(group).mkdir(exist_ok=True)
            if self.hierarchy.version == 2:
                self._hand_on(self._directory(group).parent)
        (self._directory(self.around) / "cgroup.procs").write_text(str(pid))
        own = {tid: f"vcpu{number}" for number, tid in enumerate(self.vcpus())}
        own[self.others()["IO iothread1"]] = "iothread1"
        below = {tid: own.get(tid, "emulator") for tid in procfs.thread_ids(pid)}
        for name in dict.fromkeys(below.values()):
            cgroupfs.make_group(self.hierarchy, f"{self.around}/{name}")
        if self.hierarchy.version == 2:
            self._hand_on(self._directory(self.around))
        for tid, name in below.items():
            self.hierarchy.move(tid, f"{self.around}/{name}")

    def _hand_on(self, directory: Path) -> None:
        control = f"{directory}/cgroup.subtree_control"
        if not cgroupfs.hands_on_cpu(control):
            cgroupfs.hand_on_cpu(control, on=True)
            self._handed_on.append(directory)

    def _directory(self, group: str) -> Path:
        return Path(self.hierarchy.directory(group))

    def _status(self) -> str:
        threads = "".join(f"<vcpu id='{number}' pid='{tid}'/>" for number, tid in enumerate(self.vcpus()))
        return (
            f"<domstatus state='running' pid='{self.process.pid}'><vcpus>{threads}</vcpus>"
            f"<domain><name>{self.name}</name><uuid>{self.uuid}</uuid><vcpu>{VCPUS}</vcpu>"
            "<iothreads>1</iothreads></domain>"
            "</domstatus>"
        )


@contextmanager
def machine_scope(folder: Path, *, nested: bool) -> Iterator[Scope]:
    """A domain whose status file is in that folder."""
    made = Scope(folder, nested=nested)
    try:
        yield made
    finally:
        made.remove()
