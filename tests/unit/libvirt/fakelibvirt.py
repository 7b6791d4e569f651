"""A libvirtd with its QEMUs, made of files: a status directory, /proc, cgroup memberships.

Its domains have the methods of libvirt-python's virDomain and pass the same contract (test_contract.py).
Thread ids come from a small pool, so that they are soon given out again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, fromstring, register_namespace, tostring

from dasec.workloads.libvirt.metadata import NAMESPACE, PREFIX
from tests.unit.linux.tree import Tree, stat_line

register_namespace(PREFIX, NAMESPACE)

Numbers = tuple[int, int]

V1_GROUPS = "3:cpu,cpuacct:{group}\n2:cpuset:{group}\n0::/\n"
V2_GROUPS = "0::{group}\n"


@dataclass(frozen=True)
class Thread:
    """One thread of the fake machine. `vcpu`: its number in the domain, if it is a vCPU."""

    pid: int
    tid: int
    comm: str
    start: int
    vcpu: int | None = None


@dataclass
class Machine:
    """Threads of a fake /proc, and who they really are."""

    tree: Tree
    version: int = 1
    threads: dict[Numbers, Thread] = field(default_factory=dict)
    pool: int = 110
    _ticks: Iterator[int] = field(default_factory=lambda: itertools.count(1000))
    _turn: Iterator[int] = field(default_factory=lambda: itertools.count())

    def free_id(self) -> int:
        taken = {tid for _, tid in self.threads}
        return next(number for turn in self._turn if (number := 100 + turn % self.pool) not in taken)

    def process(self, comm: str, arguments: str, group: str) -> int:
        pid = self.free_id()
        self.tree.write(f"proc/{pid}/cmdline", arguments)
        self.thread(pid, comm, group, tid=pid)
        return pid

    def thread(
        self, pid: int, comm: str, group: str, *, tid: int | None = None, vcpu: int | None = None
    ) -> Thread:
        tid = self.free_id() if tid is None else tid
        thread = Thread(pid, tid, comm, next(self._ticks), vcpu)
        self.threads[pid, tid] = thread
        self.tree.thread(pid, tid, stat_line(tid, comm, start=thread.start), groups=self.groups(group))
        return thread

    def move(self, thread: Thread, group: str) -> None:
        self.tree.write(f"proc/{thread.pid}/task/{thread.tid}/cgroup", self.groups(group))

    def groups(self, group: str) -> str:
        return (V1_GROUPS if self.version == 1 else V2_GROUPS).format(group=group)

    def end(self, thread: Thread) -> None:
        del self.threads[thread.pid, thread.tid]
        place = self.tree.root / f"proc/{thread.pid}/task/{thread.tid}"
        for file in place.iterdir():
            file.unlink()
        place.rmdir()

    def end_process(self, pid: int) -> None:
        for thread in [one for one in self.threads.values() if one.pid == pid]:
            self.end(thread)
        (self.tree.root / f"proc/{pid}/cmdline").unlink()


class FakeDomain:
    """One domain, with virDomain's methods."""

    def __init__(self, host: FakeLibvirt, xml: str) -> None:
        self._host = host
        root = fromstring(xml)
        self._name, self.uuid = root.findtext("name") or "", root.findtext("uuid") or ""
        self._vcpus = int(root.findtext("vcpu") or "1")
        self._config, self._live = root, root
        self._persistent = True
        self.paused = False
        self.pid = 0
        self.vcpus: list[Thread] = []

    def name(self) -> str:
        return self._name

    def isActive(self) -> int:
        return int(self.pid != 0)

    def isPersistent(self) -> int:
        return int(self._persistent)

    def XMLDesc(self) -> str:
        return tostring(self._live if self.pid else self._config, encoding="unicode")

    def setMetadata(self, kind: int, xml: str | None, key: str | None, uri: str, flags: int) -> int:
        if flags & 1:
            self._live = _with_metadata(self._live, xml, uri)
            self._host.save(self)
        if flags & 2:
            self._config = _with_metadata(self._config, xml, uri)
        return 0

    def create(self) -> int:
        host = self._host
        self._live = self._config
        self.pid = host.machine.process(
            "qemu-system-x86",
            f"qemu-system-x86_64\0-name\0guest={self._name},debug-threads=on\0-uuid\0{self.uuid}\0",
            host.group(self, "emulator"),
        )
        host.machine.thread(self.pid, "call_rcu", host.group(self, "emulator"))
        for number in range(1, int(self._live.findtext("iothreads") or "0") + 1):
            self.start_io(number)
        for _ in range(self._vcpus):
            self.plug(settled=True, saved=False)
        host.save(self)
        return 0

    def destroy(self) -> int:
        self._host.machine.end_process(self.pid)
        self._gone()
        return 0

    def suspend(self) -> int:
        self.paused = True
        self._host.save(self)
        return 0

    def resume(self) -> int:
        self.paused = False
        self._host.save(self)
        return 0

    def undefine(self) -> int:
        self._persistent = False
        if not self.pid:
            self._host.domains.pop(self._name)
        return 0

    def rename(self, name: str) -> int:
        """Only a domain that does not run can be renamed (virDomainRename())."""
        del self._host.domains[self._name]
        self._name = name
        self._host.domains[name] = self
        for root in {self._config, self._live}:
            element = root.find("name")
            assert element is not None
            element.text = name
        return 0

    # What is no method of a virDomain.

    def crash(self) -> None:
        """QEMU dies while libvirtd is away: its file stays."""
        self._host.machine.end_process(self.pid)

    def reaped(self) -> None:
        """libvirtd is back and finds that QEMU died."""
        self._gone()

    def plug(self, *, settled: bool, saved: bool = True) -> Thread:
        """One more vCPU; unless `settled`, libvirt has not put it into its group yet."""
        number = len(self.vcpus)
        group = self._host.group(self, f"vcpu{number}" if settled else "emulator")
        thread = self._host.machine.thread(self.pid, f"CPU {number}/KVM", group, vcpu=number)
        self.vcpus.append(thread)
        if saved:
            self._host.save(self)
        return thread

    def start_io(self, number: int, part: str = "") -> Thread:
        """An I/O thread of that number, or one that has its name."""
        group = self._host.group(self, part or f"iothread{number}")
        return self._host.machine.thread(self.pid, f"IO iothread{number}", group)

    def settle(self) -> None:
        for thread in self.vcpus:
            self._host.machine.move(thread, self._host.group(self, f"vcpu{thread.vcpu}"))

    def unplug(self) -> None:
        self._host.machine.end(self.vcpus.pop())
        self._host.save(self)

    def status(self) -> str:
        root = Element(
            "domstatus",
            {"state": "paused" if self.paused else "running", "reason": "booted", "pid": str(self.pid)},
        )
        SubElement(root, "monitor", {"path": f"/var/lib/libvirt/qemu/{self._name}.sock", "type": "unix"})
        vcpus = SubElement(root, "vcpus")
        for thread in self.vcpus:
            SubElement(vcpus, "vcpu", {"id": str(thread.vcpu), "pid": str(thread.tid)})
        root.append(self._live)
        return tostring(root, encoding="unicode")

    def _gone(self) -> None:
        self.pid = 0
        self.vcpus = []
        self.paused = False
        self._host.unsave(self)
        if not self._persistent:
            self._host.domains.pop(self._name)


