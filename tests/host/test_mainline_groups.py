"""Groups: our own, made and removed; other people's, with one thread in them or more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.hosts.host import HostSettings
from dasec.hosts.mainline import Mainline
from dasec.hosts.probe.dummy import sleeper
from dasec.linux import cgroupfs, procfs
from dasec.model import Change, Knob, Outcome, VcpuId
from dasec.roster import RosterEntry
from dasec.safety.journal.journal import Journal
from dasec.safety.restore import put_all_back
from tests.contract.stage import MainlineStage, not_niced, probed, roster

from .group import TestGroup
from .weighing import weigh

pytestmark = pytest.mark.host

THREADS = """
import sys, threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print(*(thread.native_id for thread in threading.enumerate()), flush=True)
sys.stdin.readline()
"""


def test_a_group_is_made_for_the_first_weight_and_removed_with_the_last(stage: MainlineStage) -> None:
    one, two = stage.spawn(), stage.spawn()
    stage.mainline.observe(roster([one, two]))
    assert stage.own_groups() == []
    assert weigh(stage.mainline, one) is Outcome.APPLIED
    assert stage.own_groups() == [f"dasec-{one.tid}"]
    assert stage.group_of(one) == f"/dasec-{one.tid}"
    assert stage.group_of(two) == "/"
    stage.mainline.restore()
    assert stage.own_groups() == []
    assert stage.group_of(one) == "/"


def test_groups_are_made_below_the_group_that_the_threads_are_in(
    stage: MainlineStage, group: TestGroup
) -> None:
    """A container's group: full of threads that are not ours as well."""
    mine, other = stage.spawn(), stage.spawn()
    for vcpu in (mine, other):
        group.enter(vcpu.pid)
    before = group.handed_on()
    stage.mainline.observe(roster([mine]))
    assert weigh(stage.mainline, mine) is Outcome.APPLIED
    assert stage.group_of(mine) == f"{group.group}/dasec-{mine.tid}"
    assert group.weight(f"dasec-{mine.tid}") == 1126
    assert stage.group_of(other) == group.group
    stage.mainline.restore()
    assert stage.group_of(mine) == group.group
    assert (group.below(), group.handed_on()) == ([], before)
    for vcpu in (mine, other):
        stage.end(vcpu)


def test_the_group_of_an_ended_thread_is_removed_within_a_period(stage: MainlineStage) -> None:
    vcpu = stage.spawn()
    stage.mainline.observe(roster([vcpu]))
    weigh(stage.mainline, vcpu)
    stage.end(vcpu)
    stage.mainline.observe(roster([vcpu]))
    assert stage.own_groups() == []
    assert stage.journal.outstanding() == ()
    assert stage.journal.groups() == ()


def test_without_leave_no_group_is_made_and_there_is_no_weight(tmp_path: Path) -> None:
    stage = MainlineStage(tmp_path, dry_run=False, own_groups=False)
    vcpu = stage.spawn()
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight is None
    assert weigh(stage.mainline, vcpu) is Outcome.YIELDED
    assert stage.own_groups() == []
    stage.close()


def test_a_niced_thread_keeps_its_place_among_its_neighbours(stage: MainlineStage) -> None:
    vcpu = stage.spawn()
    os.setpriority(os.PRIO_PROCESS, vcpu.pid, 5)
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight is None


def test_a_thread_alone_in_its_group_is_weighed_there(stage: MainlineStage, group: TestGroup) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    group.set_weight("vcpu0", 512)
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight == 512
    assert weigh(stage.mainline, vcpu) is Outcome.APPLIED
    assert group.weight("vcpu0") == 1126
    assert group.below() == ["vcpu0"]
    stage.mainline.restore()
    assert group.weight("vcpu0") == 512
    stage.end(vcpu)


def test_a_weight_below_the_kernels_least_is_shown_as_what_is_in_force(
    stage: MainlineStage, group: TestGroup
) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    group.set_weight("vcpu0", 512)
    stage.mainline.observe(roster([vcpu]))
    assert weigh(stage.mainline, vcpu, 1) is Outcome.APPLIED
    least = group.weight("vcpu0")
    assert least > 1
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight == least
    stage.mainline.restore()
    assert group.weight("vcpu0") == 512
    stage.end(vcpu)


