"""Bursts on files that look like a v2 group's: set, followed, put back, left to whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dasec.hosts.threads.bursts import Bursts
from dasec.hosts.threads.limits import Limited, LimitLooks
from dasec.hosts.threads.notices import Notices
from dasec.knobs.knob import GroupId
from dasec.linux import bandwidth
from dasec.linux.cgroupfs import Hierarchy
from dasec.safety.journal.journal import Journal
from dasec.safety.kernel import LinuxKernel
from dasec.safety.restore import put_all_back

JIFFY_US = bandwidth.jiffy_us()


@dataclass
class Group:
    """A directory with the two files, and what looks after its burst."""

    place: Path
    journal: Journal
    notices: Notices = field(default_factory=Notices)

    def __post_init__(self) -> None:
        self.make()
        self.bursts = Bursts(self.journal, LinuxKernel(), self.notices)

    def make(self) -> None:
        self.place.mkdir()
        (self.place / "cpu.max.burst").write_text("0")
        self.limit("200000 100000")

    def end(self) -> None:
        """Nobody finds it there any more; kept elsewhere, so that the next one is another."""
        self.place.rename(self.place.with_name(f"gone-{self.place.stat().st_ino}"))

    def limit(self, quota: str) -> None:
        (self.place / "cpu.max").write_text(quota)

    def somebody_writes(self, burst_us: int) -> None:
        (self.place / "cpu.max.burst").write_text(str(burst_us))

    def burst(self) -> int:
        return bandwidth.read_burst(str(self.place / "cpu.max.burst"))

    def look(self, threads: int = 4) -> int:
        """The burst after another look at so many threads."""
        self.bursts.follow([Limited("vm", 2_000_000, str(self.place), (), threads)])
        return self.burst()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    journal, _ = Journal.open(tmp_path / "journal", wait_s=0.0)
    yield Group(tmp_path / "group", journal)
    journal.close()


def test_a_jiffy_for_each_thread_is_set_once_and_given_back(group: Group) -> None:
    assert group.look() == 4 * JIFFY_US
    assert len(group.journal.outstanding()) == 1
    assert len(group.notices.take()) == 1
    assert group.look() == 4 * JIFFY_US
    assert group.notices.take() == ()
    assert group.bursts.restore().put_back == 1
    assert (group.burst(), group.journal.outstanding()) == (0, ())
    assert group.bursts.restore().put_back == 0


def test_it_is_never_above_the_quota_and_follows_quota_and_threads(group: Group) -> None:
    group.limit("3000 100000")
    assert group.look() == 3000
    group.limit("100000 100000")
    assert group.look() == 4 * JIFFY_US
    assert group.look(threads=2) == 2 * JIFFY_US
    group.bursts.restore()
    assert group.burst() == 0


def test_it_goes_with_the_limit_and_with_the_workload(group: Group) -> None:
    group.look()
    group.limit("max 100000")
    assert group.look() == 0
    group.limit("200000 100000")
    assert group.look() == 4 * JIFFY_US
    group.bursts.follow([])
    assert (group.burst(), group.journal.outstanding()) == (0, ())


def test_one_that_somebody_set_before_us_stays(group: Group) -> None:
    group.somebody_writes(1234)
    assert group.look() == 1234
    group.bursts.restore()
    assert (group.burst(), group.journal.outstanding()) == (1234, ())


def test_one_that_somebody_writes_over_ours_is_theirs_from_then_on(group: Group) -> None:
    group.look()
    group.somebody_writes(1234)
    assert group.look() == 1234
    assert group.journal.outstanding() == ()
    group.somebody_writes(0)
    assert group.look() == 0


def test_what_somebody_wrote_since_the_last_look_is_not_put_back_over(group: Group) -> None:
    group.look()
    group.somebody_writes(1234)
    restored = group.bursts.restore()
    assert (restored.put_back, len(restored.left_alone), group.burst()) == (0, 1, 1234)


def test_a_group_that_is_made_anew_between_two_looks_gets_its_burst_at_the_next(group: Group) -> None:
    group.look()
    group.end()
    group.make()
    assert group.look() == 4 * JIFFY_US
    (held,) = group.journal.outstanding()
    assert isinstance(held.ref.owner, GroupId)
    assert held.ref.owner.inode == group.place.stat().st_ino
    assert group.bursts.restore().put_back == 1
    assert group.burst() == 0


def test_a_group_that_is_gone_at_a_look_costs_no_line_and_the_next_one_gets_its_burst(group: Group) -> None:
    group.look()
    group.notices.take()
    group.end()
    group.bursts.follow([Limited("vm", 2_000_000, str(group.place), (), 4)])
    assert (group.notices.take(), group.journal.outstanding()) == ((), ())
    group.make()
    assert group.look() == 4 * JIFFY_US


def test_what_somebody_wrote_is_theirs_only_as_long_as_its_group_lives(group: Group) -> None:
    group.look()
    group.somebody_writes(1234)
    assert group.look() == 1234
    group.end()
    group.make()
    assert group.look() == 4 * JIFFY_US


def test_after_a_crash_the_journal_puts_it_back(group: Group) -> None:
    assert group.look() == 4 * JIFFY_US
    assert put_all_back(group.journal).put_back == 1
    assert (group.burst(), group.journal.outstanding()) == (0, ())


def test_a_kernel_without_bursts_is_said_once_and_left_alone(group: Group) -> None:
    (group.place / "cpu.max.burst").unlink()
    for _ in range(2):
        group.bursts.follow([Limited("vm", 2_000_000, str(group.place), (), 4)])
    assert len(group.notices.take()) == 1
    assert group.journal.outstanding() == ()


def test_a_limit_of_single_vcpus_gets_none(group: Group) -> None:
    group.bursts.follow([Limited("vm", 0, "", (), 4)])
    assert group.burst() == 0


def test_a_limit_further_up_is_others_too_and_gets_no_burst() -> None:
    looks = LimitLooks(Hierarchy(2, "/groups", "/"))
    above = Limited("mine", 2_000_000, "/groups/machine.slice", (), 2)
    own = Limited("whole", 2_000_000, "/groups/machine.slice/whole.scope", (), 2)
    looks.limited = (above, own)
    homes = {"mine": "/machine.slice/mine.scope", "whole": "/machine.slice/whole.scope"}
    assert looks.of_their_own(homes) == (own,)
    looks.close()
