"""A container with `--cpus`: who computes there is capped below the limit, who serves is not."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from dasec.lab.kit.process import name_of
from dasec.lab.load_tool import find_tool
from guests.engines.docker import Docker
from guests.engines.image import IMAGE
from guests.waiting import wait_for

from ..limited import CAPS, LIMITED, OWN_GROUPS, used_ns
from ..running import loaded
from ..test_caps_effect import LEFT
from ..test_limits_kept import BINDS, rules
from .managing import Daemon, group_of, inhabitants

pytestmark = [pytest.mark.host, pytest.mark.engines, pytest.mark.timing]

CPUS, QUOTA_S = 0.4, 0.04
SECONDS = 10.0
LIBRARIES = ("/lib", "/lib64", "/usr/lib")
"""What the load tool needs and busybox' image has not."""

TOLD = CAPS + OWN_GROUPS + '[[workload]]\nname = "web"\ncontainer = "docker:web"\n'


@contextmanager
def web(docker: Docker, cpus: float | None, service: str) -> Iterator[str]:
    """The group of a container that serves, beside three threads that compute."""
    tool = find_tool()
    shown = [word for path in (*LIBRARIES, str(tool.parent)) for word in ("--volume", f"{path}:{path}:ro")]
    limit = () if cpus is None else ("--cpus", f"{cpus:g}")
    options = ("--detach", "--name", "web", "--network", "host", *limit, *shown)
    docker.say("run", *options, IMAGE, str(tool), "service", *service.split())
    try:
        group = group_of(docker.pid("web"))
        wait_for(lambda: len(inhabitants(group).threads) > 4)
        yield group
    finally:
        docker.remove("web")


def test_a_container_with_a_limit_keeps_it_and_only_who_computes_is_capped(
    docker: Docker, tmp_path: Path
) -> None:
    with web(docker, CPUS, f"--seconds 60 {LIMITED} --out /dev/null") as group:
        before = inhabitants(group)
        threads = {vcpu.tid: name_of(vcpu.pid, vcpu.tid) for vcpu in before.threads}
        with Daemon(docker.place, tmp_path, TOLD) as daemon:
            begun_s, begun_ns = time.monotonic(), sum(map(used_ns, threads))
            time.sleep(SECONDS)
            used_s, took_s = (sum(map(used_ns, threads)) - begun_ns) / 1e9, time.monotonic() - begun_s
            daemon.end(signal.SIGTERM)
        print(f"{used_s / took_s:.4f} of {CPUS} CPUs; {rules(tmp_path / 'record')}")
        assert BINDS * CPUS * took_s < used_s <= 1.01 * CPUS * took_s + QUOTA_S
        assert rules(tmp_path / "record")["bandwidth.cap"] > 0
        assert {threads[tid] for tid in capped(tmp_path / "record")} == {"bg-0", "bg-1", "bg-2"}
        assert inhabitants(group) == before


ROUNDS = 4
ONE_CPU = 1.0
ASKED = (
    "--feeder --answers --helpers 0 --serial-us 1100 --rate 200 --background 3 --background-burst-us 10000"
    " --background-rate 280 --warmup 4 --seconds 8"
)
"""One thread that wants 22 % of a CPU and three that always compute; the daemon begins in the warm-up."""


class Served(NamedTuple):
    """By one container. `background_s`: CPU time of those that compute."""

    p99_ms: float
    background_s: float


def served(docker: Docker, cpus: float | None, speed: float, place: Path, told: str | None) -> Served:
    """What a container that lives until all is served says in the end; beside it a daemon that is `told`."""
    with web(docker, cpus, f"{ASKED} --iterations-per-us {speed:.1f}"):
        if told is None:
            docker.say("wait", "web")
        else:
            with Daemon(docker.place, place, told) as daemon:
                docker.say("wait", "web")
                daemon.end(signal.SIGTERM)
        said = json.loads(docker.say("logs", "web").splitlines()[-1])
    return Served(said["latency_ns"]["p99"] / 1e6, said["background"]["cpu_s"])


@pytest.mark.slow
def test_caps_give_a_container_the_latency_back_that_its_limit_took(docker: Docker, tmp_path: Path) -> None:
    with loaded("threads", "--seconds", "0.2", "--threads", "1") as (tool, _):
        speed = json.loads(tool.communicate()[0].splitlines()[-1])["iterations_per_us"]
    arms = {
        "no limit": (None, None),
        "limit": (ONE_CPU, None),
        "limit again": (ONE_CPU, None),
        "caps": (ONE_CPU, TOLD),
        "caps and burst": (ONE_CPU, TOLD.replace("caps = true", "caps = true\nburst = true")),
    }
    found: dict[str, list[Served]] = {arm: [] for arm in arms}
    for number in range(ROUNDS):
        for arm, (cpus, told) in arms.items():
            found[arm].append(served(docker, cpus, speed, tmp_path / f"{number} {arm}", told))
            print(
                f"{arm}: p99 {found[arm][-1].p99_ms:.1f} ms, background {found[arm][-1].background_s:.2f} s"
            )
    p99 = {arm: median(one.p99_ms for one in each) for arm, each in found.items()}
    background = {arm: median(one.background_s for one in each) for arm, each in found.items()}
    assert p99["caps"] < p99["limit"] / 2
    assert background["caps"] > LEFT * background["limit"]


def capped(record: Path) -> set[int]:
    """The threads that were given a quota."""
    found: set[int] = set()
    threads: list[int] = []
    for line in map(json.loads, record.read_text().splitlines()):
        if "workloads" in line:
            threads = [vcpu[1] for one in line["workloads"] for vcpu in one["vcpus"]]
        found |= {threads[row[0]] for row in line.get("results", ()) if row[1] == "cap"}
    return found
