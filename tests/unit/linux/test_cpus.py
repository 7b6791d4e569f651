"""What /sys says of the CPUs."""

from __future__ import annotations

import pytest

from dasec.hosts.threads.cores import CoreWatch
from dasec.linux import cpus
from dasec.model import Core

from .tree import Tree

CPU = "sys/devices/system/cpu"


def machine(tree: Tree, online: str = "0-3", isolated: str = "") -> None:
    tree.write(f"{CPU}/online", f"{online}\n")
    tree.write(f"{CPU}/isolated", f"{isolated}\n")


def test_no_isolated_cpu_is_an_empty_line(tree: Tree) -> None:
    machine(tree)
    assert cpus.isolated(tree.sysfs) == frozenset()
    assert cpus.online(tree.sysfs) == {0, 1, 2, 3}


def test_isolated_partitions_count_like_isolcpus(tree: Tree) -> None:
    machine(tree, isolated="3")
    tree.write("sys/fs/cgroup/cpuset.cpus.isolated", "1\n")
    assert cpus.isolated(tree.sysfs) == {1, 3}


def test_each_cpu_has_its_node(tree: Tree) -> None:
    for node, text in ((0, "0-1"), (1, "2-3"), (2, "")):
        tree.write(f"sys/devices/system/node/node{node}/cpulist", f"{text}\n")
    tree.write("sys/devices/system/node/has_cpu", "0-1\n")
    assert cpus.node_of(tree.sysfs) == {0: 0, 1: 0, 2: 1, 3: 1}


def test_a_kernel_without_numa_has_no_nodes(tree: Tree) -> None:
    assert cpus.node_of(tree.sysfs) == {}


def test_isolated_cores_are_left_out_and_a_wish_is_cut_to_what_is_there(tree: Tree) -> None:
    machine(tree, online="0-3", isolated="2")
    watch = CoreWatch(frozenset({Core(1), Core(2), Core(9)}), tree.sysfs)
    assert watch.topology().cores == (1,)
    watch.close()


def test_a_core_that_is_unplugged_leaves_the_topology_and_returns(tree: Tree) -> None:
    machine(tree)
    watch = CoreWatch(None, tree.sysfs)
    first = watch.topology()
    assert first is watch.topology()
    machine(tree, online="0-1,3")
    assert watch.topology().cores == (0, 1, 3)
    machine(tree)
    assert watch.topology() == first
    watch.close()


def test_each_cpu_has_its_socket_and_core(tree: Tree) -> None:
    machine(tree)
    for cpu, (socket, core) in enumerate([(0, 0), (1, 0), (0, 0), (1, 0)]):
        tree.write(f"{CPU}/cpu{cpu}/topology/physical_package_id", f"{socket}\n")
        tree.write(f"{CPU}/cpu{cpu}/topology/core_id", f"{core}\n")
    assert cpus.cores_of(tree.sysfs) == {0: (0, 0), 1: (1, 0), 2: (0, 0), 3: (1, 0)}


def test_nodes_within_a_socket_stand_for_sockets_and_keep_cores_apart(tree: Tree) -> None:
    machine(tree)
    for cpu in range(4):
        tree.write(f"{CPU}/cpu{cpu}/topology/physical_package_id", "0\n")
        tree.write(f"{CPU}/cpu{cpu}/topology/core_id", f"{cpu}\n")
    for node, text in ((0, "0-1"), (1, "2-3")):
        tree.write(f"sys/devices/system/node/node{node}/cpulist", f"{text}\n")
    assert cpus.cores_of(tree.sysfs) == {0: (0, 0), 1: (0, 1), 2: (1, 2), 3: (1, 3)}


def test_a_kernel_that_tells_no_topology_has_a_core_for_each_cpu(tree: Tree) -> None:
    machine(tree)
    tree.write(f"{CPU}/cpu1/topology/physical_package_id", "-1\n")
    assert cpus.cores_of(tree.sysfs) == {cpu: (0, cpu) for cpu in range(4)}


@pytest.mark.parametrize(
    ("file", "numbers", "expected"),
    [
        ("cpu_capacity", (446, 446, 1024, 1024), {0: 446, 1: 446, 2: 1024, 3: 1024}),
        ("acpi_cppc/highest_perf", (64, 66, 64, 40), {0: 1024, 1: 1024, 2: 1024, 3: 620}),
        ("acpi_cppc/highest_perf", (64, 66, 64, 65), {}),
        ("cpu_capacity", (1024, 1024, 1024, 1024), {}),
        ("cpu_capacity", (0, 512, 1024, 1024), {}),
    ],
    ids=["arm", "hybrid x86", "favoured cores", "alike", "one that says nothing"],
)
def test_cpus_that_do_less_are_told_by_the_kernel(
    tree: Tree, file: str, numbers: tuple[int, ...], expected: dict[int, int]
) -> None:
    machine(tree)
    for cpu, number in enumerate(numbers):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/{file}", f"{number}\n")
    assert cpus.capacity_of(tree.sysfs) == expected


def test_the_topology_knows_smt_siblings_and_small_cores(tree: Tree) -> None:
    machine(tree)
    for cpu, (core, capacity) in enumerate([(0, 1024), (0, 1024), (1, 500), (2, 500)]):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/topology/core_id", f"{core}\n")
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", "0\n")
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/cpu_capacity", f"{capacity}\n")
    watch = CoreWatch(frozenset(map(Core, (0, 1, 3))), tree.sysfs)
    topology = watch.topology()
    watch.close()
    assert topology.capacity_of == {0: 1024, 1: 1024, 3: 500}
    assert topology.whole_of == {0: 0, 1: 0, 3: 3}
    assert topology.are_siblings(Core(0), Core(1))
    assert not topology.are_siblings(Core(0), Core(3))
    assert topology.without(Core(0)).cores == (1, 3)


def test_the_last_level_of_the_caches_says_who_shares_one(tree: Tree) -> None:
    machine(tree)
    for cpu in range(4):
        tree.write(f"{CPU}/cpu{cpu}/topology/core_id", f"{cpu}\n")
    for cpu, (core, die) in enumerate((("0-1", "0-1"), ("0-1", "0-1"), ("2-3", "2-3"), ("2-3", "2-3"))):
        for index, (level, sharing) in enumerate(((1, core), (1, core), (3, die))):
            tree.write(f"{CPU}/cpu{cpu}/cache/index{index}/level", f"{level}\n")
            tree.write(f"{CPU}/cpu{cpu}/cache/index{index}/shared_cpu_list", f"{sharing}\n")
    assert cpus.cache_of(tree.sysfs) == {0: 0, 1: 0, 2: 2, 3: 2}


def test_where_each_core_has_a_cache_of_its_own_a_socket_is_one(tree: Tree) -> None:
    machine(tree)
    for cpu in range(4):
        tree.write(f"{CPU}/cpu{cpu}/topology/core_id", f"{cpu // 2}\n")
        tree.write(f"{CPU}/cpu{cpu}/cache/index2/level", "2\n")
        tree.write(f"{CPU}/cpu{cpu}/cache/index2/shared_cpu_list", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}\n")
    assert cpus.cache_of(tree.sysfs) == dict.fromkeys(range(4), 0)


def test_where_the_kernel_says_nothing_of_caches_a_socket_is_one(tree: Tree) -> None:
    machine(tree)
    for cpu in range(4):
        tree.write(f"{CPU}/cpu{cpu}/topology/physical_package_id", f"{cpu // 2}\n")
    assert cpus.cache_of(tree.sysfs) == {0: 0, 1: 0, 2: 2, 3: 2}
