"""What libvirt's QEMU driver writes of a running domain: /run/libvirt/qemu/NAME.xml.

It is the only place that names the vCPUs' threads without a question to libvirtd or QEMU. libvirt reads it
back itself after a restart, also of a newer version, so its shape is old and does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

from ...linux import cpulist
from ...model import Core
from . import metadata
from .metadata import Consent


class NotAStatus(Exception):
    """The text is no status of a domain; it says why."""


class VcpuThread(NamedTuple):
    """A vCPU's number in the domain, its thread, and the cores that the settings let it use (None: any)."""

    number: int
    tid: int
    cores: frozenset[Core] | None


class DomainStatus(NamedTuple):
    """One running domain. `vcpus` holds those that have a thread; `io_threads` is how many it has."""

    name: str
    uuid: str
    pid: int
    vcpus: tuple[VcpuThread, ...]
    opt_in: Consent | None
    io_threads: int = 0


def parse(text: bytes) -> DomainStatus:
    """One status file. Raises NotAStatus."""
    try:
        root = fromstring(text)
    except (ParseError, ValueError, LookupError) as error:  # the latter two: of an encoding that nobody knows
        raise NotAStatus(f"no XML: {error}") from error
    domain = root.find("domain")
    if root.tag != "domstatus" or domain is None:
        raise NotAStatus(f"its element is <{root.tag}>, not a <domstatus> with a <domain>")
    try:
        name, uuid = domain.findtext("name") or "", domain.findtext("uuid") or ""
        if not name or not uuid:
            raise NotAStatus("the domain has no name or no uuid")
        cores = _CoresOf(root, domain)
        vcpus = tuple(VcpuThread(number, tid, cores.of(number)) for number, tid in _threads(root))
        opt_in = metadata.parse(domain.find("metadata"))
        io_threads = int(domain.findtext("iothreads") or "0")
        return DomainStatus(name, uuid, int(root.get("pid", "0")), vcpus, opt_in, io_threads)
    except ValueError as error:
        raise NotAStatus(str(error)) from error


def _threads(root: Element) -> Iterator[tuple[int, int]]:
    """Number and thread of each vCPU. Files from before libvirt 2.2 have no number: they are in order."""
    for place, vcpu in enumerate(root.iterfind("vcpus/vcpu")):
        tid = int(vcpu.get("pid", "0"))
        if tid > 0:
            yield int(vcpu.get("id", place)), tid


class _CoresOf:
    """Where each vCPU may run, in libvirt's own order (qemuProcessSetupPid()): its <vcpupin>, else what
    numad advised where the placement is automatic, else the cpuset of <vcpu>, else anywhere."""

    def __init__(self, root: Element, domain: Element) -> None:
        self._pinned: Mapping[int, frozenset[Core] | None] = {
            int(pin.get("vcpu", "-1")): _cores(pin.get("cpuset"))
            for pin in domain.iterfind("cputune/vcpupin")
        }
        vcpu, numad = domain.find("vcpu"), root.find("numad")
        automatic = vcpu is not None and vcpu.get("placement") == "auto" and numad is not None
        element = numad if automatic else vcpu
        self._default = None if element is None else _cores(element.get("cpuset"))

    def of(self, number: int) -> frozenset[Core] | None:
        """The cores of one vCPU."""
        return self._pinned.get(number, self._default)


def _cores(text: str | None) -> frozenset[Core] | None:
    cores = frozenset(map(Core, cpulist.parse(text or "")))
    return cores or None
