"""Others who manage the same domain, and those who look at it: virsh, numad, systemd's daemon-reload.

What virsh prints comes from the calls made here: dumpxml, vcpuinfo, vcpupin and schedinfo.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dasec.commands.vm import write
from dasec.hosts.host import HostSettings, OnForeignWrite
from dasec.linux import affinity, cgroupfs, procfs
from dasec.model import Change, Core, Knob, Knobs, KnobValue, Outcome, Workload
from dasec.roster import RosterEntry
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from dasec.workloads.libvirt.metadata import NAMESPACE, Consent, render
from guests.domains import DOMAIN, MAX_VCPUS, Numbers, boot_disk, pid_of, vcpus_of
from guests.libvirtd import Libvirtd
from tests.contract.stage import MainlineStage

if TYPE_CHECKING:
    from libvirt import virDomain

pytestmark = [pytest.mark.host, pytest.mark.libvirt, pytest.mark.libvirtd]

NAME = "dasec-neighbour"
PERIOD_NS = 80_000_000
OURS: dict[Knob, KnobValue] = {Knob.WEIGHT: 2000, Knob.RESCHEDULING_LATENCY: 5_000_000}
ZERO, ONE = frozenset({Core(0)}), frozenset({Core(1)})


class Site:
    """A domain that the daemon manages; all that the daemon does happens in `period` and `hold`."""

    def __init__(self, libvirtd: Libvirtd, domain: virDomain, folder: Path, answer: OnForeignWrite) -> None:
        self.domain, self._libvirtd = domain, libvirtd
        self.stage = MainlineStage(folder / answer, dry_run=False, own_groups=False, answer=answer)
        self._workloads = LibvirtWorkloads([Rule("vm", NAME)], directory=str(libvirtd.directory))
        self._now_ns = 0
        self.period()

    def period(self) -> Workload:
        snapshot = self.stage.mainline.observe(self.roster())
        self.knobs: list[Knobs] = [snapshot.knobs[vcpu.id] for vcpu in snapshot.workloads[0].vcpus]
        self.workload = snapshot.workloads[0]
        return self.workload

    def roster(self) -> Sequence[RosterEntry]:
        self._now_ns += PERIOD_NS
        return self._workloads.discover(self._now_ns).roster

    def hold(self) -> None:
        """All knobs of both vCPUs."""
        mine = [
            Change(vcpu.id, knob, value, value, "test")
            for vcpu in self.workload.vcpus
            for knob, value in (*OURS.items(), (Knob.AFFINITY, ONE))
        ]
        assert {one.outcome for one in self.stage.mainline.apply(mine)} == {Outcome.APPLIED}
        self.period()

    def notices(self) -> str:
        return "\n".join(self.stage.mainline.notices())

    def vcpus(self) -> list[Numbers]:
        return vcpus_of(self._libvirtd, NAME)

    def masks(self) -> list[set[int]]:
        return [set(affinity.get(one.tid)) for one in self.vcpus()]

    def group(self, below: str = "", controller: str = "cpu") -> Path:
        """One of libvirt's, where the hierarchy of that controller has it."""
        hierarchy = cgroupfs.find_hierarchy(controller=controller)
        pid = pid_of(self._libvirtd, NAME)
        domain = hierarchy.group_of(pid, pid).rpartition("/")[0]
        return Path(hierarchy.directory(f"{domain}/{below}".rstrip("/")))

    def what_virsh_shows(self) -> tuple[object, ...]:
        """dumpxml, dumpxml --inactive, vcpupin, schedinfo."""
        domain = self.domain
        return (domain.XMLDesc(), domain.XMLDesc(2), domain.vcpuPinInfo(), domain.schedulerParameters())


Build = Callable[[OnForeignWrite], Site]


