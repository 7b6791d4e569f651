"""What /sys says of the CPUs."""

from __future__ import annotations

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
