"""libvirt domains as workloads: who is taken, on which terms, and who never is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dasec.model import Core
from dasec.roster import RosterEntry, Terms
from dasec.workloads.libvirt.libvirt import SETTLING_NS, LibvirtWorkloads, Rule
from dasec.workloads.libvirt.metadata import NAMESPACE, Consent, render
from dasec.workloads.libvirt.status_directory import FILES_A_LOOK

from .fakelibvirt import FakeDomain, FakeLibvirt, Thread, domain_xml

P = 80_000_000
S = 1_000_000_000
OPTED_IN = f"<metadata><d:vm xmlns:d='{NAMESPACE}' share='2048'/></metadata>"


def watch(
    host: FakeLibvirt, *rules: Rule, by_metadata: bool = False, taken: Sequence[str] = ()
) -> LibvirtWorkloads:
    return LibvirtWorkloads(
        rules,
        by_metadata=by_metadata,
        taken=frozenset(taken),
        directory=str(host.directory),
        proc=host.tree.proc,
    )


def started(host: FakeLibvirt, name: str, number: int = 1, inside: str = "", vcpu: str = "") -> FakeDomain:
    domain = host.defineXML(domain_xml(name, number, inside=inside, vcpu=vcpu))
    domain.create()
    return domain


def numbers(threads: Sequence[Thread]) -> tuple[tuple[int, int], ...]:
    return tuple((one.pid, one.tid) for one in threads)


def masks(entry: RosterEntry) -> list[frozenset[Core] | None]:
    return [terms.cores for terms in entry.terms]


def test_a_named_domain_brings_its_vcpus_and_no_other_thread(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    started(host, "vm-b", 2)
    (entry,) = watch(host, Rule("camera", "vm-a", 512)).discover(0).roster
    assert (entry.name, entry.share) == ("camera", 512)
    assert entry.threads == numbers(domain.vcpus)
    assert entry.terms == tuple(Terms(one.start, None) for one in domain.vcpus)


def test_the_home_of_a_domain_is_the_group_that_has_its_share(host: FakeLibvirt) -> None:
    started(host, "vm-a")
    (entry,) = watch(host, Rule("a", "vm-a")).discover(0).roster
    homes = {1: "/machine/qemu-1-vm-a.libvirt-qemu", 2: "/machine.slice/machine-qemu\\x2d1\\x2dvm-a.scope"}
    assert entry.home == homes[host.machine.version]


def test_a_pattern_makes_a_workload_of_each_domain(host: FakeLibvirt) -> None:
    for number, name in enumerate(("web-1", "web-2", "db")):
        started(host, name, number)
    found = watch(host, Rule("web", "web-*")).discover(0)
    assert [entry.name for entry in found.roster] == ["web/web-1", "web/web-2"]


def test_a_domain_may_opt_in_by_itself_where_the_configuration_lets_it(host: FakeLibvirt) -> None:
    started(host, "vm-a", inside=OPTED_IN)
    assert watch(host, Rule("b", "vm-b")).discover(0).roster == ()
    (entry,) = watch(host, by_metadata=True).discover(0).roster
    assert (entry.name, entry.share) == ("vm-a", 2048)


def test_the_configuration_is_heard_before_the_domain(host: FakeLibvirt) -> None:
    started(host, "vm-a", inside=OPTED_IN)
    (entry,) = watch(host, Rule("camera", "vm-a", 512), by_metadata=True).discover(0).roster
    assert (entry.name, entry.share) == ("camera", 512)
    (entry,) = watch(host, Rule("camera", "vm-a"), by_metadata=True).discover(0).roster
    assert (entry.name, entry.share) == ("camera", 2048)


def test_opting_in_and_out_shows_in_the_next_period(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    workloads = watch(host, by_metadata=True)
    assert workloads.discover(0).roster == ()
    domain.setMetadata(2, render(Consent(64)), "dasec", NAMESPACE, 3)
    (entry,) = workloads.discover(P).roster
    assert entry.share == 64
    domain.setMetadata(2, None, None, NAMESPACE, 3)
    assert workloads.discover(2 * P).roster == ()


@pytest.mark.parametrize(
    ("element", "line"),
    [
        ("share='much'", "share 'much' is no integer from 2 to 262144: it is ignored"),
        ("share='1'", "share '1' is no integer from 2 to 262144: it is ignored"),
        ("class='gold'", "class 'gold' is ignored, no policy knows classes: give a share"),
        ("colour='red'", "unknown attribute 'colour' is ignored"),
    ],
)
def test_a_mistake_in_the_metadata_is_said_and_the_rest_holds(
    host: FakeLibvirt, element: str, line: str
) -> None:
    started(host, "vm-a", inside=f"<metadata><d:vm xmlns:d='{NAMESPACE}' {element}/></metadata>")
    found = watch(host, by_metadata=True).discover(0)
    assert [entry.share for entry in found.roster] == [None]
    assert found.notices == (f"libvirt domain vm-a: its <metadata>: {line}",)


def test_a_name_that_another_workload_has_is_not_taken_twice(host: FakeLibvirt) -> None:
    started(host, "vm-a", inside=OPTED_IN)
    found = watch(host, by_metadata=True, taken=["vm-a"]).discover(0)
    assert found.roster == ()
    assert found.notices == ("libvirt domain vm-a is left alone: there is another workload called vm-a",)


def test_the_masks_of_the_domain_are_the_terms_of_its_vcpus(host: FakeLibvirt) -> None:
    pins = "<cputune><vcpupin vcpu='1' cpuset='2,4-5'/></cputune>"
    started(host, "vm-a", inside=pins, vcpu=" placement='static' cpuset='0-3'")
    (entry,) = watch(host, Rule("a", "vm-a")).discover(0).roster
    assert masks(entry) == [frozenset(range(4)), frozenset({2, 4, 5})]


def test_nothing_is_known_without_settings(host: FakeLibvirt) -> None:
    started(host, "vm-a")
    (entry,) = watch(host, Rule("a", "vm-a")).discover(0).roster
    assert masks(entry) == [None, None]


def test_a_plugged_vcpu_is_there_in_the_next_period_and_an_unplugged_one_gone(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    workloads = watch(host, Rule("a", "vm-a"))
    workloads.discover(0)
    domain.plug(settled=True)
    (entry,) = workloads.discover(P).roster
    assert entry.threads == numbers(domain.vcpus)
    assert len(entry.threads) == 3
    domain.unplug()
    (entry,) = workloads.discover(2 * P).roster
    assert entry.threads == numbers(domain.vcpus)


def test_a_vcpu_waits_until_libvirt_has_put_it_into_its_group(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    workloads = watch(host, Rule("a", "vm-a"))
    workloads.discover(0)
    domain.plug(settled=False)
    (entry,) = workloads.discover(P).roster
    assert entry.threads == numbers(domain.vcpus[:2])
    domain.settle()
    (entry,) = workloads.discover(2 * P).roster
    assert entry.threads == numbers(domain.vcpus)


def test_one_that_stays_out_of_its_group_is_said_and_looked_at_once_a_second(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    workloads = watch(host, Rule("a", "vm-a"))
    workloads.discover(0)
    tid = domain.plug(settled=False).tid
    assert workloads.discover(P).notices == ()
    (notice,) = workloads.discover(S).notices
    assert f"vm-a: thread {tid} is not in the group of vCPU 2" in notice
    late = SETTLING_NS + S
    workloads.discover(late)
    domain.settle()
    assert len(workloads.discover(late + P).roster[0].threads) == 2
    assert len(workloads.discover(late + S).roster[0].threads) == 3


def test_a_domain_without_groups_of_its_own_is_taken_all_the_same(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    for thread in tuple(host.machine.threads.values()):
        host.machine.move(thread, "/user.slice")
    (entry,) = watch(host, Rule("a", "vm-a")).discover(0).roster
    assert entry.threads == numbers(domain.vcpus)
    assert entry.home is None


def test_a_status_that_outlived_its_qemu_names_nobody(host: FakeLibvirt) -> None:
    """Whoever has the ids by now is somebody else, even if he calls himself a vCPU."""
    domain = started(host, "vm-a")
    workloads = watch(host, Rule("a", "vm-a"))
    workloads.discover(0)
    pid, tids = domain.pid, [one.tid for one in domain.vcpus]
    domain.crash()
    host.tree.write(f"proc/{pid}/cmdline", "qemu-system-x86_64\0-uuid\0another\0")
    for tid in (pid, *tids):
        host.machine.thread(pid, "CPU 0/KVM", host.group(domain, "vcpu0"), tid=tid)
    found = workloads.discover(S)
    assert [entry.threads for entry in found.roster] == [()]
    assert found.notices == (f"libvirt domain vm-a: process {pid} does not run it (any more): left alone",)


def test_a_thread_that_is_no_vcpu_by_its_name_is_left_alone(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    first = domain.vcpus[0]
    host.machine.end(first)
    host.machine.thread(first.pid, "worker", host.group(domain, "vcpu0"), tid=first.tid)
    found = watch(host, Rule("a", "vm-a")).discover(0)
    assert found.roster[0].threads == numbers(domain.vcpus[1:])
    assert f"thread {first.tid} has no vCPU's name: 'worker'" in found.notices[0]


def test_a_domain_that_does_not_run_is_normal_and_said_once(host: FakeLibvirt) -> None:
    workloads = watch(host, Rule("a", "vm-a"))
    first = workloads.discover(0)
    assert (first.roster, first.trouble) == ((), None)
    assert first.notices == ("workload a: no libvirt domain vm-a runs at present",)
    assert workloads.discover(2 * S).notices == ()
    started(host, "vm-a")
    assert len(workloads.discover(3 * S).roster) == 1
    host.domains["vm-a"].destroy()
    assert workloads.discover(5 * S).roster == ()


def test_without_libvirt_one_line_says_so_and_the_rest_goes_on(host: FakeLibvirt) -> None:
    host.directory.rmdir()
    workloads = watch(host, Rule("a", "vm-a"))
    found = workloads.discover(0)
    assert found.roster == ()
    assert found.trouble is not None
    assert "is not there: install and start libvirtd or virtqemud; going on without" in found.trouble
    assert workloads.discover(P).trouble == found.trouble
    host.directory.mkdir()
    started(host, "vm-a")
    found = workloads.discover(2 * P)
    assert found.trouble is None
    assert len(found.roster) == 1


def test_a_file_that_is_no_status_is_left_alone(host: FakeLibvirt) -> None:
    (host.directory / "odd.xml").write_text("<domain/>")
    (host.directory / "torn.xml").write_text("<domstatus><dom")
    started(host, "vm-a")
    found = watch(host, Rule("a", "vm-a")).discover(0)
    assert len(found.roster) == 1
    assert "odd.xml is left alone: its element is <domain>, not a <domstatus>" in found.notices[0]
    assert "torn.xml is left alone: no XML: " in found.notices[1]


def test_while_nothing_changes_the_roster_is_the_same_object(host: FakeLibvirt) -> None:
    domain = started(host, "vm-a")
    workloads = watch(host, Rule("a", "vm-a"))
    first = workloads.discover(0).roster
    assert workloads.discover(P).roster is first
    domain.suspend()
    assert workloads.discover(2 * P).roster is first
    assert workloads.discover(2 * S).roster is first


def test_many_domains_at_once_are_read_over_several_periods(host: FakeLibvirt) -> None:
    workloads = watch(host, Rule("vm", "vm-*"))
    workloads.discover(0)
    host.machine.pool = 1000
    for number in range(2 * FILES_A_LOOK + 1):
        started(host, f"vm-{number}", number)
    found = [len(workloads.discover(turn * P).roster) for turn in (1, 2, 3)]
    assert found == [FILES_A_LOOK, 2 * FILES_A_LOOK, 2 * FILES_A_LOOK + 1]


def test_files_that_are_written_anew_before_each_look_keep_nobody_from_opting_out(host: FakeLibvirt) -> None:
    host.machine.pool = 1000
    domains = [started(host, f"vm-{n}", n, OPTED_IN) for n in range(3 * FILES_A_LOOK)]
    workloads = watch(host, by_metadata=True)
    assert len(workloads.discover(0).roster) == 3 * FILES_A_LOOK
    for domain in domains:
        domain.setMetadata(2, None, None, NAMESPACE, 1)
    left = []
    for turn in (1, 2, 3):
        left.append(len(workloads.discover(turn * P).roster))
        for domain in domains:
            domain.suspend()
    assert left == [2 * FILES_A_LOOK, FILES_A_LOOK, 0]
