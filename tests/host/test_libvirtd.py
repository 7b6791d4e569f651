"""A real libvirtd with a real domain (TCG, no operating system): found, weighted, followed, put back."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dasec.errors import ExitStatus
from dasec.linux import cgroupfs, procfs
from dasec.model import Change, Knob, Outcome
from dasec.roster import RosterEntry
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from guests.libvirtd import Libvirtd
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage

from ..unit.service.command import dasec

if TYPE_CHECKING:
    from libvirt import virConnect, virDomain

pytestmark = [pytest.mark.host, pytest.mark.libvirt, pytest.mark.libvirtd]

DOMAIN = """
<domain type='qemu'>
  <name>dasec-test</name>
  <memory unit='MiB'>64</memory>
  <vcpu placement='static' cpuset='0-1' current='2'>3</vcpu>
  <iothreads>1</iothreads>
  <cputune><shares>2048</shares><vcpupin vcpu='1' cpuset='1'/></cputune>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices>
</domain>
"""
PERIOD_NS = 80_000_000


class Clock:
    """Periods of discovery, without the waiting between them."""

    def __init__(self, workloads: LibvirtWorkloads) -> None:
        self._workloads = workloads
        self._now_ns = 0

    def period(self) -> tuple[RosterEntry, ...]:
        self._now_ns += PERIOD_NS
        return self._workloads.discover(self._now_ns).roster


@pytest.fixture
def connection(libvirtd: Libvirtd) -> Iterator[virConnect]:
    import libvirt

    opened = libvirt.open(libvirtd.uri)
    yield opened
    opened.close()


@pytest.fixture
def domain(libvirtd: Libvirtd, connection: virConnect) -> Iterator[virDomain]:
    yield connection.createXML(DOMAIN)
    libvirtd.destroy()


def clock(libvirtd: Libvirtd) -> Clock:
    return Clock(LibvirtWorkloads([Rule("vm", "dasec-test")], directory=str(libvirtd.directory)))


def vcpus_by_name(pid: int) -> list[tuple[int, int]]:
    named = (tid for tid in procfs.thread_ids(pid) if procfs.read_stat(pid, tid).comm.startswith("CPU "))
    return [(pid, tid) for tid in named]


def vcpus_by_group(home: str) -> list[int]:
    hierarchy = cgroupfs.find_hierarchy()
    return [
        tid
        for group in hierarchy.below(home).groups
        if re.search(r"/vcpu\d+$", group)
        for tid in hierarchy.members(group)
    ]


def test_the_vcpus_are_those_that_their_names_and_groups_say(libvirtd: Libvirtd, domain: virDomain) -> None:
    (entry,) = clock(libvirtd).period()
    assert len(entry.threads) == 2
    assert sorted(entry.threads) == vcpus_by_name(entry.threads[0][0])
    assert entry.home is not None
    assert [tid for _, tid in entry.threads] == vcpus_by_group(entry.home)
    assert [terms.cores for terms in entry.terms] == [frozenset({0, 1}), frozenset({1})]


def test_weights_go_into_libvirts_groups_and_come_out_again(
    libvirtd: Libvirtd, domain: virDomain, tmp_path: Path
) -> None:
    stage = MainlineStage(tmp_path, dry_run=False)
    (entry,) = clock(libvirtd).period()
    snapshot = stage.mainline.observe([entry])
    (workload,) = snapshot.workloads
    assert (workload.share, workload.nested) == (2048, True)
    first = workload.vcpus[0].id
    (result,) = stage.mainline.apply([Change(first, Knob.WEIGHT, 1024, 1126, "test")])
    assert result.outcome is Outcome.APPLIED
    assert stage.held_by_kernel(first).weight == 1126
    assert stage.group_of(first) == f"{entry.home}/vcpu0"
    stage.close()
    assert stage.held_by_kernel(first).weight == 1024


@pytest.mark.parametrize(("asked", "written"), [("never", False), ("follow", True)])
def test_groups_of_qemus_own_threads_have_weights_of_ours_only_if_asked_for_and_are_put_back_exactly(
    libvirtd: Libvirtd, domain: virDomain, tmp_path: Path, asked: str, written: bool
) -> None:
    rules, directory = [Rule("vm", "dasec-test")], str(libvirtd.directory)
    found = LibvirtWorkloads(rules, with_emulator=asked == "follow", directory=directory)
    stage = MainlineStage(tmp_path, dry_run=False)
    (entry,) = found.discover(PERIOD_NS).roster
    before = weights_below(entry)
    snapshot = stage.mainline.observe([entry])
    (workload,) = snapshot.workloads
    assert workload.share == 2048
    heavier = [Change(vcpu.id, Knob.WEIGHT, 1024, 2048, "test") for vcpu in workload.vcpus]
    assert {one.outcome for one in stage.mainline.apply(heavier)} == {Outcome.APPLIED}
    ours = {name for name, weight in weights_below(entry).items() if weight != before[name]}
    assert ours == {"vcpu0", "vcpu1"} | ({"emulator", "iothread1"} if written else set())
    stage.close()
    assert weights_below(entry) == before
    assert {"emulator", "iothread1", "vcpu0", "vcpu1"} <= before.keys()


def weights_below(entry: RosterEntry) -> dict[str, int]:
    """What the kernel has for each of the domain's groups."""
    hierarchy = cgroupfs.find_hierarchy()
    assert entry.home is not None
    groups = [group for group in hierarchy.below(entry.home).groups if group != entry.home]
    return {group.rpartition("/")[2]: cgroupfs.read_weight(hierarchy.weight_file(group)) for group in groups}