@pytest.fixture(scope="module")
def running(libvirtd: Libvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[virDomain]:
    import libvirt

    connection = libvirt.open(libvirtd.uri)
    disk = boot_disk(tmp_path_factory.mktemp("disk"))
    defined = connection.defineXML(DOMAIN.format(name=NAME, maximum=MAX_VCPUS, disk=disk))
    defined.create()
    yield defined
    defined.destroy()
    defined.undefine()
    connection.close()


@pytest.fixture
def build(libvirtd: Libvirtd, running: virDomain, tmp_path: Path) -> Iterator[Build]:
    made: list[Site] = []

    def one(answer: OnForeignWrite) -> Site:
        made.append(Site(libvirtd, running, tmp_path, answer))
        return made[-1]

    yield one
    for site in made:
        site.stage.close()
    everywhere = os.sched_getaffinity(0)
    for tid in procfs.thread_ids(pid_of(libvirtd, NAME)):
        with contextlib.suppress(OSError):  # a vCPU whose cpuset does not allow it
            os.sched_setaffinity(tid, everywhere)
    running.pinVcpu(0, tuple(cpu in everywhere for cpu in range(max(everywhere) + 1)))
    running.setSchedulerParameters({"cpu_shares": 1024, "vcpu_quota": -1, "global_quota": -1})


def test_virsh_shows_what_it_showed_before_while_every_knob_is_ours(build: Build) -> None:
    site = build(OnForeignWrite.YIELD)
    before, cpus_before = site.what_virsh_shows(), site.domain.vcpus()
    site.hold()
    assert site.what_virsh_shows() == before
    # vcpuinfo: number, state, CPU time and CPU; and the mask, which is the one in force.
    states = [(number, state) for number, state, _, _ in site.domain.vcpus()[0]]
    assert states == [(number, state) for number, state, _, _ in cpus_before[0]]
    assert site.domain.vcpus()[1][0] == (False, True)
    site.stage.mainline.restore()
    assert site.what_virsh_shows() == before
    assert site.domain.vcpus()[1] == cpus_before[1]


def test_opting_in_adds_one_element_to_the_domain_and_changes_nothing_else(build: Build) -> None:
    site = build(OnForeignWrite.YIELD)
    before = site.what_virsh_shows()
    write(site.domain, render(Consent(2048)))
    added = site.domain.metadata(2, NAMESPACE)
    for xml, old in zip(site.what_virsh_shows()[:2], before[:2], strict=True):
        lines = str(xml).splitlines()
        assert len([line for line in lines if NAMESPACE in line]) == 1
        left = [line for line in lines if line not in str(old).splitlines()]
        assert [line.strip() for line in left] == [
            "<metadata>",
            f'<dasec:vm xmlns:dasec="{NAMESPACE}" share="2048"/>',
            "</metadata>",
        ]
    assert "2048" in added
    write(site.domain, None)
    after = [str(xml) for xml in site.what_virsh_shows()[:2]]
    assert [xml.replace("  <metadata/>\n", "") for xml in after] == list(before[:2]), "libvirt leaves that"


@pytest.mark.parametrize("answer", list(OnForeignWrite))
def test_vcpupin_is_followed_in_the_next_period_whatever_the_answer_to_strangers(
    build: Build, answer: OnForeignWrite
) -> None:
    site = build(answer)
    site.hold()
    site.domain.pinVcpu(0, (True, False))
    assert site.period().vcpus[0].allowed == ZERO
    assert site.masks() == [{0}, {1}]
    refused = Change(site.workload.vcpus[0].id, Knob.AFFINITY, ZERO, ONE, "test")
    assert site.stage.mainline.apply([refused])[0].outcome is not Outcome.APPLIED
    site.stage.mainline.restore()
    assert site.masks() == [{0}, {1}]


def test_schedinfo_is_followed_in_the_next_period(build: Build) -> None:
    site = build(OnForeignWrite.YIELD)
    site.hold()
    assert (site.workload.share, site.workload.quota_cores) == (1024, None)
    site.domain.setSchedulerParameters({"cpu_shares": 512})
    assert site.period().share == 512
    site.domain.setSchedulerParameters({"vcpu_period": 100_000, "vcpu_quota": 20_000})
    assert site.period().quota_cores == pytest.approx(0.4)
    site.domain.setSchedulerParameters({"global_period": 100_000, "global_quota": 30_000})
    assert site.period().quota_cores == pytest.approx(0.3)
    site.domain.setSchedulerParameters({"vcpu_quota": -1, "global_quota": -1})
    assert site.period().quota_cores is None
    assert [knobs.weight for knobs in site.knobs] == [OURS[Knob.WEIGHT]] * 2, (
        "vcpuN's weights are not its business"
    )


def test_vcpu_quotas_are_lent_schedinfo_is_followed_and_all_is_back_at_the_end(build: Build) -> None:
    site = build(OnForeignWrite.YIELD)
    site.domain.setSchedulerParameters({"vcpu_period": 100_000, "vcpu_quota": 40_000})
    host = site.stage.make(HostSettings(caps=True))
    limits = host.observe(site.roster()).limits["vm"]
    first, second = limits.own
    assert [own.given_ppm for own in limits.own.values()] == [400_000] * 2
    lent = [Change(second, Knob.CAP, 0, 250_000, "test"), Change(first, Knob.CAP, 0, 550_000, "test")]
    assert [one.outcome for one in host.apply(lent)] == [Outcome.APPLIED] * 2
    assert [site.group(f"vcpu{at}").joinpath("cpu.cfs_quota_us").read_text() for at in (0, 1)] == [
        "5500\n",
        "2500\n",
    ]
    assert site.domain.schedulerParameters()["vcpu_quota"] == 5_500  # of the first vCPU's group
    site.domain.setSchedulerParameters({"vcpu_period": 100_000, "vcpu_quota": 60_000})
    own = host.observe(site.roster()).limits["vm"].own
    assert [(one.present_ppm, one.given_ppm) for one in own.values()] == [(0, 600_000)] * 2
    host.apply([Change(second, Knob.CAP, 0, 300_000, "test")])
    host.close()
    assert site.domain.schedulerParameters()["vcpu_quota"] == 60_000
    assert [site.group(f"vcpu{at}").joinpath("cpu.cfs_quota_us").read_text() for at in (0, 1)] == [
        "60000\n"
    ] * 2


@pytest.mark.parametrize("answer", list(OnForeignWrite))
def test_what_a_daemon_reload_resets_is_seen_in_the_next_period_and_answered_as_configured(
    build: Build, answer: OnForeignWrite
) -> None:
    """systemd #17938: libvirt's cpu.shares and quota were the kernel's own again."""
    site = build(answer)
    site.domain.setSchedulerParameters({"cpu_shares": 512, "global_quota": 30_000})
    site.hold()
    (site.group() / "cpu.cfs_quota_us").write_text("-1")
    for below in ("", "vcpu0", "vcpu1"):
        (site.group(below) / "cpu.shares").write_text("1024")
    workload = site.period()
    assert (workload.share, workload.quota_cores) == (1024, None)
    assert site.notices().count("somebody else wrote 1024 over our 2000") == 2
    seen, kernel = {
        OnForeignWrite.YIELD: (None, "1024"),
        OnForeignWrite.REAPPLY: (2000, "2000"),
        OnForeignWrite.ALERT: (1024, "1024"),
    }[answer]
    assert [knobs.weight for knobs in site.knobs] == [seen] * 2
    assert [(site.group(f"vcpu{number}") / "cpu.shares").read_text().strip() for number in (0, 1)] == [
        kernel
    ] * 2


def test_a_mask_that_numad_sets_under_us_stays_its_own(build: Build) -> None:
    site = build(OnForeignWrite.YIELD)
    site.hold()
    (pid,) = {one.pid for one in site.vcpus()}
    for tid in procfs.thread_ids(pid):
        with contextlib.suppress(OSError):  # vCPU 1, whose cpuset is its <vcpupin>
            os.sched_setaffinity(tid, {0})
    site.period()
    assert site.masks()[0] == {0}
    assert site.knobs[0].affinity is None, "left to whoever wrote it"
    assert "somebody else wrote 0 over our 1:" in site.notices()
    site.stage.mainline.restore()
    assert site.masks()[0] == {0}


def test_a_cpuset_that_numad_narrows_under_us_takes_our_mask_with_it_and_it_does_not_come_back(
    build: Build,
) -> None:
    site = build(OnForeignWrite.YIELD)
    site.hold()
    before, cpuset = site.masks()[1], site.group("vcpu0", "cpuset") / "cpuset.cpus"
    everywhere = cpuset.read_text()
    cpuset.write_text("0")
    site.period()
    assert site.masks()[0] == {0}
    assert site.knobs[0].affinity == ZERO, "ours to write, within the cpuset"
    assert "somebody else" not in site.notices()
    site.stage.mainline.restore()
    cpuset.write_text(everywhere)
    assert site.masks() == [{0, 1}, before]
