"""Finding the cpu hierarchy and reading it: v1, hybrid, v2."""

from __future__ import annotations

import os

import pytest

from dasec.linux import cgroupfs
from dasec.linux.errors import HierarchyMissing, ThreadGone

from .tree import Tree

V1_LINES = b"9:name=systemd:/x\n3:cpuset:/set\n2:cpu,cpuacct:/machine/vm 1/vcpu0\n0::/unified\n"


def test_v1_is_found_where_its_controllers_are_mounted_together(tree: Tree) -> None:
    tree.v1()
    found = cgroupfs.find_hierarchy(tree.proc)
    assert (found.version, found.mount) == (1, f"{tree.cgroup}/cpu,cpuacct")


def test_on_a_hybrid_host_cpu_is_on_v1(tree: Tree) -> None:
    tree.hybrid()
    assert cgroupfs.find_hierarchy(tree.proc).version == 1


def test_v2_is_found_by_its_controllers(tree: Tree) -> None:
    tree.v2()
    found = cgroupfs.find_hierarchy(tree.proc)
    assert (found.version, found.mount) == (2, str(tree.cgroup))


def test_a_mounted_v2_without_cpu_is_no_cpu_hierarchy(tree: Tree) -> None:
    tree.v2()
    tree.write("sys/fs/cgroup/cgroup.controllers", "memory cpuset\n")
    with pytest.raises(HierarchyMissing):
        cgroupfs.find_hierarchy(tree.proc)


def test_a_mount_point_with_a_blank_is_found(tree: Tree) -> None:
    place = tree.cgroup / "cpu ctl"
    place.mkdir(parents=True)
    tree.mounts("33 31 0:30 / {cgroup}/cpu\\040ctl rw shared:9 - cgroup cgroup rw,cpu")
    assert cgroupfs.find_hierarchy(tree.proc).mount == str(place)


def test_the_group_of_a_thread_is_that_of_the_cpu_hierarchy() -> None:
    assert cgroupfs.parse_group(V1_LINES, 1) == "/machine/vm 1/vcpu0"
    assert cgroupfs.parse_group(V1_LINES, 2) == "/unified"
    with pytest.raises(HierarchyMissing):
        cgroupfs.parse_group(b"3:cpuset:/\n", 1)


def test_a_group_name_may_hold_a_colon() -> None:
    assert cgroupfs.parse_group(b"0::/a:b\n", 2) == "/a:b"


def test_a_container_sees_its_own_group_at_the_top_of_the_mount(tree: Tree) -> None:
    tree.v2(root="/docker/abc")
    found = cgroupfs.find_hierarchy(tree.proc)
    assert found.directory("/docker/abc/inner") == f"{tree.cgroup}/inner"
    assert found.directory("/docker/abc") == str(tree.cgroup)


def test_members_weights_and_moves_on_v1(tree: Tree) -> None:
    tree.v1()
    tree.write("sys/fs/cgroup/cpu,cpuacct/vm/tasks", "12\n10\n")
    tree.write("sys/fs/cgroup/cpu,cpuacct/vm/cpu.shares", "1024\n")
    found = cgroupfs.find_hierarchy(tree.proc)
    assert found.members("/vm") == (12, 10)
    assert not found.holds_only("/vm", 12)
    assert cgroupfs.read_weight(found.weight_file("/vm")) == 1024
    cgroupfs.write_weight(found.weight_file("/vm"), 512)
    found.move(77, "/vm")
    assert (tree.cgroup / "cpu,cpuacct/vm/cpu.shares").read_text().startswith("512")
    assert (tree.cgroup / "cpu,cpuacct/vm/tasks").read_text().startswith("77")


def test_members_and_weights_on_v2(tree: Tree) -> None:
    tree.v2()
    tree.write("sys/fs/cgroup/vm/cgroup.threads", "5\n")
    tree.write("sys/fs/cgroup/vm/cpu.weight", "110\n")
    found = cgroupfs.find_hierarchy(tree.proc)
    assert found.members("/vm") == (5,)
    assert found.holds_only("/vm", 5)
    assert not found.holds_only("/vm", 6)
    assert cgroupfs.read_weight(found.weight_file("/vm")) == 110


def test_a_vanished_group_has_no_members_and_no_weight(tree: Tree) -> None:
    tree.v2()
    found = cgroupfs.find_hierarchy(tree.proc)
    assert found.members("/gone") == ()
    assert not found.holds_only("/gone", 1)
    assert found.children("/gone") == ()
    with pytest.raises(ThreadGone):
        cgroupfs.read_weight(found.weight_file("/gone"))


