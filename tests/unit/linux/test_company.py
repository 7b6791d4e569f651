"""Whose weight a group's is: a thread's that is alone there, or that of one of QEMU's among those that work
for the same QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.hosts.threads.company import has_to_itself
from dasec.linux.cgroupfs import find_hierarchy
from dasec.model import VcpuId
from dasec.roster import Terms

from .tree import Tree, stat_line

GROUP = "/machine/qemu-1-vm.libvirt-qemu/emulator"
MAIN = VcpuId(100, 100, 1000)
HELPER, STRANGER = 101, 200
PF_USER_WORKER, PF_KTHREAD = 0x00004000, 0x00200000
VCPU, EMULATOR = Terms(1000, None), Terms(1000, None, emulator=True)


class Emulators:
    """The group of one QEMU's threads that are no vCPUs, in a tree of files."""

    def __init__(self, root: Path, version: int) -> None:
        self.tree = Tree(root)
        (self.tree.v1 if version == 1 else self.tree.v2)()
        self._file = "cpu,cpuacct{}/tasks" if version == 1 else "{}/cgroup.threads"
        self.hierarchy = find_hierarchy(self.tree.proc)
        for tid in (MAIN.tid, HELPER):
            self.tree.thread(MAIN.pid, tid)
        self.tree.thread(STRANGER, STRANGER)

    def holds(self, *tids: int) -> None:
        self.tree.write(f"sys/fs/cgroup/{self._file.format(GROUP)}", "".join(f"{tid}\n" for tid in tids))

    def is_of(self, who: VcpuId, terms: Terms | None, group: str = GROUP) -> bool:
        return has_to_itself(self.hierarchy, group, who, terms, self.tree.proc)


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def emulators(request: pytest.FixtureRequest, tmp_path: Path) -> Emulators:
    return Emulators(tmp_path, request.param)


def test_helpers_of_the_same_qemu_may_be_there(emulators: Emulators) -> None:
    emulators.holds(MAIN.tid, HELPER)
    assert emulators.is_of(MAIN, EMULATOR)


def test_a_vcpu_may_have_company_of_the_thread_that_kvm_has_started_from_it(emulators: Emulators) -> None:
    line = stat_line(HELPER, "kvm-nx-lpage-re", flags=PF_USER_WORKER)
    emulators.tree.thread(MAIN.pid, HELPER, line)
    emulators.holds(MAIN.tid, HELPER)
    assert emulators.is_of(MAIN, VCPU)
    assert not emulators.is_of(MAIN, None), "in a group that libvirt has not made"
    emulators.holds(MAIN.tid, HELPER, STRANGER)
    assert not emulators.is_of(MAIN, VCPU)


@pytest.mark.parametrize("terms", [None, VCPU])
def test_nobody_else_has_a_group_with_company(emulators: Emulators, terms: Terms | None) -> None:
    emulators.holds(MAIN.tid, HELPER)
    assert not emulators.is_of(MAIN, terms)
    emulators.holds(MAIN.tid)
    assert emulators.is_of(MAIN, terms)


def test_a_thread_of_another_process_is_one_too_many(emulators: Emulators) -> None:
    emulators.holds(MAIN.tid, HELPER, STRANGER)
    assert not emulators.is_of(MAIN, EMULATOR)


def test_a_thread_that_is_hidden_from_us_may_be_anybodys(emulators: Emulators) -> None:
    emulators.holds(MAIN.tid, 0)
    assert not emulators.is_of(MAIN, EMULATOR)


def test_the_kernels_own_threads_are_there_to_work_for_it(emulators: Emulators) -> None:
    emulators.tree.thread(300, 300, stat_line(300, "vhost-100", flags=PF_KTHREAD))
    emulators.holds(MAIN.tid, HELPER, 300)
    assert emulators.is_of(MAIN, EMULATOR)


def test_a_helper_that_ended_meanwhile_is_nobody(emulators: Emulators) -> None:
    emulators.holds(MAIN.tid, HELPER, 999)
    assert emulators.is_of(MAIN, EMULATOR)


def test_the_group_that_it_has_left_is_not_its_own(emulators: Emulators) -> None:
    emulators.holds(HELPER)
    assert not emulators.is_of(MAIN, EMULATOR)


def test_a_group_with_groups_below_it_is_somebodys_business(emulators: Emulators) -> None:
    emulators.holds(MAIN.tid)
    (Path(emulators.hierarchy.directory(GROUP)) / "inner").mkdir()
    assert not emulators.is_of(MAIN, EMULATOR)


def test_the_top_group_is_never_anybodys(emulators: Emulators) -> None:
    assert not emulators.is_of(MAIN, EMULATOR, "/")
