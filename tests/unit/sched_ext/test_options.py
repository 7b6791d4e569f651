"""What our scheduler is told of the host's CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.bpf.libbpf import BpfUnavailable
from dasec.bpf.scx import MAX_CPUS, options

CPU = "devices/system/cpu"


def write(sysfs: Path, file: str, text: str) -> None:
    place = sysfs / CPU / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{text}\n")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Four CPUs of two sockets."""
    sockets_of_two(tmp_path, 4)
    return tmp_path


def sockets_of_two(sysfs: Path, cpus: int) -> None:
    for file in ("online", "possible"):
        write(sysfs, file, f"0-{cpus - 1}")
    for cpu in range(cpus):
        write(sysfs, f"cpu{cpu}/topology/physical_package_id", f"{cpu // 2}")
        write(sysfs, f"cpu{cpu}/topology/core_id", f"{cpu}")


def test_it_is_told_the_caches_and_that_all_cpus_do_as_much(sysfs: Path) -> None:
    told = options(2, str(sysfs))
    assert (told.cpus, told.caches, tuple(told.cache_of[:5])) == (4, 2, (0, 0, 2, 2, 4))
    assert not told.is_hybrid
    assert not any(told.is_largest)


def test_on_a_hybrid_host_it_is_told_which_cpus_are_the_largest(sysfs: Path) -> None:
    for cpu, capacity in enumerate((1024, 446, 1024, 446)):
        write(sysfs, f"cpu{cpu}/cpu_capacity", f"{capacity}")
    told = options(2, str(sysfs))
    assert told.is_hybrid
    assert tuple(told.is_largest[:5]) == (1, 0, 1, 0, 0)


def test_it_is_told_of_no_nodes_where_each_is_a_cache_or_there_is_one(sysfs: Path) -> None:
    for node, (first, last) in {0: (2, 3), 1: (0, 1)}.items():
        write(sysfs, f"../node/node{node}/cpulist", f"{first}-{last}")
    assert options(2, str(sysfs)).nodes == 0
    write(sysfs, "../node/node0/cpulist", "")
    write(sysfs, "../node/node1/cpulist", "0-3")
    assert options(2, str(sysfs)).nodes == 0


def test_where_a_node_has_several_caches_it_is_told_the_nodes_by_their_first_cpu(sysfs: Path) -> None:
    sockets_of_two(sysfs, 8)
    for node, cpus in {0: "4-7", 1: "0-3"}.items():
        write(sysfs, f"../node/node{node}/cpulist", cpus)
    told = options(2, str(sysfs))
    assert (told.caches, told.nodes) == (4, 2)
    assert tuple(told.node_of[:8]) == (0, 0, 0, 0, 4, 4, 4, 4)


def test_a_cpu_that_is_offline_is_near_to_nobody(sysfs: Path) -> None:
    write(sysfs, "online", "2-3")
    write(sysfs, "../node/node0/cpulist", "2-3")
    told = options(2, str(sysfs))
    assert tuple(told.cache_of[:4]) == tuple(told.node_of[:4]) == (0, 1, 2, 2)


def test_a_host_with_more_cpus_than_it_knows_is_refused(sysfs: Path) -> None:
    write(sysfs, "possible", f"0-{MAX_CPUS}")
    with pytest.raises(BpfUnavailable, match=f"{MAX_CPUS + 1} CPUs"):
        options(2, str(sysfs))