class FakeLibvirt:
    """libvirtd's side: domains, and the files that it keeps of them."""

    def __init__(self, root: Path, version: int = 1) -> None:
        self.tree = Tree(root)
        (self.tree.v1 if version == 1 else self.tree.v2)()
        self.machine = Machine(self.tree, version)
        self.directory = root / "run/libvirt/qemu"
        self.directory.mkdir(parents=True)
        self.domains: dict[str, FakeDomain] = {}
        self.away = False

    def defineXML(self, xml: str) -> FakeDomain:
        domain = FakeDomain(self, xml)
        self.domains[domain.name()] = domain
        return domain

    def group(self, domain: FakeDomain, part: str) -> str:
        if self.machine.version == 1:
            return f"/machine/qemu-1-{domain.name()}.libvirt-qemu/{part}"
        return f"/machine.slice/machine-qemu\\x2d1\\x2d{domain.name()}.scope/libvirt/{part}"

    def save(self, domain: FakeDomain) -> None:
        """As virFileRewrite() does: beside the old file, then by rename."""
        if domain.pid and not self.away:
            new = self.directory / f"{domain.name()}.xml.new"
            new.write_text(domain.status())
            os.replace(new, self.directory / f"{domain.name()}.xml")

    def unsave(self, domain: FakeDomain) -> None:
        (self.directory / f"{domain.name()}.xml").unlink(missing_ok=True)


def domain_xml(
    name: str,
    number: int = 1,
    *,
    kind: str = "kvm",
    vcpus: int = 2,
    inside: str = "<iothreads>1</iothreads>",
    vcpu: str = "",
) -> str:
    """A domain's configuration. `inside`: more of its elements."""
    return (
        f"<domain type='{kind}'><name>{name}</name><uuid>{uuid_of(number)}</uuid><memory>65536</memory>"
        f"<vcpu{vcpu}>{vcpus}</vcpu>{inside}<os><type>hvm</type></os></domain>"
    )


def uuid_of(number: int) -> str:
    return f"4dea22b3-1d52-d8f3-2516-{number:012x}"


def _with_metadata(root: Element, xml: str | None, uri: str) -> Element:
    root = fromstring(tostring(root))
    metadata = root.find("metadata")
    if metadata is None:
        metadata = SubElement(root, "metadata")
    for element in [one for one in metadata if one.tag.startswith(f"{{{uri}}}")]:
        metadata.remove(element)
    if xml is not None:
        element = fromstring(xml)
        element.tag = f"{{{uri}}}{element.tag}"
        metadata.append(element)
    return root
