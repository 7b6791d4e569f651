"""Containers of Docker as places of workloads, by the `docker` that is in PATH: the host's programs, and its
network. What asks them is started beside them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dasec.errors import Refusal
from dasec.lab.kit.driver import DOCKER, Role
from dasec.lab.kit.errors import failure
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import KILL_PATIENCE_S, READY_PATIENCE_S, last_line, spawn, wait_until
from dasec.lab.load_tool import find_tool
from dasec.linux import cgroupfs
from dasec.linux.errors import ThreadGone
from dasec.workloads.containers.engines import RUNC_IN_DOCKER
from guests.engines import image
from guests.engines.image import IMAGE

from ..drivers.tailbench import root_folder
from .bundle import CHECKOUT

SHOWN = ("/bin", "/sbin", "/usr", "/lib", "/lib64", "/etc")
"""Of the host, read-only, in place of what busybox' image has. Not all of it, as crun's containers have: who
holds /var/lib/docker keeps other containers from going."""

FIRST = ("cat",)
"""Ends with its standard input, and so with us, however we end; the container ends with it."""

UP = "up"
"""What it is told, and says then."""

BESIDE = "run this beside a Docker of its own: `python -m guests.engines COMMAND`"
"""How to do without an installed one."""


def docker(*words: str) -> str:
    """What it answers. Refusal if it fails."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise failure(f"docker {words[0]}: {said[-1]}")
    return done.stdout.strip()


def missing_docker() -> str | None:
    """Why there can be no containers, in one line; None: a Docker answers."""
    if shutil.which("docker") is None:
        return f"docker: not found: apt-get install docker.io, or {BESIDE}"
    try:
        docker("version")
    except Refusal as refusal:
        return f"{refusal.lines[0]}: start dockerd, or {BESIDE}"
    return None


def unloaded_image() -> str | None:
    """Why Docker has no image to run, after giving it ours; None: it has."""
    try:
        if not docker("images", "--quiet", IMAGE):
            with tempfile.TemporaryDirectory(prefix="dasec-image-") as folder:
                file = Path(folder) / "image.tar"
                image.write(file)
                docker("load", "--input", str(file))
    except FileNotFoundError as error:
        return f"{error.filename}: not found: apt-get install busybox-static"
    except Refusal as refusal:
        return refusal.lines[0]
    return None


@dataclass(frozen=True, slots=True)
class InDocker:
    """A container that runs, whose first process does nothing."""

    listens_at: ClassVar[str] = LOOPBACK
    container: str
    asks: tuple[str, ...]
    """What the command of a client begins with."""
    first: int
    """That process."""
    group: Path
    """Its directory in the cpu hierarchy."""

    @property
    def name(self) -> str:
        """As in `PLACES`."""
        return DOCKER

    def start(
        self,
        command: Sequence[str],
        log: Path,
        role: Role = Role.WORKLOAD,
        serves: Sequence[int] = (),  # noqa: ARG002  # the interface of places
    ) -> subprocess.Popen[bytes]:
        """By `docker exec`; a client beside the container."""
        if role is Role.CLIENT:
            return spawn((*self.asks, *command), log)
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


def run_command(name: str, writable: Path, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Runs a container of this name, which is removed when it ends. Names of files mean there what they mean
    here."""
    volumes = [word for path in _shown() for word in ("--volume", f"{path}:{path}:ro")]
    volumes += ["--volume", f"{writable.absolute()}:{writable.absolute()}"]
    run = ("docker", "run", "--interactive", "--rm", "--name", name, "--network", "host")
    here = ("--env", "PATH", "--workdir", str(Path.cwd()))
    return (*run, *here, *options, *volumes, IMAGE, *FIRST)


def _shown() -> Iterator[str]:
    """SHOWN, and where programs lie that are no package's. What is not there Docker would make."""
    own = (CHECKOUT, find_tool().parent, root_folder())
    paths = (*SHOWN, *(str(path.absolute()) for path in own if path))
    yield from (path for path in dict.fromkeys(paths) if os.path.exists(path))


@contextlib.contextmanager
def container(
    name: str, writable: Path, asks: Sequence[str], options: Sequence[str] = ()
) -> Iterator[InDocker]:
    """As long as the block runs, or we do. `asks` is what the command of a client begins with."""
    log = writable / f"{name}.log"
    log.unlink(missing_ok=True)
    process = spawn(run_command(name, writable, options), log)
    assert process.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):  # why it has gone is found out below
            process.stdin.write(f"{UP}\n".encode())
            process.stdin.flush()

        def runs() -> bool:
            if process.poll() is not None:
                raise failure(f"docker run {name}: {_reason(log)}")
            return UP in log.read_text(encoding="utf-8", errors="replace").split()

        wait_until(runs, f"docker run {name}", READY_PATIENCE_S)
        yield _running(name, tuple(asks))
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        _await_end(process, name)


def _reason(log: Path) -> str:
    """Why it did not run; below that Docker names its own help."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith("docker: ")), last_line(log))


def _running(name: str, asks: tuple[str, ...]) -> InDocker:
    """The container that runs. Refusal if the daemon would look for it in vain."""
    number, pid = docker("inspect", "--format", "{{.Id}} {{.State.Pid}}", name).split()
    state = Path("/", RUNC_IN_DOCKER, number)
    if not state.exists():
        raise failure(
            f"{state}: not found, and the daemon looks there: give Docker's own runc, without options"
        )
    first, hierarchy = int(pid), cgroupfs.find_hierarchy()
    try:
        group = hierarchy.group_of(first, first)
    except ThreadGone:
        raise failure(f"docker run {name}: ended before it was used: is somebody removing it?") from None
    return InDocker(name, asks, first, Path(hierarchy.directory(group)))


def _await_end(process: subprocess.Popen[bytes], name: str) -> None:
    try:
        process.wait(KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        how = f"`docker rm --force {name}`"
        raise failure(f"docker run {name}: does not end within {KILL_PATIENCE_S:g} s: {how}") from None
