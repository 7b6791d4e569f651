"""Docker as a place, by a `docker` that is a shell script: what it is told, and what is said if it fails."""

from __future__ import annotations

import os
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.controller import configuration
from dasec.lab.kit.driver import Role
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Tenant
from dasec.lab.kit.tree import Tree
from dasec.lab.load_tool import TOOL_ENVIRONMENT
from experiments.drivers.memcached import Memcached
from experiments.places import docker as docker_place
from experiments.places.docker import InDocker, container, missing_docker, run_command, unloaded_image
from experiments.run.containers import ContainerHome
from guests.engines.image import IMAGE

ENGINE = f"""#!/bin/sh
# A state machine: images that were loaded lie in a file, and so does what was asked.
cd "${{0%/*}}" && echo "$@" >>asked
case $1 in
version) exit 0 ;;
images) test ! -f loaded || cat loaded ;;
load) echo {IMAGE} >loaded ;;
run) cat; echo ended >>asked ;;
inspect) echo 0123abcd $PPID ;;
esac
"""
REFUSES = """#!/bin/sh
echo "docker: Error response from daemon: Conflict. The name is already in use." >&2
echo "See 'docker run --help'." >&2
exit 125
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first folder of PATH; the load tool is in another one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = tmp_path / "tools" / "dasec-load"
    tool.parent.mkdir()
    tool.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv(TOOL_ENVIRONMENT, str(tool))
    return folder


def install(programs: Path, script: str) -> Path:
    """Such a docker; the file that has what it was asked."""
    (programs / "docker").write_text(script)
    (programs / "docker").chmod(0o755)
    return programs / "asked"


def test_a_container_sees_programs_read_only_and_writes_to_its_orders_alone(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = run_command("one", Path("orders"), ("--cpus", "1"))
    volumes = [value for option, value in pairwise(told) if option == "--volume"]
    assert f"{tmp_path}/orders:{tmp_path}/orders" in volumes
    shown = {one.removesuffix(":ro").partition(":")[0] for one in volumes if one.endswith(":ro")}
    assert {"/usr", "/etc", str(tmp_path / "tools")} <= shown
    assert len(shown) == len(volumes) - 1
    assert all(Path(one).exists() for one in shown)  # Docker would make it
    assert not any(Path("/var/lib/docker").is_relative_to(one) for one in shown)
    assert {("--name", "one"), ("--cpus", "1"), ("--workdir", str(tmp_path))} <= set(pairwise(told))


def test_a_host_without_docker_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    said = missing_docker()
    assert said is not None
    assert said.startswith("docker: not found: apt-get install docker.io, or ")
    assert "python -m guests.engines" in said


def test_a_docker_that_does_not_answer_is_one_line_with_its_own_words(programs: Path) -> None:
    install(programs, "#!/bin/sh\necho 'Cannot connect.' >&2; exit 1\n")
    said = missing_docker()
    assert said is not None
    assert said.startswith("docker version: Cannot connect.: start dockerd, or ")
    assert "\n" not in said


def test_the_image_is_loaded_once(programs: Path) -> None:
    asked = install(programs, ENGINE)
    assert missing_docker() is None
    assert [unloaded_image() for _ in range(2)] == [None, None]
    assert [line.split()[0] for line in asked.read_text().splitlines()].count("load") == 1


def test_a_container_ends_with_the_block_that_it_is_for(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = install(programs, ENGINE)
    (tmp_path / "state" / "0123abcd").mkdir(parents=True)
    monkeypatch.setattr(docker_place, "RUNC_IN_DOCKER", tmp_path / "state")
    with container("one", tmp_path, ()) as place:
        assert place.first == os.getpid()
        assert "ended" not in asked.read_text()
    assert asked.read_text().endswith("ended\n")


def test_a_container_that_the_daemon_would_not_find_is_refused_and_ended(
    programs: Path, tmp_path: Path
) -> None:
    asked = install(programs, ENGINE)
    with pytest.raises(Refusal, match="/0123abcd: not found, and the daemon looks there"):
        container("one", tmp_path, ()).__enter__()
    assert asked.read_text().endswith("ended\n")


def test_why_a_container_does_not_start_is_told_in_dockers_words(programs: Path, tmp_path: Path) -> None:
    install(programs, REFUSES)
    with pytest.raises(Refusal, match=r"^docker run one: docker: Error .* already in use\.$"):
        container("one", tmp_path, ()).__enter__()


def test_a_client_is_beside_its_container_and_the_workload_is_all_in_it_but_the_first(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "cgroup.procs").write_text("7\n8\n")
    (tmp_path / "below/cgroup.procs").write_text("9\n")
    place = InDocker("one", ("env", "ROLE=client"), 7, tmp_path)
    child = place.start(("/bin/sh", "-c", "echo $ROLE"), tmp_path / "log", Role.CLIENT)
    assert child.wait(60) == 0
    assert (tmp_path / "log").read_text() == "client\n"
    assert place.pids(child) == (8, 9)
    with pytest.raises(Refusal, match="one: process 8 is a client inside: give it one outside"):
        place.take_out(8)


def test_the_daemon_is_told_of_a_container_by_its_name(tmp_path: Path) -> None:
    tenant = Tenant("cache-0", Memcached(), 2, 10.0)
    place = InDocker("dasec-cache-0", (), 7, tmp_path)
    home = ContainerHome(Tree(1, tmp_path), GroupLayout.SHARED, tenant, place=place)
    (told,) = tomllib.loads(configuration("critical", [home.managed((8, 9))]))["workload"]
    assert told == {"name": "cache-0", "container": "docker:dasec-cache-0"}
