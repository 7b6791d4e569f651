"""Real engines for all tests of this folder, each in a place of its own: a dockerd that finds a containerd
takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from dasec.linux.cgroupfs import find_hierarchy
from dasec.linux.errors import HierarchyMissing
from guests.engines.cri import Cri
from guests.engines.docker import Docker
from guests.engines.engine import Engine
from guests.engines.lxc import Lxc
from guests.engines.place import Place
from guests.engines.podman import CRUN, Podman
from tests.conftest import refuse, require_host, why_not_engines


def has_v2() -> bool:
    """Are cpu groups those of cgroup v2?"""
    try:
        return find_hierarchy().version == 2
    except HierarchyMissing:
        return False


ENGINES: dict[str, Callable[[Place], Engine]] = {"docker": Docker, "podman": Podman, "cri": Cri, "lxc": Lxc}
WITH_CRUN: dict[str, Callable[[Place], Engine]] = {"crun": partial(Podman, runtime=CRUN)} if has_v2() else {}


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Engine]]:
    """The engine of that name; each is started once."""
    require_host()
    if (reason := why_not_engines()) is not None:
        refuse(reason)
    logs = tmp_path_factory.mktemp("engines")
    places: dict[str, Place] = {}
    known: dict[str, Engine] = {}

    def engine(name: str) -> Engine:
        if name not in known:
            places[name] = Place(logs / name)
            known[name] = (ENGINES | WITH_CRUN)[name](places[name])
        return known[name]

    yield engine
    for place in places.values():
        place.close()


@pytest.fixture
def docker(started: Callable[[str], Engine]) -> Docker:
    engine = started("docker")
    assert isinstance(engine, Docker)
    return engine


@pytest.fixture
def podman(started: Callable[[str], Engine]) -> Podman:
    engine = started("podman")
    assert isinstance(engine, Podman)
    return engine


@pytest.fixture
def cri(started: Callable[[str], Engine]) -> Cri:
    engine = started("cri")
    assert isinstance(engine, Cri)
    return engine


@pytest.fixture(params=ENGINES | WITH_CRUN)
def engine(request: pytest.FixtureRequest, started: Callable[[str], Engine]) -> Engine:
    return started(request.param)
