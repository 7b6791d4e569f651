"""A probe that was killed leaves a group; the next start, keeper or restore removes it, and only it."""

from __future__ import annotations

import pytest

from dasec.linux.procfs import read_stat
from dasec.safety.groups import PROBE_GROUP, sweep_probes

from .tree import Tree

GONE = f"{PROBE_GROUP}8-5"
LATER = f"{PROBE_GROUP}7-1"
"""Of a process that had this id before."""


@pytest.fixture
def groups(tree: Tree) -> set[str]:
    """Names in a v2 tree in which process 7 lives, and process 8 does not."""
    tree.v2()
    tree.thread(7, 7)
    start = read_stat(7, 7, tree.proc).start_ticks
    names = {f"{PROBE_GROUP}7-{start}", GONE, LATER, f"{PROBE_GROUP}9-5", f"{PROBE_GROUP}x", "dasec-8", "vm"}
    for name in names:
        (tree.cgroup / name).mkdir()
    tree.write(f"sys/fs/cgroup/{PROBE_GROUP}9-5/vm/cpu.weight", "100\n")
    (tree.cgroup / f"{PROBE_GROUP}10-5/a").mkdir(parents=True)
    return names


def test_of_a_process_that_is_gone_an_empty_one_is_removed_with_those_in_it_and_nothing_else(
    tree: Tree, groups: set[str]
) -> None:
    sweep_probes(tree.proc)
    assert {path.name for path in tree.cgroup.iterdir() if path.is_dir()} == groups - {GONE, LATER}


def test_where_no_hierarchy_is_mounted_there_is_nothing_to_remove(tree: Tree) -> None:
    tree.mounts()
    sweep_probes(tree.proc)
