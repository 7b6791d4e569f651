"""Real engines for all tests of this folder, in one place of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dasec.linux.cgroupfs import find_hierarchy
from guests.engines.cri import Cri
from guests.engines.docker import Docker
from guests.engines.engine import Engine
from guests.engines.lxc import Lxc
from guests.engines.place import Place
from guests.engines.podman import Podman
from tests.conftest import refuse, require_host, why_not_engines

ENGINES: dict[str, Callable[[Place], Engine]] = {"docker": Docker, "podman": Podman, "cri": Cri, "lxc": Lxc}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    require_host()
    if (reason := why_not_engines()) is not None:
        refuse(reason)
    if find_hierarchy().version != 1:
        refuse("needs cgroup v1, where no engine needs systemd")
    made = Place(tmp_path_factory.mktemp("engines") / "log")
    yield made
    made.close()


@pytest.fixture(scope="session")
def started(place: Place) -> Callable[[str], Engine]:
    """The engine of that name; each is started once."""
    known: dict[str, Engine] = {}

    def engine(name: str) -> Engine:
        if name not in known:
            known[name] = ENGINES[name](place)
        return known[name]

    return engine


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


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, started: Callable[[str], Engine]) -> Engine:
    return started(request.param)
