"""Experiments in containers of a real Docker: the daemon finds them, and nothing is left however one ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dasec.lab.kit.process import within
from guests.engines.docker import Docker
from guests.waiting import wait_for
from tests.host.test_loads import check_nothing_is_left

pytestmark = [pytest.mark.host, pytest.mark.engines]

FILE = "experiments/studies/paper/fig14/docker.toml"
SHORT = ("seconds=1", "warmup_s=0.5", "repetitions=1", "ratios=[2]", 'policies=["critical"]')


def beside(docker: Docker, repository: Path, *words: str) -> list[str]:
    """A command of ours that sees this Docker."""
    return docker.place.inside(*within(repository, {}, (sys.executable, "-m", *words)))


def run(out: Path, more: Sequence[str] = ()) -> list[str]:
    settings = [word for setting in (*SHORT, *more) for word in ("--set", setting)]
    return ["experiments", "run", FILE, "--anyway", "--out", str(out), *settings]


def ours(docker: Docker) -> list[str]:
    """The containers that experiments have started."""
    return docker.say("ps", "--all", "--quiet", "--filter", "name=dasec-").split()


@pytest.mark.parametrize("name", ["fanout", "memcached"])
def test_an_application_works_in_a_container_and_leaves_nothing(
    docker: Docker, repository: Path, name: str
) -> None:
    command = beside(docker, repository, "experiments.drivers", "selftest", "--place", "docker", name)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == [name, "works"], done.stdout + done.stderr
    assert ours(docker) == []


@pytest.mark.slow
def test_the_daemon_manages_the_containers_of_an_experiment(
    docker: Docker, repository: Path, tmp_path: Path
) -> None:
    command = beside(docker, repository, *run(tmp_path / "out"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = (tmp_path / "out/raw").glob("*/0-critical.jsonl")
    lines = map(json.loads, record.read_text().splitlines())
    seen = [one for line in lines for one in line.get("workloads", ())]
    found = {one["name"]: {thread[3] for thread in one["vcpus"]} for one in seen}
    assert set(found) == {"memcached-0", "memcached-1"}
    assert all("mc-worker" in names for names in found.values())
    assert ours(docker) == []
    check_nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_container_outlives_the_experiment_that_started_it(
    docker: Docker, repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    command = beside(docker, repository, *run(tmp_path / "out", ["seconds=100"]))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: len(ours(docker)) == 2 or process.poll() is not None)
        process.send_signal(number)
        process.communicate()
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: ours(docker) == [])
    wait_for(lambda: not Path("/sys/fs/cgroup/cpu/dasec-demo").exists())
