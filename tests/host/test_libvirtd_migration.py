"""A domain that migrates between two libvirtds: where it was it is forgotten, where it is it is managed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dasec.model import Change, Knob, Outcome, Snapshot
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from guests.domains import DOMAIN, MAX_VCPUS, boot_disk, groups, has_libvirts_weight, is_untouched, vcpus_of
from guests.libvirtd import Libvirtd
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage

pytestmark = [pytest.mark.host, pytest.mark.libvirt, pytest.mark.libvirtd]

PREFIX = f"dasec-moves-{os.getpid()}-"
NAME = f"{PREFIX}web"
PERIOD_NS = 80_000_000
LIVE, UNSAFE = 1, 512
"""VIR_MIGRATE_LIVE and, because the disk is no shared one, VIR_MIGRATE_UNSAFE in libvirt-domain.h."""


class Node:
    """A libvirtd and the daemon beside it, as on a host of its own."""

    def __init__(self, libvirtd: Libvirtd, folder: Path) -> None:
        import libvirt

        folder.mkdir()
        self.libvirtd = libvirtd
        self.connection = libvirt.open(libvirtd.uri)
        self.stage = MainlineStage(folder / "state", dry_run=False, own_groups=False)
        self._workloads = LibvirtWorkloads([Rule("web", f"{PREFIX}*")], directory=str(libvirtd.directory))
        self._now_ns = 0

    def period(self) -> Snapshot:
        self._now_ns += PERIOD_NS
        return self.stage.mainline.observe(self._workloads.discover(self._now_ns).roster)

    def managed(self) -> list[tuple[int, int]]:
        """Process and thread of each vCPU that the daemon sees after two periods, in order."""
        self.period()
        return sorted((vcpu.pid, vcpu.tid) for vcpu in self.period().knobs)

    def there(self) -> list[tuple[int, int]]:
        """The same by QEMU's own thread names."""
        return [(pid, tid) for _, pid, tid in vcpus_of(self.libvirtd, NAME)]

    def write_all(self) -> None:
        """Another weight and slice for each vCPU."""
        changes = []
        for vcpu, (weight, latency_ns, _) in self.period().knobs.items():
            assert weight is not None
            assert latency_ns is not None
            changes.append(Change(vcpu, Knob.WEIGHT, weight, 1500, "test"))
            changes.append(Change(vcpu, Knob.RESCHEDULING_LATENCY, latency_ns, 7_000_000, "test"))
        assert {result.outcome for result in self.stage.mainline.apply(changes)} == {Outcome.APPLIED}

    def close(self) -> None:
        self.stage.close()
        self.connection.close()


@pytest.fixture
def nodes(libvirtd: Libvirtd, tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with closing(Libvirtd(tmp_path / "log")) as other:
        with closing(Node(libvirtd, tmp_path / "a")) as here, closing(Node(other, tmp_path / "b")) as there:
            yield here, there
        libvirtd.destroy()
        other.destroy()


def migrate(source: Node, target: Node, description: str, port: int) -> None:
    """Over this host's loopback. The target first uses up the ids of domains as far as the source has: groups
    are named after them, and here the two nodes share one tree of groups."""
    domain = source.connection.lookupByName(NAME)
    used = 0
    while used <= domain.ID():
        filler = target.connection.createXML(description.replace(NAME, f"{PREFIX}filler"))
        used = filler.ID()
        filler.destroy()
    where = {"migrate_uri": f"tcp://127.0.0.1:{port}", "listen_address": "127.0.0.1"}
    domain.migrate3(target.connection, where, LIVE | UNSAFE)


def test_a_domain_that_migrates_is_forgotten_here_and_managed_there_within_two_periods(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    here, there = nodes
    description = DOMAIN.format(name=NAME, maximum=MAX_VCPUS, disk=boot_disk(tmp_path))
    here.connection.createXML(description)
    assert here.managed() == here.there()
    here.write_all()
    migrate(here, there, description, port=49301)
    assert here.managed() == []
    assert there.managed() == there.there() != []
    pinned = [frozenset(os.sched_getaffinity(0)), frozenset({1})]
    for numbers, mask in zip(vcpus_of(there.libvirtd, NAME), pinned, strict=True):
        assert has_libvirts_weight(numbers)
        assert is_untouched(numbers.tid, mask)
    there.write_all()
    migrate(there, here, description, port=49302)
    assert there.managed() == []
    assert here.managed() == here.there() != []
    here.write_all()
    here.stage.mainline.restore()
    for numbers, mask in zip(vcpus_of(here.libvirtd, NAME), pinned, strict=True):
        assert has_libvirts_weight(numbers)
        assert is_untouched(numbers.tid, mask)
    here.connection.lookupByName(NAME).destroy()
    wait_for(lambda: groups(PREFIX) == {})
