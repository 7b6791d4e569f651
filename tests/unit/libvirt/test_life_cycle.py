"""Whatever happens to domains, only their living vCPUs are managed, and each of them within two periods."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dasec.roster import RosterEntry
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from dasec.workloads.libvirt.metadata import NAMESPACE, Consent, render

from .fakelibvirt import FakeDomain, FakeLibvirt, domain_xml

PERIOD_NS = 80_000_000
SECOND_PERIODS = 14
SETTLING_PERIODS = 24
RUNS, EVENTS_A_RUN = 50, 40

NAMES = ("web-1", "web-2", "db", "camera", "spare")
RULES = (Rule("web", "web-*"), Rule("eye", "camera"))
"""`db` and `spare` may opt in by themselves."""

events = 0


class Fleet(RuleBasedStateMachine):
    """Random events at a fake libvirt; after each, a period of discovery."""

    version = 1

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.host = FakeLibvirt(Path(self._folder.name), self.version)
        self.workloads = LibvirtWorkloads(
            RULES, by_metadata=True, directory=str(self.host.directory), proc=self.host.tree.proc
        )
        self.periods = 0
        self.uuids = 0
        self.unsettled: list[tuple[FakeDomain, int]] = []
        self.roster: tuple[RosterEntry, ...] = ()
        self.seen: set[tuple[int, int, int]] = set()
        self.period()

    def teardown(self) -> None:
        self._folder.cleanup()

    def period(self) -> None:
        self.periods += 1
        self.roster = self.workloads.discover(self.periods * PERIOD_NS).roster

    def event(self) -> None:
        global events
        events += 1
        self.period()

    def domains(self, chosen: Callable[[FakeDomain], bool]) -> list[FakeDomain]:
        return [one for _, one in sorted(self.host.domains.items()) if chosen(one)]

    def pick(self, data: st.DataObject, chosen: Callable[[FakeDomain], bool]) -> FakeDomain | None:
        there = self.domains(chosen)
        return data.draw(st.sampled_from(there), label="domain") if there else None

    # Events while libvirtd is there.

    @precondition(lambda self: not self.host.away)
    @rule(name=st.sampled_from(NAMES), vcpus=st.integers(1, 3))
    def define_and_start(self, name: str, vcpus: int) -> None:
        domain = self.host.domains.get(name)
        if domain is None:
            self.uuids += 1
            domain = self.host.defineXML(domain_xml(name, self.uuids, vcpus=vcpus))
        if not domain.isActive():
            domain.create()
        self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data(), what=st.sampled_from(["suspend", "resume", "destroy", "undefine"]))
    def meddle(self, data: st.DataObject, what: str) -> None:
        domain = self.pick(data, running)
        if domain is not None:
            getattr(domain, what)()
            self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data())
    def stop_and_start_within_a_period(self, data: st.DataObject) -> None:
        domain = self.pick(data, lambda one: bool(one.isActive() and one.isPersistent()))
        if domain is not None:
            domain.destroy()
            domain.create()
            self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data(), settled=st.booleans())
    def plug(self, data: st.DataObject, settled: bool) -> None:
        domain = self.pick(data, lambda one: running(one) and len(one.vcpus) < 6)
        if domain is not None:
            domain.plug(settled=settled)
            if not settled:
                self.unsettled.append((domain, self.periods))
            self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data())
    def unplug(self, data: st.DataObject) -> None:
        domain = self.pick(data, lambda one: running(one) and len(one.vcpus) > 1)
        if domain is not None:
            domain.unplug()
            self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data(), into=st.sampled_from(NAMES))
    def rename(self, data: st.DataObject, into: str) -> None:
        domain = self.pick(data, lambda one: not one.isActive())
        if domain is not None and into not in self.host.domains:
            domain.rename(into)
            self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data(), share=st.none() | st.integers(2, 262144))
    def opt_in(self, data: st.DataObject, share: int | None) -> None:
        domain = self.pick(data, lambda one: True)
        if domain is not None:
            flags = domain.isActive() | 2 * domain.isPersistent()
            domain.setMetadata(2, render(Consent(share)), "dasec", NAMESPACE, flags)
            self.event()

    @precondition(lambda self: not self.host.away)
    @rule(data=st.data())
    def opt_out(self, data: st.DataObject) -> None:
        domain = self.pick(data, lambda one: True)
        if domain is not None:
            flags = domain.isActive() | 2 * domain.isPersistent()
            domain.setMetadata(2, None, None, NAMESPACE, flags)
            self.event()

    # libvirtd itself.

    @rule()
    def libvirtd_goes_away(self) -> None:
        self.host.away = True
        self.event()

    @precondition(lambda self: self.host.away)
    @rule()
    def libvirtd_comes_back(self) -> None:
        self.host.away = False
        for domain in self.domains(lambda one: dead(self.host, one)):
            domain.reaped()
        self.event()

    @precondition(lambda self: self.host.away)
    @rule(data=st.data())
    def qemu_dies_unseen(self, data: st.DataObject) -> None:
        domain = self.pick(data, lambda one: running(one) and not dead(self.host, one))
        if domain is not None:
            domain.crash()
            self.event()

    # The rest of the machine.

    @rule(threads=st.integers(1, 4), comm=st.sampled_from(["sshd", "CPU 0/KVM", "worker"]))
    def strangers_come(self, threads: int, comm: str) -> None:
        machine = self.host.machine
        if len(machine.threads) < machine.pool - 60:  # the domains need 45 at most
            pid = machine.process(comm, f"{comm}\0", "/machine/qemu-1-other.libvirt-qemu/vcpu0")
            for _ in range(threads):
                machine.thread(pid, comm, "/machine/qemu-1-other.libvirt-qemu/vcpu0")
        self.event()

    @rule(data=st.data())
    def a_stranger_goes(self, data: st.DataObject) -> None:
        machine = self.host.machine
        ours = {one.pid for one in self.host.domains.values()}
        strangers = sorted({pid for pid, _ in machine.threads} - ours)
        if strangers:
            machine.end_process(data.draw(st.sampled_from(strangers), label="stranger"))
            self.event()

    @rule()
    def libvirt_settles(self) -> None:
        for domain, _ in self.unsettled:
            if domain.isActive() and not dead(self.host, domain):
                domain.settle()
        late = any(self.periods - since >= SETTLING_PERIODS for _, since in self.unsettled)
        self.unsettled = []
        self.event()
        if late:  # then it is looked at once a second
            for _ in range(SECOND_PERIODS):
                self.period()

    @rule(periods=st.integers(1, SECOND_PERIODS))
    def time_passes(self, periods: int) -> None:
        for _ in range(periods):
            self.event()

    # What has to hold.

    @invariant()
    def nobody_else_is_ever_named(self) -> None:
        vcpus = {
            (one.pid, one.tid, one.start)
            for domain in self.host.domains.values()
            for one in domain.vcpus
            if name_of(domain) is not None
        }
        alive = {(one.pid, one.tid, one.start) for one in self.host.machine.threads.values()}
        named = {
            (pid, tid, terms.start_ticks)
            for entry in self.roster
            for (pid, tid), terms in zip(entry.threads, entry.terms, strict=True)
        }
        assert named & alive <= vcpus

    @invariant()
    def the_second_period_sees_everybody(self) -> None:
        self.period()
        waiting = {id(domain) for domain, _ in self.unsettled}
        expected = {
            name: [(one.pid, one.tid) for one in domain.vcpus]
            for domain in self.domains(lambda one: running(one) and not dead(self.host, one))
            if (name := name_of(domain)) is not None and id(domain) not in waiting
        }
        found = {entry.name: list(entry.threads) for entry in self.roster}
        assert {name: found.get(name) for name in expected} == expected


def running(domain: FakeDomain) -> bool:
    return bool(domain.isActive())


def dead(host: FakeLibvirt, domain: FakeDomain) -> bool:
    """Did its QEMU die without libvirtd's knowledge?"""
    return bool(domain.isActive()) and not any(
        host.machine.threads.get((one.pid, one.tid)) is one for one in domain.vcpus
    )


def name_of(domain: FakeDomain) -> str | None:
    """What it must be called as a workload; None: it did not opt in."""
    if domain.name().startswith("web-"):
        return f"web/{domain.name()}"
    if domain.name() == "camera":
        return "eye"
    return domain.name() if NAMESPACE in domain.XMLDesc() else None


class FleetOnV2(Fleet):
    version = 2


def test_a_thousand_events_and_only_living_vcpus_are_managed() -> None:
    global events
    for machine in (Fleet, FleetOnV2):
        events = 0
        run_state_machine_as_test(
            machine, settings=settings(max_examples=RUNS, stateful_step_count=EVENTS_A_RUN, deadline=None)
        )
        assert events >= 1000
