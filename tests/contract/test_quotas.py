"""What every Host does with vCPUs that have quotas of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dasec.hosts.fake.fake import FakeHost
from dasec.hosts.host import Host, HostSettings
from dasec.linux import bandwidth
from dasec.model import Change, Knob, Limits, Outcome, VcpuId
from tests.host.group import TestGroup

from .stage import MainlineStage, roster

GIVEN, LESS, MORE, THEIRS = 400_000, 250_000, 550_000, 600_000


class QuotaStage(Protocol):
    """A host with two threads, each with a quota of its own."""

    host: Host
    vcpus: tuple[VcpuId, VcpuId]

    def give(self, vcpu: VcpuId, ppm: int) -> None:
        """The operator writes a quota."""

    def in_force(self, vcpu: VcpuId) -> int:
        """The quota that the kernel has, whoever wrote it."""

    def close(self) -> None:
        """End everything."""


class FakeQuotas:
    """The fake host."""

    def __init__(self) -> None:
        self._fake = FakeHost()
        self.host: Host = self._fake
        self.vcpus = self._fake.spawn(100, 100), self._fake.spawn(101, 101)

    def give(self, vcpu: VcpuId, ppm: int) -> None:
        self._fake.meddle(vcpu, Knob.CAP, ppm)

    def in_force(self, vcpu: VcpuId) -> int:
        return self._fake.quota_of(vcpu)

    def close(self) -> None:
        self._fake.close()


class GroupQuotas:
    """This kernel: a process in a group each, as libvirt has vCPUs."""

    def __init__(self, directory: Path) -> None:
        self._stage, self._group = MainlineStage(directory, dry_run=False), TestGroup("quotas")
        self.host: Host = self._stage.make(HostSettings(caps=True))
        self.vcpus = self._stage.spawn(), self._stage.spawn()
        for vcpu in self.vcpus:
            self._group.enter(vcpu.pid, str(vcpu.pid))

    def give(self, vcpu: VcpuId, ppm: int) -> None:
        bandwidth.write_quota(self._file(vcpu), f"{ppm // 10} 100000")

    def in_force(self, vcpu: VcpuId) -> int:
        return round(bandwidth.cores_of(bandwidth.read_quota(self._file(vcpu))) * 1_000_000)

    def close(self) -> None:
        self.host.close()
        self._stage.close()
        self._group.close()

    def _file(self, vcpu: VcpuId) -> str:
        return bandwidth.quota_file(self._group.hierarchy, f"{self._group.group}/{vcpu.pid}")


@pytest.fixture(params=["fake", pytest.param("mainline", marks=pytest.mark.host)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QuotaStage]:
    made: QuotaStage = FakeQuotas() if request.param == "fake" else GroupQuotas(tmp_path)
    for vcpu in made.vcpus:
        made.give(vcpu, GIVEN)
    yield made
    made.close()


def seen(stage: QuotaStage) -> Limits:
    return stage.host.observe(roster(stage.vcpus)).limits["w0"]


def lent(stage: QuotaStage) -> Limits:
    """The second lends to the first."""
    first, second = stage.vcpus
    seen(stage)
    changes = [Change(second, Knob.CAP, 0, LESS, "test"), Change(first, Knob.CAP, 0, MORE, "test")]
    assert [one.outcome for one in stage.host.apply(changes)] == [Outcome.APPLIED] * 2
    return seen(stage)


def quotas(stage: QuotaStage) -> list[int]:
    return [stage.in_force(vcpu) for vcpu in stage.vcpus]


def shown(limits: Limits) -> list[tuple[int, int]]:
    """What of ours is in force, and what was given."""
    return [(own.present_ppm, own.given_ppm) for own in limits.own.values()]


def test_quotas_that_were_given_are_seen(stage: QuotaStage) -> None:
    limits = seen(stage)
    assert limits.is_divided
    assert (limits.tightest_ppm, shown(limits)) == (2 * GIVEN, [(0, GIVEN)] * 2)


def test_a_loan_is_what_the_kernel_has_and_is_shown_beside_what_was_given(stage: QuotaStage) -> None:
    limits = lent(stage)
    assert quotas(stage) == [MORE, LESS]
    assert shown(limits) == [(MORE, GIVEN), (LESS, GIVEN)]


def test_a_loan_of_none_gives_back_what_was_given(stage: QuotaStage) -> None:
    lent(stage)
    (result,) = stage.host.apply([Change(stage.vcpus[0], Knob.CAP, MORE, 0, "test")])
    assert result.outcome is Outcome.APPLIED
    assert quotas(stage) == [GIVEN, LESS]
    assert shown(seen(stage)) == [(0, GIVEN), (LESS, GIVEN)]


def test_restore_puts_every_quota_back_and_does_it_once(stage: QuotaStage) -> None:
    lent(stage)
    assert stage.host.restore().put_back == 2
    assert quotas(stage) == [GIVEN] * 2
    assert stage.host.restore().put_back == 0


def test_a_quota_written_over_a_loan_is_what_was_given_from_the_next_look_on(stage: QuotaStage) -> None:
    lent(stage)
    stage.give(stage.vcpus[0], THEIRS)
    assert shown(seen(stage)) == [(0, THEIRS), (LESS, GIVEN)]
    (result,) = stage.host.apply([Change(stage.vcpus[0], Knob.CAP, 0, MORE, "test")])
    assert result.outcome is Outcome.APPLIED
    stage.host.restore()
    assert quotas(stage) == [THEIRS, GIVEN]


def test_a_quota_written_just_before_a_restore_is_left_alone(stage: QuotaStage) -> None:
    lent(stage)
    stage.give(stage.vcpus[0], THEIRS)
    assert len(stage.host.restore().left_alone) == 1
    assert quotas(stage) == [THEIRS, GIVEN]


def test_a_quota_changed_while_nothing_is_lent_is_followed(stage: QuotaStage) -> None:
    seen(stage)
    stage.give(stage.vcpus[1], THEIRS)
    assert shown(seen(stage)) == [(0, GIVEN), (0, THEIRS)]


def test_a_thread_that_leaves_the_roster_has_its_own_quota_again(stage: QuotaStage) -> None:
    lent(stage)
    stage.host.observe(roster())
    assert quotas(stage) == [GIVEN] * 2
