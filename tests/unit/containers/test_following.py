"""Containers come and go between two looks, on a machine made of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dasec.workloads.containers.containers import SETTLING_NS, ContainerRule, ContainerWorkloads
from tests.unit.linux.tree import Tree

PERIOD_NS = 80_000_000
STARTED = 1000
"""What the tree's stat lines say."""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.v2()
    (tmp_path / "run/docker/runtime-runc/moby").mkdir(parents=True)
    return tree


@pytest.fixture
def workloads(tree: Tree) -> ContainerWorkloads:
    return ContainerWorkloads([ContainerRule("all", "docker:*")], root=tree.root, proc=tree.proc)


def start(tree: Tree, pid: int, group: str = "/docker/a") -> Path:
    tree.thread(pid, pid, groups=f"0::{group}\n")
    tree.write(f"sys/fs/cgroup/{group}/cgroup.threads", f"{pid}\n")
    paths = {"": f"{tree.cgroup}{group.rstrip('/')}"}
    state = {"init_process_pid": pid, "init_process_start": STARTED, "cgroup_paths": paths}
    return tree.write("run/docker/runtime-runc/moby/a/state.json", json.dumps(state)).parent


def threads(workloads: ContainerWorkloads, clock_ns: int) -> list[tuple[int, int]]:
    return [each for entry in workloads.discover(clock_ns).roster for each in entry.threads]


def test_start_restart_and_end_are_seen_at_the_next_look(tree: Tree, workloads: ContainerWorkloads) -> None:
    quiet_ns = 2 * SETTLING_NS
    assert threads(workloads, 0) == []
    assert threads(workloads, quiet_ns) == []
    folder = start(tree, 10)
    assert threads(workloads, quiet_ns + PERIOD_NS) == [(10, 10)]
    assert threads(workloads, 2 * quiet_ns) == [(10, 10)]
    shutil.rmtree(folder)
    start(tree, 11)
    assert threads(workloads, 2 * quiet_ns + PERIOD_NS) == [(11, 11)]
    shutil.rmtree(folder)
    assert threads(workloads, 2 * quiet_ns + 2 * PERIOD_NS) == []


def test_one_that_is_created_is_left_alone_until_it_is_started(
    tree: Tree, workloads: ContainerWorkloads
) -> None:
    fifo = start(tree, 10) / "exec.fifo"
    fifo.touch()
    assert threads(workloads, 0) == []
    fifo.unlink()
    assert threads(workloads, PERIOD_NS) == [(10, 10)]


def test_one_in_the_top_group_does_not_bring_the_whole_machine(
    tree: Tree, workloads: ContainerWorkloads
) -> None:
    start(tree, 10, "/")
    assert threads(workloads, 0) == []


def test_one_that_is_started_long_after_it_was_created_is_found_at_the_next_look(
    tree: Tree, workloads: ContainerWorkloads
) -> None:
    fifo = start(tree, 10) / "exec.fifo"
    fifo.touch()
    late_ns = 2 * SETTLING_NS
    assert threads(workloads, 0) == []
    assert threads(workloads, late_ns) == []
    fifo.unlink()
    assert threads(workloads, late_ns + PERIOD_NS) == [(10, 10)]


def test_a_container_of_crun_opts_in_by_its_bundle_which_lies_on_the_same_machine(tree: Tree) -> None:
    tree.thread(10, 10, groups="0::/libpod_parent/libpod-a\n")
    tree.write("sys/fs/cgroup/libpod_parent/libpod-a/cgroup.threads", "10\n")
    status = {"pid": 10, "process-start-time": STARTED, "cgroup-path": "/libpod_parent/libpod-a"}
    tree.write("run/crun/a/status", json.dumps({**status, "bundle": "/var/lib/bundle"}))
    workloads = ContainerWorkloads([], most_share=1024, root=tree.root, proc=tree.proc)
    assert threads(workloads, 0) == []
    tree.write("var/lib/bundle/config.json", json.dumps({"annotations": {"dasec.io/enable": "true"}}))
    tree.write("run/crun/b/status", json.dumps({**status, "bundle": "/var/lib/bundle"}))
    assert threads(workloads, PERIOD_NS) == [(10, 10)]
