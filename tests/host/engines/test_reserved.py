"""CPUs reserved for real Docker containers: kept, shared in parts, refused whole, given back."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from guests.engines.docker import Docker
from guests.waiting import wait_for

from .managing import Daemon, Inhabitants, group_of, inhabitants, of_two, running

pytestmark = [pytest.mark.host, pytest.mark.engines]

ENDINGS = pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])


def told(**asks: str) -> str:
    """The daemon's configuration: containers by their names, and what is reserved for each."""
    tables = (
        f'[[workload]]\nname = "{name}"\ncontainer = "docker:{name}"\n{ask}\n' for name, ask in asks.items()
    )
    return 'policy = "none"\nbudget_percent = 100\n' + "".join(tables)


def whole(count: int) -> str:
    """rKube's strict."""
    return f'cpu = "whole"\ncpus = {count}'


def exclusive(amount: float) -> str:
    """WYSIWYG's C1."""
    return f'cpu = "exclusive"\ncpus = {amount:g}'


@contextmanager
def containers(docker: Docker, *names: str) -> Iterator[list[str]]:
    """Their groups."""
    with ExitStack() as stack:
        yield [stack.enter_context(of_two(docker, name)) for name in names]


def masks(group: str) -> set[frozenset[int]]:
    """Of all threads of a container."""
    found = [has["affinity"] for has in inhabitants(group).threads.values()]
    return {frozenset(mask) for mask in found if isinstance(mask, tuple)}


def all_of(groups: list[str]) -> list[Inhabitants]:
    return [inhabitants(group) for group in groups]


@ENDINGS
def test_a_whole_cpu_is_of_one_container_until_the_daemon_ends(
    docker: Docker, everywhere: frozenset[int], tmp_path: Path, ending: signal.Signals
) -> None:
    with containers(docker, "web", "batch") as groups:
        before = all_of(groups)
        with Daemon(docker.place, tmp_path, told(web=whole(1), batch="")) as daemon:
            wait_for(lambda: len(masks(groups[1])) == 1 and masks(groups[1]) != {everywhere})
            ((own,), (rest,)) = map(masks, groups)
            assert len(own) == 1
            assert rest == everywhere - own
            docker.execute("web")
            wait_for(lambda: running(groups[0]) == 3 and masks(groups[0]) == {own})
            docker.restart("web")
            wait_for(lambda: running(groups[0]) == 1 and masks(groups[0]) == {own})
            docker.restart("batch")
            wait_for(lambda: masks(groups[1]) == {rest})
            daemon.end(ending)
        assert [each.groups for each in all_of(groups)] == [each.groups for each in before]
        assert [masks(group) for group in groups] == [{everywhere}] * 2


@ENDINGS
def test_parts_of_a_cpu_lie_on_one_cpu_which_those_who_share_may_use_too(
    docker: Docker, everywhere: frozenset[int], tmp_path: Path, ending: signal.Signals
) -> None:
    with containers(docker, "web", "cache", "batch") as groups:
        before = all_of(groups)
        asks = {"web": exclusive(0.5), "cache": exclusive(0.5), "batch": ""}
        with Daemon(docker.place, tmp_path, told(**asks)) as daemon:
            wait_for(lambda: all(len(mask) == 1 for group in groups[:2] for mask in masks(group)))
            assert masks(groups[0]) == masks(groups[1])
            assert len(masks(groups[0])) == 1
            assert masks(groups[2]) == {everywhere}
            seen = docker.say("exec", "web", "/bin/cat", "/proc/1/status")
            ((only,),) = masks(groups[0])
            assert f"Cpus_allowed_list:\t{only}\n" in seen + "\n"
            daemon.end(ending)
        assert all_of(groups) == before


def test_a_reservation_for_which_no_cpu_is_left_is_refused_in_one_line_and_nothing_of_it_is_done(
    docker: Docker, everywhere: frozenset[int], tmp_path: Path
) -> None:
    most = len(everywhere) - 1
    with containers(docker, "web", "db", "batch") as groups:
        before = all_of(groups)
        with Daemon(docker.place, tmp_path, told(web=whole(most), db=whole(1), batch="")) as daemon:
            daemon.wait_to_say("workload db: reservation of CPUs is not kept: ")
            wait_for(lambda: len(masks(groups[2])) == 1 and masks(groups[2]) != {everywhere})
            ((own,), db, batch) = map(masks, groups)
            assert len(own) == most
            assert db == batch == {everywhere - own}
            assert daemon.said("is not kept") == 1
            docker.remove("web")
            wait_for(lambda: len(masks(groups[1])) == 1 and masks(groups[1]) != masks(groups[2]))
            (freed,) = masks(groups[1])
            assert masks(groups[2]) == {everywhere - freed}, "who was refused has what became free"
            docker.start("web")
            daemon.end(signal.SIGTERM)
        assert all_of(groups)[1:] == before[1:]


def test_a_container_that_asks_itself_by_label_gets_no_more_than_all_such_together_may(
    docker: Docker, everywhere: frozenset[int], tmp_path: Path
) -> None:
    asks = {"dasec.io/enable": "true", "dasec.io/cpu": "whole", "dasec.io/cpus": "1"}
    allowed = 'policy = "none"\nbudget_percent = 100\n[containers]\nannotations = true\nmost_cpus = 1\n'
    for name in ("db", "web"):
        docker.start(name, asks)
    db, web = (group_of(docker.pid(name)) for name in ("db", "web"))
    with Daemon(docker.place, tmp_path, allowed) as daemon:
        daemon.wait_to_say("workload docker:web: reservation of CPUs is not kept: asks for 1 CPU by itself")
        wait_for(lambda: masks(web) != {everywhere})
        (own,) = masks(db)
        assert len(own) == 1
        assert masks(web) == {everywhere - own}
        docker.remove("db")
        wait_for(
            lambda: len(masks(web)) == 1 and daemon.said("docker:web: reservation of CPUs is kept now") == 1
        )
        daemon.end(signal.SIGTERM)
    assert masks(web) == {everywhere}
    docker.remove("web")
