"""What containers are called: by whoever made them, whatever they say themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dasec.workloads.containers.containers import ContainerRule, ContainerWorkloads
from dasec.workloads.containers.engines import BY_CONTAINERD, BY_CRIO, Home, called
from dasec.workloads.containers.state_file import STATE, STATUS
from tests.unit.linux.tree import Tree

STARTED = 1000
"""What the tree's stat lines say."""

POD = ("default", "front-1", "app")
OF_CONTAINERD = dict(zip(BY_CONTAINERD.name, POD, strict=True)) | {BY_CONTAINERD.kind: "container"}
OF_CRIO = dict(zip(BY_CRIO.name, POD, strict=True)) | {BY_CRIO.kind: "container"}
PAUSE = {BY_CONTAINERD.kind: "sandbox", BY_CRIO.kind: "sandbox"}

IN_CONTAINERD = Home("k8s", "/run/containerd/runc/k8s.io/abc", STATE)
IN_RUNC, IN_CRUN = Home("podman", "/run/runc/abc", STATE), Home("podman", "/run/crun/abc", STATUS)
BELOW = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod7.slice"
GROUPS_OF_CRIO = (
    "/kubepods/besteffort/pod7/crio-abc",
    "/crio/crio-abc",
    f"{BELOW}/crio-abc.scope",
    f"{BELOW}/crio-abc.scope/container",
)


@pytest.mark.parametrize("group", ["/kubepods/pod7/abc", f"{BELOW}/cri-containerd-abc.scope", "/k8s.io/abc"])
def test_a_container_of_containerds_has_its_pods_name_in_any_group(group: str) -> None:
    assert called(IN_CONTAINERD, group, OF_CONTAINERD, None) == "k8s:default/front-1/app"
    assert called(IN_CONTAINERD, group, OF_CONTAINERD | PAUSE, None) is None


@pytest.mark.parametrize("home", [IN_RUNC, IN_CRUN])
@pytest.mark.parametrize("group", GROUPS_OF_CRIO)
def test_a_container_of_cri_o_has_its_pods_name_in_any_group_of_cri_os(home: Home, group: str) -> None:
    assert called(home, group, OF_CRIO, None) == "k8s:default/front-1/app"
    assert called(home, group, OF_CRIO | PAUSE, None) is None
    other = {**dict.fromkeys(BY_CONTAINERD.name, "other"), BY_CONTAINERD.kind: "sandbox"}
    assert called(home, group, {**OF_CRIO, **other}, None) == "k8s:default/front-1/app"
    assert called(home, group, {}, None) == "podman:abc"


@pytest.mark.parametrize("notes", [OF_CONTAINERD, OF_CRIO, PAUSE, OF_CONTAINERD | OF_CRIO | PAUSE])
@pytest.mark.parametrize(
    ("home", "group", "name"),
    [
        (Home("docker", "/run/docker/runtime-runc/moby/abc", STATE), "/docker/abc", "docker:web"),
        (Home("docker", "/run/docker/runtime-runc/moby/abc", STATE), "/docker/crio-abc", "docker:web"),
        (Home("containerd", "/run/containerd/runc/default/abc", STATE), "/default/abc", "containerd:web"),
        (IN_RUNC, "/libpod_parent/libpod-abc", "podman:web"),
        (IN_RUNC, "/crio-abc/libpod-abc", "podman:web"),
        (IN_CRUN, "/machine.slice/libpod-abc.scope/container", "podman:web"),
        (IN_CRUN, "/machine.slice/crio-other.scope/container", "podman:web"),
    ],
)
def test_no_annotation_makes_a_container_of_another_engine_a_pods(
    home: Home, group: str, name: str, notes: dict[str, str]
) -> None:
    assert called(home, group, notes, "web") == name


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.v2()
    return tree


def start(tree: Tree, pid: int, folder: str, group: str) -> None:
    tree.thread(pid, pid, groups=f"0::{group}\n")
    tree.write(f"sys/fs/cgroup{group}/cgroup.threads", f"{pid}\n")
    state = {
        "init_process_pid": pid,
        "init_process_start": STARTED,
        "cgroup_paths": {"": f"{tree.cgroup}{group}"},
        "config": {"labels": [f"{key}={value}" for key, value in OF_CONTAINERD.items()]},
    }
    tree.write(f"{folder}/state.json", json.dumps(state))


def test_a_container_of_dockers_with_a_pods_annotations_does_not_take_the_pods_place(tree: Tree) -> None:
    start(tree, 10, "run/docker/runtime-runc/moby/a", "/docker/a")
    start(tree, 20, "run/containerd/runc/k8s.io/b", "/kubepods/b")
    rules = [ContainerRule("front", "k8s:default/front-*")]
    found = ContainerWorkloads(rules, root=tree.root, proc=tree.proc).discover(0)
    assert [(entry.name, entry.threads) for entry in found.roster] == [
        ("k8s:default/front-1/app", ((20, 20),))
    ]
    assert found.notices == ()
