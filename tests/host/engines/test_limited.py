"""A container with `--cpus`: who computes there is capped below the limit, who serves is not."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.lab.kit.process import name_of
from dasec.lab.load_tool import find_tool
from guests.engines.docker import Docker
from guests.engines.image import IMAGE
from guests.waiting import wait_for

from ..limited import CAPS, LIMITED, OWN_GROUPS, used_ns
from ..test_limits_kept import BINDS, rules
from .managing import Daemon, group_of, inhabitants

pytestmark = [pytest.mark.host, pytest.mark.engines, pytest.mark.timing]

CPUS, QUOTA_S = 0.4, 0.04
SECONDS = 10.0
LIBRARIES = ("/lib", "/lib64", "/usr/lib")
"""What the load tool needs and busybox' image has not."""

TOLD = CAPS + OWN_GROUPS + '[[workload]]\nname = "web"\ncontainer = "docker:web"\n'


@contextmanager
def web(docker: Docker) -> Iterator[str]:
    """The group of a container that serves, beside three threads that compute."""
    tool = find_tool()
    shown = [word for path in (*LIBRARIES, str(tool.parent)) for word in ("--volume", f"{path}:{path}:ro")]
    options = ("--detach", "--name", "web", "--network", "host", "--cpus", f"{CPUS:g}", *shown)
    serves = (str(tool), "service", "--seconds", "60", *LIMITED.split(), "--out", "/dev/null")
    docker.say("run", *options, IMAGE, *serves)
    try:
        group = group_of(docker.pid("web"))
        wait_for(lambda: len(inhabitants(group).threads) > 4)
        yield group
    finally:
        docker.remove("web")


def test_a_container_with_a_limit_keeps_it_and_only_who_computes_is_capped(
    docker: Docker, tmp_path: Path
) -> None:
    with web(docker) as group:
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


def capped(record: Path) -> set[int]:
    """The threads that were given a quota."""
    found: set[int] = set()
    threads: list[int] = []
    for line in map(json.loads, record.read_text().splitlines()):
        if "workloads" in line:
            threads = [vcpu[1] for one in line["workloads"] for vcpu in one["vcpus"]]
        found |= {threads[row[0]] for row in line.get("results", ()) if row[1] == "cap"}
    return found
