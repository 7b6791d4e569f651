"""Systems with an init of their own, on a machine made of files: engines that no test machine has, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.linux.cgroupfs import find_hierarchy
from dasec.workloads.containers.consent import ENABLE, SHARE, consent
from dasec.workloads.containers.containers import ContainerRule, ContainerWorkloads
from dasec.workloads.containers.systems import systems
from dasec.workloads.discovery import SCAN_NS
from tests.unit.linux.tree import Tree

MONITOR, INIT, AGAIN = 20, 30, 40
PERIOD_NS = 80_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.v2()
    return tree


def lxc(
    tree: Tree, place: str, name: str, *, parent: int = MONITOR, suffix: str = "", init: int = INIT
) -> None:
    tree.write(f"sys/fs/cgroup/lxc.monitor.{name}{suffix}/cgroup.threads", f"{MONITOR}\n")
    tree.write(f"sys/fs/cgroup/lxc.payload.{name}{suffix}/init.scope/cgroup.threads", f"{init}\n")
    tree.write(f"proc/{MONITOR}/cmdline", f"[lxc monitor] {place} {name}\0")
    tree.write(f"proc/{init}/stat", f"{init} (init) S {parent} {init} {init} 0\n")


def found(tree: Tree) -> list[tuple[str, str]]:
    return [tuple(each) for each in systems(tree.root, find_hierarchy(tree.proc), tree.proc)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("place", "called"),
    [
        ("/var/lib/lxc", "lxc:web"),
        ("/srv/lxd-like/lxc", "lxc:web"),
        ("/var/lib/incus/containers", "incus:web"),
        ("/var/snap/lxd/common/lxd/containers", "lxd:web"),
    ],
)
def test_a_system_of_lxc_is_called_by_who_keeps_it(tree: Tree, place: str, called: str) -> None:
    lxc(tree, place, "web")
    assert found(tree) == [(called, "/lxc.payload.web")]


def test_the_number_that_lxc_adds_to_a_group_is_no_part_of_the_name(tree: Tree) -> None:
    lxc(tree, "/var/lib/lxc", "web", suffix="-1")
    assert found(tree) == [("lxc:web", "/lxc.payload.web-1")]


def test_a_payload_that_was_left_over_gives_the_next_one_a_number_and_its_monitor_none(tree: Tree) -> None:
    lxc(tree, "/var/lib/lxc", "web")
    (tree.cgroup / "lxc.payload.web").rename(tree.cgroup / "lxc.payload.web-1")
    tree.write("sys/fs/cgroup/lxc.payload.web/cgroup.threads", "")
    assert found(tree) == [("lxc:web", "/lxc.payload.web-1")]


def test_a_group_whose_monitor_is_not_the_parent_of_anybody_in_it_is_no_system(tree: Tree) -> None:
    lxc(tree, "/var/lib/lxc", "web", parent=1)
    assert found(tree) == []


def test_a_monitor_that_does_not_call_itself_one_has_no_system(tree: Tree) -> None:
    lxc(tree, "/var/lib/lxc", "web")
    tree.write(f"proc/{MONITOR}/cmdline", "sleep\0001000\0")
    assert found(tree) == []


def nspawn(tree: Tree, unit: str, machine: str, *groups: str) -> None:
    for group in groups:
        tree.write(f"sys/fs/cgroup/machine.slice/{unit}/{group}/cgroup.threads", f"{INIT}\n")
    tree.write(f"run/systemd/machines/{machine}", "# private data\n")


@pytest.mark.parametrize("unit", [r"machine-web\x2d1.scope", r"systemd-nspawn@web\x2d1.service"])
def test_a_machine_of_nspawn_is_its_payload_without_its_supervisor(tree: Tree, unit: str) -> None:
    nspawn(tree, unit, "web-1", "payload", "supervisor")
    assert found(tree) == [("nspawn:web-1", f"/machine.slice/{unit}/payload")]


def test_a_scope_of_libvirts_or_without_nspawns_groups_is_no_system(tree: Tree) -> None:
    nspawn(tree, r"machine-qemu\x2d1\x2dweb.scope", "qemu-1-web", "payload", "supervisor")
    nspawn(tree, "machine-other.scope", "other", "payload")
    nspawn(tree, "web.service", "web", "payload", "supervisor")
    assert found(tree) == []


def test_a_system_comes_at_the_next_scan_with_terms_that_allow_no_group_of_ours(tree: Tree) -> None:
    workloads = ContainerWorkloads([ContainerRule("all", "nspawn:*")], root=tree.root, proc=tree.proc)
    assert workloads.discover(0).roster == ()
    tree.thread(INIT, INIT)
    nspawn(tree, "machine-web.scope", "web", "payload", "supervisor")
    (entry,) = workloads.discover(SCAN_NS).roster
    assert entry.name == "nspawn:web"
    assert [terms.cores for terms in entry.terms] == [None]
    assert workloads.discover(2 * SCAN_NS).roster[0] is entry


def test_a_system_that_starts_anew_between_two_looks_in_a_group_of_the_same_name_is_found_at_the_next(
    tree: Tree,
) -> None:
    workloads = ContainerWorkloads([ContainerRule("all", "lxc:*")], root=tree.root, proc=tree.proc)
    tree.thread(INIT, INIT)
    lxc(tree, "/var/lib/lxc", "web")
    (entry,) = workloads.discover(0).roster
    assert [tid for _, tid in entry.threads] == [INIT]
    (tree.cgroup / "lxc.payload.web").rename(tree.root / "gone")
    tree.thread(AGAIN, AGAIN)
    lxc(tree, "/var/lib/lxc", "web", init=AGAIN)
    (entry,) = workloads.discover(PERIOD_NS).roster
    assert [tid for _, tid in entry.threads] == [AGAIN]


@pytest.mark.parametrize(
    ("notes", "share", "complaint"),
    [
        ({ENABLE: "true"}, None, ""),
        ({ENABLE: "true", SHARE: "512"}, 512, ""),
        ({ENABLE: "true", SHARE: "262144"}, 1024, "it gets 1024"),
        ({ENABLE: "true", SHARE: "1"}, None, "is no integer"),
        ({ENABLE: "true", SHARE: "9" * 5000}, None, "is no integer"),
        ({ENABLE: "true", SHARE: "many"}, None, "is no integer"),
    ],
)
def test_nobody_gives_itself_more_than_the_configuration_allows(
    notes: dict[str, str], share: int | None, complaint: str
) -> None:
    said = consent(notes, 1024)
    assert said is not None
    assert said.share == share
    assert complaint in " ".join(said.complaints)
    assert bool(said.complaints) == bool(complaint)


@pytest.mark.parametrize("notes", [{}, {ENABLE: "false"}, {ENABLE: "1"}, {SHARE: "512"}])
def test_who_does_not_say_so_does_not_opt_in(notes: dict[str, str]) -> None:
    assert consent(notes, 1024) is None
