"""Quotas that vCPUs were given, on this kernel: lent, shown, put back exactly, followed when they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dasec.hosts.host import HostSettings
from dasec.hosts.threads.host import ThreadsHost
from dasec.linux import bandwidth, cgroupfs
from dasec.model import Change, Knob, Limits, Outcome, OwnLimit, VcpuId
from dasec.safety.restore import put_all_back
from tests.contract.stage import MainlineStage, roster

from .group import TestGroup

pytestmark = pytest.mark.host

GIVEN = "40000 100000"


@dataclass
class Divided:
    """Two threads, each alone in a group with a quota of its own, as libvirt's vcpu_quota makes them."""

    stage: MainlineStage
    group: TestGroup
    host: ThreadsHost
    serves: VcpuId
    computes: VcpuId

    def see(self) -> Limits:
        return self.host.observe(roster([self.serves, self.computes])).limits["w0"]

    def lend(self, vcpu: VcpuId, ppm: int, before: int = 0) -> Outcome:
        (result,) = self.host.apply([Change(vcpu, Knob.CAP, before, ppm, "test")])
        return result.outcome

    def quotas(self) -> tuple[str, str]:
        return bandwidth.read_quota(self.file("vcpu0")), bandwidth.read_quota(self.file("vcpu1"))

    def give(self, below: str, quota: str) -> None:
        bandwidth.write_quota(self.file(below), quota)

    def file(self, below: str) -> str:
        return bandwidth.quota_file(self.group.hierarchy, f"{self.group.group}/{below}")


@pytest.fixture
def divided(stage: MainlineStage, group: TestGroup) -> Iterator[Divided]:
    host = stage.make(HostSettings(caps=True))
    serves, computes = stage.spawn(), stage.spawn()
    made = Divided(stage, group, host, serves, computes)
    for at, vcpu in enumerate((serves, computes)):
        group.enter(vcpu.pid, f"vcpu{at}")
        made.give(f"vcpu{at}", GIVEN)
    yield made
    host.close()
    for vcpu in (serves, computes):
        stage.end(vcpu)


def test_a_loan_is_in_force_shown_and_returned_with_quota_and_period_as_they_were(divided: Divided) -> None:
    divided.see()
    assert divided.lend(divided.computes, 250_000) is Outcome.APPLIED
    assert divided.lend(divided.serves, 550_000) is Outcome.APPLIED
    assert divided.quotas() == ("5500 10000", "2500 10000")
    own = divided.see().own
    assert (own[divided.serves][::2], own[divided.computes][::2]) == ((550_000, 400_000), (250_000, 400_000))
    assert divided.lend(divided.serves, 0, 550_000) is Outcome.APPLIED
    assert divided.quotas() == (GIVEN, "2500 10000")
    divided.host.restore()
    assert divided.quotas() == (GIVEN, GIVEN)
    assert divided.stage.journal.outstanding() == ()


def test_what_the_journal_of_a_killed_daemon_holds_puts_the_quotas_back(divided: Divided) -> None:
    divided.see()
    divided.lend(divided.computes, 250_000)
    divided.lend(divided.computes, 220_000, 250_000)
    divided.lend(divided.serves, 550_000)
    done = put_all_back(divided.stage.journal)
    assert (done.put_back, done.failed) == (2, ())
    assert divided.quotas() == (GIVEN, GIVEN)


def test_a_quota_that_the_operator_changes_during_a_loan_is_what_it_was_given(divided: Divided) -> None:
    divided.see()
    divided.lend(divided.computes, 250_000)
    divided.lend(divided.serves, 550_000)
    divided.give("vcpu0", "30000 50000")
    assert divided.see().own[divided.serves][::2] == (0, 600_000)
    assert divided.lend(divided.serves, 750_000) is Outcome.APPLIED
    divided.host.restore()
    assert divided.quotas() == ("30000 50000", GIVEN)


def somebody_writes_only(quota_us: int, file: str) -> None:
    """As `virsh schedinfo --set vcpu_quota=…`, on either version: the period stays."""
    cgroupfs.write(file, f"{quota_us if quota_us > 0 or file.endswith('quota_us') else 'max'}\n")


@pytest.mark.parametrize(("quota_us", "left"), [(50_000, "50000 100000"), (-1, "max 100000")])
def test_who_writes_only_a_quota_over_a_loan_gets_it_in_the_period_of_before(
    divided: Divided, quota_us: int, left: str
) -> None:
    divided.see()
    divided.lend(divided.computes, 250_000)
    somebody_writes_only(quota_us, divided.file("vcpu1"))
    divided.host.observe(roster([divided.serves, divided.computes]))
    assert divided.quotas() == (GIVEN, left)
    divided.host.restore()
    assert divided.quotas() == (GIVEN, left)


def test_so_does_who_wrote_it_when_nobody_looked_any_more(divided: Divided) -> None:
    divided.see()
    divided.lend(divided.computes, 250_000)
    somebody_writes_only(50_000, divided.file("vcpu1"))
    assert len(put_all_back(divided.stage.journal).left_alone) == 1
    assert divided.quotas() == (GIVEN, "50000 100000")


def test_what_limits_in_the_period_of_a_loan_is_taken_as_it_was_written(divided: Divided) -> None:
    divided.see()
    divided.lend(divided.computes, 250_000)
    divided.give("vcpu1", "5000 10000")
    assert divided.see().own[divided.computes][::2] == (0, 500_000)
    assert divided.quotas() == (GIVEN, "5000 10000")


def test_a_quota_that_the_operator_changes_while_nothing_is_lent_is_followed(divided: Divided) -> None:
    divided.see()
    divided.give("vcpu1", "60000 100000")
    assert divided.see().given_ppm == 1_000_000
    divided.give("vcpu0", "max 100000")
    divided.give("vcpu1", "max 100000")
    assert divided.host.observe(roster([divided.serves, divided.computes])).limits == {}


def test_a_quota_that_changed_since_the_last_look_is_not_overwritten(divided: Divided) -> None:
    divided.see()
    divided.give("vcpu1", "20000 100000")
    assert divided.lend(divided.computes, 250_000) is Outcome.REJECTED
    assert divided.quotas() == (GIVEN, "20000 100000")


def test_where_one_has_no_quota_any_more_nothing_is_divided_and_a_loan_can_go_back(divided: Divided) -> None:
    divided.see()
    divided.lend(divided.computes, 250_000)
    divided.give("vcpu0", "max 100000")
    limits = divided.see()
    assert not limits.is_divided
    assert limits.own[divided.computes] == OwnLimit(
        250_000, limits.own[divided.computes].throttled_ns, 400_000
    )
    assert divided.lend(divided.computes, 0, 250_000) is Outcome.APPLIED
    assert divided.quotas()[1] == GIVEN
