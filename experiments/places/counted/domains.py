"""In the guest: virtual machines as libvirt's domains, without a libvirtd. Their groups lie as libvirt's do;
here is the file that libvirt keeps of each one that runs, which is all that the daemon asks of it
(docs/decisions/0019-libvirt.md)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from dasec.lab.kit.bench import RunPlan, homes_in_groups
from dasec.lab.kit.home import TenantHome, Thread
from dasec.lab.kit.tree import Tree
from dasec.workloads.libvirt.status_directory import DIRECTORY

from ...drivers.kvm import UUID

NUMBER = re.compile(r"CPU (\d+)/")
"""Of a vCPU, in its thread's name."""


@dataclass(slots=True)
class DomainHome(TenantHome):
    """Where a domain lives."""

    directory: str = DIRECTORY
    """Of libvirt's files; a guest has one of its own."""
    said: str = ""
    """In its file."""

    @property
    def file(self) -> Path:
        """That libvirt keeps while it runs."""
        return Path(self.directory, f"{self.tenant.name}.xml")

    def settle(self, pids: Iterable[int]) -> None:
        """As usual; then the file says which thread is which."""
        super(DomainHome, self).settle(pids)  # a class with slots is made anew
        text = status(self.tenant.name, self.vcpus) if self.vcpus else ""
        if text != self.said:
            self.said = text
            self.file.parent.mkdir(parents=True, exist_ok=True)
            new = self.file.with_suffix(".new")
            new.write_text(text, encoding="utf-8")
            new.rename(self.file)


def status(name: str, vcpus: Sequence[Thread]) -> str:
    """As libvirt writes it, but for what the daemon does not read."""
    (pid,) = {pid for pid, _, _ in vcpus}
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    root = Element("domstatus", {"state": "running", "reason": "booted", "pid": str(pid)})
    numbered = SubElement(root, "vcpus")
    for _, tid, called in vcpus:
        (number,) = NUMBER.findall(called)
        SubElement(numbered, "vcpu", {"id": number, "pid": str(tid)})
    domain = SubElement(root, "domain", {"type": "kvm"})
    for tag, text in (("name", name), ("uuid", words[words.index(UUID) + 1]), ("vcpu", str(len(vcpus)))):
        SubElement(domain, tag).text = text
    return tostring(root, encoding="unicode")


@contextlib.contextmanager
def homes(
    plan: RunPlan, tree: Tree, arm: str, directory: str = DIRECTORY
) -> Iterator[tuple[TenantHome, ...]]:
    """The usual ones; those of domains have their files as long."""
    with homes_in_groups(plan, tree, arm) as usual:
        domains = {
            one.tenant.name: DomainHome(tree, plan.layout, one.tenant, directory=directory)
            for one in usual
            if one.tenant.is_domain
        }
        try:
            yield tuple(domains.get(one.tenant.name, one) for one in usual)
        finally:
            for domain in domains.values():
                domain.file.unlink(missing_ok=True)
