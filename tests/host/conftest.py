"""What many tests of this kernel begin with, and end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.bpf.wake_edges import BpfEdges
from dasec.linux import cpus
from dasec.model import Level
from guests.libvirtd import Libvirtd
from tests.conftest import refuse
from tests.contract.stage import MainlineStage

from ..unit.service.command import NOBODY
from .group import TestGroup
from .monitors import SCHEDULED, TRACED, Monitors
from .planted import Actor
from .running import RATE, loaded


@pytest.fixture(scope="session")
def libvirtd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Libvirtd]:
    """One for all tests: its first look at QEMU takes four seconds."""
    started = Libvirtd(tmp_path_factory.mktemp("libvirtd") / "log")
    yield started
    started.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[MainlineStage]:
    """The mainline host, writing."""
    made = MainlineStage(tmp_path / "state", dry_run=False)
    yield made
    made.close()


@pytest.fixture
def everywhere() -> frozenset[int]:
    """Two CPUs at least, all of them for us."""
    here = frozenset(os.sched_getaffinity(0))
    if len(here) < 2 or here != cpus.online() - cpus.isolated():
        refuse("needs two CPUs, all of them for us")
    return here


@pytest.fixture
def group() -> Iterator[TestGroup]:
    """A heavy group of the test's own."""
    made = TestGroup("host")
    yield made
    made.close()


@pytest.fixture
def busy() -> Iterator[list[int]]:
    """The tids of a process whose threads burn now and then; its pid is the first."""
    with loaded("threads", "--threads", "7", "--burst-us", "300", "--rate", str(RATE)) as (process, ready):
        yield [process.pid, *ready["tids"]]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that nobody can enter and write to; those of pytest are root's own."""
    folder = Path("/tmp") / f"dasec-test-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.fixture(params=[Level.EDGES, Level.FULL])
def level(request: pytest.FixtureRequest) -> Level:
    return Level(request.param)


@pytest.fixture(params=[TRACED, SCHEDULED])
def monitors(request: pytest.FixtureRequest) -> Iterator[Monitors]:
    made = Monitors(request.param)
    yield made
    made.close()


@pytest.fixture
def monitor(monitors: Monitors, level: Level) -> BpfEdges:
    return monitors.open(level, slots=64, edges=256)


@pytest.fixture
def actors() -> Iterator[list[Actor]]:
    cast: list[Actor] = []
    yield cast
    for actor in cast:
        actor.end()