def test_below_a_group_are_all_its_descendants(tree: Tree) -> None:
    tree.v2()
    (tree.cgroup / "a/b/c").mkdir(parents=True)
    found = cgroupfs.find_hierarchy(tree.proc)
    assert found.below("/a") == (("/a", "/a/b", "/a/b/c"), True)
    assert found.has_children("/a")
    assert not found.has_children("/a/b/c")
    assert not found.has_children("/gone")


def test_a_new_group_on_v2_is_threaded(tree: Tree) -> None:
    tree.v2()
    found = cgroupfs.find_hierarchy(tree.proc)
    with pytest.raises(FileNotFoundError):  # plain files: the directory comes without cgroup.type
        cgroupfs.make_group(found, "/new")
    assert not (tree.cgroup / "new").exists()


def test_controllers_are_read_and_handed_on_one_by_one(tree: Tree) -> None:
    tree.v2()
    control = f"{tree.cgroup}/cgroup.subtree_control"
    assert cgroupfs.hands_on_cpu(control)
    cgroupfs.hand_on_cpu(control, on=False)
    assert (tree.cgroup / "cgroup.subtree_control").read_text().startswith("-cpu")
    tree.write("sys/fs/cgroup/cgroup.subtree_control", "cpuset memory\n")
    assert not cgroupfs.hands_on_cpu(control)


def test_removing_a_group_says_whether_it_is_gone(tree: Tree) -> None:
    group = tree.cgroup / "mine"
    (group / "inner").mkdir(parents=True)
    assert not cgroupfs.remove_group(str(group))
    os.rmdir(group / "inner")
    assert cgroupfs.remove_group(str(group))
    assert cgroupfs.remove_group(str(group))


def test_the_tightest_quota_above_a_group_counts(tree: Tree) -> None:
    tree.v2()
    for path, text in (("a", "150000 100000"), ("a/b", "max 100000"), ("a/b/c", "400000 100000")):
        tree.write(f"sys/fs/cgroup/{path}/cpu.max", f"{text}\n")
    found = cgroupfs.find_hierarchy(tree.proc)
    assert cgroupfs.quota_cores(found, "/a/b/c") == 1.5
    assert cgroupfs.quota_cores(found, "/other") is None


def test_a_v1_quota_is_quota_over_period(tree: Tree) -> None:
    tree.v1()
    for name, text in (("cpu.cfs_quota_us", "50000"), ("cpu.cfs_period_us", "100000")):
        tree.write(f"sys/fs/cgroup/cpu,cpuacct/vm/{name}", f"{text}\n")
    tree.write("sys/fs/cgroup/cpu,cpuacct/free/cpu.cfs_quota_us", "-1\n")
    tree.write("sys/fs/cgroup/cpu,cpuacct/free/cpu.cfs_period_us", "100000\n")
    found = cgroupfs.find_hierarchy(tree.proc)
    assert cgroupfs.quota_cores(found, "/vm") == 0.5
    assert cgroupfs.quota_cores(found, "/free") is None


def test_the_cpuset_of_a_thread_is_the_nearest_one_that_is_set(tree: Tree) -> None:
    tree.v2()
    tree.thread(10, 10, groups="0::/a/b\n")
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n")
    tree.write("sys/fs/cgroup/a/cpuset.cpus.effective", "0-2,8\n")
    assert cgroupfs.cpuset_of(10, 10, tree.proc) == cgroupfs.Cpuset(frozenset({0, 1, 2, 8}), is_top=False)
    tree.thread(11, 11, groups="0::/c\n")
    tree.write("sys/fs/cgroup/cpuset.cpus.effective", "0-8\n")
    assert cgroupfs.cpuset_of(11, 11, tree.proc) == cgroupfs.Cpuset(frozenset(range(9)), is_top=True)


def test_where_no_cpuset_is_mounted_none_applies(tree: Tree) -> None:
    tree.hybrid()
    tree.thread(10, 10)
    assert cgroupfs.cpuset_of(10, 10, tree.proc) == cgroupfs.Cpuset(frozenset(), is_top=True)


def test_of_very_many_groups_the_outer_ones_are_followed(tree: Tree) -> None:
    tree.v2()
    for name in ("a/1/x", "a/2/y", "a/3"):
        (tree.cgroup / name).mkdir(parents=True)
    found = cgroupfs.find_hierarchy(tree.proc)
    assert found.below("/a", most=4) == (("/a", "/a/1", "/a/2", "/a/3"), False)
    assert found.below("/a", most=6).complete


@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_mount_whose_name_would_end_a_line_elsewhere_hides_nothing(tree: Tree, separator: str) -> None:
    tree.mounts(
        f"90 31 0:90 / /tmp/x{separator}y rw - fuse.x{separator} x rw",
        "33 31 0:30 / {cgroup}/cpu rw - cgroup cgroup rw,cpu",
    )
    assert cgroupfs.find_hierarchy(tree.proc).mount == f"{tree.cgroup}/cpu"
