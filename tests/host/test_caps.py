"""Caps on this kernel: set, shown, put back exactly, left to whoever writes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from dasec.hosts.host import CAPS_ON_V1, HostSettings
from dasec.hosts.probe.probe import try_kernel
from dasec.hosts.threads.host import ThreadsHost
from dasec.linux import bandwidth
from dasec.model import Change, Knob, Outcome, Snapshot, VcpuId
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, roster

from .group import TestGroup

pytestmark = pytest.mark.host


@dataclass
class Capped:
    """Two threads below a group with a limit: one alone in a group that has a period of its own, the other
    beside one that is not managed."""

    stage: MainlineStage
    group: TestGroup
    host: ThreadsHost
    alone: VcpuId
    other: VcpuId

    def see(self) -> Snapshot:
        return self.host.observe(roster([self.alone, self.other]))

    def cap(self, vcpu: VcpuId, ppm: int, before: int = 0) -> Outcome:
        (result,) = self.host.apply([Change(vcpu, Knob.CAP, before, ppm, "test")])
        return result.outcome

    def quota(self, below: str) -> str:
        return bandwidth.read_quota(self.file(below))

    def file(self, below: str) -> str:
        return bandwidth.quota_file(self.group.hierarchy, f"{self.group.group}/{below}")


@pytest.fixture
def capped(stage: MainlineStage, group: TestGroup) -> Iterator[Capped]:
    host = stage.make(HostSettings(own_groups=True, caps=True))
    alone, other, companion = stage.spawn(), stage.spawn(), stage.spawn()
    group.enter(alone.pid, "vcpu0")
    group.enter(other.pid, "rest")
    group.enter(companion.pid, "rest")
    group.limit("", 150)
    made = Capped(stage, group, host, alone, other)
    bandwidth.write_quota(made.file("vcpu0"), "max 50000")
    yield made
    host.close()
    for vcpu in (alone, other, companion):
        stage.end(vcpu)


def test_a_cap_is_set_shown_changed_and_taken_away_with_the_period_as_it_was(capped: Capped) -> None:
    limits = capped.see().limits["w0"]
    assert limits.around_ppm == 1_500_000
    assert {vcpu: own.present_ppm for vcpu, own in limits.own.items()} == {capped.alone: 0, capped.other: 0}
    assert capped.cap(capped.alone, 300_000) is Outcome.APPLIED
    assert capped.quota("vcpu0") == "3000 10000"
    assert capped.see().limits["w0"].own[capped.alone].present_ppm == 300_000
    assert capped.cap(capped.alone, 50_000, 300_000) is Outcome.APPLIED
    assert capped.quota("vcpu0") == "2500 50000"
    assert capped.cap(capped.alone, 0, 50_000) is Outcome.APPLIED
    assert capped.quota("vcpu0") == "max 50000"
    assert capped.stage.journal.outstanding() == ()


def test_a_thread_without_a_group_gets_one_for_its_cap_and_loses_it_at_the_end(capped: Capped) -> None:
    capped.see()
    assert capped.cap(capped.other, 300_000) is Outcome.APPLIED
    rest = f"{capped.group.group}/rest"
    assert capped.stage.group_of(capped.other) == f"{rest}/dasec-{capped.other.tid}"
    assert capped.quota(f"rest/dasec-{capped.other.tid}") == "3000 10000"
    capped.host.restore()
    assert capped.stage.group_of(capped.other) == rest
    assert not (capped.group.directory / f"rest/dasec-{capped.other.tid}").exists()


def test_a_quota_that_somebody_else_wrote_over_ours_stays(capped: Capped) -> None:
    capped.see()
    capped.cap(capped.alone, 300_000)
    bandwidth.write_quota(capped.file("vcpu0"), "7000 20000")
    wait_for(lambda: capped.alone not in capped.see().limits["w0"].own)
    assert capped.cap(capped.alone, 200_000) is Outcome.YIELDED
    capped.host.restore()
    assert capped.quota("vcpu0") == "7000 20000"


def test_a_limit_that_the_operator_changes_is_followed(capped: Capped) -> None:
    assert capped.see().limits["w0"].around_ppm == 1_500_000
    capped.group.limit("", 120)
    assert capped.see().limits["w0"].around_ppm == 1_200_000
    bandwidth.write_quota(bandwidth.quota_file(capped.group.hierarchy, capped.group.group), "max 100000")
    assert capped.see().limits == {}


def test_who_has_a_quota_of_its_own_is_not_capped(capped: Capped) -> None:
    bandwidth.write_quota(capped.file("vcpu0"), "20000 50000")
    assert list(capped.see().limits["w0"].own) == [capped.other]


def test_a_cap_that_v1_refuses_half_way_leaves_the_one_before(capped: Capped) -> None:
    """v2 takes a quota that is above the one around it, and does not give it."""
    capped.see()
    assert capped.cap(capped.alone, 50_000) is Outcome.APPLIED
    bandwidth.write_quota(bandwidth.quota_file(capped.group.hierarchy, capped.group.group), "50000 100000")
    refused = capped.group.hierarchy.version == 1
    assert capped.cap(capped.alone, 900_000, 50_000) is (Outcome.REJECTED if refused else Outcome.APPLIED)
    assert capped.quota("vcpu0") == ("2500 50000" if refused else "9000 10000")


def test_on_v1_an_operator_cannot_lower_a_limit_below_a_cap_until_knobs_are_put_back(capped: Capped) -> None:
    """As docs/bandwidth.md warns."""
    limit = bandwidth.quota_file(capped.group.hierarchy, capped.group.group)
    capped.see()
    assert capped.cap(capped.alone, 750_000) is Outcome.APPLIED
    if capped.group.hierarchy.version == 1:
        with pytest.raises(OSError, match="Invalid argument"):
            bandwidth.write_quota(limit, "50000 100000")
        assert bandwidth.read_quota(limit) == "150000 100000"
        capped.host.restore()  # as a reload with another policy does
    bandwidth.write_quota(limit, "50000 100000")
    assert capped.see().limits["w0"].around_ppm == 500_000


def of_v1(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if CAPS_ON_V1 in line]


def test_that_is_said_once_where_caps_are_on_and_by_the_probe_on_v1_only(
    stage: MainlineStage, capped: Capped
) -> None:
    so_often = 1 if capped.group.hierarchy.version == 1 else 0
    assert len(of_v1(capped.host.notices())) == so_often
    capped.see()
    assert of_v1(capped.host.notices()) == []
    assert len(of_v1([try_kernel(duel=False).cap_note])) == so_often
    for settings in (HostSettings(), HostSettings(burst=True), HostSettings(caps=True, dry_run=True)):
        other = stage.make(settings)
        assert of_v1(other.notices()) == []
        other.close()


@pytest.fixture
def both(stage: MainlineStage, group: TestGroup) -> Iterator[list[VcpuId]]:
    """Two threads that share a group with a limit, as those of a container do."""
    made = [stage.spawn(), stage.spawn()]
    for each in made:
        group.enter(each.pid, "container")
    group.limit("container", 150)
    yield made
    for each in made:
        stage.end(each)


def without_caps(host: ThreadsHost) -> list[str]:
    return [line for line in host.notices() if line.startswith("no caps")]


def test_a_limit_on_threads_that_share_a_group_is_said_once_with_the_remedy(
    stage: MainlineStage, both: list[VcpuId]
) -> None:
    host = stage.make(HostSettings(caps=True))
    host.observe(roster(both))
    assert without_caps(host) == [
        "no caps for w0: it has a CPU limit, but no thread has a cgroup of its own"
        " ([host] own_cgroups = true makes them)"
    ]
    host.observe(roster(both[:1]))
    host.observe(roster(both))
    assert without_caps(host) == []
    host.close()


@pytest.mark.parametrize("settings", [HostSettings(burst=True), HostSettings(caps=True, own_groups=True)])
def test_who_asked_for_no_caps_or_has_the_remedy_already_hears_nothing_of_it(
    settings: HostSettings, stage: MainlineStage, both: list[VcpuId]
) -> None:
    """A thread that was niced gets no group of its own either way."""
    for each in both:
        os.setpriority(os.PRIO_PROCESS, each.tid, 3)
    host = stage.make(settings)
    host.observe(roster(both))
    assert without_caps(host) == []
    host.close()
