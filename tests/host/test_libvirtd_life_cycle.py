"""Fifty events in random order on real domains, with every knob of every vCPU written anew in each period.

No wrong thread, no stale knob, no leaked group or descriptor; a new vCPU is managed within two periods.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dasec.commands.vm import write
from dasec.linux import affinity
from dasec.model import Change, Knob, Outcome, Snapshot, VcpuId
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from dasec.workloads.libvirt.metadata import Consent, render
from guests.domains import (
    DOMAIN,
    MAX_VCPUS,
    boot_disk,
    groups,
    has_libvirts_weight,
    is_untouched,
    others_of,
    pid_of,
    running,
    vcpus_of,
)
from guests.libvirtd import Libvirtd
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage

if TYPE_CHECKING:
    from libvirt import virDomain

pytestmark = [pytest.mark.host, pytest.mark.libvirt, pytest.mark.libvirtd]

SEED, EVENTS = 6, 50
PERIOD_NS = 80_000_000
PAUSED = 3
"""VIR_DOMAIN_PAUSED in libvirt-domain.h."""

CONTROL_OK = 0
"""VIR_DOMAIN_CONTROL_OK: nobody waits for QEMU's monitor."""

FLEET = f"dasec-fleet-{os.getpid()}-"
BY_PATTERN, BY_ITSELF, STRANGER = f"{FLEET}web", f"{FLEET}own", f"{FLEET}other"
"""One that the configuration names, one that may opt in and out, and one that nobody ever names."""


