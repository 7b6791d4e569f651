"""A daemon in its pod, with one workload that it has changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dasec.linux import affinity, cgroupfs, schedattr
from dasec.linux.schedattr import SchedAttr
from guests.waiting import gone, wait_for
from tests.conftest import refuse

from .manifests import rendered
from .pod import Pod

KEEPER_CGROUP = "dasec-keeper-test"
MEMORY_BYTES = 192 << 20

STATIC = f"""policy = "static"
[host]
own_cgroups = true
keeper_cgroup = "{KEEPER_CGROUP}"
"""
NAMED = STATIC + '[[workload]]\nname = "burner"\npids = [{}]\n'
OPTS_IN = STATIC + "[containers]\nannotations = true\n"

ASKS = {"dasec.io/enable": "true", "dasec.io/cpu": "whole", "dasec.io/cpus": "1"}
"""Under any policy it has another mask then."""

NAMES = {1: "DAC_OVERRIDE", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 23: "SYS_NICE", 38: "PERFMON", 39: "BPF"}
"""Of linux/capability.h."""


def shipped() -> str:
    """The ConfigMap's configuration, with a keeper's group of the tests, and room for what ASKS wants."""
    (config,) = (each for each in rendered("base") if each["kind"] == "ConfigMap")
    told = str(config["data"]["dasec.toml"])
    for before, after in (
        ('"dasec-keeper"', f'"{KEEPER_CGROUP}"\nweights = "on"'),
        ("annotations = true", "annotations = true\nmost_cpus = 1"),
    ):
        assert before in told
        told = told.replace(before, after)
    return told


def begin(pod: Pod, place: Path, told: str) -> int:
    """All containers of the pod, with this configuration; the daemon's process."""
    folder = place / "etc"
    folder.mkdir()
    config = folder / "dasec.toml"
    config.write_text(told)
    pod.prepare(config)
    return pod.start(config)


class Daemon:
    """One in a container; the workload is a process on the host."""

    def __init__(self, pod: Pod, place: Path, workload: int, told: str) -> None:
        self.pod, self._workload = pod, workload
        self.before = self.knobs()
        self.pid = begin(pod, place, told)
        wait_for(lambda: self.is_managing() or gone(self.pid))
        assert not gone(self.pid), pod.said()
        (self.keeper,) = (int(word) for word in _members(KEEPER_CGROUP, "cpu"))

    def knobs(self) -> list[tuple[tuple[int, ...], SchedAttr, bytes]]:
        """Mask, nice and slice, and groups of each thread of the workload."""
        return [
            (
                affinity.get(int(task.name)),
                schedattr.get(int(task.name)),
                (task / "cgroup").read_bytes(),
            )
            for task in sorted(Path(f"/proc/{self._workload}/task").iterdir())
        ]

    def is_managing(self) -> bool:
        """Has it changed every thread?"""
        return all(was != now for was, now in zip(self.before, self.knobs(), strict=True))


@contextmanager
def engine(
    place: Path, manifest: Mapping[str, Any] | None = None, image: Path | None = None
) -> Iterator[Pod]:
    """A containerd that can run the pod; when it has ended, so has the keeper's group."""
    for program in ("containerd", "ctr", "runc", "capsh"):
        if shutil.which(program) is None:
            refuse(f"needs {program}")
    state = place / "state"
    state.mkdir()
    with Pod(place, {"/run/dasec": state}, MEMORY_BYTES, manifest, image).engine() as pod:
        yield pod
    wait_for(lambda: not any(Path(mount, KEEPER_CGROUP).exists() for mount in cgroupfs.tops()))


def capabilities(pid: int) -> set[str]:
    """What a process may do, as the manifest calls it; any other by its number."""
    held = int(Path(f"/proc/{pid}/status").read_text().split("CapPrm:")[1].split()[0], 16)
    return {NAMES.get(bit, str(bit)) for bit in range(held.bit_length()) if held & 1 << bit}


def _members(name: str, controller: str) -> list[str]:
    return (
        Path(cgroupfs.find_hierarchy(controller=controller).mount, name, "cgroup.procs").read_text().split()
    )
