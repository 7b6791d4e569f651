"""What /proc says, and what a name may do to a parser."""

from __future__ import annotations

import errno
import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.linux import procfs
from dasec.linux.errors import ThreadGone

from .tree import Tree, stat_line


@pytest.mark.parametrize(
    "comm", ["plain", "with space", "a) S 1 (b", ")", "((", "tab\there", "new\nline", ") R 0 0 0", "käse", ""]
)
def test_a_name_may_hold_anything(comm: str) -> None:
    stat = procfs.parse_stat(stat_line(7, comm, "R", nice=-5, start=4711, core=63, policy=3))
    assert (stat.comm, stat.state, stat.nice, stat.start_ticks, stat.core, stat.policy) == (
        comm, "R", -5, 4711, 63, 3,
    )  # fmt: skip


@given(st.text(max_size=15))
def test_no_name_moves_the_fields_behind_it(comm: str) -> None:
    stat = procfs.parse_stat(stat_line(7, comm.replace("\ud800", ""), start=99, core=3))
    assert (stat.start_ticks, stat.core) == (99, 3)


def test_a_name_that_is_not_utf8_is_read_all_the_same() -> None:
    line = stat_line(7, "x").replace(b"(x)", b"(\xff\xfe)")
    assert procfs.parse_stat(line).start_ticks == 1000


def test_kernel_threads_are_known_by_their_flag() -> None:
    assert procfs.parse_stat(stat_line(2, "kworker/0:1", flags=procfs.PF_KTHREAD | 0x40)).is_kernel_thread
    assert not procfs.parse_stat(stat_line(3, "kworker/0:1", flags=0x40)).is_kernel_thread


def test_schedstat_is_three_numbers() -> None:
    assert procfs.parse_schedstat(b"123456789 55 7\n") == (123456789, 55, 7)


def test_threads_are_listed_in_order_and_a_missing_process_has_none(tree: Tree) -> None:
    for tid in (12, 10, 11):
        tree.thread(10, tid)
    assert procfs.thread_ids(10, tree.proc) == (10, 11, 12)
    assert procfs.thread_ids(99, tree.proc) == ()


def test_a_missing_thread_is_gone_not_an_error(tree: Tree) -> None:
    with pytest.raises(ThreadGone):
        procfs.read_stat(1, 1, tree.proc)
    with pytest.raises(ThreadGone):
        procfs.KeptThread(1, 1, tree.proc)


def test_a_group_that_is_removed_while_its_file_is_opened_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        raise OSError(errno.ENODEV, "No such device", path)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(ThreadGone):
        procfs.read_bytes("/sys/fs/cgroup/cpu/gone/cpu.shares")
    with pytest.raises(ThreadGone):
        procfs.read_start("/sys/fs/cgroup/cpu/gone/cgroup.procs", 9)


def test_the_process_of_a_thread_is_its_thread_group(tree: Tree) -> None:
    tree.thread(10, 12)
    assert procfs.process_of(12, tree.proc) == 10


def test_kept_descriptors_of_an_ended_thread_fail_for_ever() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    kept = procfs.KeptThread(child, child)
    assert kept.first_stat.start_ticks > 0
    os.kill(child, 9)
    os.waitpid(child, 0)
    with pytest.raises(ProcessLookupError):
        os.pread(kept.schedstat, 64, 0)
    kept.close()
    kept.close()


def test_our_own_stat_line_makes_sense() -> None:
    stat = procfs.read_stat(os.getpid(), os.getpid())
    assert stat.state == "R"
    assert not stat.is_kernel_thread
