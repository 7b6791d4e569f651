"""The DaemonSet's pod needs all that it is given: without any one thing it fails, or says what it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dasec.linux.cgroupfs import find_hierarchy
from guests.waiting import gone, wait_for

from .in_pod import ASKS, Daemon, begin, capabilities, engine, shipped
from .manifests import container_of, pod_of
from .pod import Pod

pytestmark = pytest.mark.host

NAMESPACE = "nsenter --cgroup=/proc/1/ns/cgroup"
NO_COUNTERS = "counters are read from /proc, thread by thread: the kernel refuses the BPF object"
RIGHTS = {
    "SYS_NICE": "cannot write any knob: sched_setaffinity: Operation not permitted",
    "DAC_OVERRIDE": "cannot move to the cgroup dasec-keeper-test: [Errno 13] Permission denied",
    "BPF": NO_COUNTERS,
    "PERFMON": NO_COUNTERS,
    "SYS_PTRACE": "nsenter: cannot open /proc/",
    "SYS_ADMIN": "nsenter: reassociate to namespace 'ns/cgroup' failed",
}
"""What is said without it."""

VOLUMES = {
    "config": "/etc/dasec/dasec.toml: No such file or directory",
    "state": "/run/dasec: Read-only file system",
    "cgroup": "cannot move to the cgroup dasec-keeper-test",
}
"""What is said without it; of the last, `containerd`, nothing is said."""


@contextmanager
def started(place: Path, manifest: Mapping[str, Any]) -> Iterator[tuple[Pod, int]]:
    """A pod of that manifest beside somebody who asks for a CPU, and the daemon's process."""
    with engine(place, manifest) as pod:
        pod.start_other(ASKS)
        yield pod, begin(pod, place, shipped())
        pod.stop()


def without_volume(name: str) -> dict[str, Any]:
    """The pod; a container that is there to prepare that volume goes, too."""
    pod = pod_of("base")
    (container,) = pod["containers"]
    container["volumeMounts"] = [each for each in container["volumeMounts"] if each["name"] != name]
    pod["initContainers"] = [each for each in pod["initContainers"] if name not in volumes(each)]
    return pod


def volumes(container: Mapping[str, Any]) -> set[str]:
    """What it mounts, by name."""
    return {each["name"] for each in container["volumeMounts"]}


def test_with_all_of_it_a_pod_is_managed_and_the_daemon_itself_may_not_leave_its_namespaces(
    tmp_path: Path,
) -> None:
    with engine(tmp_path) as pod:
        daemon = Daemon(pod, tmp_path, pod.start_other(ASKS), shipped())
        wait_for(pod.is_ready)
        for pid in (daemon.pid, daemon.keeper):
            assert capabilities(pid) == RIGHTS.keys() - {"SYS_PTRACE", "SYS_ADMIN"}
        assert [line for line in (*RIGHTS.values(), *VOLUMES.values()) if line in pod.said()] == []
        pod.stop()
        wait_for(lambda: gone(daemon.keeper))
        assert daemon.knobs() == daemon.before


@pytest.mark.parametrize("name", RIGHTS)
def test_without_one_of_its_capabilities_it_fails_or_does_less(tmp_path: Path, name: str) -> None:
    pod = pod_of("base")
    (container,) = pod["containers"]
    assert RIGHTS.keys() == set(container["securityContext"]["capabilities"]["add"])
    container["securityContext"]["capabilities"]["add"].remove(name)
    container["command"] = [
        re.sub(f"cap_{name.lower()},|,cap_{name.lower()}(?==)", "", word) for word in container["command"]
    ]
    with started(tmp_path, pod) as (running, _):
        wait_for(lambda: RIGHTS[name] in running.said())


@pytest.mark.parametrize("name", VOLUMES)
def test_without_one_of_its_volumes_it_does_not_start(tmp_path: Path, name: str) -> None:
    assert volumes(container_of("base")) == VOLUMES.keys() | {"containerd"}
    with started(tmp_path, without_volume(name)) as (pod, daemon):
        wait_for(lambda: VOLUMES[name] in pod.said())
        wait_for(lambda: gone(daemon))


@pytest.mark.parametrize("what", ["containerd", "hostPID"])
def test_without_what_runs_on_the_host_nobody_opts_in(tmp_path: Path, what: str) -> None:
    manifest = without_volume(what) | ({"hostPID": False} if what == "hostPID" else {})
    with started(tmp_path, manifest) as (pod, daemon):
        if what == "hostPID" and find_hierarchy().version == 2:
            # Its first process is in the container's own cgroup namespace, which v1 has none of.
            wait_for(lambda: gone(daemon))
            assert NAMESPACE in pod.said()
            return
        wait_for(lambda: pod.is_ready() and pod.status()["periods"] > 10)
        assert pod.status()["workloads"] == []
