"""QEMU's main and I/O threads: members of their domain where the configuration says so, certainly they, or
left alone."""

from __future__ import annotations

import pytest

from dasec.roster import RosterEntry, Terms
from dasec.workloads.discovery import Discovered
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule

from .fakelibvirt import FakeDomain, FakeLibvirt, domain_xml

S = 1_000_000_000


def watch(host: FakeLibvirt, *, with_emulator: bool = True) -> LibvirtWorkloads:
    return LibvirtWorkloads(
        [Rule("a", "vm-a")],
        with_emulator=with_emulator,
        directory=str(host.directory),
        proc=host.tree.proc,
    )


@pytest.fixture
def domain(host: FakeLibvirt) -> FakeDomain:
    domain = host.defineXML(domain_xml("vm-a"))
    domain.create()
    return domain


def start_of(host: FakeLibvirt, pid: int) -> int:
    return host.machine.threads[pid, pid].start


def qemus(found: Discovered) -> list[tuple[int, int]]:
    """The threads of all workloads that their terms call QEMU's own."""
    return [
        numbers
        for entry in found.roster
        for numbers, terms in zip(entry.threads, entry.terms, strict=True)
        if terms.emulator
    ]


def mains(found: Discovered) -> list[tuple[int, int]]:
    """Those of them that are main ones."""
    return [(pid, tid) for pid, tid in qemus(found) if pid == tid]


def io_thread(host: FakeLibvirt) -> tuple[int, int]:
    (numbers,) = [numbers for numbers, thread in host.machine.threads.items() if thread.comm.startswith("IO")]
    return numbers


def test_it_comes_after_the_vcpus_and_is_that_qemu_by_its_start_time(
    host: FakeLibvirt, domain: FakeDomain
) -> None:
    (entry,) = watch(host).discover(0).roster
    vcpus = [(one.pid, one.tid) for one in domain.vcpus]
    assert entry.threads == (*vcpus, (domain.pid, domain.pid), io_thread(host))
    assert entry.terms[-2] == Terms(start_of(host, domain.pid), None, emulator=True)
    assert [terms.emulator for terms in entry.terms] == [False, False, True, True]


def test_who_did_not_ask_for_it_has_its_vcpus_alone(host: FakeLibvirt, domain: FakeDomain) -> None:
    (entry,) = watch(host, with_emulator=False).discover(0).roster
    assert len(entry.threads) == 2
    assert qemus(Discovered((entry,), ())) == []


def test_helpers_are_left_alone(host: FakeLibvirt, domain: FakeDomain) -> None:
    (entry,) = watch(host).discover(0).roster
    (helper,) = [numbers for numbers, thread in host.machine.threads.items() if thread.comm == "call_rcu"]
    assert helper not in entry.threads


def test_io_threads_come_last_by_their_numbers_and_are_those_by_their_start_times(host: FakeLibvirt) -> None:
    domain = host.defineXML(domain_xml("vm-a", inside="<iothreads>3</iothreads>"))
    domain.create()
    (entry,) = watch(host).discover(0).roster
    named = {
        numbers: (thread.comm, thread.start)
        for numbers, thread in host.machine.threads.items()
        if thread.comm.startswith("IO")
    }
    last = zip(entry.threads[-3:], entry.terms[-3:], strict=True)
    assert [(named[numbers][0], terms) for numbers, terms in last] == [
        (f"IO iothread{at}", Terms(named[entry.threads[2 + at]][1], None, emulator=True)) for at in (1, 2, 3)
    ]


def test_what_an_io_thread_has_just_started_is_not_taken_for_it(
    host: FakeLibvirt, domain: FakeDomain
) -> None:
    first = io_thread(host)
    domain.start_io(1)
    assert qemus(watch(host).discover(0)) == [(domain.pid, domain.pid), first]


@pytest.mark.parametrize("part", ["emulator", "vcpu0", "iothread2"])
def test_an_io_threads_name_in_another_group_is_no_io_thread_and_that_is_said(
    host: FakeLibvirt, domain: FakeDomain, part: str
) -> None:
    host.machine.end(host.machine.threads[io_thread(host)])
    domain.start_io(1, part)
    found = watch(host).discover(0)
    assert qemus(found) == [(domain.pid, domain.pid)]
    why = "only 0 of 1 I/O threads have the names and groups that libvirt gives them: left alone"
    assert found.notices == (f"libvirt domain vm-a: {why}",)


def test_a_domain_without_io_threads_has_none_whatever_its_threads_are_called(host: FakeLibvirt) -> None:
    domain = host.defineXML(domain_xml("vm-a", inside=""))
    domain.create()
    domain.start_io(1)
    found = watch(host).discover(0)
    assert qemus(found) == [(domain.pid, domain.pid)]
    assert found.notices == ()


def test_its_group_says_the_home_of_the_domain_as_without_it(host: FakeLibvirt, domain: FakeDomain) -> None:
    homes = [watch(host, with_emulator=each).discover(0).roster[0].home for each in (False, True)]
    assert homes[0] == homes[1] is not None


def test_where_libvirt_made_no_groups_it_is_left_alone_and_that_is_said(
    host: FakeLibvirt, domain: FakeDomain
) -> None:
    for thread in tuple(host.machine.threads.values()):
        host.machine.move(thread, "/user.slice")
    found = watch(host).discover(0)
    assert qemus(found) == []
    assert len(found.roster[0].threads) == 2
    why = f"QEMU's main thread {domain.pid} is in no group emulator of libvirt's: left alone"
    assert found.notices == (f"libvirt domain vm-a: {why}",)


def test_alone_it_is_no_workload(host: FakeLibvirt, domain: FakeDomain) -> None:
    for thread in domain.vcpus:
        host.machine.move(thread, host.group(domain, "emulator"))
    assert [entry.threads for entry in watch(host).discover(0).roster] == [()]


def test_whoever_has_its_number_later_is_left_alone(host: FakeLibvirt, domain: FakeDomain) -> None:
    workloads = watch(host)
    assert mains(workloads.discover(0)) == [(domain.pid, domain.pid)]
    pid = domain.pid
    domain.crash()
    host.tree.write(f"proc/{pid}/cmdline", "qemu-system-x86_64\0-uuid\0another\0")
    host.machine.thread(pid, "qemu-system-x86", host.group(domain, "emulator"), tid=pid)
    assert mains(workloads.discover(S)) == []


def test_a_restarted_qemu_of_the_same_number_has_another_start_time(
    host: FakeLibvirt, domain: FakeDomain
) -> None:
    workloads = watch(host)

    def started() -> list[int]:
        entries: tuple[RosterEntry, ...] = workloads.discover(next(clock)).roster
        return [
            terms.start_ticks
            for entry in entries
            for (pid, tid), terms in zip(entry.threads, entry.terms, strict=True)
            if terms.emulator and pid == tid
        ]

    clock = iter((0, S))
    (before,) = started()
    main, vcpus = host.machine.threads[domain.pid, domain.pid], domain.vcpus
    for thread in (main, *vcpus):
        host.machine.end(thread)
        group = host.group(domain, "emulator" if thread is main else f"vcpu{thread.vcpu}")
        host.machine.thread(domain.pid, thread.comm, group, tid=thread.tid, vcpu=thread.vcpu)
    assert started() == [start_of(host, domain.pid)] != [before]