def test_a_plugged_vcpu_is_managed_within_two_periods(libvirtd: Libvirtd, domain: virDomain) -> None:
    periods = clock(libvirtd)
    periods.period()
    domain.setVcpus(3)
    periods.period()
    (entry,) = periods.period()
    assert len(entry.threads) == 3
    assert sorted(entry.threads) == vcpus_by_name(entry.threads[0][0])


def test_a_domain_that_opts_in_as_it_runs_is_there_in_the_next_period(
    libvirtd: Libvirtd, domain: virDomain
) -> None:
    workloads = LibvirtWorkloads([], by_metadata=True, directory=str(libvirtd.directory))
    periods = Clock(workloads)
    assert periods.period() == ()
    asked = ("dasec-test", "--connect", libvirtd.uri)
    answer = dasec("vm", "enable", *asked, "--share", "512")
    assert answer.out == "dasec-test: opted in with share 512, as it runs\n", answer.errors
    (entry,) = periods.period()
    assert (entry.name, entry.share, len(entry.threads)) == ("dasec-test", 512, 2)
    assert dasec("vm", "disable", *asked).status == ExitStatus.DONE
    assert periods.period() == ()


def test_pinning_and_pausing_show_in_the_next_period(libvirtd: Libvirtd, domain: virDomain) -> None:
    periods = clock(libvirtd)
    (before,) = periods.period()
    domain.suspend()
    domain.pinVcpu(0, (True, False))
    (after,) = periods.period()
    assert after.threads == before.threads
    assert after.terms[0].cores == frozenset({0})


def recorded(libvirtd: Libvirtd, folder: Path, configuration: str) -> str:
    """What the daemon, configured so, records of three periods in which it writes nothing."""
    config, record = folder / "dasec.toml", folder / "record.jsonl"
    config.write_text(configuration)
    command = ("run", "--config", config, "--dry-run", "--periods", "3", "--record", record)
    subprocess.run(libvirtd.inside(sys.executable, "-m", "dasec", *command), check=True, cwd="/")
    return record.read_text()


def test_the_daemon_finds_the_domain_by_a_pattern(
    libvirtd: Libvirtd, domain: virDomain, tmp_path: Path
) -> None:
    text = recorded(libvirtd, tmp_path, '[[workload]]\nname = "vms"\nlibvirt = "dasec-*"\n')
    assert "vms/dasec-test" in text
    assert "CPU 0/TCG" in text
    assert "CPU 1/TCG" in text
    assert "qemu-system-x86" not in text


def test_the_daemon_takes_qemus_main_thread_with_its_domain_where_its_configuration_says_so(
    libvirtd: Libvirtd, domain: virDomain, tmp_path: Path
) -> None:
    workload = '[[workload]]\nname = "vm"\nlibvirt = "dasec-test"\n'
    text = recorded(libvirtd, tmp_path, f'[libvirt]\nemulator = "follow"\n{workload}')
    assert '"qemu-system-x86"' in text
    assert '"IO iothread1"' in text
    assert '"emulators":[2,3]' in text


def test_an_io_thread_that_is_plugged_is_managed_within_two_periods_and_gone_when_it_is_unplugged(
    libvirtd: Libvirtd, domain: virDomain
) -> None:
    import libvirt

    rules, directory = [Rule("vm", "dasec-test")], str(libvirtd.directory)
    periods = Clock(LibvirtWorkloads(rules, with_emulator=True, directory=directory))

    def names() -> list[str]:
        periods.period()
        (entry,) = periods.period()
        own = [tid for (_, tid), terms in zip(entry.threads, entry.terms, strict=True) if terms.emulator]
        return [procfs.read_stat(entry.threads[0][0], tid).comm for tid in own]

    assert names() == ["qemu-system-x86", "IO iothread1"]
    domain.addIOThread(7, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    assert names() == ["qemu-system-x86", "IO iothread1", "IO iothread7"]
    domain.delIOThread(1, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    assert names() == ["qemu-system-x86", "IO iothread7"]


@pytest.mark.alone
def test_a_libvirtd_that_does_not_answer_costs_nothing_and_one_that_crashed_leaves_all_as_it_is(
    libvirtd: Libvirtd, domain: virDomain
) -> None:
    periods = clock(libvirtd)
    before = periods.period()
    libvirtd.stop_answering()
    took_s = []
    for _ in range(30):
        started_s = time.monotonic()
        assert periods.period() is before
        took_s.append(time.monotonic() - started_s)
    assert statistics.median(took_s) < PERIOD_NS / 1e9 / 10
    libvirtd.kill()
    assert periods.period() is before
    libvirtd.start()
    # Where cpu is on cgroup v1 beside v2, libvirt 9.0 cannot take its domains up again, and ends them.
    wait_for(lambda: len(periods.period()) == libvirtd.running())


def test_a_domain_that_stops_is_gone_in_the_next_period(libvirtd: Libvirtd, connection: virConnect) -> None:
    made = connection.createXML(DOMAIN)
    periods = clock(libvirtd)
    assert len(periods.period()) == 1
    made.destroy()
    assert periods.period() == ()
    made = connection.createXML(DOMAIN)
    wait_for(lambda: bool(made.isActive()))
    assert len(periods.period()) == 1
    made.destroy()


@pytest.mark.parametrize("left", ["killed", "stopped"])
def test_nothing_is_left_for_the_next_test_whatever_became_of_libvirtd(
    libvirtd: Libvirtd, connection: virConnect, left: str
) -> None:
    import libvirt

    connection.createXML(DOMAIN)
    connection.defineXML(DOMAIN.replace("dasec-test", "dasec-test-other"))
    {"killed": libvirtd.kill, "stopped": libvirtd.stop_answering}[left]()
    libvirtd.clear()
    again = libvirt.open(libvirtd.uri)
    assert again.listAllDomains() == []
    again.close()