class Fleet:
    """Three domains, the daemon's discovery and host, and what happens to them."""

    def __init__(self, libvirtd: Libvirtd, folder: Path) -> None:
        import libvirt

        self._error = libvirt.libvirtError
        self._open = libvirt.open
        self._libvirtd = libvirtd
        self._connection = libvirt.open(libvirtd.uri)
        self._disk = boot_disk(folder)
        self._chance = random.Random(SEED)
        self._names = [BY_PATTERN, BY_ITSELF, STRANGER]
        self._serial = itertools.count(1)
        self._opted_in = False
        self.happened: Counter[str] = Counter()
        self.stage = MainlineStage(folder / "state", dry_run=False, own_groups=False)
        rule = Rule("web", f"{BY_PATTERN}*")
        directory = str(libvirtd.directory)
        self._workloads = LibvirtWorkloads([rule], by_metadata=True, directory=directory)
        self._now_ns = 0

    def begin(self) -> None:
        """All three run."""
        for name in self._names:
            self._define(name)
            self._domain(name).create()
        self.settle()

    def close(self) -> None:
        """Everything back, and every domain gone."""
        self.stage.close()
        self._libvirtd.clear()
        wait_for(lambda: groups(FLEET) == {})
        with contextlib.suppress(self._error):  # libvirtd had died, and the test with it
            self._connection.close()

    # Periods.

    def period(self) -> None:
        """Look, and write every knob of whom the host manages."""
        self._now_ns += PERIOD_NS
        snapshot = self.stage.mainline.observe(self._workloads.discover(self._now_ns).roster)
        results = self.stage.mainline.apply(list(self._changes(snapshot)))
        assert {result.outcome for result in results} <= {Outcome.APPLIED}, results

    def settle(self) -> None:
        """Two periods, after which all must be right."""
        self.period()
        self.period()
        self.check()

    def unplug(self) -> None:
        """A vCPU of the managed domain comes and goes. The guest lets it go at once, yet libvirt 9.0 waits
        for five seconds and gives up. QEMU refuses until the guest has turned to ACPI's interface for
        hot-plug ("not supported device type"), so it is asked again."""
        domain = self._domain(BY_PATTERN)
        domain.setVcpus(3)
        self.settle()

        def given_back() -> bool:
            with contextlib.suppress(self._error):
                domain.setVcpus(2)
            return len(vcpus_of(self._libvirtd, BY_PATTERN)) == 2

        wait_for(given_back)
        self.settle()

    def _changes(self, snapshot: Snapshot) -> Iterator[Change]:
        """Other values than the present ones, for each vCPU."""
        for workload in snapshot.workloads:
            for vcpu in workload.vcpus:
                weight, latency_ns, mask = snapshot.knobs[vcpu.id]
                if weight is not None:
                    yield _change(vcpu.id, Knob.WEIGHT, weight, 3000 - weight if weight != 1024 else 1000)
                assert latency_ns is not None
                yield _change(
                    vcpu.id, Knob.RESCHEDULING_LATENCY, latency_ns, 5_000_000 + latency_ns % 1_000_000 + 1000
                )
                if mask is not None:
                    new = frozenset({self._chance.choice(sorted(vcpu.allowed))})
                    if new != mask:
                        yield Change(vcpu.id, Knob.AFFINITY, mask, new, "test")

    # What must hold.

    def check(self) -> None:
        """The daemon manages the vCPUs of those who opted in, and nobody else is touched."""
        active = running(self._connection)
        everywhere = frozenset(os.sched_getaffinity(0))
        expected: set[tuple[int, int]] = set()
        for name in active:
            vcpus = vcpus_of(self._libvirtd, name)
            managed = self._is_managed(name)
            for one in vcpus:
                pinned = frozenset({1}) if one.vcpu == 1 else everywhere
                if managed:
                    expected.add((one.pid, one.tid))
                    assert set(affinity.get(one.tid)) <= pinned, "outside what <vcpupin> allows"
                else:
                    assert has_libvirts_weight(one), f"{name}: stale weight"
                    assert is_untouched(one.tid, pinned), f"{name}: stale slice or mask"
            assert all(is_untouched(tid, everywhere) for tid in others_of(self._libvirtd, name))
        refs = [one.ref for one in self.stage.journal.outstanding()]
        held = {(ref.sake.pid, ref.sake.tid) for ref in refs if ref.sake is not None}
        assert held == expected

    def check_groups(self) -> None:
        """Every group is one that libvirt makes for a thread that is there."""
        active = running(self._connection)
        for name in active:
            vcpus = [f"vcpu{one.vcpu}" for one in vcpus_of(self._libvirtd, name)]
            assert sorted(groups(FLEET)[name]) == sorted(["emulator", "iothread1", *vcpus])
        assert sorted(groups(FLEET)) == active, "leaked group"

    def check_untouched(self) -> None:
        """Nothing of ours is left on whoever runs."""
        for name in running(self._connection):
            for one in vcpus_of(self._libvirtd, name):
                assert has_libvirts_weight(one)
                assert is_untouched(one.tid, frozenset({1} if one.vcpu == 1 else os.sched_getaffinity(0)))

    # Events.

    def event(self) -> None:
        """One that is possible now."""
        name = self._chance.choice(self._names)
        domain = self._domain(name)
        possible = dict(self._possible(name, domain))
        what = self._chance.choice(sorted(possible))
        self.happened[what] += 1
        possible[what]()

    def _possible(self, name: str, domain: virDomain) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "libvirtd restarts", self._restart
        saved = domain.hasManagedSaveImage()
        if name == BY_ITSELF and not saved:  # it would come back as it was saved
            yield "opt in or out", self._opt
        if not domain.isActive():
            yield "start or restore", domain.create
            if name.startswith(BY_PATTERN) and not saved:
                yield "rename", lambda: self._rename(domain)
            return
        yield "destroy", lambda: self._gone(domain, domain.destroy)
        yield "QEMU dies", lambda: self._gone(domain, lambda: self._kill(name))
        yield "reset", domain.reset
        if domain.isPersistent():
            yield "undefine", domain.undefine
        if domain.state()[0] == PAUSED:
            yield "resume", domain.resume
            return
        yield "pause", domain.suspend
        if domain.isPersistent():
            yield "save", domain.managedSave
        number = len(vcpus_of(self._libvirtd, name))
        if number < MAX_VCPUS:
            yield "plug", lambda: domain.setVcpus(number + 1)

    def _restart(self) -> None:
        """Until libvirtd has every domain again: of one whose QEMU dies before, libvirt 9.0 does not know the
        groups, and leaves them."""
        self._libvirtd.kill()
        self._libvirtd.start()
        self._connection = self._open(self._libvirtd.uri)
        wait_for(
            lambda: all(
                self._domain(name).controlInfo()[0] == CONTROL_OK for name in running(self._connection)
            )
        )

    def _opt(self) -> None:
        self._opted_in = not self._opted_in
        write(self._domain(BY_ITSELF), render(Consent()) if self._opted_in else None)

    def _rename(self, domain: virDomain) -> None:
        """The pattern goes on matching it."""
        old, new = domain.name(), f"{BY_PATTERN}-{next(self._serial)}"
        domain.rename(new)
        self._names[self._names.index(old)] = new

    def _gone(self, domain: virDomain, how: Callable[[], object]) -> None:
        """It stops; one that was undefined as it ran is defined anew."""
        name, persistent = domain.name(), domain.isPersistent()
        with contextlib.suppress(self._error):  # libvirt may see QEMU's end before destroy() does
            how()
        wait_for(lambda: name not in running(self._connection) and name not in groups(FLEET))
        if not persistent:
            self._define(name)
            self._opted_in = self._opted_in and name != BY_ITSELF

    def _kill(self, name: str) -> None:
        os.kill(pid_of(self._libvirtd, name), signal.SIGKILL)

    def _define(self, name: str) -> None:
        self._connection.defineXML(DOMAIN.format(name=name, maximum=MAX_VCPUS, disk=self._disk))

    def _domain(self, name: str) -> virDomain:
        return self._connection.lookupByName(name)

    def _is_managed(self, name: str) -> bool:
        return name.startswith(BY_PATTERN) or (name == BY_ITSELF and self._opted_in)


def _change(vcpu: VcpuId, knob: Knob, old: int, new: int) -> Change:
    return Change(vcpu, knob, old, new, "test")


@pytest.fixture
def fleet(libvirtd: Libvirtd, tmp_path: Path) -> Iterator[Fleet]:
    """Nothing of it is left for the next test, whatever fails in this one."""
    made = Fleet(libvirtd, tmp_path)
    try:
        made.begin()
        yield made
    finally:
        made.close()
    assert not [path for path in open_files() if "/machine/qemu-" in path]


def open_files() -> Iterator[str]:
    """What this process holds open."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(f"/proc/self/fd/{name}")


def test_fifty_random_events_on_real_domains_leave_no_wrong_knob_and_no_group(fleet: Fleet) -> None:
    try:
        for _ in range(EVENTS):
            fleet.event()
            fleet.settle()
            fleet.check_groups()
        fleet.stage.mainline.restore()
        fleet.check_untouched()
        assert fleet.stage.journal.outstanding() == ()
    finally:
        print(dict(fleet.happened))


def test_a_vcpu_that_the_guest_gives_back_is_let_go_although_libvirt_waits_on(
    fleet: Fleet,
) -> None:
    fleet.unplug()
