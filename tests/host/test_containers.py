"""Real containers are found by what their runtime writes, followed while they live, and left as they were."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.linux import affinity, schedattr
from dasec.roster import RosterEntry
from dasec.workloads.containers.containers import ContainerRule, ContainerWorkloads
from dasec.workloads.containers.engines import DOCKER_NAMES, RUNC_IN_CONTAINERD, RUNC_IN_DOCKER
from dasec.workloads.discovery import SCAN_NS
from guests.waiting import wait_for
from tests.conftest import refuse

from .oci import Runc
from .running import Running

pytestmark = pytest.mark.host


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def runc_in(state: Path, scratch: Path) -> Iterator[Runc]:
    if shutil.which("runc") is None:
        refuse("needs runc")
    made = Runc(state, scratch)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def docker(root: Path, tmp_path: Path) -> Iterator[Runc]:
    yield from runc_in(root / RUNC_IN_DOCKER, tmp_path / "docker")


@pytest.fixture
def kubernetes(root: Path, tmp_path: Path) -> Iterator[Runc]:
    yield from runc_in(root / RUNC_IN_CONTAINERD / "k8s.io", tmp_path / "kubernetes")


def name_by_docker(root: Path, container: str, name: str) -> None:
    folder = root / DOCKER_NAMES / container
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.v2.json").write_text(json.dumps({"ID": container, "Name": f"/{name}"}))


class Follower:
    """Discovery with a clock of its own, a second a look."""

    def __init__(self, root: Path, *patterns: str) -> None:
        rules = [ContainerRule(f"rule-{number}", pattern) for number, pattern in enumerate(patterns)]
        self._found = ContainerWorkloads(rules, root=root)
        self._clock_ns = 0
        self.notices: list[str] = []

    def look(self) -> dict[str, set[int]]:
        """The processes of each workload."""
        self._clock_ns += SCAN_NS
        found = self._found.discover(self._clock_ns)
        self.notices += found.notices
        return {one.name: pids_of(one) for one in found.roster}


def pids_of(entry: RosterEntry) -> set[int]:
    return {pid for pid, _ in entry.threads}


def test_a_container_is_a_workload_from_its_start_to_its_end(docker: Runc, root: Path) -> None:
    follower = Follower(root, "docker:web-*")
    assert follower.look() == {}
    first = docker.start("c0ffee")
    name_by_docker(root, "c0ffee", "web-1")
    wait_for(lambda: len(follower.look().get("docker:web-1", ())) == 2)
    assert first in follower.look()["docker:web-1"]
    docker.execute("c0ffee")
    wait_for(lambda: len(follower.look()["docker:web-1"]) == 4)
    docker.end("c0ffee")
    assert follower.look() == {}
    again = docker.start("c0ffee")
    wait_for(lambda: again in follower.look().get("docker:web-1", ()))


def test_a_rename_is_followed(docker: Runc, root: Path) -> None:
    docker.start("c0ffee")
    name_by_docker(root, "c0ffee", "web-1")
    follower = Follower(root, "docker:*")
    assert set(follower.look()) == {"docker:web-1"}
    name_by_docker(root, "c0ffee", "db")
    assert set(follower.look()) == {"docker:db"}


def test_pods_have_their_kubernetes_names_and_pause_containers_are_left_alone(
    kubernetes: Runc, root: Path
) -> None:
    pod = {
        "io.kubernetes.cri.sandbox-namespace": "default",
        "io.kubernetes.cri.sandbox-name": "web-7f9",
    }
    kubernetes.start("pause", {**pod, "io.kubernetes.cri.container-type": "sandbox"}, "sleep 1000")
    app = {"io.kubernetes.cri.container-type": "container", "io.kubernetes.cri.container-name": "app"}
    first = kubernetes.start("app", {**pod, **app})
    found = Follower(root, "k8s:default/*").look()
    assert set(found) == {"k8s:default/web-7f9/app"}
    assert first in found["k8s:default/web-7f9/app"]


def test_a_file_whose_process_is_another_one_by_now_is_no_container(docker: Runc, root: Path) -> None:
    docker.start("c0ffee")
    state = root / RUNC_IN_DOCKER / "c0ffee/state.json"
    kept = state.read_text()
    said = json.loads(kept)
    for wrong in (
        {"init_process_pid": os.getpid()},
        {"init_process_start": said["init_process_start"] + 1},
        {"cgroup_paths": {"cpu": "/sys/fs/cgroup/cpu/elsewhere"}},
    ):
        state.write_text(json.dumps({**said, **wrong}))
        assert Follower(root, "docker:*").look() == {}
    state.write_text(kept)
    assert set(Follower(root, "docker:*").look()) == {"docker:c0ffee"}


def test_a_file_that_is_damaged_costs_that_container_only(docker: Runc, root: Path) -> None:
    docker.start("good")
    bad = root / RUNC_IN_DOCKER / "bad"
    bad.mkdir()
    (bad / "state.json").write_bytes(b'{"init_process_pid": \xff')
    (root / RUNC_IN_DOCKER / "link").mkdir()
    (root / RUNC_IN_DOCKER / "link/state.json").symlink_to("/etc/passwd")
    follower = Follower(root, "docker:*")
    assert set(follower.look()) == {"docker:good"}
    assert sum("is left alone" in notice for notice in follower.notices) == 2


REAL = Path("/") / RUNC_IN_DOCKER
CONFIG = """
policy = "static"
period_ms = 20
[guard]
enabled = false
[host]
own_cgroups = true
weights = "on"
[[workload]]
name = "tests"
container = "docker:dasec-test-*"
share = 512
"""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Runc]:
    """Where the daemon looks: as if this machine had Docker."""
    if REAL.exists() and any(REAL.iterdir()):
        refuse(f"{REAL} holds containers of this machine")
    yield from runc_in(REAL, tmp_path / "real")
    for folder in (REAL, *list(REAL.parents)[:2]):
        folder.rmdir()


def knobs(pid: int) -> tuple[int, tuple[int, ...], bytes]:
    return schedattr.get(pid).slice_ns, affinity.get(pid), Path(f"/proc/{pid}/cgroup").read_bytes()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_manages_a_container_and_leaves_it_as_it_was(
    real: Runc, tmp_path: Path, ending: signal.Signals
) -> None:
    config = tmp_path / "dasec.toml"
    config.write_text(CONFIG)
    first = real.start("dasec-test-1")
    before = knobs(first)
    with Running(tmp_path, config) as daemon:
        wait_for(lambda: [one["name"] for one in daemon.status()["workloads"]] == ["docker:dasec-test-1"])
        wait_for(lambda: knobs(first) != before)
        second = real.start("dasec-test-2")
        wait_for(lambda: len(affinity.get(second)) == 1)
        real.end("dasec-test-2")
        wait_for(lambda: [one["name"] for one in daemon.status()["workloads"]] == ["docker:dasec-test-1"])
        os.kill(daemon.pid, ending)
        wait_for(lambda: knobs(first) == before)
