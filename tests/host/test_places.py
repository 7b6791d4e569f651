"""Applications in groups and containers of this host: they are where they should be, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.lab.kit.driver import Place, Role, WorkOrder
from dasec.lab.kit.place import InGroup
from dasec.lab.kit.tree import Group, Tree
from dasec.lab.kit.workspace import prepared
from dasec.linux.cgroupfs import find_hierarchy, parse_group
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.selftest import run, trial_of
from experiments.places.places import PLACES, InContainer
from guests.waiting import wait_for

from ..conftest import refuse
from .own_tree import own_tree

pytestmark = pytest.mark.host
SELFTEST = [sys.executable, "-m", "experiments.drivers", "selftest"]


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = own_tree(Tree, "places")
    with prepared(made, tmp_path / "prepared"):
        made.make((Group(""), Group("workload"), Group("client")))
        yield made


@pytest.fixture
def inside(tree: Tree, tmp_path: Path) -> InContainer:
    reason = PLACES["container"]()
    if reason is not None:
        refuse(reason)
    (tmp_path / "orders").mkdir()
    return InContainer(tree, "workload", "client", tmp_path / "bundles", (tmp_path / "orders",))


@pytest.fixture(params=["cgroup", "container"])
def place(request: pytest.FixtureRequest, tree: Tree) -> Place:
    if request.param == "cgroup":
        return InGroup(tree, "workload", "client")
    made: Place = request.getfixturevalue("inside")
    return made


def said_by(place: Place, log: Path, script: str, role: Role = Role.WORKLOAD) -> str:
    child = place.start(("/bin/sh", "-c", script), log, role)
    child.communicate()
    return log.read_text()


def cpu_group(lines: str) -> str:
    return parse_group(lines.encode(), find_hierarchy().version)


@pytest.mark.parametrize("role", list(Role))
def test_a_process_is_in_its_group_from_its_first_instruction(
    place: Place, tree: Tree, tmp_path: Path, role: Role
) -> None:
    said = said_by(place, tmp_path / "log", "cat /proc/self/cgroup", role)
    assert cpu_group(said) == f"{tree.name}/{role}"


@pytest.mark.parametrize("name", ["fanout", "memcached"])
def test_an_application_works_there(place: Place, tree: Tree, tmp_path: Path, name: str) -> None:
    outcome = run(DRIVERS[name], place, tmp_path / "orders" / name, replace(trial_of(name), seconds=0.3))
    assert outcome.work > 0
    wait_for(lambda: tree.processes() == frozenset())


def test_a_container_has_processes_and_a_root_of_its_own(inside: InContainer, tmp_path: Path) -> None:
    script = f"echo $$; touch /usr/x || echo read-only; touch {tmp_path}/orders/x && echo written"
    lines = said_by(inside, tmp_path / "log", script).splitlines()
    assert lines[0] == "1"
    assert lines[-2:] == ["read-only", "written"]
    mounts = Path("/proc/self/mounts").read_text()
    assert str(tmp_path) not in mounts


def test_the_processes_of_a_container_are_those_inside(inside: InContainer, tmp_path: Path) -> None:
    """And they end with it."""
    child = inside.start(("/bin/sh", "-c", "sleep 100 & sleep 100"), tmp_path / "log")
    try:
        wait_for(lambda: len(inside.pids(child)) == 3)
        pids = inside.pids(child)
        assert child.pid not in pids
        assert {os.readlink(f"/proc/{pid}/ns/pid") for pid in pids} != {os.readlink("/proc/self/ns/pid")}
        os.kill(pids[0], 9)
        child.wait(10)
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    finally:
        child.kill()
        child.wait()


def test_an_application_in_a_container_is_stopped_by_force(
    inside: InContainer, tree: Tree, tmp_path: Path
) -> None:
    order = WorkOrder("one", 2, 0, 1, 0.1, 50, tmp_path / "orders/one")
    running = DRIVERS["matrixmul"].start(order, inside)
    running.await_up()
    running.begin(time.monotonic_ns())
    assert len(running.pids()) == 1
    running.stop()
    wait_for(lambda: tree.processes() == frozenset())


def test_an_interrupted_self_test_leaves_nothing(repository: Path) -> None:
    command = [*SELFTEST, "--place", "cgroup", "stress-ng-capped"]
    process = subprocess.Popen(command, cwd=repository, stderr=subprocess.PIPE, text=True)
    top = Path(find_hierarchy().mount) / "dasec-apps"
    wait_for(lambda: _is_inhabited(top / "workload"))
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 1
    assert err == "selftest: interrupted: all that it had started is gone\n"
    assert not top.exists()


def _is_inhabited(group: Path) -> bool:
    return group.exists() and bool((group / "cgroup.procs").read_text().split())


def test_the_self_test_leaves_the_host_as_it_was(repository: Path) -> None:
    before = Path("/proc/self/mounts").read_text()
    done = subprocess.run(
        [*SELFTEST, "--place", "cgroup", "fanout", "schbench"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["fanout", "works"]
    assert not list(Path(find_hierarchy().mount).glob("dasec-apps*"))
    assert Path("/proc/self/mounts").read_text() == before
