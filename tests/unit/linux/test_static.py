"""Workloads from the configuration, found in a fake /proc."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dasec.linux import cgroupfs, procfs
from dasec.roster import RosterEntry
from dasec.workloads.discovery import SCAN_NS
from dasec.workloads.processes import NAMES_REFRESHED_IN, TREE_PART, Selector, StaticWorkloads

from .tree import Tree, stat_line

S = SCAN_NS


def process(tree: Tree, pid: int, comm: str, *tids: int, flags: int = 0) -> None:
    for tid in (pid, *tids):
        tree.thread(pid, tid, stat_line(tid, comm, flags=flags))
    tree.write(f"proc/{pid}/stat", "")


def threads(entry: RosterEntry) -> list[int]:
    return [tid for _, tid in entry.threads]


def test_named_processes_bring_all_their_threads(tree: Tree) -> None:
    process(tree, 10, "qemu", 11, 12)
    process(tree, 20, "qemu", 21)
    found = StaticWorkloads([Selector("vm", 512, pids=(20, 10))], tree.proc).discover(0)
    assert found.roster == (RosterEntry("vm", 512, ((20, 20), (20, 21), (10, 10), (10, 11), (10, 12))),)
    assert found.notices == ()


def test_a_thread_that_is_named_among_processes_is_left_alone_and_said(tree: Tree) -> None:
    """It would bring all of its process, as if that were another one."""
    process(tree, 10, "qemu", 11)
    shutil.copytree(f"{tree.proc}/10", f"{tree.proc}/11", dirs_exist_ok=True)  # as the kernel shows it
    found = StaticWorkloads([Selector("vm", pids=(10, 11))], tree.proc).discover(0)
    assert threads(found.roster[0]) == [10, 11]
    assert found.notices == (
        "workload vm: 11 in `pids` is a thread of process 10 and is left alone: name the process, or a cgroup"
        " with that thread",
    )


def test_a_name_matches_as_a_whole(tree: Tree) -> None:
    for pid, comm in ((10, "memcached"), (20, "memcached-exporter"), (30, "my memcached"), (40, "a) (b")):
        process(tree, pid, comm)
    selectors = [
        Selector("exact", comm="memcached"),
        Selector("part", comm="my"),
        Selector("nasty", comm="a) (b"),
    ]
    found = StaticWorkloads(selectors, tree.proc).discover(0)
    assert [threads(entry) for entry in found.roster] == [[10], [], [40]]


def test_kernel_threads_match_no_name(tree: Tree) -> None:
    process(tree, 2, "kworker", flags=procfs.PF_KTHREAD)
    process(tree, 3, "kworker")
    found = StaticWorkloads([Selector("named", comm="kworker")], tree.proc).discover(0)
    assert threads(found.roster[0]) == [3]


def test_a_cgroup_brings_the_threads_of_all_groups_below(tree: Tree) -> None:
    tree.v2()
    for tid in (10, 11, 12):
        tree.thread(10, tid)
    tree.write("sys/fs/cgroup/app/cgroup.threads", "10\n")
    tree.write("sys/fs/cgroup/app/inner/cgroup.threads", "12\n11\n99\n")
    found = StaticWorkloads([Selector("app", cgroup="/app/")], tree.proc).discover(0)
    assert found.roster[0].threads == ((10, 10), (10, 11), (10, 12))
    assert found.roster[0].births == (1000, 1000, 1000)


def test_nothing_matched_is_normal_and_said_once(tree: Tree) -> None:
    tree.v2()
    (tree.root / "proc/1").mkdir(parents=True)
    workloads = StaticWorkloads(
        [Selector("gone", cgroup="/gone"), Selector("later", comm="later")], tree.proc
    )
    first = workloads.discover(0)
    assert [len(entry.threads) for entry in first.roster] == [0, 0]
    assert first.notices == (
        "workload gone matches no thread at present",
        "workload later matches no thread at present",
    )
    assert workloads.discover(2 * S).notices == ()
    process(tree, 10, "later")
    assert threads(workloads.discover(4 * S).roster[1]) == [10]
    shutil.rmtree(f"{tree.proc}/10")
    assert workloads.discover(6 * S).notices == ("workload later matches no thread at present",)


def test_a_thread_of_two_workloads_goes_to_the_first_with_a_notice(tree: Tree) -> None:
    process(tree, 10, "app")
    found = StaticWorkloads([Selector("one", comm="app"), Selector("two", pids=(10,))], tree.proc).discover(0)
    assert [threads(entry) for entry in found.roster] == [[10], []]
    assert found.notices[0].startswith("some threads match one and two: they belong to one")


def test_while_nothing_changes_the_roster_is_the_same_object(tree: Tree) -> None:
    process(tree, 10, "app")
    workloads = StaticWorkloads([Selector("one", comm="app")], tree.proc)
    first = workloads.discover(0).roster
    assert workloads.discover(S // 10).roster is first
    assert workloads.discover(3 * S).roster is first


def test_a_new_thread_shows_at_the_next_look(tree: Tree) -> None:
    """By the link count of the task directory, long before the next scan."""
    process(tree, 10, "app")
    workloads = StaticWorkloads([Selector("one", pids=(10,))], tree.proc)
    workloads.discover(0)
    tree.thread(10, 11)
    assert threads(workloads.discover(1).roster[0]) == [10, 11]
    shutil.rmtree(f"{tree.proc}/10/task/11")
    assert threads(workloads.discover(2).roster[0]) == [10]


def test_a_thread_that_was_exchanged_shows_at_the_next_scan(tree: Tree) -> None:
    process(tree, 10, "app", 11)
    workloads = StaticWorkloads([Selector("one", pids=(10,))], tree.proc)
    workloads.discover(0)
    shutil.rmtree(f"{tree.proc}/10/task/11")
    tree.thread(10, 12)
    assert threads(workloads.discover(2 * S).roster[0]) == [10, 12]


def test_a_configured_id_that_ended_does_not_come_back(tree: Tree) -> None:
    """Whoever has the id later is somebody else."""
    process(tree, 10, "app")
    workloads = StaticWorkloads([Selector("one", pids=(10,))], tree.proc)
    workloads.discover(0)
    shutil.rmtree(f"{tree.proc}/10")
    assert threads(workloads.discover(2 * S).roster[0]) == []
    process(tree, 10, "stranger")
    for turn in range(3, 8):
        assert threads(workloads.discover(turn * 2 * S).roster[0]) == []


def exchange(tree: Tree, pid: int, comm: str) -> None:
    """The process ends, and its number is given to another before anybody looks."""
    shutil.rmtree(f"{tree.proc}/{pid}")
    process(tree, pid, comm)


@pytest.mark.parametrize("selector", [Selector("one", pids=(10,)), Selector("one", comm="app")])
def test_whoever_gets_the_number_of_a_process_between_two_looks_is_somebody_else(
    tree: Tree, selector: Selector
) -> None:
    process(tree, 10, "app")
    workloads = StaticWorkloads([selector], tree.proc)
    assert threads(workloads.discover(0).roster[0]) == [10]
    exchange(tree, 10, "stranger")
    for turn in range(1, 8):
        assert threads(workloads.discover(turn * 2 * S).roster[0]) == []


@pytest.mark.parametrize("seen", [True, False])
def test_an_id_whose_process_ended_is_nobodys_when_the_configuration_is_read_again(
    tree: Tree, *, seen: bool
) -> None:
    """Whether or not a scan has found the end before."""
    process(tree, 10, "app")
    process(tree, 20, "app")
    former = StaticWorkloads([Selector("one", pids=(10, 20))], tree.proc)
    former.discover(0)
    exchange(tree, 10, "stranger")
    if seen:
        former.discover(2 * S)
    again = StaticWorkloads([Selector("new", pids=(20,)), Selector("one", 512, pids=(10,))], tree.proc)
    again.take_over(former)
    former.close()
    for turn in range(3, 8):
        assert [threads(one) for one in again.discover(turn * 2 * S).roster] == [[20], []]


def test_an_id_that_a_configuration_did_not_name_is_looked_up_anew_by_the_next(tree: Tree) -> None:
    process(tree, 10, "app")
    former = StaticWorkloads([Selector("one", pids=(10,))], tree.proc)
    former.discover(0)
    exchange(tree, 10, "app")
    for pids, found in (((20,), []), ((10,), [10])):
        again = StaticWorkloads([Selector("one", pids=pids)], tree.proc)
        again.take_over(former)
        former.close()
        assert threads(again.discover(0).roster[0]) == found
        former = again


def test_descriptors_go_from_one_configuration_to_the_next_and_are_closed(tree: Tree) -> None:
    process(tree, 10, "app")
    before = len(list(Path("/proc/self/fd").iterdir()))
    former = StaticWorkloads([Selector("one", pids=(10,))], tree.proc)
    former.discover(0)
    again = StaticWorkloads([Selector("other", pids=(10,))], tree.proc)
    again.take_over(former)
    former.close()
    assert threads(again.discover(0).roster[0]) == [10]
    again.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_program_that_is_started_again_is_found_under_the_number_of_its_former_self(tree: Tree) -> None:
    process(tree, 10, "app")
    workloads = StaticWorkloads([Selector("one", comm="app")], tree.proc)
    workloads.discover(0)
    shutil.rmtree(f"{tree.proc}/10")
    process(tree, 10, "app", 11)
    assert threads(workloads.discover(2 * S).roster[0]) == [10, 11]


def test_a_thread_of_a_group_whose_number_is_given_away_is_known_by_its_start(tree: Tree) -> None:
    tree.v2()
    tree.thread(10, 10)
    tree.write("sys/fs/cgroup/app/cgroup.threads", "10\n")
    workloads = StaticWorkloads([Selector("app", cgroup="/app")], tree.proc)
    assert workloads.discover(0).roster[0].births == (1000,)
    shutil.rmtree(f"{tree.proc}/10")
    tree.thread(10, 10, stat_line(10, start=2000))
    assert workloads.discover(2 * S).roster[0].births == (2000,)


def test_a_process_that_calls_execve_is_found_by_its_new_name(tree: Tree) -> None:
    process(tree, 10, "sh")
    workloads = StaticWorkloads([Selector("one", comm="memcached")], tree.proc)
    workloads.discover(0)
    process(tree, 10, "memcached")
    for turn in range(1, NAMES_REFRESHED_IN + 1):
        found = workloads.discover(turn * 2 * S).roster
    assert threads(found[0]) == [10]


@pytest.mark.parametrize("selectors", [{}, {"pids": (1,), "comm": "x"}, {"cgroup": "/a", "comm": "b"}])
def test_a_workload_is_selected_in_exactly_one_way(selectors: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exactly one of"):
        Selector("wrong", **selectors)  # type: ignore[arg-type]


def test_closing_lets_all_descriptors_go(tree: Tree) -> None:
    process(tree, 10, "app")
    before = len(list(Path("/proc/self/fd").iterdir()))
    workloads = StaticWorkloads([Selector("one", pids=(10,))], tree.proc)
    workloads.discover(0)
    workloads.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def in_group(tree: Tree, group: str, *tids: int) -> None:
    tree.write(f"sys/fs/cgroup/{group}/cgroup.threads", "".join(f"{tid}\n" for tid in tids))


def test_a_name_with_a_carriage_return_hides_no_thread(tree: Tree) -> None:
    tree.v2()
    tree.thread(10, 11)
    in_group(tree, "vm", 11)
    tree.write("proc/11/status", "Name:\t\rTgid:\t1\rTgid:x\nTgid:\t10\n")
    found = StaticWorkloads([Selector("vm", cgroup="/vm")], tree.proc).discover(0)
    assert found.roster[0].threads == ((10, 11),)
    assert found.notices == ()


def test_one_thread_that_cannot_be_read_costs_itself_only_and_is_said_once(tree: Tree) -> None:
    tree.v2()
    for tid in (11, 12):
        tree.thread(10, tid)
    in_group(tree, "vm", 11, 12)
    tree.write("proc/11/status", "no status at all")
    followed = StaticWorkloads([Selector("vm", cgroup="/vm")], tree.proc)
    first = followed.discover(0)
    assert first.roster[0].threads == ((10, 12),)
    assert [notice.startswith("workload vm: thread 11 cannot be read") for notice in first.notices] == [True]
    assert followed.discover(S).notices == ()


def test_one_group_that_cannot_be_read_costs_itself_only_and_is_said_once(tree: Tree) -> None:
    tree.v2()
    tree.thread(10, 12)
    in_group(tree, "vm/a", 12)
    tree.write("sys/fs/cgroup/vm/b/cgroup.threads", "who knows\n")
    followed = StaticWorkloads([Selector("vm", cgroup="/vm")], tree.proc)
    first = followed.discover(0)
    assert first.roster[0].threads == ((10, 12),)
    assert [notice.startswith("workload vm: a group cannot be read") for notice in first.notices] == [True]
    assert followed.discover(S).notices == ()


def test_what_is_nested_too_deep_is_left_alone_and_that_is_said_once(tree: Tree) -> None:
    tree.v2()
    tree.thread(10, 12)
    in_group(tree, "vm", 12)
    (tree.cgroup / "vm" / "/".join(["deep"] * (cgroupfs.DEEPEST + 1))).mkdir(parents=True)
    followed = StaticWorkloads([Selector("vm", cgroup="/vm")], tree.proc)
    first = followed.discover(0)
    assert first.roster[0].threads == ((10, 12),)
    assert [f"groups nested more than {cgroupfs.DEEPEST} deep" in notice for notice in first.notices] == [
        True
    ]
    assert followed.discover(S).notices == ()


def test_a_tree_that_takes_long_to_read_is_read_less_often_and_no_other(tree: Tree) -> None:
    tree.v2()
    for tid in (11, 12, 21, 22):
        tree.thread(tid // 10, tid)
    used_ns = iter([0, 20_000_000, 20_000_000, 20_100_000, *range(30_000_000, 40_000_000, 100_000)])
    selectors = [Selector("slow", cgroup="/slow"), Selector("quick", cgroup="/quick")]
    followed = StaticWorkloads(selectors, tree.proc, lambda: next(used_ns))
    for name, tid in (("slow", 11), ("quick", 21)):
        in_group(tree, name, tid)
    followed.discover(0)
    for name, tid in (("slow", 12), ("quick", 22)):
        in_group(tree, name, tid)
    assert [threads(one) for one in followed.discover(S).roster] == [[11], [22]]
    assert [threads(one) for one in followed.discover(TREE_PART * 20_000_000).roster] == [[12], [22]]
