"""Groups of ours that somebody else has put a thread into: it stays there, and the group goes when it can."""

from __future__ import annotations

import pytest

from dasec.hosts.host import HostSettings
from dasec.model import Outcome, VcpuId
from dasec.safety.journal.journal import Journal, boot_ticks
from dasec.safety.restore import put_all_back
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, roster

from .weighing import weigh

pytestmark = pytest.mark.host


@pytest.mark.parametrize("end", ["it ends", "it is let go", "all is put back"])
def test_whom_somebody_else_puts_into_our_group_stays_there_which_is_said_once(
    stage: MainlineStage, end: str
) -> None:
    stranger, vcpu = an_older_and_a_managed_one(stage)
    ours = stage.group_of(vcpu)
    stage.hierarchy.move(stranger.tid, ours)
    said = [line for _ in range(4) if stage.mainline.observe(roster([vcpu])) for line in told(stage, ours)]
    directory = stage.hierarchy.directory(ours)
    assert said == [f"{directory}: somebody else put thread {stranger.tid} there: it is left there"]
    if end == "it ends":
        stage.end(vcpu)
    elif end == "all is put back":
        assert len(stage.mainline.restore().left_alone) == 1
    for _ in range(3):
        stage.mainline.observe(roster([]))
    assert (stage.group_of(stranger), told(stage, ours)) == (ours, [])
    assert stage.journal.groups() == (directory,)
    stage.hierarchy.move(stranger.tid, "/")
    stage.mainline.observe(roster([]))
    assert (stage.own_groups(), stage.journal.groups()) == ([], ())


def test_a_group_in_which_somebody_still_is_is_not_made_anew_until_he_has_left(stage: MainlineStage) -> None:
    stranger, vcpu = an_older_and_a_managed_one(stage)
    ours = stage.group_of(vcpu)
    stage.hierarchy.move(stranger.tid, ours)
    stage.mainline.observe(roster([]))
    stage.mainline.observe(roster([vcpu]))
    assert weigh(stage.mainline, vcpu) is Outcome.REJECTED
    assert stage.journal.groups() == (stage.hierarchy.directory(ours),)
    stage.hierarchy.move(stranger.tid, "/")
    stage.mainline.observe(roster([]))
    stage.mainline.observe(roster([vcpu]))
    assert weigh(stage.mainline, vcpu) is Outcome.APPLIED
    stage.mainline.restore()
    assert (stage.own_groups(), stage.journal.groups()) == ([], ())


@pytest.mark.parametrize("own_groups", [True, False])
def test_a_group_that_an_earlier_daemon_could_not_remove_is_removed_when_that_can_be(
    stage: MainlineStage, own_groups: bool
) -> None:
    stranger, directory = left_with_a_stranger(stage)
    stage.mainline = stage.make(HostSettings(own_groups=own_groups))
    for _ in range(2):
        stage.mainline.observe(roster([]))
    assert stage.journal.groups() == (directory,)
    stage.hierarchy.move(stranger.tid, "/")
    stage.mainline.observe(roster([]))
    assert (stage.own_groups(), stage.journal.groups()) == ([], ())


def test_a_stop_says_which_group_of_an_earlier_daemon_is_still_there_and_removes_it_if_it_can(
    stage: MainlineStage,
) -> None:
    stranger, directory = left_with_a_stranger(stage)
    stage.mainline = stage.make(HostSettings(own_groups=True))
    said = f"{directory}: somebody else put thread {stranger.tid} there"
    for _ in range(2):
        assert stage.mainline.restore().left_alone == (said,)
    stage.hierarchy.move(stranger.tid, "/")
    assert stage.mainline.restore().left_alone == ()
    assert (stage.own_groups(), stage.journal.groups()) == ([], ())


def left_with_a_stranger(stage: MainlineStage) -> tuple[VcpuId, str]:
    """A daemon has ended, all is put back, but somebody is in its group: he, and its directory."""
    stranger, vcpu = an_older_and_a_managed_one(stage)
    directory = stage.hierarchy.directory(stage.group_of(vcpu))
    stage.hierarchy.move(stranger.tid, stage.group_of(vcpu))
    assert isinstance(stage.journal, Journal)
    assert len(put_all_back(stage.journal).left_alone) == 1
    assert stage.journal.outstanding() == ()
    return stranger, directory


def an_older_and_a_managed_one(stage: MainlineStage) -> tuple[VcpuId, VcpuId]:
    """The first is nobody's, and began before the second had a group of ours."""
    older, vcpu = stage.spawn(), stage.spawn()
    wait_for(lambda: boot_ticks() > older.start_ticks + 1)
    stage.mainline.observe(roster([vcpu]))
    assert weigh(stage.mainline, vcpu) is Outcome.APPLIED
    return older, vcpu


def told(stage: MainlineStage, group: str) -> list[str]:
    """What the host says of this group now."""
    return [line for line in stage.mainline.notices() if f"{group}:" in line]
