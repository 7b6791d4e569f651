"""A knob of a workload, from a policy's decision to the journal and back, on every host that can have one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dasec.knobs.knob import GroupId
from dasec.knobs.quotas import QUOTA
from dasec.linux import bandwidth
from dasec.model import Decision, Knob, Outcome, Period, Reason, Result, VcpuId, WorkloadKnobs
from dasec.period import between
from dasec.plan import Plan, plan
from dasec.safety.restore import recover

from .stage import roster
from .test_quotas import GIVEN, LESS, MORE, FakeQuotas, GroupQuotas, QuotaStage, quotas


class KeepingStage(QuotaStage, Protocol):
    """One whose host can be asked what it keeps."""

    def kept(self) -> dict[VcpuId, int]:
        """The quota that each vCPU's group is to have again, of those that we changed."""

    def die(self) -> None:
        """The daemon ends without putting anything back, and whoever comes then does."""


class FakeKeeping(FakeQuotas):
    """The fake host, whose keeper is itself."""

    def kept(self) -> dict[VcpuId, int]:
        priors = {vcpu: self._fake.prior_of(vcpu, Knob.CAP) for vcpu in self.vcpus}
        return {vcpu: prior for vcpu, prior in priors.items() if isinstance(prior, int)}

    def die(self) -> None:
        assert self._fake.restore().failed == ()


class GroupKeeping(GroupQuotas):
    """This kernel and a journal."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._directory = directory

    def kept(self) -> dict[VcpuId, int]:
        found: dict[VcpuId, int] = {}
        for one in self._stage.journal.outstanding():
            assert isinstance(one.ref.owner, GroupId)
            assert one.ref.kind is QUOTA
            assert one.ref.sake is not None
            found[one.ref.sake] = round(bandwidth.cores_of(str(one.prior)) * 1_000_000)
        return found

    def die(self) -> None:
        self._stage.journal.close()
        assert recover(self._directory)[0].failed == ()


@pytest.fixture(params=["fake", pytest.param("mainline", marks=pytest.mark.host)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeepingStage]:
    made: KeepingStage = FakeKeeping() if request.param == "fake" else GroupKeeping(tmp_path)
    for vcpu in made.vcpus:
        made.give(vcpu, GIVEN)
    yield made
    made.close()


def seen(stage: KeepingStage) -> Period:
    before = stage.host.observe(roster(stage.vcpus))
    if isinstance(stage, FakeKeeping):
        stage._fake.advance(80_000_000)
    return between(0, before, stage.host.observe(roster(stage.vcpus)))


def wanted(stage: KeepingStage, *caps: int) -> Decision:
    """A loan of the second vCPU to the first, or its end."""
    of = dict(zip(stage.vcpus, caps, strict=True))
    return Decision(
        workloads={"w0": WorkloadKnobs(of)}, reasons=tuple(Reason(vcpu, Knob.CAP, "test.lend") for vcpu in of)
    )


def done(stage: KeepingStage, planned: Plan) -> list[Outcome]:
    assert planned.violations == ()
    results: tuple[Result, ...] = stage.host.apply(planned.changes)
    assert [one.change.rule for one in results] == ["test.lend"] * len(results)
    return [one.outcome for one in results]


def test_a_decision_becomes_changes_and_these_are_what_the_kernel_has(stage: KeepingStage) -> None:
    planned = plan(seen(stage), wanted(stage, MORE, LESS))
    assert [(one.vcpu, one.prior, one.new) for one in planned.changes] == [
        (stage.vcpus[1], 0, LESS),
        (stage.vcpus[0], 0, MORE),
    ]
    assert done(stage, planned) == [Outcome.APPLIED] * 2
    assert quotas(stage) == [MORE, LESS]


def test_what_was_there_before_is_kept_by_its_group_until_it_is_back(stage: KeepingStage) -> None:
    done(stage, plan(seen(stage), wanted(stage, MORE, LESS)))
    assert stage.kept() == dict.fromkeys(stage.vcpus, GIVEN)
    stage.host.restore()
    assert (stage.kept(), quotas(stage)) == ({}, [GIVEN] * 2)


def test_what_is_so_already_is_not_planned_again(stage: KeepingStage) -> None:
    done(stage, plan(seen(stage), wanted(stage, MORE, LESS)))
    assert plan(seen(stage), wanted(stage, MORE, LESS)) == Plan()


def test_more_than_was_given_is_refused_by_the_plan(stage: KeepingStage) -> None:
    planned = plan(seen(stage), wanted(stage, MORE, GIVEN))
    assert (planned.changes, len(planned.violations)) == ((), 1)


def test_the_end_of_a_loan_gives_back_what_was_kept(stage: KeepingStage) -> None:
    done(stage, plan(seen(stage), wanted(stage, MORE, LESS)))
    done(stage, plan(seen(stage), wanted(stage, 0, 0)))
    assert (stage.kept(), quotas(stage)) == ({}, [GIVEN] * 2)


def test_a_daemon_that_dies_leaves_nothing_of_it(stage: KeepingStage) -> None:
    done(stage, plan(seen(stage), wanted(stage, MORE, LESS)))
    stage.die()
    assert quotas(stage) == [GIVEN] * 2