def test_a_group_that_has_the_least_weight_is_not_lowered_and_not_ours(
    stage: MainlineStage, group: TestGroup
) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    group.set_weight("vcpu0", 1)
    least = stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight
    assert least is not None
    (result,) = stage.mainline.apply([Change(vcpu, Knob.WEIGHT, least, 1, "test")])
    assert result.outcome is Outcome.YIELDED
    assert "as far as the kernel goes" in result.detail
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight == least
    assert stage.journal.outstanding() == ()
    stage.end(vcpu)


def test_a_group_that_outlives_its_thread_gets_its_weight_back(
    stage: MainlineStage, group: TestGroup
) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    stage.mainline.observe(roster([vcpu]))
    weigh(stage.mainline, vcpu)
    stage.end(vcpu)
    stage.mainline.observe(roster([vcpu]))
    assert group.weight("vcpu0") == 1024


def test_a_group_that_vanishes_with_its_thread_is_normal(stage: MainlineStage, group: TestGroup) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    stage.mainline.observe(roster([vcpu]))
    weigh(stage.mainline, vcpu)
    stage.end(vcpu)
    (group.directory / "vcpu0").rmdir()
    assert weigh(stage.mainline, vcpu, 1200) is Outcome.VANISHED
    stage.mainline.observe(roster([vcpu]))
    assert stage.mainline.restore().failed == ()


@pytest.mark.parametrize("seen", [True, False])
def test_a_group_that_is_made_again_under_its_name_does_not_get_the_formers_weight(
    stage: MainlineStage, group: TestGroup, seen: bool
) -> None:
    vcpu, other = stage.spawn(), stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    group.set_weight("vcpu0", 2048)
    stage.mainline.observe(roster([vcpu]))
    weigh(stage.mainline, vcpu)
    stage.end(vcpu)
    (group.directory / "vcpu0").rmdir()
    group.enter(other.pid, "vcpu0")
    group.set_weight("vcpu0", 1126)
    if seen:
        stage.mainline.observe(roster([]))
    else:
        assert isinstance(stage.journal, Journal)
        put_all_back(stage.journal)
    assert (group.weight("vcpu0"), stage.journal.outstanding()) == (1126, ())
    stage.end(other)


def test_a_group_that_a_second_thread_enters_is_let_go(stage: MainlineStage, group: TestGroup) -> None:
    vcpu, guest = stage.spawn(), stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    stage.mainline.observe(roster([vcpu]))
    weigh(stage.mainline, vcpu)
    group.enter(guest.pid, "vcpu0")
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight is None
    assert group.weight("vcpu0") == 1024
    for one in (vcpu, guest):
        stage.end(one)


def test_a_configured_share_counts_and_otherwise_that_of_the_group(
    stage: MainlineStage, group: TestGroup
) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vm")
    group.set_weight("vm", 2048)
    group.limit_to_half_a_core("vm")
    (found,) = stage.mainline.observe(roster([vcpu])).workloads
    assert (found.share, found.quota_cores) == (2048, 0.5)
    (configured,) = stage.mainline.observe([roster([vcpu])[0]._replace(share=77)]).workloads
    assert configured.share == 77
    stage.end(vcpu)


def test_a_group_of_a_workloads_own_competes_for_its_vcpus_and_a_shared_one_does_not(
    stage: MainlineStage, group: TestGroup
) -> None:
    places = {"alone": "vm", "one": "shared", "other": "shared"}
    vcpus = {name: stage.spawn() for name in places}
    for name, vcpu in vcpus.items():
        group.enter(vcpu.pid, places[name])
    entries = [roster([vcpu])[0]._replace(name=name) for name, vcpu in vcpus.items()]
    found = {each.name: each.nested for each in stage.mainline.observe(entries).workloads}
    for vcpu in vcpus.values():
        stage.end(vcpu)
    assert found == {"alone": True, "one": False, "other": False}


@contextmanager
def careful(place: Path) -> Iterator[Mainline]:
    """A host on a kernel that starves groups."""
    journal, _ = Journal.open(place)
    host = Mainline(journal, replace(probed(), nested_weight=False), HostSettings(own_groups=True))
    try:
        yield host
    finally:
        host.close()
        journal.close()


