"""What looking for containers costs, on a machine made of files: CPU time of one look.

    python experiments/studies/costs/container_looks/measure.py

A machine has so many containers of an engine that run, and so many that are stopped. Nothing changes between
the looks, of which the first is not counted: it reads every file.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from dasec.linux.cgroupfs import Hierarchy
from dasec.workloads.containers.directory import ContainerDirectory
from dasec.workloads.containers.engines import (
    DOCKER,
    DOCKER_NAMES,
    PODMAN,
    PODMAN_NAMES,
    RUNC,
    RUNC_IN_DOCKER,
)

MACHINES = ((PODMAN, 20, 0), (PODMAN, 80, 0), (PODMAN, 80, 300), (DOCKER, 20, 0), (DOCKER, 150, 0))
LOOKS = 50
STARTED = 1000
FILLING = "x" * 600
"""Podman's entries have layers and metadata, of about so many bytes; Docker's files some times as many."""


def container_id(number: int) -> str:
    return f"{number:064x}"


def machine(root: Path, engine: str, running: int, stopped: int) -> ContainerDirectory:
    """All files that a look reads."""
    state = root / (RUNC_IN_DOCKER if engine == DOCKER else RUNC)
    for number in range(running):
        pid, group, name = 1000 + number, f"/{engine}/{container_id(number)}", container_id(number)
        task = root / f"proc/{pid}/task/{pid}"
        task.mkdir(parents=True)
        (task / "cgroup").write_text(f"0::{group}\n")
        (task / "stat").write_text(f"{pid} (app) S {'0 ' * 18}{STARTED} {'0 ' * 30}\n")
        (state / name).mkdir(parents=True)
        said = {
            "init_process_pid": pid,
            "init_process_start": STARTED,
            "cgroup_paths": {"": f"/cgroup{group}"},
        }
        (state / name / "state.json").write_text(json.dumps(said))
    if engine == DOCKER:
        for number in range(running + stopped):
            path = root / DOCKER_NAMES / container_id(number) / "config.v2.json"
            path.parent.mkdir(parents=True)
            config = {"Labels": {"app": "web"}, "Env": [FILLING] * 5}
            path.write_text(json.dumps({"Name": f"/web-{number}", "Config": config}))
    else:
        path = root / PODMAN_NAMES[0]
        path.parent.mkdir(parents=True)
        ids = range(running + stopped)
        path.write_text(
            json.dumps(
                [{"id": container_id(one), "names": [f"web-{one}"], "metadata": FILLING} for one in ids]
            )
        )
    return ContainerDirectory(root, Hierarchy(2, "/cgroup", "/"), str(root / "proc"))


def look_ms(engine: str, running: int, stopped: int) -> float:
    """The median."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        directory = machine(Path(folder), engine, running, stopped)
        assert len({one.name for one in directory.look()}) == running
        took = []
        for _ in range(LOOKS):
            started_ns = time.thread_time_ns()
            directory.look()
            took.append((time.thread_time_ns() - started_ns) / 1e6)
    return statistics.median(took)


def main() -> None:
    """Measure and print."""
    for engine, running, stopped in MACHINES:
        print(f"{engine}, {running} run, {stopped} are stopped: {look_ms(engine, running, stopped):.2f} ms")


if __name__ == "__main__":
    main()
