"""What the tests of the role share: the daemon's own words, and two versions of a package that says them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.service.status import Absent, read

from ..unit.service.periods import busy_history
from ..unit.service.test_status import Clock, told
from .trees import CONFIG, Fleet, Host, package, write


@pytest.fixture(scope="session")
def well(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What `dasec status --json` says on a host where all is well, by the daemon's own writer and reader."""
    directory, clock = tmp_path_factory.mktemp("status"), Clock()
    told(directory, clock, busy_history(2))
    status = read(directory, clock.now_ns)
    assert not isinstance(status, Absent)
    return {"running": True, **status, "own_cpu_percent": 0.4, "budget_percent": 1.0}


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory, well: dict[str, object]) -> Path:
    return package(tmp_path_factory.mktemp("packages"), "1.0", well)


@pytest.fixture(scope="session")
def new(tmp_path_factory: pytest.TempPathFactory, well: dict[str, object]) -> Path:
    return package(tmp_path_factory.mktemp("packages"), "2.0", well)


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory, old: Path) -> Host:
    """One on which the playbook put 1.0, and then a person a file of their own."""
    fleet = Fleet(tmp_path_factory.mktemp("one"), ("h1",))
    one = Host.bare(fleet.directory / "h1")
    outcome = fleet.roll_out(dasec_package=old, dasec_config=CONFIG)
    assert outcome.status == 0, outcome.said
    write(one.root / "etc/dasec/notes", "mine\n", 0o640)
    return one