def test_where_nested_weights_harm_only_vcpus_below_a_group_of_their_workload_have_none(
    tmp_path: Path, group: TestGroup
) -> None:
    places = {"alone": "vm", "one": "shared", "other": "shared"}
    with careful(tmp_path) as host, ExitStack() as stack:
        pids = {name: stack.enter_context(sleeper()) for name in places}
        for name, pid in pids.items():
            group.enter(pid, places[name])
        entries = [RosterEntry(name, None, ((pid, pid),)) for name, pid in pids.items()]
        knobs = host.observe(entries).knobs
        shown = {name: next(knobs[one] for one in knobs if one.pid == pid) for name, pid in pids.items()}
        assert {name: each.weight for name, each in shown.items()} == {
            "alone": None,
            "one": 1024,
            "other": 1024,
        }
        assert all(each.rescheduling_latency_ns for each in shown.values())


def test_a_weight_that_is_held_goes_back_when_its_group_becomes_its_workloads_own(
    tmp_path: Path, group: TestGroup
) -> None:
    with careful(tmp_path) as host, sleeper() as one, sleeper() as other:
        for pid in (one, other):
            group.enter(pid, str(pid))
        entries = [RosterEntry(str(pid), None, ((pid, pid),), home=group.group) for pid in (one, other)]
        (first, _) = host.observe(entries).workloads
        assert weigh(host, first.vcpus[0].id) is Outcome.APPLIED
        assert group.weight(str(one)) == 1126
        knobs = host.observe(entries[:1]).knobs
        assert [each.weight for each in knobs.values()] == [None]
        assert group.weight(str(one)) == 1024


def test_a_groups_weight_that_somebody_sets_before_we_ever_wrote_it_is_what_it_has_without_us(
    stage: MainlineStage, group: TestGroup
) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vm")
    assert stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight == 1024
    group.set_weight("vm", 4096)
    assert weigh(stage.mainline, vcpu) is Outcome.YIELDED
    assert group.weight("vm") == 4096
    assert [stage.mainline.observe(roster([vcpu])).knobs[vcpu].weight for _ in range(2)] == [None, 4096]
    assert weigh(stage.mainline, vcpu) is Outcome.APPLIED
    stage.mainline.restore()
    assert group.weight("vm") == 4096
    stage.end(vcpu)


def test_threads_of_one_process_get_a_group_each(stage: MainlineStage) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    tids = [int(word) for word in child.stdout.readline().split()]
    not_niced(child.pid)
    vcpus = [VcpuId(child.pid, tid, procfs.read_stat(child.pid, tid).start_ticks) for tid in tids]
    stage.mainline.observe(roster(vcpus))
    assert [weigh(stage.mainline, vcpu) for vcpu in vcpus] == [Outcome.APPLIED] * 2
    assert [stage.group_of(vcpu) for vcpu in vcpus] == [f"/dasec-{tid}" for tid in tids]
    stage.mainline.restore()
    assert {stage.group_of(vcpu) for vcpu in vcpus} == {"/"}
    child.communicate("")


def test_a_child_born_in_our_group_is_sent_back(stage: MainlineStage) -> None:
    parent = subprocess.Popen(
        ["sh", "-c", "read go; sleep 1000 & echo $!; wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    not_niced(parent.pid)
    vcpu = VcpuId(parent.pid, parent.pid, procfs.read_stat(parent.pid, parent.pid).start_ticks)
    stage.mainline.observe(roster([vcpu]))
    weigh(stage.mainline, vcpu)
    parent.stdin.write("go\n")
    parent.stdin.flush()
    child = int(parent.stdout.readline())
    hierarchy = cgroupfs.find_hierarchy()
    assert hierarchy.group_of(child, child) == f"/dasec-{parent.pid}"
    stage.mainline.observe(roster([vcpu]))
    assert hierarchy.group_of(child, child) == "/"
    os.kill(child, 9)
    parent.kill()
    parent.wait()


def test_the_real_journal_is_empty_after_a_restore(stage: MainlineStage) -> None:
    vcpus = [stage.spawn() for _ in range(4)]
    stage.mainline.observe(roster(vcpus))
    for vcpu in vcpus:
        weigh(stage.mainline, vcpu)
    assert isinstance(stage.journal, Journal)
    kinds = Counter(one.ref.kind.name.partition("_")[0] for one in stage.journal.outstanding())
    assert (kinds["weight"], kinds["cgroup"]) == (4, 4)
    stage.mainline.restore()
    assert stage.journal.outstanding() == ()
    assert stage.journal.groups() == ()
