"""Containers of real engines are found by what these leave on the machine, and followed while they live."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from dasec.roster import RosterEntry
from dasec.workloads.containers.containers import ContainerRule, ContainerWorkloads
from dasec.workloads.discovery import SCAN_NS
from guests.engines.cri import Cri
from guests.engines.docker import Docker
from guests.engines.engine import Engine
from guests.engines.lxc import Lxc
from guests.engines.podman import Podman

from .conftest import WITH_CRUN

pytestmark = [pytest.mark.host, pytest.mark.engines]

PERIOD_NS = 80_000_000
ENABLED = {"dasec.io/enable": "true"}


class Follower:
    """Discovery of the containers in an engine's place, with a clock of its own."""

    def __init__(self, engine: Engine, *patterns: str, most_share: int | None = None) -> None:
        rules = [ContainerRule(f"rule-{number}", pattern) for number, pattern in enumerate(patterns)]
        self._found = ContainerWorkloads(rules, most_share=most_share, root=engine.place.root)
        self._clock_ns = 0
        self.notices: list[str] = []

    def look(self, after_ns: int = PERIOD_NS) -> Mapping[str, RosterEntry]:
        self._clock_ns += after_ns
        found = self._found.discover(self._clock_ns)
        self.notices += found.notices
        return {entry.name: entry for entry in found.roster}

    def look_twice(self) -> Mapping[str, set[int]]:
        """The processes of each workload at the second look from now."""
        self.look()
        return {name: {pid for pid, _ in entry.threads} for name, entry in self.look().items()}


@contextmanager
def running(engine: Engine, name: str, notes: Mapping[str, str] | None = None) -> Iterator[int]:
    """A container, and its first process."""
    engine.start(name, notes or {})
    try:
        yield engine.pid(name)
    finally:
        engine.remove(name)


def everybody_of(engine: Engine) -> str:
    return f"{engine.called('x').partition(':')[0]}:*"


def test_a_container_is_found_within_two_looks_of_its_start_its_restart_and_its_end(engine: Engine) -> None:
    follower, called = Follower(engine, everybody_of(engine)), engine.called("web")
    assert follower.look_twice() == {}
    engine.start("web")
    first = engine.pid("web")
    assert first in follower.look_twice()[called]
    engine.execute("web")
    engine.restart("web")
    second = engine.pid("web")
    found = follower.look_twice()
    assert second in found[called]
    assert first not in found[called]
    assert set(found) == {called}
    engine.remove("web")
    assert follower.look_twice() == {}


def test_whoever_joins_a_container_belongs_to_it_within_two_scans(engine: Engine) -> None:
    follower, called = Follower(engine, everybody_of(engine)), engine.called("web")
    with running(engine, "web"):
        before = follower.look_twice()[called]
        engine.execute("web")
        joined: set[int] = set()
        while not joined:  # lxc-attach is on its way
            joined = {pid for pid, _ in follower.look(SCAN_NS)[called].threads} - before
        assert follower.look_twice()[called] >= before | joined


def test_two_containers_are_two_workloads(engine: Engine) -> None:
    follower = Follower(engine, everybody_of(engine))
    with running(engine, "web") as web, running(engine, "db") as db:
        found = follower.look_twice()
        assert set(found) == {engine.called("web"), engine.called("db")}
        assert web in found[engine.called("web")]
        assert db in found[engine.called("db")]
        assert not found[engine.called("web")] & found[engine.called("db")]


def test_a_name_without_a_pattern_keeps_the_workloads_name(engine: Engine) -> None:
    follower = Follower(engine, engine.called("web"))
    with running(engine, "web") as pid, running(engine, "other"):
        assert follower.look_twice() == {"rule-0": {pid}}


def test_only_a_system_with_an_init_of_its_own_keeps_its_groups_for_itself(engine: Engine) -> None:
    follower = Follower(engine, everybody_of(engine))
    with running(engine, "web"):
        (entry,) = follower.look().values()
        assert bool(entry.terms) == isinstance(engine, Lxc)


def test_docker_and_podman_rename_and_are_followed(docker: Docker, podman: Podman) -> None:
    for engine in (docker, podman):
        follower = Follower(engine, everybody_of(engine))
        with running(engine, "web") as pid:
            assert follower.look_twice() == {engine.called("web"): {pid}}
            engine.say("rename", "web", "shop")
            assert {name: set(entry.threads) for name, entry in follower.look(SCAN_NS).items()} == {
                engine.called("shop"): {(pid, pid)}
            }
            engine.say("rename", "shop", "web")


def test_a_paused_container_stays_a_workload(docker: Docker) -> None:
    follower = Follower(docker, "docker:*")
    with running(docker, "web") as pid:
        for word in ("pause", "unpause"):
            docker.say(word, "web")
            assert follower.look_twice() == {"docker:web": {pid}}


def test_containers_outlive_their_engine_and_stay_workloads(docker: Docker, cri: Cri) -> None:
    for engine in (docker, cri):
        follower = Follower(engine, everybody_of(engine))
        with running(engine, "web") as pid:
            before = follower.look_twice()
            assert pid in before[engine.called("web")]
            engine.restart_daemon()
            assert follower.look_twice() == before


def test_a_pods_pause_container_is_nobodys(cri: Cri) -> None:
    follower = Follower(cri, "k8s:*", "containerd:*", most_share=1024)
    with running(cri, "web-7f9", ENABLED) as pid:
        assert follower.look_twice() == {"k8s:default/web-7f9/app": {pid}}
        assert cri.pause_pid("web-7f9") != pid


@pytest.mark.parametrize("name", ["docker", "podman", "cri", *WITH_CRUN])
def test_a_container_opts_in_by_itself_only_where_it_may(name: str, started: Callable[[str], Engine]) -> None:
    engine = started(name)
    heard, deaf = Follower(engine, most_share=1024), Follower(engine, everybody_of(engine)[:-1] + "nobody")
    asks = {**ENABLED, "dasec.io/share": "4096"}
    with (
        running(engine, "web", asks),
        running(engine, "quiet"),
        running(engine, "out", {**asks, **dict.fromkeys(ENABLED, "no")}),
    ):
        assert {one.name: one.share for one in heard.look().values()} == {engine.called("web"): 1024}
        assert any("it gets 1024" in notice for notice in heard.notices)
        assert deaf.look() == {}
