"""A whole daemon manages containers of real engines, and leaves them as they were however either ends."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from dasec.linux import cgroupfs
from guests.engines.cri import Cri
from guests.engines.docker import Docker
from guests.engines.engine import Engine
from guests.engines.lxc import Lxc
from guests.waiting import gone, wait_for

from .managing import (
    RESTLESS,
    Daemon,
    Threads,
    changed,
    group_of,
    inhabitants,
    of_two,
    outsiders,
    restless,
)

pytestmark = [pytest.mark.host, pytest.mark.engines]


def test_a_container_is_as_before_when_the_daemon_has_stopped_and_when_it_was_killed(
    engine: Engine, tmp_path: Path
) -> None:
    """And nobody else was touched: no engine, no monitor, no pause container, no container without a name."""
    engine.start("bystander")
    with of_two(engine, "web") as group:
        before, others = inhabitants(group), outsiders(engine.place, group)
        assert len(others) > 1
        for ending in (signal.SIGTERM, signal.SIGKILL):
            with Daemon(engine.place, tmp_path / ending.name, restless(engine.called("web"))) as daemon:
                wait_for(lambda: _all_written(before.threads, inhabitants(group).threads))
                assert (inhabitants(group).groups == before.groups) == isinstance(engine, Lxc)
                assert changed(others, outsiders(engine.place, group)) == []
                daemon.end(ending)
            assert inhabitants(group) == before
    engine.remove("bystander")


def test_a_container_is_managed_within_two_looks_of_its_start_and_restart_and_leaves_nothing(
    engine: Engine, tmp_path: Path
) -> None:
    called, everybody = engine.called("web"), engine.called("?*")
    with of_two(engine, "db") as group:
        before = inhabitants(group)
        with Daemon(engine.place, tmp_path, restless(everybody)) as daemon:
            engine.start("web")
            started = (time.monotonic_ns(), engine.pid("web"))
            wait_for(lambda: called in daemon.names())
            engine.restart("web")
            restarted = (time.monotonic_ns(), engine.pid("web"))
            wait_for(lambda: _looks_since(daemon, restarted[0]) > 1)
            os.kill(restarted[1], signal.SIGKILL)
            wait_for(lambda: gone(restarted[1]))
            engine.remove("web")
            wait_for(lambda: daemon.names() == {engine.called("db")})
            daemon.end(signal.SIGTERM)
        for since_ns, pid in (started, restarted):
            assert pid in daemon.second_look(since_ns).get(called, ())
        assert inhabitants(group) == before


@pytest.mark.parametrize("name", ["docker", "cri"])
def test_knobs_outlive_the_engine_and_are_put_back_after_it_came_again(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine: Docker | Cri = request.getfixturevalue(name)
    with of_two(engine, "web") as group:
        before = inhabitants(group)
        with Daemon(engine.place, tmp_path, restless(engine.called("web"))) as daemon:
            wait_for(lambda: _all_written(before.threads, inhabitants(group).threads))
            engine.restart_daemon()
            since_ns = time.monotonic_ns()
            wait_for(lambda: _looks_since(daemon, since_ns) > 1)
            assert daemon.second_look(since_ns)[engine.called("web")] == before.pids
            daemon.end(signal.SIGTERM)
        assert inhabitants(group) == before


def test_what_docker_update_sets_stays_docker_s_while_and_after_weights_are_given_inside(
    docker: Docker, tmp_path: Path
) -> None:
    with of_two(docker, "web") as group:
        before = inhabitants(group)
        with Daemon(docker.place, tmp_path, restless("docker:web")) as daemon:
            wait_for(lambda: inhabitants(group).groups != before.groups)
            docker.say("update", "--cpu-shares", "333", "web")
            since_ns = time.monotonic_ns()
            wait_for(lambda: _looks_since(daemon, since_ns) > 2)
            assert _weight(group) == _weight_by(333)
            daemon.end(signal.SIGTERM)
        own = cgroupfs.find_hierarchy().directory(group)
        assert inhabitants(group) == before._replace(
            groups={**before.groups, own: {**before.groups[own], "weight": _weight_by(333)}}
        )


@pytest.mark.parametrize("foreign", ["yield", "reapply"])
def test_docker_update_of_a_weight_that_we_hold_is_answered_as_configured(
    docker: Docker, tmp_path: Path, foreign: str
) -> None:
    """Two containers of one thread each are one workload: then a weight is the container's own."""
    docker.start("web")
    docker.start("db")
    pids = [docker.pid("web"), docker.pid("db")]
    groups = [group_of(pid) for pid in pids]
    before = [_weight(group) for group in groups]
    told = RESTLESS.format(foreign=foreign) + f'[[workload]]\nname = "both"\npids = {pids}\n'
    with Daemon(docker.place, tmp_path, told) as daemon:
        wait_for(lambda: all(map(int.__ne__, map(_weight, groups), before)))
        docker.say("update", "--cpu-shares", "3333", "web")
        daemon.wait_to_say("somebody else")
        if foreign == "yield":
            since_ns = time.monotonic_ns()
            wait_for(lambda: _looks_since(daemon, since_ns) > 2)
            assert _weight(groups[0]) == _weight_by(3333)
        else:
            wait_for(lambda: _weight(groups[0]) != _weight_by(3333))
        daemon.end(signal.SIGTERM)
    assert [_weight(group) for group in groups] == [_weight_by(3333), before[1]], "Docker's, the one before"
    docker.remove("web")
    docker.remove("db")


def _all_written(before: Threads, now: Threads) -> bool:
    """Has each thread a knob that is not as it was?"""
    return all(now.get(vcpu, before[vcpu]) != before[vcpu] for vcpu in before)


def _looks_since(daemon: Daemon, since_ns: int) -> int:
    return sum(clock_ns > since_ns for clock_ns, _ in daemon.looks())


def _weight(group: str) -> int:
    return cgroupfs.read_weight(cgroupfs.find_hierarchy().weight_file(group))


def _weight_by(shares: int) -> int:
    """What Docker writes for `--cpu-shares`: on cgroup v2 runc's ConvertCPUSharesToCgroupV2Value()."""
    return shares if cgroupfs.find_hierarchy().version == 1 else 1 + (shares - 2) * 9999 // 262142
