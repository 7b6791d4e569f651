"""A container of Docker's as the place of a workload, by the `docker` that is in PATH: the host's programs,
and its network."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dasec.lab.kit.driver import CONTAINER, Role
from dasec.lab.kit.errors import failure
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import spawn
from dasec.lab.load_tool import find_tool
from dasec.linux import cgroupfs
from guests.engines.engine import PROGRAM
from guests.engines.image import IMAGE

SHOWN = ("/usr", "/lib", "/lib64", "/etc")
"""Of the host, read-only: what programs need that busybox' image has not."""

FIRST = ("chrt", "--fifo", "1")
"""Who asks goes before all that is measured (decision 0082)."""


def docker(*words: str) -> str:
    """What it answers. Refusal if it fails."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise failure(f"docker {words[0]}: {said[-1]}")
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class InDocker:
    """A container that runs, whose first process does nothing."""

    listens_at: ClassVar[str] = LOOPBACK
    container: str
    first: int
    """That process."""
    group: Path
    """Its directory in the cpu hierarchy."""

    @property
    def name(self) -> str:
        """As in the protocol."""
        return CONTAINER

    def start(
        self,
        command: Sequence[str],
        log: Path,
        role: Role = Role.WORKLOAD,
        serves: Sequence[int] = (),  # noqa: ARG002  # the interface of places
    ) -> subprocess.Popen[bytes]:
        """By `docker exec`; a client beside the container."""
        if role is Role.CLIENT:
            return spawn((*FIRST, *command), log)
        return spawn(("docker", "exec", "--interactive", self.container, *command), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:  # noqa: ARG002
        """All of the container's but the first, whoever started them: Docker does not say."""
        found: set[int] = set()
        for group in (self.group, *self.group.rglob("*/")):
            with contextlib.suppress(OSError):
                found.update(map(int, (group / "cgroup.procs").read_text().split()))
        return tuple(sorted(found - {self.first}))

    def take_out(self, pid: int) -> None:
        """Nobody can."""
        raise failure(f"{self.container}: process {pid} is a client inside: give it one outside")


@contextlib.contextmanager
def container(name: str, options: Sequence[str], writable: Path) -> Iterator[InDocker]:
    """As long as the block runs."""
    shown = (*SHOWN, str(find_tool().parent))
    volumes = [word for path in shown for word in ("--volume", f"{path}:{path}:ro")]
    volumes += ["--volume", f"{writable}:{writable}"]
    docker("run", "--detach", "--name", name, "--network", "host", *options, *volumes, IMAGE, *PROGRAM)
    try:
        first = int(docker("inspect", "--format", "{{.State.Pid}}", name))
        hierarchy = cgroupfs.find_hierarchy()
        yield InDocker(name, first, Path(hierarchy.directory(hierarchy.group_of(first, first))))
    finally:
        docker("rm", "--force", name)
